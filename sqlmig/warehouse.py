"""The warehouse: where a pipeline's Delta tables lie, and what they say without Spark.

It reads and restores tables with delta-rs. It knows nothing of SQL, and never imports Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmig.environment import cause, first_line
from sqlmig.errors import EngineError, NoSpaceError
from sqlmig.execution.values import Arrived, Mark, Written
from sqlmig.free_space import FULL, advice, is_full
from sqlmig.ledger.cut import RelationState
from sqlmig.ledger.positions import LogEntry, LostHistory, Versions, all_passed, not_passed
from sqlmig.planning.request import Observed, RawRecords
from sqlmig.stored import (
    Commit,
    StoredTable,
    column_of,
    commit_of,
    has_not_moved,
    log_entry,
    observed,
    raw_records,
    volume,
)
from sqlmig.table_log import came_before, positions, restored_by

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_THREADS = 8
_DAMAGED_HINT = (
    "a file of its `_delta_log` is missing or damaged; restore the folder from a backup, "
    "or remove it and run the command again"
)


class DeltaWarehouse:
    """The Delta tables below one folder or URL.

    Args:
        url: an absolute local path, or a URL such as `s3a://lake/school`.
        storage_options: for object stores, as delta-rs takes them.
        secrets: values among them that must not be shown.
    """

    def __init__(
        self,
        url: str,
        storage_options: Mapping[str, str] | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self.url = url.removeprefix("file://").rstrip("/") or "/"
        self._storage_options = dict(storage_options or {}) or None
        self._secrets = tuple(secrets)

    @property
    def is_local(self) -> bool:
        """False for an object store."""
        return "://" not in self.url

    # where things lie, as Spark is told

    def table_path(self, folder: str) -> str:
        """Where the Delta table `folder` lies."""
        return f"{self.url}/tables/{folder}"

    def checkpoint_path(self, folder: str, generation: int) -> str:
        """Where one generation of a source's offsets lies."""
        return f"{self.url}/checkpoints/{folder}/{generation}"

    def rejected_path(self, folder: str) -> str:
        """Where the bad records of a source are kept aside: a Delta table."""
        return f"{self.url}/rejected/{folder}"

    def deleted_path(self, folder: str, generation: int) -> str:
        """Where it is kept which keys a source has deleted: a Delta table."""
        return f"{self.url}/deleted/{folder}/{generation}"

    def raw_path(self, folder: str) -> str:
        """Where the raw records of a source are kept: a Delta table."""
        return f"{self.url}/raw/{folder}"

    # what the executor asks

    def observe(self, states: Mapping[str, RelationState]) -> Mapping[str, Observed]:
        """Folder -> the table as it is now, for each state's folder that holds a table.

        Raises:
            EngineError: a table is damaged.
        """
        wanted = list({state.folder: state for state in states.values()}.values())
        if len(wanted) < 2:
            seen = [self._observe(state) for state in wanted]
        else:
            with ThreadPoolExecutor(min(_THREADS, len(wanted))) as pool:
                seen = list(pool.map(self._observe, wanted))
        found = zip(wanted, seen, strict=True)
        return {state.folder: now for state, now in found if now is not None}

    def arrivals(self, folder: str, version: int, passed: str | None) -> Arrived:
        """What came into a table up to `version` and has not passed by the position `passed`.

        Args:
            passed: None where nothing has: then every row that is there has come.

        Raises:
            EngineError: the table's log doesn't tell any more what came.
        """
        if passed is None:
            return Arrived(None, str(all_passed(self._log(folder), version)))
        known = Versions.from_text(passed)
        try:
            log = self._log(folder, after=known.ranges[-1][1] if known.ranges else -1)
            try:
                versions = not_passed(log, version, known)
            except LostHistory:  # it was put back to a version before the newest that passed
                log = self._log(folder)
                versions = not_passed(log, version, known)
        except LostHistory as lost:
            raise EngineError(
                f"the log of `{folder}` doesn't tell what came with version {lost.version}",
                hint='it is older than the log is kept; `op.rebuild("...")` in a revision begins '
                "the streaming table anew",
            ) from None
        came = tuple(v for v in versions if log[v].brings_rows)
        return Arrived(came, str(known.united(versions)))

    def came_before(self, folder: str, version: int, at: datetime) -> int:
        """The newest version up to `version` before which no commit is from `at` or later.

        Raises:
            EngineError: the log doesn't reach back to `at`.
        """
        return came_before(folder, self.commits(self.table_path(folder)), version, at)

    def positions(self, folder: str) -> Sequence[tuple[int, Mapping[str, str]]]:
        """The commits that say a position: version and position, newest first."""
        return positions(self.commits(self.table_path(folder)))

    def restored_by(self, folder: str, run: str) -> tuple[int, int] | None:
        """The versions from and to which a run put a table back; None if it didn't."""
        return restored_by(self.commits(self.table_path(folder)), run)

    def find_mark(self, folder: str, run: str, step: int) -> int | None:
        """The version of the newest commit with this run and step; None if there is none."""
        for commit in self.commits(self.table_path(folder)):
            if commit.mark is not None and (commit.mark.run, commit.mark.step) == (run, step):
                return commit.version
        return None

    def restore(self, folder: str, version: int, mark: Mark | None = None) -> Written | None:
        """Put a table back to a version, rows and schema; one that is there already is left alone.

        Returns:
            The table after it; None where only Spark can, for a feature that delta-rs lacks.

        Raises:
            EngineError: there is no such table or version, or its files are gone.
        """
        path = self.table_path(folder)
        table = self._need(path)
        if int(table.version()) == version:
            return Written(version, *volume(table))
        what, hint = f"put back to version {version}", "it may be older than the 30 days kept"
        with self._committing(folder, table, what, mark, hint) as (properties, after):
            table.restore(version, commit_properties=properties)
        return Written(int(after[0].version()), *volume(after[0])) if after else None

    def fence(self, folder: str, mark: Mark) -> int | None:
        """Make a commit that writes begun before it can't pass; its version.

        It sets a property of the table: Delta refuses a commit when the metadata that its writer
        has read was changed since, appends included.

        Returns:
            None where there is no table, or where delta-rs can't write to it: an alteration by
            Spark is behind that, and nothing is fenced off.

        Raises:
            EngineError: the table can't be written to.
        """
        table = self._open(self.table_path(folder))
        if table is None:
            return None
        with self._committing(folder, table, "fenced off", mark) as (properties, after):
            table.alter.set_table_properties(
                {"sqlmig.fence": mark.run}, raise_if_not_exists=False, commit_properties=properties
            )
        return int(after[0].version()) if after else None

    @contextmanager
    def _committing(
        self, folder: str, table: DeltaTable, what: str, mark: Mark | None, hint: str | None = None
    ) -> Iterator[tuple[CommitProperties, list[DeltaTable]]]:
        """What a commit made in the block carries, and a list that holds the table after it.

        The list stays empty where only Spark can make the commit. One that failed at what comes
        after it (each hundredth time delta-rs writes a checkpoint of the log) is made.
        """
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError, DeltaError

        before = int(table.version())
        after: list[DeltaTable] = []
        note = {"userMetadata": mark.to_json()} if mark else None
        try:
            yield CommitProperties(custom_metadata=note), after
            after.append(table)
        except (DeltaError, OSError, ValueError) as error:
            told, said = cause(error, self._secrets), first_line(error, self._secrets)
            if isinstance(error, CommitFailedError) and "table features" in str(error):
                return
            now = self._need(self.table_path(folder))
            newest = next(iter(_commits(now, limit=1)), None)
            if mark and newest and (newest.version, newest.mark) == (before + 1, mark):
                after.append(now)
                return
            if is_full(said):
                hint = advice(self.url)
                raise NoSpaceError(f"`{folder}` can't be {what}: {FULL}", hint=hint) from told
            raise EngineError(f"`{folder}` can't be {what}: {said}", hint=hint) from told

    # what the engine asks

    def folders(self) -> frozenset[str]:
        """Names of the folders of tables; none for an object store, which isn't listed."""
        tables = Path(self.table_path("_")).parent
        if not self.is_local or not tables.is_dir():
            return frozenset()
        return frozenset(p.name for p in tables.iterdir() if (p / "_delta_log").is_dir())

    def generation(self, connector: str) -> int:
        """The newest generation of a connector's checkpoint on disk; 0 where there is none."""
        if not self.is_local:
            return 0
        folder = Path(self.checkpoint_path(connector, 0)).parent
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        return max((int(name) for name in names if name.isdigit()), default=0)

    def exists(self, folder: str) -> bool:
        """Whether the folder holds a Delta table."""
        return self._open(self.table_path(folder)) is not None

    def version(self, folder: str) -> int:
        """The newest version of a table.

        Raises:
            EngineError: there is no table.
        """
        return int(self._need(self.table_path(folder)).version())

    def written(self, folder: str, *, by: Mark | None = None, after: int = -1) -> Written:
        """The table as it is now.

        Args:
            by: whose commits count for `written`; without it that isn't known.
            after: only commits of later versions count.
        """
        path = self.table_path(folder)
        table = self._need(path)
        count = None
        with self._reading(path):
            rows, size = volume(table)
            if by is not None:
                count = sum(
                    c.rows
                    for c in _commits(table)
                    if c.version > after
                    and c.mark is not None
                    and (c.mark.run, c.mark.step) == (by.run, by.step)
                )
        return Written(int(table.version()), rows, size, count)

    def describe(self, folder: str, version: int | None = None) -> StoredTable:
        """The metadata of a table, now or as of a version.

        Raises:
            EngineError: there is no table.
        """
        table = self._need(self.table_path(folder), version)
        metadata = table.metadata()
        fields = json.loads(table.schema().to_json())["fields"]
        protocol = table.protocol()
        return StoredTable(
            version=int(table.version()),
            columns=tuple(map(column_of, fields)),
            comment=metadata.description or None,
            properties=dict(metadata.configuration),
            features=frozenset(protocol.writer_features or ()),
            partitions=tuple(name.lower() for name in metadata.partition_columns),
        )

    def raw_records(self, folder: str) -> Mapping[int, RawRecords]:
        """Generation of a source's offsets -> the raw records that are kept of it."""
        path = self.raw_path(folder)
        table = self._open(path)
        with self._reading(path):
            return {} if table is None else raw_records(table.get_add_actions(flatten=True))

    def last_transaction(self, path: str, application: str) -> int | None:
        """The last version that a writer of Delta transactions committed at `path`, if any."""
        table = self._open(path)
        with self._reading(path):
            return None if table is None else table.transaction_version(application)

    def latest(self, path: str) -> int | None:
        """The newest version of the Delta table at `path`; None where there is no table."""
        table = self._open(path)
        return None if table is None else int(table.version())

    def commits(self, path: str, *, after: int = -1) -> Iterator[Commit]:
        """The commits of the Delta table at `path`, newest first; none where there is no table.

        Args:
            after: only those of later versions.
        """
        table = self._open(path)
        if table is not None:
            limit = max(0, int(table.version()) - after) if after >= 0 else None
            with self._reading(path):
                found = _commits(table, limit)
            yield from found

    def _log(self, folder: str, after: int = -1) -> dict[int, LogEntry]:
        return {c.version: log_entry(c) for c in self.commits(self.table_path(folder), after=after)}

    def _observe(self, state: RelationState) -> Observed | None:
        path = self.table_path(state.folder)
        known = Observed(state.version, state.rows, state.bytes, state.fingerprint, state.inputs)
        if state.rows is not None and self.is_local and has_not_moved(path, state.version):
            return known
        table = self._open(path)
        if table is None:
            return None
        version = int(table.version())
        if version == state.version and state.rows is not None:
            return known
        with self._reading(path):
            rows, size = volume(table)
            later = _commits(
                table, max(1, version - max(state.version, -1)) if state.takes_in else 1
            )
        marks = (c.mark for c in later if c.mark)
        mark = next((m for m in marks if m.passed is not None or not state.takes_in), None)
        return observed(Written(version, rows, size), mark)

    @contextmanager
    def _reading(self, path: str) -> Iterator[None]:
        """Tell an error of the store in one line, without secrets."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            raise self._unreadable(path, error) from cause(error, self._secrets)

    def _unreadable(self, path: str, error: Exception) -> EngineError:
        why = first_line(error, self._secrets)
        return EngineError(f"the Delta table at {path} can't be read: {why}", hint=_DAMAGED_HINT)

    def _need(self, path: str, version: int | None = None) -> DeltaTable:
        table = self._open(path, version)
        if table is None:
            raise EngineError(
                f"there is no Delta table at {path}",
                hint="restore its folder, or check the target's warehouse in sqlmig.yml",
            )
        return table

    def _open(self, path: str, version: int | None = None) -> DeltaTable | None:
        if self.is_local and not (Path(path) / "_delta_log").is_dir():
            return None
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        uri = path.replace("s3a://", "s3://", 1) if path.startswith("s3a://") else path
        try:
            return DeltaTable(uri, version=version, storage_options=self._storage_options)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError, ValueError) as error:
            if self.is_local and not any((Path(path) / "_delta_log").glob("*.json")):
                return None  # a process died before the first commit
            raise self._unreadable(path, error) from cause(error, self._secrets)


def _commits(table: DeltaTable, limit: int | None = None) -> list[Commit]:
    return [commit_of(entry) for entry in table.history(limit)]
