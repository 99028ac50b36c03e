"""The collection: what the ledger needs no more is found, told, recorded, and removed.

It knows the ledger's fold and a protocol for what is stored; which files those are is not its
business, nor what is needed: `ledger.retention` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

from sqlmig.errors import DeployedMovedError
from sqlmig.execution.executor import check_idle
from sqlmig.execution.journal import Journal
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.records import Kind, Status
from sqlmig.ledger.retention import Kept, Retention, decide

_MOST_SLACK = 86400.0
"""Seconds: no write is assumed to take longer between its first file and its commit."""


@dataclass(frozen=True)
class Unneeded:
    """Files of a table that no kept version has.

    Args:
        files: their names below the table's folder, and bytes; sorted.
        lost: versions that the ledger knows, and that can't be read without them.
    """

    folder: str
    files: tuple[tuple[str, int], ...] = ()
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, order=True)
class Place:
    """A folder of the warehouse and its name.

    `kind` is `tables`, `checkpoints`, `deleted`, `raw` or `rejected`.
    """

    kind: str
    name: str


@dataclass(frozen=True)
class Removed:
    """What goes, or went: old files of a table that stays, or a whole folder.

    Args:
        files: how many. bytes: of them.
        why: in words.
    """

    place: Place
    files: int
    bytes: int
    why: str
    is_whole: bool = True

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kind": self.place.kind,
            "name": self.place.name,
            "is_whole": self.is_whole,
            "files": self.files,
            "bytes": self.bytes,
            "why": self.why,
        }


class Storage(Protocol):
    """What is stored, as files and folders."""

    def unneeded(self, folder: str, kept: Kept, slack: float) -> Unneeded:
        """The files of a table that none of the kept versions has; `slack` is in seconds."""

    def remove_files(self, unneeded: Unneeded) -> None:
        """Remove these files."""

    def old_raw(self, folder: str, before: datetime) -> tuple[int, int] | None:
        """Files and bytes of a source's raw records that came before a time; None for none."""

    def remove_raw(self, folder: str, before: datetime) -> None:
        """Remove them."""

    def size(self, place: Place) -> tuple[int, int] | None:
        """Files and bytes of a folder; None where there is none."""

    def remove(self, place: Place) -> None:
        """Remove a folder."""


@dataclass(frozen=True)
class Findings:
    """What a collection would remove.

    Args:
        deployed_seq: of the deployment that it was decided for.
        before: cuts that ended before it are kept no more.
        tables: old files of tables that stay.
        raw: folder of a source -> before when its raw records go.
        removed: all of it, in words, sorted.
    """

    deployed_seq: int
    before: datetime
    retention: Retention = field(default_factory=Retention)
    tables: tuple[Unneeded, ...] = ()
    raw: Mapping[str, datetime] = field(default_factory=dict)
    removed: tuple[Removed, ...] = ()

    @property
    def files(self) -> int:
        """How many files go."""
        return sum(each.files for each in self.removed)

    @property
    def bytes(self) -> int:
        """Their size."""
        return sum(each.bytes for each in self.removed)

    def to_details(self) -> dict[str, Any]:
        """What the ledger forgets by it."""
        lost = sorted(f"{t.folder}@{version}" for t in self.tables for version in t.lost)
        return {
            "before": self.before.isoformat(),
            "folders": list(self.retention.folders),
            "connectors": list(self.retention.connectors),
            "sinks": list(self.retention.sinks),
            "versions": lost,
        }


class Collector:
    """Finds and removes what nothing needs.

    Args:
        keep: seconds for which every cut can be read.
        retained: folder of a source -> seconds for which its raw records are kept, of those that
            are not kept for ever.
    """

    def __init__(
        self,
        storage: Storage,
        journal: Journal,
        keep: float,
        retained: Callable[[Deployment], Mapping[str, float]] = lambda _: {},
    ) -> None:
        self._storage = storage
        self._journal = journal
        self._keep = keep
        self._retained = retained

    def find(
        self, older_than: float | None = None, *, goes_on: Callable[[], bool] = lambda: True
    ) -> Findings:
        """Look for what is needed no more; nothing is changed.

        Args:
            older_than: seconds for which a way back is kept; None keeps all ways back, and finds
                only old files of tables.
            goes_on: asked before each table.
        """
        journal, storage = self._journal, self._storage
        now, time = journal.refresh(), journal.clock()
        keep = self._keep if older_than is None else min(self._keep, older_than)
        before = _earlier(time, keep)
        then = journal.former(before)
        past = None if older_than is None else journal.former(_earlier(time, older_than))
        retention = decide(now, then, past, journal.lasting())
        found: list[Removed] = []
        tables: list[Unneeded] = []
        for folder, kept in sorted(retention.tables.items()):
            if not goes_on():
                break
            table = storage.unneeded(folder, kept, min(keep, _MOST_SLACK))
            if table.files:
                size = sum(size for _, size in table.files)
                why = f"no cut of the last {_days(keep)} has them, and no way back"
                place = Place("tables", folder)
                found.append(Removed(place, len(table.files), size, why, is_whole=False))
                tables.append(table)
        raw = {name: _earlier(time, old) for name, old in sorted(self._retained(now).items())}
        for folder, since in raw.items():
            old_raw = storage.old_raw(folder, since)
            if old_raw is not None:
                why = f"raw records that came before {since:%Y-%m-%d %H:%M:%S} UTC"
                found.append(Removed(Place("raw", folder), *old_raw, why, is_whole=False))
        if past is not None:
            for place, why in self._places(now, retention, f"for {_days(older_than or 0)}"):
                size_now = storage.size(place)
                if size_now is not None:
                    found.append(Removed(place, *size_now, why))
        found.sort(key=lambda each: (each.place, each.is_whole))
        return Findings(now.deployed_seq, before, retention, tuple(tables), raw, tuple(found))

    @staticmethod
    def _places(now: Deployment, retention: Retention, since: str) -> Iterable[tuple[Place, str]]:
        """The folders that go, and those that an earlier collection did not come to."""
        gone, cut = now.collected, now.cut
        again = "an earlier `sqlmig gc` did not come to it"
        for folder in retention.folders:
            yield Place("tables", folder), f"no revision that was deployed {since} has it"
        for folder in sorted(set(gone.folders) - now.folders):
            yield Place("tables", folder), again
        used = {s.offsets for s in cut.connectors.values()} | set(cut.detached_connectors)
        for kind in ("checkpoints", "deleted"):
            for offsets in retention.connectors:
                yield Place(kind, offsets), f"no source of a revision deployed {since} reads on"
            for offsets in sorted(set(gone.connectors) - used):
                yield Place(kind, offsets), again
        for folder in retention.rejected:
            yield Place("raw", folder), "raw records of a source that is gone"
            yield Place("rejected", folder), "bad records of a source that is gone"
        for folder in sorted(_folders_of(gone.connectors) - _folders_of(used)):
            yield Place("raw", folder), again
            yield Place("rejected", folder), again

    def remove(
        self,
        findings: Findings,
        *,
        check: Callable[[Deployment], None] = check_idle,
        goes_on: Callable[[], bool] = lambda: True,
        **details: Any,
    ) -> int:
        """Record what goes, and remove it.

        The record comes first: a plan that is made after it uses none of it, and one that was made
        before it is refused.

        Args:
            check: raises when nothing may be removed now; by default when a plan is under way.
            goes_on: asked before each removal.
            details: put into the records.

        Returns:
            Bytes removed.

        Raises:
            UnfinishedPlanError: a plan is under way.
            DeployedMovedError: another revision was deployed since it was looked.
        """

        def may_begin(deployment: Deployment) -> None:
            check(deployment)
            if deployment.deployed_seq != findings.deployed_seq:
                raise DeployedMovedError(
                    "another revision was deployed meanwhile",
                    hint="run the command again: it looks anew",
                )

        journal = self._journal
        if findings.removed:
            journal.append(
                Kind.GC,
                Status.STARTED,
                check=may_begin,
                revision=journal.deployment.revision,
                details={**findings.to_details(), **details},
            )
        files = size = 0
        by_folder = {table.folder: table for table in findings.tables}
        for each in findings.removed:
            if not goes_on():
                break
            is_of_a_source = each.is_whole and each.place.kind in ("raw", "rejected")
            if is_of_a_source and self._is_read_into(each.place.name):
                continue
            if each.is_whole:
                self._storage.remove(each.place)
            elif each.place.kind == "raw":
                self._storage.remove_raw(each.place.name, findings.raw[each.place.name])
            else:
                self._storage.remove_files(by_folder[each.place.name])
            files, size = files + each.files, size + each.bytes
        journal.append(
            Kind.GC,
            Status.DONE,
            revision=journal.deployment.revision,
            details={"files": files, "bytes": size, **details},
        )
        return size

    def _is_read_into(self, folder: str) -> bool:
        """Whether a source that was started meanwhile keeps its bad records there."""
        now = self._journal.refresh()
        cuts = [now.cut, *([now.unfinished.cut] if now.unfinished else [])]
        return any(s.folder == folder for cut in cuts for s in cut.connectors.values())


def _folders_of(offsets: Iterable[str]) -> set[str]:
    return {each.rpartition("/")[0] for each in offsets}


def _earlier(time: datetime, seconds: float) -> datetime:
    try:
        return time - timedelta(seconds=seconds)
    except OverflowError:
        return datetime.min.replace(tzinfo=timezone.utc)


def _days(seconds: float) -> str:
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            count = f"{seconds / unit:g}"
            return f"{count} {name}{'' if count == '1' else 's'}"
    return f"{seconds:g} seconds"
