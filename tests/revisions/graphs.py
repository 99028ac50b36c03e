"""Graphs for tests: from a few words, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st

from sqlmig.revisions.graph import RevisionGraph, RevisionNode


def graph_of(*lines: str) -> RevisionGraph:
    """A graph from lines `revision < parent parent ~ dependency @ label`; all but the id optional."""
    return RevisionGraph(node_of(line) for line in lines)


def node_of(line: str) -> RevisionNode:
    parts: dict[str, list[str]] = {"": [], "<": [], "~": [], "@": []}
    part = ""
    for word in line.split():
        if word in parts:
            part = word
        else:
            parts[part].append(word)
    (revision,) = parts[""]
    return RevisionNode(
        revision,
        tuple(parts["<"]),
        depends_on=tuple(parts["~"]),
        branch_labels=tuple(parts["@"]),
        path=f"revisions/{revision}.py",
    )


@st.composite
def random_graphs(draw: st.DrawFn, *, largest: int = 12) -> RevisionGraph:
    """Any acyclic graph: several bases, branches, merges and dependencies; ids in no order."""
    count = draw(st.integers(1, largest))
    names = draw(
        st.lists(
            st.text("0123456789abcdef", min_size=4, max_size=12),
            min_size=count,
            max_size=count,
            unique=True,
        )
    )
    nodes = []
    for position, name in enumerate(names):
        older = st.lists(st.sampled_from(names[:position] or [name]), unique=True, max_size=3)
        parents = draw(older) if position else []
        needed = draw(older) if position and draw(st.booleans()) else []
        nodes.append(RevisionNode(name, tuple(parents), tuple(needed)))
    return RevisionGraph(draw(st.permutations(nodes)))


@st.composite
def graphs_with_two_places(
    draw: st.DrawFn,
) -> tuple[RevisionGraph, str | None, str | None]:
    """A random graph, and two revisions of it; None is base."""
    graph = draw(random_graphs())
    place = st.sampled_from([None, *graph.revisions])
    return graph, draw(place), draw(place)
