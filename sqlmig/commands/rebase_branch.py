"""Which revisions a rebase moves, where to, and whether it may. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlmig.commands.joining import history_of
from sqlmig.commands.project import Project
from sqlmig.errors import Location, RevisionError
from sqlmig.revisions.errors import listed
from sqlmig.revisions.graph import RevisionGraph, RevisionNode
from sqlmig.revisions.identifier import resolve
from sqlmig.wording import counted


@dataclass(frozen=True)
class Branch:
    """The revisions to move, oldest first, and the one to move them to.

    Args:
        is_behind: they stand behind `onto` already, and are only frozen anew.
    """

    chain: tuple[str, ...]
    onto: str
    is_behind: bool = False


def find_branch(
    project: Project, graph: RevisionGraph, revision: str | None, onto: str | None
) -> Branch:
    """What is to be moved, and where to.

    Args:
        revision, onto: names of revisions, as for `rebase`.

    Raises:
        RevisionError: no such revision, it isn't clear which, or there is nothing to move.
    """
    deployed = project.starting_point(revision or "", onto or "")
    last = resolve(graph, revision, deployed) if revision else None
    new_parent = resolve(graph, onto, deployed) if onto else None
    if (revision and last is None) or (onto and new_parent is None):
        raise RevisionError("base is no revision", hint="`sqlmig history` lists the revisions")
    if last is None and new_parent is None:
        last, new_parent = _choice(project, graph)
    elif last is None or new_parent is None:
        named = last or new_parent
        assert named is not None
        other = [head for head in graph.heads if named not in history_of(graph, head)]
        if len(other) != 1:
            raise RevisionError(
                f"it is not clear what `{named}` goes together with: there "
                + (f"are heads {listed(other)}" if other else "is no other head"),
                hint="name both: `sqlmig rebase REV --onto REV`",
            )
        last, new_parent = (named, other[0]) if last else (other[0], named)
    assert last is not None
    assert new_parent is not None
    below = history_of(graph, new_parent)
    chain = graph.sort(history_of(graph, last) - below)
    if not chain or new_parent in history_of(graph, last):
        raise RevisionError(
            f"there is nothing to rebase: `{last}` is "
            + ("part of" if not chain else "on top of")
            + f" `{new_parent}` already",
            hint="`sqlmig heads` lists the heads",
        )
    return Branch(chain, new_parent)


def _choice(project: Project, graph: RevisionGraph) -> tuple[str, str]:
    """Of two heads the one that may move, and the other one.

    Raises:
        RevisionError: there are not two heads, or both may move, or none.
    """
    heads = graph.heads
    if len(heads) != 2:
        raise RevisionError(
            f"there {'is' if len(heads) == 1 else 'are'} "
            + (counted(len(heads), "head") if heads else "no heads")
            + ", and a rebase is of one of two",
            hint="`sqlmig rebase REV --onto REV` names both",
        )
    ways = [(heads[0], heads[1]), (heads[1], heads[0])]
    errors = []
    free = []
    for last, onto in ways:
        branch = find_branch(project, graph, last, onto)
        error = next(_refusals(project, graph, branch), None)
        if error is None:
            free.append((last, onto))
        else:
            errors.append(error)
    if len(free) == 1:
        return free[0]
    if errors:
        raise errors[0]
    raise RevisionError(
        f"{listed(heads)} may both be put on top of the other one",
        hint=f"name the one that moves: `sqlmig rebase {heads[0]}` or `sqlmig rebase {heads[1]}`",
    )


def _refusals(project: Project, graph: RevisionGraph, branch: Branch) -> Iterator[RevisionError]:
    """Why the branch can't be moved."""
    from sqlmig.git.merging import names_on_main

    both = sorted((branch.chain[-1], branch.onto))
    hint = f"join them instead: `sqlmig merge {' '.join(both)}`"
    if branch.is_behind:
        hint = "let Git take it back (`git rebase --abort`, `git merge --abort`); merge instead"
    known = project.deployment().known
    on_main = names_on_main(project.directory.path)
    for name in branch.chain:
        node = graph.node(name)
        file = project.directory.get(name)
        others = sorted(set(graph.children(name)) - set(branch.chain))
        why = None
        if name in known:
            why = f"it was applied to target `{project.target.name}`"
        elif file is None:
            why = "it has no file"
        elif on_main is not None and file.path.rpartition("/")[2] in on_main[1]:
            why = f"it is on `{on_main[0]}` already"
        elif len(node.down_revisions) > 1:
            why = f"it merges {listed(node.down_revisions)}"
        elif others:
            why = f"{listed(others)} {'is' if len(others) == 1 else 'are'} on top of it, too"
        if why is not None:
            yield RevisionError(
                f"revision {name} can't be rebased: {why}",
                location=Location(node.path) if node.path else None,
                hint=hint,
            )


def refuse_fixed(project: Project, graph: RevisionGraph, branch: Branch) -> None:
    """Raise when the branch can't be moved.

    Raises:
        RevisionError: a revision is applied to the target, on the remote's main branch, a merge, or
            has another branch on it; or the new order is a circle with what revisions depend on.
    """
    error = next(_refusals(project, graph, branch), None)
    if error is not None:
        raise error
    first = branch.chain[0]
    RevisionGraph(
        [
            RevisionNode(
                node.revision,
                (branch.onto,) if node.revision == first else node.down_revisions,
                node.depends_on,
                node.branch_labels,
                node.path,
            )
            for node in graph.nodes
        ]
    )
