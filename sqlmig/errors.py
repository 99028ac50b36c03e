"""The error tree: a message, where it is, and a hint. It knows nothing of who prints it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Location:
    """A place in a user's file. `line` and `column` count from 1; None means the whole file."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [self.path, *(str(n) for n in (self.line, self.column) if n is not None)]
        return ":".join(parts)


class SqlmigError(Exception):
    """A mistake or a state that the user can act on; shown in one line, then a hint.

    Args:
        message: lower case, one line, without a full stop.
        location: the place in the user's file, if there is one.
        hint: what to do or type next.
    """

    exit_code = 1

    def __init__(
        self, message: str, *, location: Location | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.hint = hint

    def render(self) -> str:
        """The text shown: `error: LOCATION: MESSAGE`, an empty line, `hint: ...`."""
        where = f"{self.location}: " if self.location else ""
        text = f"error: {where}{self.message}"
        return f"{text}\n\nhint: {self.hint}" if self.hint else text

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


class ConfigError(SqlmigError):
    """`sqlmig.yml` is missing, unreadable or says something impossible."""


class ProgramError(SqlmigError):
    """One mistake in the pipeline's SQL."""


class ProgramErrors(SqlmigError):
    """All mistakes found in a program, in file order, so that one run shows them all."""

    def __init__(self, errors: Iterable[ProgramError]) -> None:
        self.errors = tuple(sorted(errors, key=_place))
        count = len(self.errors)
        super().__init__(f"{count} error{'s' if count != 1 else ''} in the pipeline's SQL")

    def render(self) -> str:
        return "\n\n".join(error.render() for error in self.errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


def _place(error: ProgramError) -> tuple[str, int, int]:
    at = error.location
    return (at.path, at.line or 0, at.column or 0) if at else ("", 0, 0)


class RevisionError(SqlmigError):
    """A revision file or a revision's name can't be read, found or placed."""


class GitError(SqlmigError):
    """Git has not what is asked for, or the checkout is not what a target asks for."""


class LedgerError(SqlmigError):
    """The ledger can't be read or written."""


class LedgerConflict(LedgerError):
    """Another process wrote to the ledger first."""


class DeployedMovedError(SqlmigError):
    """What is deployed is no longer what the plan was made against."""

    exit_code = 5


class UnfinishedPlanError(SqlmigError):
    """Another plan is under way, or died under way."""


class BlockedError(SqlmigError):
    """The plan has blockers; nothing was run."""

    exit_code = 4


class RejectedError(SqlmigError):
    """The policy, or a person, rejected the plan; nothing was run."""

    exit_code = 4


class ApprovalRequired(SqlmigError):
    """The plan is recorded and waits for `sqlmig approve`."""

    exit_code = 3


class EngineError(SqlmigError):
    """Spark is missing, doesn't start, or failed at a step."""


class NoSpaceError(EngineError):
    """The disk of the warehouse, or of Spark's own files, is full."""


class StepFailed(SqlmigError):
    """A step failed; the message says which, and whether the pipeline was taken back."""
