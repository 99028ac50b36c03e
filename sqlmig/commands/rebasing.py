"""`rebase`: puts the unapplied revisions of a branch on top of another head.

Their files keep names, ids, dates and hooks; parent and frozen program are new. No revision file is
written before all programs are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlmig.commands.joining import Join, Side, checked_out, describe_join, join, side_of
from sqlmig.commands.merging import MergeConflict
from sqlmig.commands.pipeline_files import (
    Written,
    bring_along,
    can_hold,
    edited_paths,
    write_pipeline,
)
from sqlmig.commands.project import Project
from sqlmig.commands.rebase_branch import Branch, find_branch, refuse_fixed
from sqlmig.commands.stale import find_stale, refuse_stale
from sqlmig.commands.unfinished import (
    Unfinished,
    digests_of,
    forget,
    give_up,
    keep,
    refuse_moved,
    refuse_unfinished,
    unfinished,
)
from sqlmig.errors import Location, RevisionError
from sqlmig.planning.explain import describe_diff
from sqlmig.program.diff import ProgramDiff, diff_programs
from sqlmig.program.model import EMPTY_PROGRAM
from sqlmig.revisions.file import RevisionFile
from sqlmig.revisions.graph import RevisionGraph


@dataclass(frozen=True)
class Rebased:
    """What a rebase wrote.

    Args:
        files: the revisions' files, oldest first, each with what it changes now.
        pipeline: what became of `pipeline/`.
    """

    files: tuple[tuple[RevisionFile, ProgramDiff], ...]
    pipeline: Written


def rebase(project: Project, revision: str | None = None, *, onto: str | None = None) -> Rebased:
    """Put the revisions that `revision` has and `onto` has not on top of `onto`.

    Each one's change is brought into the program of its new parent, as by a merge.

    Args:
        revision: the last one to move; by default the other head, or that of two heads of which
            nothing is applied or on the remote's main branch. Without `onto` too, revisions that
            Git has put behind a parent which was frozen anew come first, and stay behind it.
        onto: the new parent of the first; by default the other head.

    Raises:
        MergeConflict: a change doesn't go together with the new parent: `pipeline/` holds it for a
            person to solve, and `continue_rebase` goes on.
        RevisionError: it isn't clear what to move, or something of it is applied, on the remote's
            main branch, a merge, or has another branch on it; another rebase is unfinished; there
            are conflicts, and `pipeline/` has edits. Nothing is written.
    """
    refuse_unfinished(project)
    graph, _ = project.history()
    stale = find_stale(project, graph)
    if revision or onto:
        refuse_stale(project, graph)
        stale = None
    if stale is None:
        branch = find_branch(project, graph, revision, onto)
    else:
        above = graph.descendants(stale.revision, dependencies=False)
        branch = Branch(graph.sort(above), stale.parent, is_behind=True)
    refuse_fixed(project, graph, branch)
    return _go_on(
        project,
        Unfinished(
            verb="rebase",
            revisions=branch.chain,
            digests=digests_of(project, (*branch.chain, branch.onto)),
            before=project.pipeline_texts(),
            onto=branch.onto,
            former=stale.former if stale else None,
        ),
        checked_out(project, (branch.chain[-1], branch.onto)),
    )


def continue_rebase(project: Project) -> Rebased:
    """Go on with the program in `pipeline/`, where a person has solved the conflicts.

    Raises:
        MergeConflict: the next revision has conflicts, too.
        ProgramErrors: conflict marks are left, or the SQL has mistakes.
        RevisionError: there is no unfinished rebase, or the revisions have changed since.
    """
    state = _unfinished(project)
    pending = [name for name in state.revisions if name not in state.solved]
    if pending or not set(state.revisions) <= set(project.directory.files):
        refuse_moved(project, state)
    if not pending:
        return _finish(project, state, ())
    files = dict(project.working_files())
    project.parse(files)
    solved = {**state.solved, pending[0]: files}
    return _go_on(project, replace(state, solved=solved), {})


def abort_rebase(project: Project) -> bool:
    """Give an unfinished rebase up: `pipeline/` is again what it was, and no revision was changed.

    Returns:
        False when `pipeline/` was left as it is, because the revisions are other ones by now.

    Raises:
        RevisionError: there is none, or all is solved and its files are being written.
    """
    state = _unfinished(project)
    is_there = set(state.digests) <= set(project.directory.files)
    if is_there and len(state.solved) == len(state.revisions):
        raise RevisionError(
            "the rebase is solved, and its files are being written",
            hint="`sqlmig rebase --continue` writes the rest",
        )
    return give_up(project, state)


def _unfinished(project: Project) -> Unfinished:
    state = unfinished(project, "rebase")
    if state is None:
        refuse_unfinished(project)
        raise RevisionError(
            "there is no unfinished rebase", hint="`sqlmig rebase REV --onto REV` begins one"
        )
    return state


def _go_on(project: Project, state: Unfinished, texts: Mapping[str, Mapping[str, str]]) -> Rebased:
    """Bring one change after the other into the new parent, until one is for a person."""
    graph, _ = project.history()
    solved = dict(state.solved)
    parent = _side_before(project, state, texts)
    for name in state.revisions:
        if name in solved:
            continue
        base = _base(project, graph, state, name)
        theirs = side_of(project, name, texts.get(name))
        joined = join(project, base, parent, theirs)
        if joined.program is None:
            raise _stopped(project, replace(state, solved=solved), joined, list(texts.values()))
        solved[name] = dict(joined.files)
        parent = Side(name, joined.files, joined.program)
    return _finish(project, replace(state, solved=solved), list(texts.values()))


def _base(project: Project, graph: RevisionGraph, state: Unfinished, name: str) -> Side:
    """What a revision was made on."""
    below = graph.down_revisions(name)
    if not below:
        return Side("base", {}, EMPTY_PROGRAM)
    is_first = name == state.revisions[0]
    return side_of(project, below[0], state.former if is_first else None)


def _side_before(
    project: Project, state: Unfinished, texts: Mapping[str, Mapping[str, str]]
) -> Side:
    """What the next revision is put on."""
    done = [name for name in state.revisions if name in state.solved]
    if not done:
        return side_of(project, state.onto, texts.get(state.onto))
    return side_of(project, done[-1], state.solved[done[-1]])


def _finish(project: Project, state: Unfinished, texts: Sequence[Mapping[str, str]]) -> Rebased:
    """Write all files; what is done again, after a crash, comes out the same."""
    last = state.revisions[-1]
    final = state.solved[last]
    sides = [*texts, *state.solved.values()]
    sides += [project.revision_files(name) for name in (*state.revisions, state.onto)]
    keep(project, state)
    _, ledger = project.history()
    parents = dict(zip(state.revisions, (state.onto, *state.revisions), strict=False))
    programs = {name: project.parse(state.solved[name]) for name in state.revisions}
    programs[state.onto] = side_of(project, state.onto).program
    written = []
    # the first one comes last: until it has its new parent there are two heads, and nobody deploys
    for name in reversed(state.revisions):
        difference = diff_programs(programs[parents[name]], programs[name])
        file = project.directory.replace(
            project.directory.files[name],
            files=state.solved[name],
            down_revisions=(parents[name],),
            diff_lines=describe_diff(difference),
            known=ledger.known.values() if ledger else (),
        )
        written.append((file, difference))
    pipeline = bring_along(project, final, programs[last], sides)
    forget(project)
    return Rebased(tuple(reversed(written)), pipeline)


def _stopped(
    project: Project, state: Unfinished, joined: Join, texts: Sequence[Mapping[str, str]]
) -> RevisionError:
    """Write the conflicts into `pipeline/`, and the error that tells them."""
    shown = "\n".join(f"  {line}" for line in describe_join(joined).split("\n"))
    told = f"`{joined.theirs.name}` doesn't go on top of `{joined.ours.name}`"
    merge = f"`sqlmig merge {' '.join(sorted((state.revisions[-1], state.onto)))}`"
    if not can_hold(project, joined.files):
        return RevisionError(
            f"{told}, and not all its files lie in pipeline/:\n\n{shown}",
            hint=f"join them instead: {merge}",
        )
    sides = [*texts, joined.base.files, joined.ours.files, *state.solved.values()]
    sides += [project.revision_files(name) for name in (*state.revisions, state.onto)]
    edited = edited_paths(project, joined.files, sides)
    if edited:
        return RevisionError(
            f"{told}, and this has edits that would be overwritten:\n\n{shown}",
            location=Location(edited[0]),
            hint="put your edits aside, for instance with `git stash`, and rebase again",
        )
    written = tuple(sorted({*state.written, *joined.files}))
    keep(project, replace(state, written=written))
    write_pipeline(project, joined.files)
    return MergeConflict(f"{told}:\n\n{shown}", hint=state.hint)
