"""The journal: the ledger as one process sees it, folded; every append is checked and fenced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import RLock
from typing import Any, Protocol

from sqlmig.errors import LedgerConflict, LedgerError, UnfinishedPlanError
from sqlmig.execution.clock import Clock, elapsed, utc_now
from sqlmig.execution.process import describe_owner, this_process
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.fold import Folding, fold
from sqlmig.ledger.records import Kind, Record, Status
from sqlmig.ledger.running import checkpoint_details


class Ledger(Protocol):
    """The log that the journal writes to."""

    def version(self) -> int:
        """The newest version; -1 without a ledger."""

    def read(self, after: int = -1, *, until: int | None = None) -> tuple[int, tuple[Record, ...]]:
        """The records above `after` that the fold up to `until` needs, and the newest version."""

    def find(self, *, since: datetime | None = None) -> int | None:
        """The `seq` of the first record that is not older than `since`; None without one."""

    def append(self, records: Sequence[Record], expected: int) -> tuple[Record, ...]:
        """Append, in one commit, when the ledger is still at `expected`; else LedgerConflict."""


@dataclass(frozen=True)
class Provenance:
    """Where a change comes from; written into every record of it."""

    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None
    author: str | None = None
    remote: str | None = None
    actor: str | None = None
    versions: Mapping[str, str] | None = None


class Journal:
    """Reads and appends to the ledger of one pipeline. Threads of a process may share it.

    Args:
        ledger: where the records are.
        pipeline: name of the pipeline; a ledger of another one is refused.
        provenance: written into each record.
        clock: gives the time that is written into records.
        lease: seconds that a lease of this process lasts without a sign.
    """

    def __init__(
        self,
        ledger: Ledger,
        pipeline: str,
        provenance: Provenance | None = None,
        clock: Clock = utc_now,
        lease: float = 60.0,
    ) -> None:
        self._ledger = ledger
        self._pipeline = pipeline
        self._provenance = provenance or Provenance()
        self._clock = clock
        self._version = -1
        self._is_read = False
        self._folding = Folding()
        self._deployment = Deployment()
        self._lock = RLock()
        self._signed = elapsed()
        self.owner = this_process(lease)

    @property
    def deployment(self) -> Deployment:
        """The state as last read or written."""
        return self._deployment

    @property
    def clock(self) -> Clock:
        """Gives the time that is written into records."""
        return self._clock

    @property
    def silence(self) -> float:
        """Seconds since this process last wrote to the ledger, or began."""
        return elapsed() - self._signed

    def refresh(self) -> Deployment:
        """Read what others wrote since.

        Raises:
            LedgerError: the ledger belongs to another pipeline.
        """
        with self._lock:
            if self._is_read and self._ledger.version() == self._version:
                return self._deployment
            version, records = self._ledger.read(self._deployment.seq if self._is_read else -1)
            if version < self._version:  # another ledger lies there now
                self._folding = Folding()
                version, records = self._ledger.read()
            self._version, self._is_read = version, True
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

    def former(self, at: datetime) -> Deployment:
        """The state that the first record which is not older than `at` found; now's without one."""
        first = self._ledger.find(since=at)
        return self.refresh() if first is None else fold(self._ledger.read(until=first - 1)[1])

    def lasting(self) -> tuple[Record, ...]:
        """All records of plans, steps and stamps, and the newest of what ticks."""
        return self._ledger.read()[1]

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
        return self.append_all([{"kind": kind, "status": status, **values}], check=check)[0]

    def append_all(
        self,
        entries: Sequence[Mapping[str, Any]],
        *,
        check: Callable[[Deployment], None] | None = None,
    ) -> tuple[Record, ...]:
        """Append records in one commit, as `append` does one; `entries` hold their fields."""
        with self._lock:
            while True:
                if not self._is_read:
                    self.refresh()
                if check is not None:
                    check(self._deployment)
                records = [self._record(entry) for entry in entries]
                began = elapsed()
                try:
                    written = self._ledger.append(records, self._version)
                except LedgerConflict:
                    self.refresh()
                    continue
                self._version, self._signed = written[-1].seq, began
                for record in written:
                    self._folding.take(record)
                self._deployment = self._folding.result()
                return written

    def checkpoint(self, **details: Any) -> Record:
        """Record the whole state of the ticks, so that the records before need not be read.

        Args:
            details: put into the record besides.
        """
        while True:
            now = self.refresh()

            def check(deployment: Deployment, seq: int = now.seq) -> None:
                if deployment.seq != seq:
                    raise LedgerConflict("another process wrote to the ledger first")

            try:
                return self.append(
                    Kind.CHECKPOINT,
                    Status.DONE,
                    check=check,
                    revision=now.revision,
                    cut=now.cut.to_dict(),
                    details={**checkpoint_details(now), **details},
                )
            except LedgerConflict:
                continue

    def _record(self, values: Mapping[str, Any]) -> Record:
        origin = self._provenance
        return Record(
            pipeline=self._pipeline,
            at=self._clock(),
            commit=origin.commit,
            branch=origin.branch,
            dirty=origin.dirty,
            author=origin.author,
            remote=origin.remote,
            actor=origin.actor,
            versions=origin.versions,
            **values,
        )

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
        (check or self.check_owner)(self.refresh())
