"""`revision`: freezes the working SQL into a new file below a head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sqlmig.commands.project import Project
from sqlmig.commands.unfinished import refuse_unfinished
from sqlmig.errors import Location, RevisionError
from sqlmig.revisions.file import RevisionFile
from sqlmig.revisions.identifier import resolve

if TYPE_CHECKING:
    from sqlmig.program.diff import ProgramDiff
    from sqlmig.program.model import Program


@dataclass(frozen=True)
class NewRevision:
    """A revision just written, and what it changes. `file` is None when nothing changed."""

    file: RevisionFile | None
    diff: ProgramDiff
    parents: tuple[str, ...]


def revision(
    project: Project,
    message: str,
    *,
    rev_id: str | None = None,
    head: str = "head",
    splice: bool = False,
    branch_label: str | None = None,
    depends_on: Sequence[str] = (),
    empty: bool = False,
    amend: bool = False,
) -> NewRevision:
    """Freeze `pipeline/*.sql` into a new revision.

    Args:
        message: what it is for; for `amend` "" keeps the old one.
        rev_id: its id; by default a random one.
        head: the parent.
        splice: allow a parent that is no head.
        branch_label: a label for the branch that begins here.
        depends_on: revisions that must be applied before, besides the parent.
        empty: make a revision although the program did not change, for its hooks.
        amend: freeze the SQL into the head, which must not be applied yet.

    Returns:
        The file written; None in it when the program did not change.

    Raises:
        ProgramErrors: the SQL has mistakes.
        RevisionError: no such head, several heads, or the head is applied.
    """
    refuse_unfinished(project)
    directory = project.directory
    if amend:
        return _amend(project, message, head)
    graph, ledger = project.history()
    deployed = project.starting_point(head, *depends_on)
    parent = resolve(graph, head, deployed) if len(graph) or head != "head" else None
    if parent is not None and parent not in graph.heads and not splice:
        raise RevisionError(
            f"revision {parent} is not a head; a revision below it makes a new branch",
            hint="add `--splice` if a branch is wanted",
        )
    before_files = project.revision_files(parent, ledger) if parent else {}
    before = project.parse(before_files)
    if empty:
        files, after = before_files, before
    else:
        files = project.working_files()
        after = project.parse(files)
    difference = _diff(before, after)
    if difference.is_empty and not empty:
        return NewRevision(None, difference, (parent,) if parent else ())
    needed = tuple(resolve(graph, name, deployed) or name for name in depends_on)
    from sqlmig.revisions.render import new_revision_id

    up_lines, down_lines = suggest_directives(before, after)
    file = directory.add(
        revision=rev_id or new_revision_id(),
        down_revisions=(parent,) if parent else (),
        message=message,
        created=datetime.now(timezone.utc),
        files=files,
        branch_labels=(branch_label,) if branch_label else (),
        depends_on=needed,
        diff_lines=_lines(difference),
        up_lines=up_lines,
        down_lines=down_lines,
        known=ledger.known.values() if ledger else (),
    )
    return NewRevision(file, difference, file.down_revisions)


def _amend(project: Project, message: str, head: str) -> NewRevision:
    directory = project.directory
    graph, ledger = project.history()
    name = resolve(graph, head, project.starting_point(head)) if len(graph) else None
    file = directory.get(name) if name else None
    if file is None:
        raise RevisionError(
            "there is no revision to amend", hint="`sqlmig revision -m ...` makes one"
        )
    if file.revision not in graph.heads:
        raise RevisionError(
            f"revision {file.revision} is not a head: others were made on top of it",
            location=Location(file.path),
            hint="make a new revision instead",
        )
    deployment = project.deployment()
    if file.revision in deployment.known:
        raise RevisionError(
            f"revision {file.revision} can't be amended: "
            f"it was applied to target `{project.target.name}`",
            location=Location(file.path),
            hint="make a new revision: `sqlmig revision -m ...`",
        )
    parent = file.down_revisions[0] if file.down_revisions else None
    before = project.parse(project.revision_files(parent, ledger) if parent else {})
    files = project.working_files()
    after = project.parse(files)
    difference = _diff(before, after)
    up_lines, down_lines = suggest_directives(before, after)
    amended = directory.replace(
        file,
        files=files,
        message=message or None,
        diff_lines=_lines(difference),
        up_lines=up_lines,
        down_lines=down_lines,
        known=ledger.known.values() if ledger else (),
    )
    return NewRevision(amended, difference, file.down_revisions)


def suggest_directives(before: Program, after: Program) -> tuple[list[str], list[str]]:
    """Lines for `up` and `down`: directives that the diff suggests, as comments to be uncommented.

    Whether a table or column was renamed, or one dropped and another added, only a person knows.
    """
    from sqlmig.planning.windows import has_windows, obstacle
    from sqlmig.program.canonical import fingerprint

    up: list[str] = []
    down: list[str] = []
    gone = sorted(set(before.tables) - set(after.relations))
    new = sorted(set(after.tables) - set(before.relations))
    for old in gone:
        for fresh in new:
            if _shape(before, old) == _shape(after, fresh):
                up.append(f'# op.rename_table("{old}", "{fresh}")  # keeps the rows')
                down.append(f'# op.rename_table("{fresh}", "{old}")')
    for name in sorted(set(before.tables) & set(after.tables)):
        old_columns = {c.name.lower(): c.type for c in before.tables[name].columns}
        new_columns = {c.name.lower(): c.type for c in after.tables[name].columns}
        for old in [c for c in old_columns if c not in new_columns]:
            for fresh in [c for c in new_columns if c not in old_columns]:
                if old_columns[old] == new_columns[fresh]:
                    up.append(
                        f'# op.rename_column("{name}", "{old}", "{fresh}")  # keeps the values'
                    )
                    down.append(f'# op.rename_column("{name}", "{fresh}", "{old}")')
    for name in sorted(set(before.relations) & set(after.relations)):
        old_view, new_view = before.views.get(name), after.views.get(name)
        if old_view is None or new_view is None or not old_view.is_streaming:
            continue
        if not new_view.is_streaming or fingerprint(old_view) == fingerprint(new_view):
            continue
        if has_windows(before, after, name):
            if obstacle(before, after, name) is None:
                up.append(f'# op.in_place("{name}")  # keeps what it has; else it is made anew')
        else:
            up.append(
                f'# op.rebuild("{name}")  # makes all its rows anew; else it goes on in place'
            )
    return up, down


def _shape(program: Program, name: str) -> tuple[tuple[str, str], ...]:
    return tuple((c.name.lower(), c.type) for c in program.tables[name].columns)


def _diff(before: Program, after: Program) -> ProgramDiff:
    from sqlmig.program.diff import diff_programs

    return diff_programs(before, after)


def _lines(difference: ProgramDiff) -> Sequence[str]:
    from sqlmig.planning.explain import describe_diff

    return describe_diff(difference)
