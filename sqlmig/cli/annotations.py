"""GitHub's annotations: an error is shown beside the line of the file that it is about.

It knows GitHub's workflow commands, and says nothing unless GitHub runs us.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from sqlmig.errors import Location, ProgramErrors, SqlmigError

_MAPPED = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_MAPPED_IN_PROPERTIES = {**_MAPPED, ":": "%3A", ",": "%2C"}


def annotate_error(error: SqlmigError, root: Path | None = None) -> None:
    """Annotate each mistake of `error`; `root` is the project's folder."""
    from sqlmig.revisions.errors import RevisionErrors

    parts: Iterable[SqlmigError] = (error,)
    if isinstance(error, (ProgramErrors, RevisionErrors)):
        parts = error.errors
    for part in parts:
        annotate(part.message, part.location, part.hint, root)


def annotate(
    message: str, location: Location | None, hint: str | None, root: Path | None = None
) -> None:
    """Annotate one mistake, where GitHub Actions runs us; to stderr, which it reads as well."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        workspace = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
        click.echo(annotation(message, location, hint, root or Path.cwd(), workspace), err=True)


def annotation(
    message: str, location: Location | None, hint: str | None, root: Path, workspace: Path
) -> str:
    """The workflow command of one mistake.

    Args:
        root: the folder that the location's path starts from.
        workspace: the checkout, which GitHub's paths start from.
    """
    place = {} if location is None else _place(location, root, workspace)
    words = {**place, "title": "sqlmig"}
    properties = ",".join(f"{n}={_escaped(v, _MAPPED_IN_PROPERTIES)}" for n, v in words.items())
    text = f"{message}\n\nhint: {hint}" if hint else message
    return f"::error {properties}::{_escaped(text, _MAPPED)}"


def _place(location: Location, root: Path, workspace: Path) -> dict[str, str]:
    path = (root / location.path).resolve()
    shown = location.path
    if path.is_relative_to(workspace.resolve()):
        shown = path.relative_to(workspace.resolve()).as_posix()
    numbers = {"line": location.line, "col": location.column}
    return {"file": shown, **{name: str(n) for name, n in numbers.items() if n is not None}}


def _escaped(text: str, mapped: dict[str, str]) -> str:
    return "".join(mapped.get(character, character) for character in text)
