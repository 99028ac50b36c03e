"""`merge`: joins heads whose programs are equal or differ in disjoint relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from sqlmig.commands.project import Project
from sqlmig.errors import ProgramErrors, RevisionError
from sqlmig.planning.explain import describe_diff
from sqlmig.program.combine import combine, describe
from sqlmig.program.diff import diff_programs
from sqlmig.program.model import EMPTY_PROGRAM, Program
from sqlmig.revisions.file import RevisionFile
from sqlmig.revisions.graph import RevisionGraph
from sqlmig.revisions.identifier import resolve_all
from sqlmig.revisions.render import new_revision_id


def merge(
    project: Project,
    revisions: Sequence[str] = ("heads",),
    message: str = "",
    *,
    rev_id: str | None = None,
    branch_label: str | None = None,
) -> RevisionFile:
    """Write a revision that has several heads as parents.

    Its program has the changes of all of them since their common ancestor. When `pipeline/` holds
    the program of one of them, it is brought to the joined one, too.

    Args:
        revisions: names of the heads; by default all.
        message: by default "merge A and B".

    Raises:
        RevisionError: fewer than two heads, or both sides change one relation; nothing is written.
    """
    graph = project.directory.graph
    names = sorted({n for text in revisions for n in resolve_all(graph, text)})
    if len(names) < 2:
        raise RevisionError(
            "there is nothing to merge: "
            + (f"`{names[0]}` is the only head" if names else "there are no revisions"),
            hint="name two or more heads",
        )
    for name in names:
        if any(name in graph.ancestors(other) for other in names if other != name):
            raise RevisionError(
                f"revision {name} is below another one of those to merge",
                hint="`sqlmig heads` lists the heads",
            )
    files, combined = _combined(project, graph, names)
    file = project.directory.add(
        revision=rev_id or new_revision_id(),
        down_revisions=names,
        message=message or f"merge {' and '.join(names)}",
        created=datetime.now(timezone.utc),
        files=files,
        branch_labels=(branch_label,) if branch_label else (),
        diff_lines=[
            line
            for name in names
            for line in (
                f"since {name}:",
                *(
                    f"  {text}"
                    for text in describe_diff(
                        diff_programs(_program(project, name), combined)
                    )
                ),
            )
        ],
    )
    _update_pipeline(project, names, files)
    return file


def _combined(
    project: Project, graph: RevisionGraph, names: Sequence[str]
) -> tuple[Mapping[str, str], Program]:
    ours = names[0]
    files: Mapping[str, str] = _files(project, ours)
    joined = _program(project, ours)
    seen = graph.ancestors(ours)
    for theirs in names[1:]:
        common = graph.sort(seen & graph.ancestors(theirs))
        base = _program(project, common[-1]) if common else EMPTY_PROGRAM
        other = _program(project, theirs)
        # the combination is made of the text as it is frozen, with its variables in place
        files, conflicts = combine(
            _as_written(project, base, common[-1] if common else None),
            _with_files(joined, files),
            _with_files(other, _files(project, theirs)),
        )
        if conflicts:
            raise RevisionError(
                f"{ours} and {theirs} both change {describe(conflicts)}, each in its own way",
                hint="make a revision on one of the two that has the wanted definition, or take "
                "the change out of one branch; then merge again",
            )
        try:
            joined = project.parse(files)
        except ProgramErrors as error:
            first = error.errors[0]
            raise RevisionError(
                f"the joined program of {ours} and {theirs} has a mistake: {first.message}",
                location=first.location,
                hint=first.hint or "one branch removed what the other one reads",
            ) from error
        seen |= graph.ancestors(theirs)
    return files, joined


def _as_written(project: Project, program: Program, name: str | None) -> Program:
    return _with_files(program, _files(project, name)) if name else program


def _with_files(program: Program, files: Mapping[str, str]) -> Program:
    return Program(dict(sorted(files.items())), program.relations, program.sources, program.sinks)


def _files(project: Project, name: str) -> Mapping[str, str]:
    file = project.directory.get(name)
    assert file is not None
    return file.files


def _program(project: Project, name: str) -> Program:
    return project.parse(_files(project, name))


def _update_pipeline(project: Project, names: Sequence[str], files: Mapping[str, str]) -> None:
    working = dict(project.working_files())
    if working == dict(files) or all(dict(_files(project, n)) != working for n in names):
        return
    for path in set(working) - set(files):
        (project.root / path).unlink()
    for path, text in files.items():
        target = project.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
