"""The revision graph: heads, branches and walks, each graph drawn in its test."""

from __future__ import annotations

import pytest
from hypothesis import given

from sqlmig.errors import RevisionError
from sqlmig.revisions.errors import RevisionErrors
from sqlmig.revisions.graph import RevisionGraph, RevisionNode, Walk
from tests.revisions.graphs import graph_of, graphs_with_two_places, random_graphs

DIAMOND = ("a", "b < a", "c < a", "m < b c")


def test_a_graph_without_revisions_has_no_heads_and_no_bases() -> None:
    graph = RevisionGraph([])

    assert (graph.heads, graph.bases, graph.revisions) == ((), (), ())
    assert graph.path(None, None) == Walk()
    assert graph.path(None, None).is_empty


def test_a_line_has_one_base_and_one_head() -> None:
    """a -- b -- c"""
    graph = graph_of("c < b", "a", "b < a")

    assert graph.bases == ("a",)
    assert graph.heads == ("c",)
    assert graph.branch_points == ()
    assert graph.merge_points == ()
    assert graph.revisions == ("a", "b", "c")
    assert len(graph) == 3
    assert list(graph) == ["a", "b", "c"]


def test_branch_points_have_several_children_and_merge_points_several_parents() -> None:
    """
          b
        /   \\
      a       m
        \\   /
          c
    """
    graph = graph_of(*DIAMOND)

    assert graph.branch_points == ("a",)
    assert graph.merge_points == ("m",)
    assert graph.heads == ("m",)
    assert graph.children("a") == ("b", "c")
    assert graph.down_revisions("m") == ("b", "c")


def test_a_branch_stays_together_when_revisions_are_sorted() -> None:
    """
          b1 -- b2
        /          \\
      a              m
        \\          /
          c1 -- c2
    """
    graph = graph_of("a", "b1 < a", "c1 < a", "b2 < b1", "c2 < c1", "m < b2 c2")

    assert graph.revisions == ("a", "b1", "b2", "c1", "c2", "m")
    assert graph.sort({"c1", "m", "a"}) == ("a", "c1", "m")


def test_a_dependency_is_an_ancestor_but_no_parent() -> None:
    """
    a -- b
         :        b needs x
    x ...:
    """
    graph = graph_of("a", "b < a ~ x", "x")

    assert graph.ancestors("b") == {"a", "b", "x"}
    assert graph.ancestors("b", dependencies=False) == {"a", "b"}
    assert graph.descendants("x") == {"x", "b"}
    assert graph.descendants("x", dependencies=False) == {"x"}
    assert graph.heads == ("b", "x")
    assert graph.independent_heads == ("b",)
    assert graph.bases == ("a", "x")


def test_a_dependency_may_be_a_branch_label() -> None:
    """
    a -- b
         :        b needs the branch `tools`, which is x
    x ...:
    """
    graph = graph_of("a", "b < a ~ tools", "x @ tools")

    assert graph.ancestors("b") == {"a", "b", "x"}


def test_a_walk_up_applies_parents_first() -> None:
    """a -- b -- c"""
    graph = graph_of("a", "b < a", "c < b")

    assert graph.path("a", "c") == Walk(ups=("b", "c"))
    assert graph.path(None, "b") == Walk(ups=("a", "b"))


def test_a_walk_down_takes_back_the_newest_first() -> None:
    """a -- b -- c"""
    graph = graph_of("a", "b < a", "c < b")

    assert graph.path("c", "a") == Walk(downs=("c", "b"))
    assert graph.path("c", None) == Walk(downs=("c", "b", "a"))


def test_a_walk_to_another_branch_goes_down_and_then_up() -> None:
    """
          b -- d
        /
      a
        \\
          c
    """
    graph = graph_of("a", "b < a", "d < b", "c < a")

    assert graph.path("d", "c") == Walk(downs=("d", "b"), ups=("c",))


def test_a_walk_below_a_merge_takes_back_the_other_branch_too() -> None:
    """
          b
        /   \\
      a       m
        \\   /
          c
    """
    graph = graph_of(*DIAMOND)

    assert graph.path("m", "b") == Walk(downs=("m", "c"))
    assert graph.path("b", "m") == Walk(ups=("c", "m"))


def test_a_walk_applies_what_is_depended_on_first() -> None:
    """
    a -- b
         :        b needs y
    x -- y
    """
    graph = graph_of("a", "b < a ~ y", "x", "y < x")

    assert graph.path("a", "b") == Walk(ups=("x", "y", "b"))


def test_a_branch_label_spreads_to_the_branch_only() -> None:
    """
          b -- c* -- d
        /              \\
      a                  m       * declares `tools`
        \\              /
          e ----------
    """
    graph = graph_of("a", "b < a", "c < b @ tools", "d < c", "e < a", "m < d e")

    labelled = [name for name in graph if graph.labels_of(name) == ("tools",)]

    assert labelled == ["b", "c", "d", "m"]


def test_a_branch_label_does_not_spread_below_a_merge() -> None:
    """
      a
        \\
          m -- c*                * declares `tools`
        /
      b
    """
    graph = graph_of("a", "b", "m < a b", "c < m @ tools")

    assert [name for name in graph if graph.labels_of(name)] == ["c"]


def test_a_missing_parent_is_an_error_at_its_file_with_the_nearest_name() -> None:
    """(8f3c2a91d0bb) -- b"""
    with pytest.raises(RevisionError) as caught:
        graph_of("8f3c2a91d0be", "b < 8f3c2a91d0bb")

    assert caught.value.render() == (
        "error: revisions/b.py: `down_revision` of revision `b` names `8f3c2a91d0bb`, "
        "which no revision file has\n\nhint: did you mean `8f3c2a91d0be`?"
    )


def test_a_missing_dependency_is_named_as_such() -> None:
    with pytest.raises(RevisionError) as caught:
        graph_of("a", "b < a ~ gone")

    assert "`depends_on` of revision `b` names `gone`" in caught.value.message
    assert caught.value.hint is not None
    assert "git restore" in caught.value.hint


def test_all_mistakes_of_a_graph_are_shown_at_once() -> None:
    with pytest.raises(RevisionErrors) as caught:
        graph_of("a < gone", "b < lost")

    assert len(caught.value.errors) == 2
    assert caught.value.render().count("error: ") == 2
    assert str(caught.value).splitlines()[0].startswith("revisions/a.py: ")


@pytest.mark.parametrize(
    ("lines", "cycle"),
    [
        (("a < a",), "a -> a"),
        (("a < b", "b < a"), "a -> b -> a"),
        (("r", "c < b", "b < r a", "a < c", "z < c"), "a -> c -> b -> a"),
        (("a ~ b", "b < a"), "a -> b -> a"),
    ],
)
def test_a_cycle_is_an_error_that_draws_it(lines: tuple[str, ...], cycle: str) -> None:
    with pytest.raises(RevisionError) as caught:
        graph_of(*lines)

    assert caught.value.message == f"revisions form a cycle: {cycle}"
    assert str(caught.value.location) == "revisions/a.py"


def test_an_id_that_two_files_have_is_an_error_that_names_both() -> None:
    nodes = [RevisionNode("a", path="revisions/1.py"), RevisionNode("a", path="revisions/2.py")]

    with pytest.raises(RevisionError) as caught:
        RevisionGraph(nodes)

    assert str(caught.value) == (
        "revisions/2.py: revision id `a` is already taken by `revisions/1.py`"
    )


@pytest.mark.parametrize(
    ("lines", "taken"),
    [
        (("a @ tools", "b < a @ tools"), "used by revision `a`"),
        (("a", "b < a @ a"), "the id of a revision"),
    ],
)
def test_a_branch_label_must_be_new(lines: tuple[str, ...], taken: str) -> None:
    with pytest.raises(RevisionError) as caught:
        graph_of(*lines)

    assert caught.value.message.endswith(f"of revision `b` is already {taken}")


def test_an_unknown_revision_is_an_error_in_every_question() -> None:
    graph = graph_of("abcd")

    for ask in (graph.node, graph.children, graph.down_revisions, graph.ancestors, graph.lineage):
        with pytest.raises(RevisionError) as caught:
            ask("abce")
        assert caught.value.message == "no revision or branch `abce`"
        assert caught.value.hint == "did you mean `abcd`?"
    with pytest.raises(RevisionError):
        graph.path("abce", None)


@given(random_graphs())
def test_parents_and_dependencies_always_come_first(graph: RevisionGraph) -> None:
    position = {name: place for place, name in enumerate(graph.revisions)}

    assert len(position) == len(graph)
    for name in graph:
        node = graph.node(name)
        for older in (*node.down_revisions, *node.depends_on):
            assert position[older] < position[name]


@given(graphs_with_two_places())
def test_a_walk_reaches_its_target_and_the_way_back_its_start(
    places: tuple[RevisionGraph, str | None, str | None],
) -> None:
    graph, deployed, target = places

    there = graph.path(deployed, target)
    back = graph.path(target, deployed)

    assert _applied(graph, graph.ancestors(deployed), there) == graph.ancestors(target)
    assert _applied(graph, graph.ancestors(target), back) == graph.ancestors(deployed)
    assert set(back.ups) == set(there.downs)
    assert set(back.downs) == set(there.ups)


@given(graphs_with_two_places())
def test_a_walk_passes_each_revision_once(
    places: tuple[RevisionGraph, str | None, str | None],
) -> None:
    graph, deployed, target = places

    walk = graph.path(deployed, target)

    passed = [*walk.downs, *walk.ups]
    assert len(passed) == len(set(passed))
    assert walk.is_empty == (graph.ancestors(deployed) == graph.ancestors(target))


@given(random_graphs())
def test_heads_and_bases_are_the_ends_of_the_graph(graph: RevisionGraph) -> None:
    assert frozenset().union(*(graph.ancestors(head) for head in graph.heads)) == set(graph)
    assert frozenset().union(*(graph.descendants(base) for base in graph.bases)) == set(graph)


def _applied(graph: RevisionGraph, applied: frozenset[str], walk: Walk) -> frozenset[str]:
    """Carry the walk out on a set; fail when a revision goes before its parent, or stays after."""
    state = set(applied)
    for name in walk.downs:
        node = graph.node(name)
        assert name in state
        assert state.isdisjoint(graph.descendants(name) - {name})
        assert state.issuperset({*node.down_revisions, *node.depends_on})
        state.remove(name)
    for name in walk.ups:
        node = graph.node(name)
        assert name not in state
        assert state.issuperset({*node.down_revisions, *node.depends_on})
        state.add(name)
    return frozenset(state)
