"""The guard of what was applied: files of applied revisions stay as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmig.commands.project import Project
from sqlmig.errors import Location, RevisionError

if TYPE_CHECKING:
    from sqlmig.ledger.deployment import Deployment

_DIFFERENCE_LINES = 60
"""As much as an error shows of an edited file's difference to the ledger."""


def refuse_edited(project: Project, deployment: Deployment) -> None:
    """Raise when the file of an applied revision is not what was applied.

    Raises:
        RevisionError: all such files, each with the difference to the ledger's text.
    """
    import shlex

    from sqlmig.revisions.errors import raise_all
    from sqlmig.revisions.file import normalised

    errors = []
    for revision, applied in sorted(deployment.applied.items()):
        file = project.directory.get(revision)
        if file is None:
            continue
        before, after = normalised(applied.text), normalised(file.text)
        if before != after:
            errors.append(
                RevisionError(
                    f"revision {revision} was applied, and its file was edited afterwards:\n\n"
                    + _difference(before, after, file.path),
                    location=Location(file.path),
                    hint=f"take the edit back (`git restore {shlex.quote(file.path)}`) and make "
                    "the change in a new revision: `sqlmig revision -m ...`",
                )
            )
    raise_all(errors)


def _difference(before: str, after: str, path: str) -> str:
    import difflib

    lines = list(
        difflib.unified_diff(
            before.splitlines(), after.splitlines(), f"{path} as applied", path, lineterm="", n=1
        )
    )
    rest = len(lines) - _DIFFERENCE_LINES
    if rest > 0:
        lines[_DIFFERENCE_LINES:] = [f"... {rest} more lines"]
    return "\n".join(f"  {line}" for line in lines)
