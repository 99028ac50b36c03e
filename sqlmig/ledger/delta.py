"""The ledger as a Delta table, read and appended to with delta-rs. It knows columns only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlmig.environment import cause, first_line
from sqlmig.errors import LedgerConflict, LedgerError
from sqlmig.free_space import FULL, advice, free_bytes, is_full
from sqlmig.ledger.records import Record
from sqlmig.ledger.rows import (
    ALWAYS,
    COLUMNS,
    selection,
    time_literal,
    to_record,
    to_rows,
)

if TYPE_CHECKING:
    from deltalake import DeltaTable

_NEWEST = 2**63 - 1
_COMPACT_AFTER = 50
"""Files of the ledger at which an append compacts it first.

With 1,000 files an append takes 300 ms instead of 15, and a read 900 ms instead of 40.
"""
_FULL_BYTES = 4 * 2**20
"""Size at which a file is left as it is: a long ledger is not written anew each time."""
_UNUSED_HOURS = 24
"""For so long files that were compacted stay there for those who still read them."""
_ROOM = 64 * 2**10
"""Bytes that a commit takes beside its rows, generously: below that none is tried.

delta-rs leaves a file without a commit behind where the disk fills up under it, and says so on
standard error in Rust's own words.
"""
_WRITER = "sqlmig"
"""In a commit's metadata: names the one append that made it."""
_UPKEEP = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END"})


class DeltaLedger:
    """The append-only log of a warehouse.

    An append names the version that its writer has read and is refused when another came first:
    compare-and-set, so the log is also the lock. A record's `seq` is its commit's Delta version.

    Args:
        path: the ledger's folder or URL.
        storage_options: for object stores, as delta-rs takes them.
        secrets: values among them that must not be shown.
    """

    def __init__(
        self,
        path: str,
        storage_options: Mapping[str, str] | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.storage_options = dict(storage_options or {}) or None
        self._secrets = tuple(secrets)
        self._table: DeltaTable | None = None

    def version(self) -> int:
        """The newest version; -1 where there is no ledger yet."""
        table = self._open()
        return -1 if table is None else int(table.version())

    def read(
        self, after: int = -1, *, until: int | None = None, is_whole: bool = False
    ) -> tuple[int, tuple[Record, ...]]:
        """Records, oldest first, and the version that they were read at (-1 without a ledger).

        Args:
            after: only records with a greater `seq`.
            until: only records with no greater `seq`; by default all.
            is_whole: all records; else those of ticks before the newest checkpoint record, which
                holds what they add up to, are left out: a pipeline that runs for months has
                hundreds of thousands of them.

        Raises:
            LedgerError: a file of the ledger is missing or can't be read.
        """
        table = self._open()
        if table is None:
            return -1, ()
        version = int(table.version())
        if version == 0:
            return 0, ()
        there = _columns(table)
        names = [name for name, _ in COLUMNS if name in there]
        last = _NEWEST if until is None else until
        columns = self._query(table, selection(after, last, is_whole=is_whole), names)
        return version, tuple(
            to_record(dict(zip(names, values, strict=True)))
            for values in zip(*(columns[n] for n in names), strict=True)
        )

    def find(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        checkpoint: str | None = None,
    ) -> int | None:
        """The `seq` of one record, without reading the others; None where there is none.

        Args:
            since: the first that is not older.
            until: the last that is not younger.
            checkpoint: the last checkpoint of this name.

        Raises:
            LedgerError: as for `read`.
        """
        table = self._open()
        if table is None or int(table.version()) == 0:
            return None
        if since is not None:
            choice, condition = "min(seq)", f"at >= {time_literal(since)}"
        elif until is not None:
            choice, condition = "max(seq)", f"at <= {time_literal(until)}"
        else:
            # the query narrows it down, and the value decides: `details` is text here
            chosen = "SELECT seq, details FROM ledger WHERE kind = 'checkpoint' ORDER BY seq"
            found = self._query(table, chosen, ["seq", "details"])
            named = [
                int(seq)
                for seq, details in zip(found["seq"], found["details"], strict=True)
                if json.loads(details or "{}").get("name") == checkpoint
            ]
            return named[-1] if named else None
        query = f"SELECT {choice} AS seq FROM ledger WHERE {condition}"
        seq = self._query(table, query, ["seq"])["seq"][0]
        return None if seq is None else int(seq)

    def _query(
        self, table: DeltaTable, query: str, names: Sequence[str]
    ) -> Mapping[str, Sequence[Any]]:
        from deltalake import QueryBuilder

        try:
            rows = QueryBuilder().register("ledger", table).execute(query).read_all()
            return {name: rows.column(name).to_pylist() for name in names}
        except Exception as error:
            raise LedgerError(
                f"the ledger at {self.path} can't be read: {first_line(error, self._secrets)}",
                hint="a file of the ledger is missing or damaged; restore it from the object "
                "store's versions or a backup, and run the command again",
            ) from cause(error, self._secrets)

    def append(self, records: Sequence[Record], expected: int) -> tuple[Record, ...]:
        """Append `records` in one commit, as version `expected + 1`: all of them or none.

        Args:
            records: their `seq` and `part` are set here.
            expected: the version that the writer has read; -1 creates the ledger.

        Returns:
            The records as written.

        Raises:
            LedgerConflict: another writer appended since `expected`.
            LedgerError: the store refused the write (a full disk, missing rights).
        """
        from deltalake import CommitProperties, write_deltalake
        from deltalake.exceptions import DeltaError

        table = self._open() if expected >= 0 else self._create()
        if table is None or int(table.version()) != max(expected, 0):
            raise LedgerConflict("another process wrote to the ledger first")
        try:
            self._compact(table)
        except (DeltaError, OSError) as error:
            raise self._refused(error, expected) from cause(error, self._secrets)
        seq = int(table.version()) + 1
        written = tuple(replace(r, seq=seq, part=part) for part, r in enumerate(records))
        rows, writer = to_rows(written), uuid4().hex
        self.check_room(int(rows.nbytes))
        once = CommitProperties(max_commit_retries=0, custom_metadata={_WRITER: writer})
        try:
            write_deltalake(
                table,
                rows,
                mode="append",
                schema_mode=None if len(_columns(table)) == len(COLUMNS) else "merge",
                commit_properties=once,
            )
        except (DeltaError, OSError) as error:
            if not self._has_commit(seq, writer):
                raise self._refused(error, expected) from cause(error, self._secrets)
        return written

    def _has_commit(self, version: int, writer: str) -> bool:
        """Whether a commit that failed is there all the same.

        delta-rs writes each hundredth time a checkpoint of the log after the commit: where that
        fails, for want of space, the commit is made. And an object store's answer can get lost.
        """
        from deltalake.exceptions import DeltaError

        self._table = None
        with suppress(LedgerError, DeltaError, OSError):
            table = self._open()
            if table is not None and int(table.version()) >= version:
                commits = table.history(int(table.version()) - version + 1)
                return any(
                    c.get("version") == version and c.get(_WRITER) == writer for c in commits
                )
        return False

    def check_room(self, size: int = 0) -> None:
        """Raise where a commit with so many bytes of rows has no room on a local disk.

        Raises:
            LedgerError: says where space is to be freed.
        """
        free = None if "://" in self.path else free_bytes(self.path)
        if free is not None and free < size + _ROOM:
            raise self._full()

    def _full(self) -> LedgerError:
        return LedgerError(
            f"the ledger at {self.path} can't be written: {FULL}",
            hint=advice(self.path.rpartition("/")[0]),
        )

    def compact(self) -> None:
        """Put the ledger's small files into one where there are many; the rows stay as they are.

        Raises:
            LedgerConflict: another writer came between.
        """
        from deltalake.exceptions import DeltaError

        table = self._open()
        if table is None:
            return
        expected = int(table.version())
        try:
            self._compact(table)
        except (DeltaError, OSError) as error:
            raise self._refused(error, expected) from cause(error, self._secrets)

    def _compact(self, table: DeltaTable) -> None:
        if len(table.file_uris()) < _COMPACT_AFTER:
            return
        from deltalake import CommitProperties

        before = int(table.version())
        once = CommitProperties(max_commit_retries=0)
        table.optimize.compact(target_size=_FULL_BYTES, commit_properties=once)
        table.vacuum(
            retention_hours=_UNUSED_HOURS,
            dry_run=False,
            enforce_retention_duration=False,
            commit_properties=once,
        )
        # delta-rs reads what others committed after it, too: only upkeep is no conflict
        after = table.history(int(table.version()) - before)
        if any(commit.get("operation") not in _UPKEEP for commit in after):
            raise LedgerConflict("another process wrote to the ledger first")

    def _refused(self, error: Exception, expected: int) -> LedgerError:
        """What a refused write means: a conflict only if another one's write is there.

        A full disk makes a commit fail too, and to try that again would never end.
        """
        from deltalake.exceptions import CommitFailedError

        self._table = None
        if isinstance(error, CommitFailedError) and self.version() > max(expected, 0):
            return LedgerConflict("another process wrote to the ledger first")
        if is_full(str(error)):
            return self._full()
        return LedgerError(
            f"the ledger at {self.path} can't be written: {first_line(error, self._secrets)}",
            hint="check free space and rights, then run the command again",
        )

    def _open(self) -> DeltaTable | None:
        if self._table is not None:
            self._update(self._table)
            return self._table
        if "://" not in self.path and not (Path(self.path) / "_delta_log").is_dir():
            return None
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            self._table = DeltaTable(self.path, storage_options=self.storage_options)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError, ValueError) as error:
            raise self._unreadable(error) from cause(error, self._secrets)
        return self._table

    def _update(self, table: DeltaTable) -> None:
        from deltalake.exceptions import DeltaError

        try:
            table.update_incremental()
        except (DeltaError, OSError, ValueError) as error:
            self._table = None
            raise self._unreadable(error) from cause(error, self._secrets)

    def _unreadable(self, error: Exception) -> LedgerError:
        return LedgerError(
            f"the ledger at {self.path} can't be opened: {first_line(error, self._secrets)}",
            hint="check the target's warehouse in sqlmig.yml, and its rights",
        )

    def _create(self) -> DeltaTable:
        from deltalake import CommitProperties, DeltaTable, Field, Schema
        from deltalake.exceptions import DeltaError
        from deltalake.schema import PrimitiveType

        schema = Schema(
            [
                Field(name, PrimitiveType(kind), nullable=name not in ALWAYS)
                for name, kind in COLUMNS
            ]
        )
        self.check_room()
        try:
            if "://" not in self.path:
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            self._table = DeltaTable.create(
                self.path,
                schema=schema,
                mode="error",
                name="sqlmig ledger",
                description="what sqlmig deployed here, by whom, from which commit",
                configuration={
                    "delta.appendOnly": "true",
                    "delta.logRetentionDuration": "interval 30 days",
                },
                storage_options=self.storage_options,
                # tried again, it would be made anew, as a later version
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except DeltaError as error:
            existing = self._open()
            if existing is not None:
                raise LedgerConflict("another process made the ledger first") from cause(
                    error, self._secrets
                )
            raise self._not_made(error) from cause(error, self._secrets)
        except OSError as error:
            raise self._not_made(error) from cause(error, self._secrets)
        return self._table

    def _not_made(self, error: Exception) -> LedgerError:
        if is_full(str(error)):
            return self._full()
        return LedgerError(
            f"no ledger can be made at {self.path}: {first_line(error, self._secrets)}",
            hint="check the target's warehouse in sqlmig.yml, its free space and its rights",
        )


def _columns(table: DeltaTable) -> frozenset[str]:
    """The columns that the ledger has: one that was made by an earlier version may lack some."""
    return frozenset(field.name for field in table.schema().fields)
