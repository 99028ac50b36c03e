"""`pipeline/` as a merge or a rebase finds and writes it: what somebody works on is left alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlmig.commands.project import Project
from sqlmig.errors import SqlmigError
from sqlmig.program.diff import diff_programs
from sqlmig.program.marks import line_of_mark
from sqlmig.program.model import Program

COPIES = ".sqlmig/before"


@dataclass(frozen=True)
class Written:
    """What became of `pipeline/`.

    Args:
        copied: files that no revision had so; copies are in `COPIES`.
        edited: files with edits of somebody, for which all of it was left as it is.
    """

    copied: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()


def parsed_pipeline(project: Project) -> Program | None:
    """The program in `pipeline/`; None where it is broken, or has conflict marks."""
    try:
        return project.parse(project.working_files())
    except SqlmigError:
        return None


def edited_paths(
    project: Project, files: Mapping[str, str], sides: Iterable[Mapping[str, str]]
) -> tuple[str, ...]:
    """The paths that writing `files` would change, and that hold somebody's own edits; sorted.

    No edits are: a text that one of the revisions has; one with conflict marks; one that Git has
    committed, or made by its own merge and nobody touched since.

    Args:
        sides: the programs that may be in `pipeline/`.
    """
    from sqlmig.git.merging import edited_files

    working = project.pipeline_texts()
    known = list(sides)
    changed = [path for path, text in working.items() if files.get(path) != text]
    own = [
        path
        for path in changed
        if all(side.get(path) != working[path] for side in known)
        and line_of_mark(working[path]) is None
    ]
    if not own:
        return ()
    in_git = edited_files(project.root / "pipeline")
    return tuple(path for path in own if in_git is None or path.removeprefix("pipeline/") in in_git)


def bring_along(
    project: Project,
    files: Mapping[str, str],
    program: Program,
    sides: Sequence[Mapping[str, str]],
) -> Written:
    """Let `pipeline/` hold `files`, if it holds nothing that somebody works on.

    Args:
        program: what `files` mean; where `pipeline/` means the same already, it is left so.
        sides: the programs that may be in `pipeline/`.
    """
    working = parsed_pipeline(project)
    is_there = working is not None and diff_programs(working, program).is_empty
    if is_there or not can_hold(project, files):
        return Written()
    edited = edited_paths(project, files, sides)
    return Written(edited=edited) if edited else Written(write_pipeline(project, files, sides))


def can_hold(project: Project, files: Mapping[str, str]) -> bool:
    """Whether all paths lie in `pipeline/`."""
    folder = (project.root / "pipeline").resolve()
    return all((project.root / path).resolve().is_relative_to(folder) for path in files)


def write_pipeline(
    project: Project, files: Mapping[str, str], sides: Iterable[Mapping[str, str]] = ()
) -> tuple[str, ...]:
    """Let `pipeline/` hold `files` and no other files of a program.

    Args:
        sides: programs of revisions: a text that none of them has is copied to `COPIES` first.

    Returns:
        The paths of which a copy was made, sorted.
    """
    working = project.pipeline_texts()
    known = list(sides)
    copied = []
    for path, text in working.items():
        if files.get(path) == text:
            continue
        if known and all(side.get(path) != text for side in known):
            _write(project.root / COPIES / path, text)
            copied.append(path)
        if path not in files:
            (project.root / path).unlink()
    for path, text in files.items():
        if working.get(path) != text:
            _write(project.root / path, text)
    return tuple(copied)


def put_back(project: Project, before: Mapping[str, str], written: Iterable[str]) -> None:
    """Let `pipeline/` be what it was before; files that were made since stay.

    Args:
        before: path -> text, as it was.
        written: the paths that were written since by sqlmig.
    """
    made = set(project.pipeline_texts()) - set(before) - set(written)
    kept = {path: text for path, text in project.pipeline_texts().items() if path in made}
    write_pipeline(project, {**kept, **before})


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
