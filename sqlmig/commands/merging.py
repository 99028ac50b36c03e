"""`merge`: joins heads statement by statement; what both changed differently is for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from sqlmig.commands.joining import (
    Join,
    checked_out,
    describe_join,
    history_of,
    join_revisions,
    side_of,
)
from sqlmig.commands.pipeline_files import (
    Written,
    bring_along,
    can_hold,
    edited_paths,
    write_pipeline,
)
from sqlmig.commands.project import Project
from sqlmig.commands.stale import refuse_stale
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
from sqlmig.program.diff import diff_programs
from sqlmig.program.model import Program
from sqlmig.revisions.errors import listed
from sqlmig.revisions.file import RevisionFile
from sqlmig.revisions.identifier import resolve_all
from sqlmig.revisions.render import new_revision_id


@dataclass(frozen=True)
class Merged:
    """What a merge wrote.

    Args:
        file: the revision's; None when that was `heads.lock` alone.
        pipeline: what became of `pipeline/`.
    """

    file: RevisionFile | None
    pipeline: Written = field(default_factory=Written)


class MergeConflict(RevisionError):
    """Both sides changed something, each in its own way; `pipeline/` has it between marks."""


def merge(
    project: Project,
    revisions: Sequence[str] = ("heads",),
    message: str = "",
    *,
    rev_id: str | None = None,
    branch_label: str | None = None,
) -> Merged:
    """Write a revision that has several heads as parents.

    Its program has the changes of all of them since their common ancestor, and `pipeline/` is
    brought to it.

    Args:
        revisions: names of the heads; by default all.
        message: by default "merge A and B".

    Returns:
        What was written; no revision when there is one head, and only `heads.lock` was not right.

    Raises:
        MergeConflict: both sides changed something differently, or what they make doesn't go
            together: `pipeline/` holds it for a person to solve, and `continue_merge` goes on.
        RevisionError: fewer than two heads; another merge is unfinished; there are conflicts, and
            `pipeline/` has edits, or there are more than two heads. Nothing is written.
    """
    refuse_unfinished(project)
    graph, _ = project.history()
    refuse_stale(project, graph)
    project.pipeline_texts()  # what can't be read is said before anything is written
    deployed = project.starting_point(*revisions)
    names = sorted({n for text in revisions for n in resolve_all(graph, text, deployed)})
    if len(names) < 2:
        if tuple(revisions) == ("heads",) and names and project.directory.lock_error() is not None:
            project.directory.write_lock()
            return Merged(None)
        raise RevisionError(
            "there is nothing to merge: "
            + (f"`{names[0]}` is the only head" if names else "there are no revisions"),
            hint="`sqlmig heads` lists the heads; name two or more",
        )
    for name in names:
        over = [n for n in names if n != name and name in history_of(graph, n)]
        if over:
            raise RevisionError(
                f"revision {name} is below {over[0]}, which has all its changes",
                hint="`sqlmig heads` lists the heads",
            )
    names, texts = _ours_first(project, names)
    joined = join_revisions(project, graph, names, texts)
    asked = _Asked(tuple(sorted(names)), message, rev_id, branch_label)
    sides = [*texts.values(), *(project.revision_files(name) for name in names)]
    if joined.program is None:
        raise _stopped(project, joined, asked, sides)
    file = _add(project, asked, joined.files, joined.program)
    written = bring_along(project, joined.files, joined.program, sides)
    return Merged(file, written)


def continue_merge(
    project: Project,
    message: str = "",
    *,
    rev_id: str | None = None,
    branch_label: str | None = None,
) -> Merged:
    """Write the merge with the program in `pipeline/`, where a person has solved the conflicts.

    Without an unfinished merge, it is one of all heads, which are two: so a person who solved it
    beforehand goes on.

    Raises:
        ProgramErrors: conflict marks are left, or the SQL has mistakes.
        RevisionError: there is nothing to merge, or the heads have changed since.
    """
    state = unfinished(project, "merge")
    if state is None:
        refuse_unfinished(project)
        graph, _ = project.history()
        refuse_stale(project, graph)
        names = graph.heads
        if len(names) != 2:
            raise RevisionError(
                "there is no unfinished merge", hint="`sqlmig merge` begins one of all heads"
            )
    else:
        refuse_moved(project, state)
        names = state.revisions
    files = project.working_files()
    program = project.parse(files)
    asked = _Asked(
        names,
        message or (state.message if state else ""),
        rev_id or (state.rev_id if state else None),
        branch_label or (state.branch_label if state else None),
    )
    file = _add(project, asked, files, program)
    forget(project)
    return Merged(file)


def abort_merge(project: Project) -> bool:
    """Give an unfinished merge up: `pipeline/` is again what it was before.

    Returns:
        False when `pipeline/` was left as it is, because the revisions are other ones by now.

    Raises:
        RevisionError: there is none.
    """
    state = unfinished(project, "merge")
    if state is None:
        refuse_unfinished(project)
        raise RevisionError(
            "there is no unfinished merge", hint="`sqlmig merge` begins one of all heads"
        )
    return give_up(project, state)


@dataclass(frozen=True)
class _Asked:
    """The parents, sorted, and what the new revision shall be called."""

    parents: tuple[str, ...]
    message: str
    rev_id: str | None
    branch_label: str | None


def _add(
    project: Project, asked: _Asked, files: Mapping[str, str], program: Program
) -> RevisionFile:
    names = asked.parents
    _, ledger = project.history()
    lines = []
    for name in names:
        changes = describe_diff(diff_programs(side_of(project, name).program, program))
        lines += [f"since {name}:", *(f"  {line}" for line in changes or ["no changes"])]
    return project.directory.add(
        revision=asked.rev_id or new_revision_id(),
        down_revisions=names,
        message=asked.message or f"merge {', '.join(names[:-1])} and {names[-1]}",
        created=datetime.now(timezone.utc),
        files=files,
        branch_labels=(asked.branch_label,) if asked.branch_label else (),
        diff_lines=lines,
        known=ledger.known.values() if ledger else (),
    )


def _ours_first(
    project: Project, names: Sequence[str]
) -> tuple[list[str], Mapping[str, Mapping[str, str]]]:
    """The revisions with the one that is checked out first, and its files as they are edited."""
    texts = checked_out(project, names)
    if texts:
        return sorted(names, key=lambda name: name not in texts), texts
    try:
        lock = project.directory.lock()
    except RevisionError:
        lock = None
    ours = lock.ours if lock and lock.ours else frozenset()
    return sorted(names, key=lambda name: (name not in ours, name)), {}


def _stopped(
    project: Project, joined: Join, asked: _Asked, sides: Sequence[Mapping[str, str]]
) -> RevisionError:
    """Write the conflicts into `pipeline/`, and the error that tells them."""
    told = describe_join(joined)
    shown = "\n".join(f"  {line}" for line in told.split("\n"))
    done = joined.ours.name.split(" and ")
    both = listed([*done, joined.theirs.name])
    if len(asked.parents) > 2:
        first = done if len(done) > 1 else [*done, joined.theirs.name]
        return RevisionError(
            f"{both} don't go together; nothing was written:\n\n{shown}",
            hint=f"join two at a time: `sqlmig merge {' '.join(first)}`",
        )
    if not can_hold(project, joined.files):
        return RevisionError(
            f"{both} don't go together, and not all their files lie in pipeline/:\n\n{shown}",
            hint="make a revision on top of one of them that changes it as the other one does: "
            f"`sqlmig revision -m ... --head {done[0]}`; then merge again",
        )
    before = project.pipeline_texts()
    edited = edited_paths(project, joined.files, [joined.base.files, *sides])
    if edited:
        return RevisionError(
            f"{both} don't go together, and this has edits that would be overwritten:\n\n{shown}",
            location=Location(edited[0]),
            hint="put your edits aside, for instance with `git stash`, and merge again; "
            "or, if pipeline/ is the solved program already: `sqlmig merge --continue`",
        )
    state = Unfinished(
        verb="merge",
        revisions=asked.parents,
        digests=digests_of(project, asked.parents),
        before=before,
        written=tuple(sorted(joined.files)),
        message=asked.message,
        rev_id=asked.rev_id,
        branch_label=asked.branch_label,
    )
    keep(project, state)
    write_pipeline(project, joined.files)
    return MergeConflict(f"{both} don't go together:\n\n{shown}", hint=state.hint)
