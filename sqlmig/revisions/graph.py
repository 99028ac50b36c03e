"""The revision graph. It knows names and parents, nothing of SQL, files, Git or Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from sqlmig.errors import Location, RevisionError
from sqlmig.revisions.errors import UnknownRevision, did_you_mean, raise_all


class Node(Protocol):
    """What the graph asks of a revision: a file, or a record of the ledger."""

    @property
    def revision(self) -> str: ...
    @property
    def down_revisions(self) -> tuple[str, ...]: ...
    @property
    def depends_on(self) -> tuple[str, ...]: ...
    @property
    def branch_labels(self) -> tuple[str, ...]: ...
    @property
    def path(self) -> str | None: ...


@dataclass(frozen=True)
class RevisionNode:
    """A revision without a file: its id, its parents, what it depends on, and its labels."""

    revision: str
    down_revisions: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    branch_labels: tuple[str, ...] = ()
    path: str | None = None


@dataclass(frozen=True)
class Walk:
    """The way from the deployed revision to a target: first all `downs`, then all `ups`.

    Args:
        downs: revisions to take back, newest first.
        ups: revisions to apply, oldest first.
    """

    downs: tuple[str, ...] = ()
    ups: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when the target is what is deployed."""
        return not self.downs and not self.ups


class RevisionGraph:
    """Revisions and their parents, checked: every parent exists and there is no cycle.

    `down_revisions` make the history: heads, bases, branch points and merge points come from
    them. `depends_on` (a revision id or a branch label) adds an edge for walks only, as in
    alembic.

    Raises:
        RevisionError: duplicate ids or labels, missing parents, cycles; all of them at once.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes: dict[str, Node] = {}
        self.labels: Mapping[str, str] = {}
        errors: list[RevisionError] = []
        for node in sorted(nodes, key=lambda n: (n.revision, n.path or "")):
            first = self._nodes.setdefault(node.revision, node)
            if first is not node:
                errors.append(_duplicate(first, node))
        self.labels = _labels(self._nodes, errors)
        self._parents = {
            name: node.down_revisions + tuple(self.labels.get(d, d) for d in node.depends_on)
            if node.depends_on
            else node.down_revisions
            for name, node in self._nodes.items()
        }
        errors.extend(self._missing())
        raise_all(errors)
        self._children = _inverted({n: v.down_revisions for n, v in self._nodes.items()})
        self._dependents = _inverted(self._parents)
        self.revisions: tuple[str, ...] = self._sorted_parents_first()
        self._position = {name: i for i, name in enumerate(self.revisions)}

    def __contains__(self, revision: object) -> bool:
        return revision in self._nodes

    def __iter__(self) -> Iterator[str]:
        """All ids, parents first."""
        return iter(self.revisions)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, sorted by id."""
        return tuple(self._nodes.values())

    @cached_property
    def heads(self) -> tuple[str, ...]:
        """Revisions that are no revision's parent, sorted."""
        return tuple(n for n in self._nodes if not self._children[n])

    @cached_property
    def independent_heads(self) -> tuple[str, ...]:
        """Heads that no other revision depends on either; alembic's "effective heads" aren't."""
        return tuple(n for n in self.heads if not self._dependents[n])

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """Revisions without a parent, sorted."""
        return tuple(n for n, v in self._nodes.items() if not v.down_revisions)

    @cached_property
    def branch_points(self) -> tuple[str, ...]:
        """Revisions with more than one child, sorted."""
        return tuple(n for n in self._nodes if len(self._children[n]) > 1)

    @cached_property
    def merge_points(self) -> tuple[str, ...]:
        """Revisions with more than one parent, sorted."""
        return tuple(n for n, v in self._nodes.items() if len(v.down_revisions) > 1)

    def node(self, revision: str) -> Node:
        """The node with exactly this id.

        Raises:
            RevisionError: there is none.
        """
        try:
            return self._nodes[revision]
        except KeyError:
            raise self.unknown(revision) from None

    def unknown(self, name: str) -> UnknownRevision:
        """The error for a name that is no revision and no branch label."""
        hint = did_you_mean(name, [*self._nodes, *self.labels])
        return UnknownRevision(
            f"no revision or branch `{name}`",
            hint=hint or "`sqlmig history` lists the revisions",
        )

    def down_revisions(self, revision: str) -> tuple[str, ...]:
        """The parents in the history, in the order of the file."""
        return self.node(revision).down_revisions

    def children(self, revision: str) -> tuple[str, ...]:
        """The revisions that have `revision` as a parent, sorted."""
        self.node(revision)
        return self._children[revision]

    def ancestors(self, revision: str | None, *, dependencies: bool = True) -> frozenset[str]:
        """`revision`, its parents, their parents, and so on; nothing for None (base).

        Args:
            revision: an id, or None for base.
            dependencies: follow `depends_on` too.
        """
        if revision is None:
            return frozenset()
        self.node(revision)
        if dependencies:
            return _reached(revision, self._parents.__getitem__)
        return _reached(revision, lambda name: self._nodes[name].down_revisions)

    def descendants(self, revision: str | None, *, dependencies: bool = True) -> frozenset[str]:
        """`revision`, its children, theirs, and so on; every revision for None (base)."""
        if revision is None:
            return frozenset(self._nodes)
        self.node(revision)
        edges = self._dependents if dependencies else self._children
        return _reached(revision, edges.__getitem__)

    def lineage(self, revision: str) -> frozenset[str]:
        """The branch that `revision` lies on: its ancestors and its descendants."""
        return self.ancestors(revision, dependencies=False) | self.descendants(
            revision, dependencies=False
        )

    def labels_of(self, revision: str) -> tuple[str, ...]:
        """The branch labels that `revision` belongs to, sorted, as alembic spreads them.

        A label holds for the revision that declares it and its descendants, and downwards as far
        as the branch goes: to the revision above the next branch point or merge point.
        """
        self.node(revision)
        return self._spread_labels.get(revision, ())

    def sort(self, revisions: Iterable[str]) -> tuple[str, ...]:
        """The given revisions, parents first; among others a branch stays together."""
        return tuple(sorted(set(revisions), key=self._position.__getitem__))

    def path(self, deployed: str | None, target: str | None) -> Walk:
        """The revisions to take back and to apply; each at most once, None is base.

        What is deployed is one program, with all ancestors of its revision applied. So the ups
        are the target's ancestors that aren't the deployed one's, and the downs the other way.

        Raises:
            RevisionError: an id is not in the graph.
        """
        applied = self.ancestors(deployed)
        wanted = self.ancestors(target)
        return Walk(
            downs=self.sort(applied - wanted)[::-1],
            ups=self.sort(wanted - applied),
        )

    @cached_property
    def _spread_labels(self) -> dict[str, tuple[str, ...]]:
        spread: dict[str, set[str]] = {}
        for label, owner in self.labels.items():
            reached = set(self.descendants(owner, dependencies=False))
            below = self._nodes[owner].down_revisions
            while len(below) == 1 and len(self._children[below[0]]) == 1:
                under = self._nodes[below[0]].down_revisions
                if len(under) > 1:
                    break
                reached.add(below[0])
                below = under
            for name in reached:
                spread.setdefault(name, set()).add(label)
        return {name: tuple(sorted(labels)) for name, labels in spread.items()}

    def _missing(self) -> Iterator[RevisionError]:
        for name, parents in self._parents.items():
            node = self._nodes[name]
            for position, parent in enumerate(parents):
                if parent in self._nodes:
                    continue
                of = "down_revision" if position < len(node.down_revisions) else "depends_on"
                yield RevisionError(
                    f"`{of}` of revision `{name}` names `{parent}`, which no revision file has",
                    location=_location(node),
                    hint=did_you_mean(parent, [n for n in self._nodes if n != name])
                    or f"bring the file of `{parent}` back, for instance with `git restore`",
                )

    def _sorted_parents_first(self) -> tuple[str, ...]:
        """Kahn's algorithm with a stack in place of the queue, so that a branch stays together."""
        waiting = {name: len(set(parents)) for name, parents in self._parents.items()}
        ready = sorted((name for name, count in waiting.items() if not count), reverse=True)
        done: list[str] = []
        while ready:
            name = ready.pop()
            done.append(name)
            for child in reversed(self._dependents[name]):
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        if len(done) < len(waiting):
            raise self._cycle({name for name, count in waiting.items() if count})
        return tuple(done)

    def _cycle(self, stuck: set[str]) -> RevisionError:
        """The error for a cycle; every stuck revision has a stuck parent, so walking down ends."""
        name = min(stuck)
        seen: list[str] = []
        while name not in seen:
            seen.append(name)
            name = min(parent for parent in self._parents[name] if parent in stuck)
        cycle = seen[seen.index(name) :]
        start = cycle.index(min(cycle))
        cycle = [*cycle[start:], *cycle[:start]]
        drawn = " -> ".join([*cycle, cycle[0]])
        return RevisionError(
            f"revisions form a cycle: {drawn}",
            location=_location(self._nodes[cycle[0]]),
            hint="correct `down_revision` or `depends_on` in one of these files",
        )


def _labels(nodes: Mapping[str, Node], errors: list[RevisionError]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for name, node in nodes.items():
        for label in node.branch_labels:
            if label in nodes:
                what = "the id of a revision"
            elif labels.setdefault(label, name) != name:
                what = f"used by revision `{labels[label]}`"
            else:
                continue
            errors.append(
                RevisionError(
                    f"branch label `{label}` of revision `{name}` is already {what}",
                    location=_location(node),
                    hint="give the branch another label",
                )
            )
    return labels


def _duplicate(first: Node, second: Node) -> RevisionError:
    return RevisionError(
        f"revision id `{second.revision}` is already taken"
        + (f" by `{first.path}`" if first.path else ""),
        location=_location(second),
        hint="delete one of the two files, or give it a new id",
    )


def _location(node: Node) -> Location | None:
    return Location(node.path) if node.path else None


def _inverted(edges: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {name: [] for name in edges}
    for name, ends in edges.items():
        for end in dict.fromkeys(ends):
            found[end].append(name)
    return {name: tuple(starts) for name, starts in found.items()}


def _reached(start: str, edges: Callable[[str], tuple[str, ...]]) -> frozenset[str]:
    found = {start}
    pending = [start]
    while pending:
        for name in edges(pending.pop()):
            if name not in found:
                found.add(name)
                pending.append(name)
    return frozenset(found)
