"""`merge`: joins heads whose programs are equal or differ in disjoint relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from sqlmig.commands.project import Project
from sqlmig.errors import Location, ProgramErrors, RevisionError
from sqlmig.planning.explain import describe_diff
from sqlmig.program.combine import combine, describe
from sqlmig.program.diff import diff_programs
from sqlmig.program.model import EMPTY_PROGRAM, Program
from sqlmig.revisions.errors import listed
from sqlmig.revisions.file import RevisionFile
from sqlmig.revisions.graph import RevisionGraph
from sqlmig.revisions.identifier import resolve_all
from sqlmig.revisions.render import new_revision_id


@dataclass(frozen=True)
class Merged:
    """What a merge wrote: the revision's file; None when that was `heads.lock` alone."""

    file: RevisionFile | None


def merge(
    project: Project,
    revisions: Sequence[str] = ("heads",),
    message: str = "",
    *,
    rev_id: str | None = None,
    branch_label: str | None = None,
) -> Merged:
    """Write a revision that has several heads as parents.

    Its program has the changes of all of them since their common ancestor. When `pipeline/` holds
    the program of one of them, it is brought to the joined one, too.

    Args:
        revisions: names of the heads; by default all.
        message: by default "merge A and B".

    Returns:
        The file written; None in it when there is one head, and only `heads.lock` was not right.

    Raises:
        RevisionError: fewer than two heads, or both sides change one relation; nothing is written.
    """
    graph, ledger = project.history()
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
        over = [n for n in names if n != name and name in _history(graph, n)]
        if over:
            raise RevisionError(
                f"revision {name} is below {over[0]}, which has all its changes",
                hint="`sqlmig heads` lists the heads",
            )
    files, joined = _joined(project, graph, names)
    file = project.directory.add(
        revision=rev_id or new_revision_id(),
        down_revisions=names,
        message=message or f"merge {', '.join(names[:-1])} and {names[-1]}",
        created=datetime.now(timezone.utc),
        files=files,
        branch_labels=(branch_label,) if branch_label else (),
        diff_lines=_diff_lines(project, names, joined),
        known=ledger.known.values() if ledger else (),
    )
    _update_pipeline(project, names, files)
    return Merged(file)


def _diff_lines(project: Project, names: Sequence[str], joined: Program) -> list[str]:
    lines = []
    for name in names:
        changes = describe_diff(diff_programs(_program(project, name), joined))
        lines += [f"since {name}:", *(f"  {line}" for line in changes or ["no changes"])]
    return lines


def _joined(
    project: Project, graph: RevisionGraph, names: Sequence[str]
) -> tuple[Mapping[str, str], Program]:
    """The program that has the changes of all of `names`, as it is to be frozen and as parsed.

    Raises:
        RevisionError: two of them change one relation, or what they make doesn't go together.
    """
    files, joined = _files(project, names[0]), _program(project, names[0])
    seen = _history(graph, names[0])
    for theirs in names[1:]:
        history = _history(graph, theirs)
        base_files, base = _base(project, graph, seen & history)
        # statements are taken as they are frozen, with variables in place
        files, conflicts = combine(
            _with_files(base, base_files),
            _with_files(joined, files),
            _with_files(_program(project, theirs), _files(project, theirs)),
        )
        sides = names[: names.index(theirs)]
        if conflicts:
            others = " or ".join(f"`{side}`" for side in sides)
            raise RevisionError(
                f"{describe(conflicts)} {'is' if len(conflicts) == 1 else 'are'} changed by "
                f"`{theirs}`, and in another way by {others}",
                hint="make a revision on top of one of them that changes it as the other one "
                f"does: `sqlmig revision -m ... --head {names[0]}`; then merge again",
            )
        try:
            joined = project.parse(files)
        except ProgramErrors as error:
            first = error.errors[0]
            raise RevisionError(
                f"{listed([*sides, theirs])} don't go together: {first.message}",
                location=Location(first.location.path) if first.location else None,
                hint="one of them changes what the other one needs; make a revision on top of one "
                f"that fits both: `sqlmig revision -m ... --head {names[0]}`; then merge again",
            ) from error
        seen |= history
    return files, joined


def _base(
    project: Project, graph: RevisionGraph, common: frozenset[str]
) -> tuple[Mapping[str, str], Program]:
    """The program that two sides come from.

    Where histories cross there are several newest common ancestors; the base is then what they
    make when they are joined, as in Git's recursive merge: with only one of them, a side that took
    a change of the other one back would seem not to have touched it.
    """
    tops = [name for name in sorted(common) if common.isdisjoint(graph.children(name))]
    if not tops:
        return {}, EMPTY_PROGRAM
    return _joined(project, graph, tops)


def _history(graph: RevisionGraph, name: str) -> frozenset[str]:
    """The revisions whose changes a program holds: what it depends on needn't be among them."""
    return graph.ancestors(name, dependencies=False)


def _with_files(program: Program, files: Mapping[str, str]) -> Program:
    return replace(program, files=dict(sorted(files.items())))


def _files(project: Project, name: str) -> Mapping[str, str]:
    return project.revision_files(name)


def _program(project: Project, name: str) -> Program:
    return project.parse(_files(project, name))


def _update_pipeline(project: Project, names: Sequence[str], files: Mapping[str, str]) -> None:
    """Write `files` into `pipeline/` if that holds one side's program and nothing else."""
    working = dict(project.working_files())
    if working == dict(files) or all(dict(_files(project, n)) != working for n in names):
        return
    folder = (project.root / "pipeline").resolve()
    if not all((project.root / path).resolve().is_relative_to(folder) for path in files):
        return
    for path in set(working) - set(files):
        (project.root / path).unlink()
    for path, text in files.items():
        target = project.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
