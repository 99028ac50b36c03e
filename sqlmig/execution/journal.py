"""The journal: the ledger as one process sees it, folded; every append is checked and fenced."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from sqlmig.errors import LedgerConflict, LedgerError, UnfinishedPlanError
from sqlmig.ledger.fold import Deployment, Folding
from sqlmig.ledger.records import Kind, Owner, Record, Status

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(timezone.utc)


class Ledger(Protocol):
    """The log that the journal writes to."""

    def version(self) -> int:
        """The newest version; -1 without a ledger."""

    def read(self) -> tuple[int, tuple[Record, ...]]:
        """All records and the version they were read at."""

    def append(self, record: Record, expected: int) -> Record:
        """Append when the ledger is still at `expected`; else raise LedgerConflict."""


@dataclass(frozen=True)
class Provenance:
    """Where a change comes from; written into every record of it."""

    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None
    author: str | None = None
    actor: str | None = None
    versions: Mapping[str, str] | None = None


class Journal:
    """Reads and appends to the ledger of one pipeline.

    Args:
        ledger: where the records are.
        pipeline: name of the pipeline; a ledger of another one is refused.
        provenance: written into each record.
        clock: gives the time.
    """

    def __init__(
        self,
        ledger: Ledger,
        pipeline: str,
        provenance: Provenance | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self._ledger = ledger
        self._pipeline = pipeline
        self._provenance = provenance or Provenance()
        self._clock = clock
        self._version = -1
        self._is_read = False
        self._folding = Folding()
        self._deployment = Deployment()
        self.owner = Owner(uuid.uuid4().hex, socket.gethostname(), os.getpid(), process_start())

    @property
    def deployment(self) -> Deployment:
        """The state as last read or written."""
        return self._deployment

    def refresh(self) -> Deployment:
        """Read what others wrote since.

        Raises:
            LedgerError: the ledger belongs to another pipeline.
        """
        if self._is_read and self._ledger.version() == self._version:
            return self._deployment
        version, records = self._ledger.read()
        self._version, self._is_read = version, True
        self._folding = Folding()
        for record in records:
            self._folding.take(record)
        self._deployment = self._folding.result()
        name = self._deployment.pipeline
        if name is not None and name != self._pipeline:
            raise LedgerError(
                f"this warehouse holds pipeline `{name}`, not `{self._pipeline}`",
                hint="give the target a warehouse of its own in sqlmig.yml",
            )
        return self._deployment

    def append(
        self,
        kind: Kind,
        status: Status,
        *,
        check: Callable[[Deployment], None] | None = None,
        **values: Any,
    ) -> Record:
        """Append a record; when another process was faster, look again and try again.

        Args:
            kind, status, values: the record's fields.
            check: raises when the state read does not allow the record any more.

        Returns:
            The record as written, with its `seq`.
        """
        while True:
            if not self._is_read:
                self.refresh()
            if check is not None:
                check(self._deployment)
            record = Record(
                pipeline=self._pipeline,
                kind=kind,
                status=status,
                at=self._clock(),
                commit=self._provenance.commit,
                branch=self._provenance.branch,
                dirty=self._provenance.dirty,
                author=self._provenance.author,
                actor=self._provenance.actor,
                versions=self._provenance.versions,
                **values,
            )
            try:
                written = self._ledger.append(record, self._version)
            except LedgerConflict:
                self.refresh()
                continue
            self._version = written.seq
            self._folding.take(written)
            self._deployment = self._folding.result()
            return written

    def check_owner(self, deployment: Deployment) -> None:
        """Raise when the plan under way is no longer this process's.

        Raises:
            UnfinishedPlanError: another process took the plan over, or ended it.
        """
        plan = deployment.unfinished
        if plan is None or plan.owner is None or plan.owner.token != self.owner.token:
            who = describe_owner(plan.owner) if plan and plan.owner else "another process"
            raise UnfinishedPlanError(
                f"this run was fenced off: {who} took the plan over or ended it",
                hint="`sqlmig status` shows what runs now",
            )

    def still_owner(self, check: Callable[[Deployment], None] | None = None) -> None:
        """Read the ledger's version, and the records if it moved; raise when fenced off.

        Args:
            check: raises when the state read does not allow to go on; by default `check_owner`.
        """
        if self._ledger.version() != self._version:
            self.refresh()
        (check or self.check_owner)(self._deployment)


def process_start(pid: int | None = None) -> str:
    """When a process of this machine started, as the system counts.

    '' where that isn't known, or it is dead.

    Together with the process id it names a process, although ids are used again.
    """
    try:
        stat = Path(f"/proc/{pid or os.getpid()}/stat").read_text(encoding="utf-8")
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in ("Z", "X") else fields[19]
    except (OSError, IndexError):
        return ""


_at_work: set[str] = set()
"""Tokens of the runs of this process that have not ended."""


@contextmanager
def at_work(owner: Owner) -> Iterator[None]:
    """While this lasts, `owner` counts as alive in this process.

    A run that was broken off must not count as alive because its process goes on with other work.
    """
    _at_work.add(owner.token)
    try:
        yield
    finally:
        _at_work.discard(owner.token)


def is_alive(owner: Owner) -> bool | None:
    """Whether the owner's run still goes on; None when it is on another machine."""
    if owner.host != socket.gethostname():
        return None
    if (owner.pid, owner.started) == (os.getpid(), process_start()):
        return owner.token in _at_work
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return process_start(owner.pid) == owner.started


def describe_owner(owner: Owner) -> str:
    """`process 4711 on host`."""
    return f"process {owner.pid} on {owner.host}"


def with_token(owner: Owner) -> Owner:
    """The same process with a new token, for another run."""
    return replace(owner, token=uuid.uuid4().hex)
