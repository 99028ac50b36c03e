"""A warehouse, an engine and a ledger in memory, whose process can be killed at any point.

What lasts lies in a `World`. Contents mean something: a table holds rows, a view the text of its
query and of the contents that it was computed from. Every point at which a real process could die
is a `beat`; at the beat `dies_at` the process dies, and none of its calls gets through any more.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from sqlmig.errors import EngineError, LedgerConflict, NoSpaceError
from sqlmig.execution import events
from sqlmig.execution.executor import Executor, check_idle
from sqlmig.execution.journal import Journal
from sqlmig.execution.runner import PipelineRunner
from sqlmig.execution.tick import TickResult
from sqlmig.execution.values import (
    Arrived,
    Ingested,
    Mark,
    Measured,
    Misfit,
    Period,
    RawSource,
    Span,
    Written,
)
from sqlmig.ledger.cut import ConnectorState, RelationState
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.fold import Folding, fold
from sqlmig.ledger.positions import LogEntry, Versions, all_passed, not_passed
from sqlmig.ledger.records import AppliedRevision, Kind, Record, Status
from sqlmig.ledger.sink_state import Batch, PinnedContents, SinkState
from sqlmig.planning.directives import Directive, Run
from sqlmig.planning.planner import make_plan
from sqlmig.planning.request import Observed, RawRecords, Request
from sqlmig.planning.sink_steps import CutOverSink
from sqlmig.planning.stages import Hop
from sqlmig.planning.steps import Blocker, Plan, RunFunction
from sqlmig.program.intervals import read_time
from sqlmig.program.model import EMPTY_PROGRAM, Program, Sink, Source, Table, View
from sqlmig.program.parse import parse_program
from sqlmig.program.type_shape import Field
from sqlmig.program.windows import read_windows
from sqlmig.stored import observed

FILE = "pipeline/p.sql"
_INSERT = re.compile(r"INSERT INTO (\w+) VALUES \((.*)\)")
_DELETE = re.compile(r"DELETE FROM (\w+)")


class Died(BaseException):
    """The process was killed."""


@dataclass(frozen=True)
class Version:
    """One commit of a table: its columns, and its rows or a view's contents."""

    columns: tuple[str, ...]
    contents: tuple[str, ...]
    mark: Mark | None = None
    is_append: bool = False
    restored: int | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class Sent:
    """A batch as it lies at a sink's place: whose it is, how often each row came or went.

    Of a whole one every row of before went and every row of after came.
    """

    id: str
    is_snapshot: bool
    rows: tuple[tuple[str, int], ...]
    is_whole: bool = False


@dataclass
class World:
    """What outlives a process.

    Args:
        tables: folder -> its versions.
        inputs: path -> the rows that lie there for a source, oldest first.
        offsets: (connector folder, generation) -> rows read.
        batches: batches that a table has taken in, by (folder, connector folder, generation, end).
        broken: relations, connectors or statements whose effect fails, and how often it still does.
        full: those of them that fail since the disk is full, and free it by that.
        computed: the views computed so far, in order.
        sent: path of a sink -> number of a batch -> the batch.
        dies_at: the beat at which the process dies; None for never.
        archive: (folder, version) -> the contents of what was removed, for tests to look back.
    """

    tables: dict[str, list[Version]] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    inputs: dict[str, list[int]] = field(default_factory=dict)
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    batches: set[tuple[str, str, int, int]] = field(default_factory=set)
    broken: dict[str, int] = field(default_factory=dict)
    full: set[str] = field(default_factory=set)
    computed: list[str] = field(default_factory=list)
    sent: dict[str, dict[int, Sent]] = field(default_factory=dict)
    restores_with_spark: bool = False
    beats: int = 0
    dies_at: int | None = None
    is_dead: bool = False
    archive: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    now: datetime = datetime(2026, 6, 10, 13, tzinfo=timezone.utc)

    def stamped(self, version: Version) -> Version:
        """A version with the time of its commit: a second after the one before."""
        self.now += timedelta(seconds=1)
        return replace(version, at=self.now)

    def copy(self) -> World:
        """Another world in the same state."""
        return replace(
            self,
            tables={folder: list(versions) for folder, versions in self.tables.items()},
            records=list(self.records),
            inputs={path: list(rows) for path, rows in self.inputs.items()},
            offsets=dict(self.offsets),
            batches=set(self.batches),
            broken=dict(self.broken),
            full=set(self.full),
            computed=list(self.computed),
            sent={path: dict(batches) for path, batches in self.sent.items()},
            archive=dict(self.archive),
        )

    def recall(self, folder: str, version: int) -> tuple[str, ...]:
        """The contents that a version has or had."""
        if (folder, version) in self.archive:
            return self.archive[folder, version]
        return self.tables[folder][version].contents

    def beat(self) -> None:
        """A point at which the process can die."""
        if self.is_dead:
            raise Died
        if self.beats == self.dies_at:
            self.is_dead = True
            raise Died
        self.beats += 1

    def revive(self, dies_at: int | None = None) -> None:
        """Let a new process begin, which dies at its own beat `dies_at`."""
        self.is_dead, self.beats, self.dies_at = False, 0, dies_at

    def fail_if_broken(self, name: str) -> None:
        """Raise the error of a broken relation, connector or statement."""
        if name in self.full:
            self.full.remove(name)
            raise NoSpaceError(f"{name} finds the disk full", hint="free some")
        if self.broken.get(name):
            self.broken[name] -= 1
            raise EngineError(f"{name} is broken", hint=f"mend {name}")

    def newest(self, folder: str) -> Version:
        """The newest version of a table."""
        return self.tables[folder][-1]

    def commit(self, folder: str, version: Version) -> Written:
        """Add a version to a table, or make it."""
        self.beat()
        self.tables.setdefault(folder, []).append(self.stamped(version))
        self.beat()
        return self.written(folder)

    def written(self, folder: str) -> Written:
        """A table as it is now."""
        now = self.newest(folder)
        size = len(now.contents)
        return Written(len(self.tables[folder]) - 1, size, 8 * size, None)


class MemoryLedger:
    """A ledger in memory, with the versions of a real one: 0 is its creation."""

    def __init__(self, world: World) -> None:
        self._world = world

    def version(self) -> int:
        """The newest version."""
        return self._world.records[-1].seq if self._world.records else -1

    def read(self, after: int = -1, *, until: int | None = None) -> tuple[int, tuple[Record, ...]]:
        """The records above `after`."""
        last = self.version() if until is None else until
        return self.version(), tuple(r for r in self._world.records if after < r.seq <= last)

    def find(self, *, since: datetime | None = None) -> int | None:
        """The first record that is not older than `since`."""
        young = [r.seq for r in self._world.records if since is None or r.at >= since]
        return min(young, default=None)

    def append(self, records: Sequence[Record], expected: int) -> tuple[Record, ...]:
        """Append all of them, or refuse."""
        self._world.beat()
        if expected != self.version():
            raise LedgerConflict("another process wrote to the ledger first")
        seq = max(expected, 0) + 1
        written = tuple(replace(r, seq=seq, part=part) for part, r in enumerate(records))
        for record in records:
            for value in (record.program, record.program_diff, record.cut, record.details):
                assert json.loads(json.dumps(value)) == value
        self._world.records.extend(written)
        self._world.beat()
        return written


class FakeWarehouse:
    """The stored tables, without the engine."""

    def __init__(self, world: World) -> None:
        self._world = world

    def observe(self, states: Mapping[str, RelationState]) -> Mapping[str, Observed]:
        """Folder -> the table as it is now."""
        found = {}
        for state in states.values():
            if state.folder not in self._world.tables:
                continue
            now = self._world.written(state.folder)
            mark = self._world.newest(state.folder).mark
            if state.takes_in:
                later = self._world.tables[state.folder][state.version + 1 :]
                marks = [v.mark for v in later if v.mark and v.mark.passed is not None]
                mark = marks[-1] if marks else None
            if now.version == state.version:
                found[state.folder] = Observed(
                    now.version, now.rows, now.bytes, state.fingerprint, state.inputs
                )
            else:
                found[state.folder] = observed(now, mark)
        return found

    def arrivals(self, folder: str, version: int, passed: str | None) -> Arrived:
        """What the table's versions tell."""
        versions = self._world.tables[folder]
        log = {n: LogEntry(v.is_append, v.restored) for n, v in enumerate(versions)}
        if passed is None:
            return Arrived(None, str(all_passed(log, version)))
        known = Versions.from_text(passed)
        found = not_passed(log, version, known)
        came = tuple(n for n in found if versions[n].is_append)
        return Arrived(came, str(known.united(found)))

    def came_before(self, folder: str, version: int, at: datetime) -> int:
        """By the times of the versions."""
        versions = self._world.tables[folder][: version + 1]
        since = [n for n, v in enumerate(versions) if v.at is None or v.at >= at]
        return min(since, default=version + 1) - 1

    def positions(self, folder: str) -> Sequence[tuple[int, Mapping[str, str]]]:
        """Of the versions whose mark says one."""
        return [
            (number, version.mark.passed)
            for number, version in reversed(list(enumerate(self._world.tables[folder])))
            if version.mark is not None and version.mark.passed is not None
        ]

    def restored_by(self, folder: str, run: str) -> tuple[int, int] | None:
        """By a version of this run."""
        for number, version in reversed(list(enumerate(self._world.tables[folder]))):
            is_own = version.mark is not None and version.mark.run == run
            if is_own and version.restored is not None:
                return number, version.restored
        return None

    def find_mark(self, folder: str, run: str, step: int) -> int | None:
        """The newest commit with this mark."""
        for number, version in reversed(list(enumerate(self._world.tables.get(folder, ())))):
            if version.mark and (version.mark.run, version.mark.step) == (run, step):
                return number
        return None

    def restore(self, folder: str, version: int, mark: Mark | None = None) -> Written | None:
        """Put a table back."""
        if self._world.restores_with_spark:
            return None
        return self._restore(folder, version, mark)

    def fence(self, folder: str, mark: Mark) -> int | None:
        """The same contents in a new version."""
        if folder not in self._world.tables:
            return None
        now = self._world.newest(folder)
        return self._world.commit(folder, Version(now.columns, now.contents, mark)).version

    def _restore(self, folder: str, version: int, mark: Mark | None) -> Written:
        self._world.fail_if_broken(f"restore {folder}")
        versions = self._world.tables[folder]
        if version == len(versions) - 1:
            return self._world.written(folder)
        back = versions[version]
        return self._world.commit(
            folder, Version(back.columns, back.contents, mark, restored=version)
        )


class FakeEngine(FakeWarehouse):
    """What Spark does, on the world's tables, in several commits where Spark needs several."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._read: dict[str, int] = {}

    def analyze(
        self, program: Program, names: Sequence[str], kept: Mapping[str, str] | None = None
    ) -> Sequence[Blocker]:
        """Nothing is wrong."""
        return ()

    def columns(self, program: Program, names: Sequence[str]) -> Mapping[str, Sequence[Field]]:
        """Whatever a view selects is a string."""
        found = {name: program.views[name].output or () for name in names}
        return {name: [Field(c, "string") for c in output] for name, output in found.items()}

    def create_table(self, table: Table, folder: str, mark: Mark) -> Written:
        """An empty table."""
        self._world.fail_if_broken(table.name)
        if folder in self._world.tables:
            self._world.commit(folder, Version(self._world.newest(folder).columns, (), mark))
        return self._world.commit(folder, Version(_columns(table), (), mark))

    def alter_table(
        self, table: Table, folder: str, renamed: Sequence[tuple[str, str]], mark: Mark
    ) -> Written:
        """The same rows under another definition: one commit renames, another does the rest."""
        self._world.fail_if_broken(table.name)
        columns = _columns(table)
        if self.find_mark(folder, mark.run, mark.step) is None:
            names = dict(renamed)
            rows = [
                {
                    names.get(c, c): v
                    for c, v in json.loads(row).items()
                    if c in names or c not in names.values()
                }
                for row in self._world.newest(folder).contents
            ]
            self._world.commit(folder, _version(("renamed", *columns), rows, mark))
        now = self._world.newest(folder)
        if now.columns == columns:
            return self._world.written(folder)
        rows = [{c: row.get(c) for c in columns} for row in (json.loads(r) for r in now.contents)]
        return self._world.commit(folder, _version(columns, rows, mark))

    def find_misfits(
        self, table: Table, folder: str, renamed: Sequence[tuple[str, str]], *, has_new_key: bool
    ) -> Sequence[Misfit]:
        """NULL where a value is needed, and keys that are there twice; every value can be cast."""
        origin = {after: before for before, after in renamed}
        rows = [json.loads(row) for row in self._world.newest(folder).contents]
        found = []
        for column in table.columns:
            name = column.name.lower()
            lacking = [r for r in rows if r.get(name, r.get(origin.get(name, ""))) is None]
            if not column.nullable and column.default is None and lacking:
                found.append(Misfit(f"`{table.name}.{name}` is NULL in {len(lacking)} rows"))
        keys = Counter(tuple(row.get(key) for key in table.primary_key) for row in rows)
        if has_new_key and any(count > 1 for count in keys.values()):
            found.append(Misfit(f"`{table.name}` has a key twice"))
        return found

    def convert_table(
        self,
        table: Table,
        folder: str,
        renamed: Sequence[tuple[str, str]],
        mark: Mark,
        *,
        has_new_key: bool,
    ) -> Written:
        """Alter it if every row can be kept."""
        if self.find_mark(folder, mark.run, mark.step) is None:
            for misfit in self.find_misfits(table, folder, renamed, has_new_key=has_new_key):
                raise EngineError(misfit.message)
        return self.alter_table(table, folder, renamed, mark)

    def lay_out(self, name: str, folder: str, columns: Sequence[str], mark: Mark) -> Written:
        """The same contents in a new version."""
        self._world.fail_if_broken(f"layout of {name}")
        now = self._world.newest(folder)
        return self._world.commit(folder, Version(now.columns, now.contents, mark))

    def fill_columns(
        self,
        program: Program,
        name: str,
        folder: str,
        columns: Sequence[str],
        sources: Sequence[RawSource],
        mark: Mark,
    ) -> Written:
        """Whatever has no value there gets one."""
        self._world.fail_if_broken(f"raw of {name}")
        now = self._world.newest(folder)
        rows = [json.loads(row) for row in now.contents]
        filled = [{**row, **{c: -1 for c in columns if row.get(c) is None}} for row in rows]
        count = sum(row != other for row, other in zip(rows, filled, strict=True))
        if not count:
            return self._world.written(folder)
        written = self._world.commit(folder, _version(now.columns, filled, mark))
        return replace(written, written=count)

    def rebuild_table(
        self, program: Program, name: str, folder: str, sources: Sequence[RawSource], mark: Mark
    ) -> Ingested:
        """What the sources have read, source by source, each in a commit."""
        self._world.fail_if_broken(f"raw of {name}")
        first = program.tables[name].columns[0].name.lower()
        count = 0
        for raw in sources:
            batch = (folder, f"{mark.run}/{mark.step}/{raw.connector}", raw.generation, 0)
            path = dict(program.sources[raw.connector].options)["path"]
            read = self._world.inputs[path][: self._world.offsets[raw.folder, raw.generation]]
            count += len(read)
            if batch not in self._world.batches:
                now = self._world.newest(folder)
                kept = [json.loads(row) for row in now.contents]
                rows = [*kept, *({first: value} for value in read)]
                self._world.beat()
                self._world.batches.add(batch)
                version = replace(_version(now.columns, rows, mark), is_append=True)
                self._world.tables[folder].append(version)
                self._world.beat()
        return Ingested(count, 0, self._world.written(folder))

    def empty_table(self, table: Table, folder: str, mark: Mark) -> Written:
        """No rows, then another definition."""
        self._world.fail_if_broken(table.name)
        self._world.commit(folder, Version(self._world.newest(folder).columns, (), mark))
        return self._world.commit(folder, Version(_columns(table), (), mark))

    def restore(self, folder: str, version: int, mark: Mark | None = None) -> Written:
        """Put a table back."""
        return self._restore(folder, version, mark)

    def materialize(
        self,
        program: Program,
        view: View,
        states: Mapping[str, RelationState],
        folder: str,
        mark: Mark,
        span: Span | None = None,
    ) -> Written:
        """Replace a view's contents in one commit."""
        self._world.fail_if_broken(view.name)

        def stored(name: str) -> Version:
            state = states[name]
            return self._world.tables[state.folder][state.version]

        self._world.computed.append(view.name)
        if view.is_streaming:
            rows = within([r for s in view.streams for r in stored(s).contents], span)
            if self.find_mark(folder, mark.run, mark.step) is None:
                self._world.commit(folder, Version((), passing(view, rows), mark))
            now = self._world.newest(folder)
            return self._world.commit(folder, Version((_text(view),), now.contents))
        contents = evaluate(program, view.name, stored)
        return self._world.commit(folder, Version((), (contents,), mark))

    def measure(
        self,
        view: View,
        states: Mapping[str, RelationState],
        arrivals: Mapping[str, Arrived],
        column: str,
        over: int | None,
    ) -> Measured:
        """The times of the rows that came."""
        self._world.beat()
        times = [json.loads(row)[column] for row in self._came(states, arrivals)]
        late = 0 if over is None else sum(1 for at in times if at < over)
        return Measured(max(times, default=None), late)

    def _came(
        self, states: Mapping[str, RelationState], arrivals: Mapping[str, Arrived]
    ) -> list[str]:
        rows: list[str] = []
        for stream, arrived in arrivals.items():
            versions = self._world.tables[states[stream].folder]
            if arrived.versions is None:
                rows += versions[states[stream].version].contents
            for number in arrived.versions or ():
                before = Counter(versions[number - 1].contents)
                rows += (Counter(versions[number].contents) - before).elements()
        return rows

    def advance(
        self,
        program: Program,
        view: View,
        states: Mapping[str, RelationState],
        arrivals: Mapping[str, Arrived],
        folder: str,
        mark: Mark,
        span: Span | None = None,
    ) -> Written:
        """Append what the query gives of the rows that came, in one commit."""
        self._world.fail_if_broken(view.name)
        if span is not None:
            arrivals = {stream: Arrived(None, "") for stream in arrivals}
        new = passing(view, within(self._came(states, arrivals), span))
        now = self._world.newest(folder)
        self._world.computed.append(view.name)
        written = self._world.commit(
            folder, Version(now.columns, (*now.contents, *new), mark, is_append=bool(new))
        )
        return replace(written, written=len(new))

    def accumulate(
        self,
        program: Program,
        view: View,
        states: Mapping[str, RelationState],
        arrivals: Mapping[str, Arrived],
        stored: RelationState,
        mark: Mark,
    ) -> Written:
        """Put what the query gives of each row that came beside what is there, in one commit."""
        self._world.fail_if_broken(view.name)
        new = passing(view, self._came(states, arrivals))
        before = self._world.tables[stored.folder][stored.version]
        self._world.computed.append(view.name)
        return self._world.commit(stored.folder, Version((), (*before.contents, *new), mark))

    def evolve(self, program: Program, view: View, folder: str, mark: Mark) -> Written:
        """Another query has other columns here: a commit without rows."""
        self._world.fail_if_broken(f"evolve {view.name}")
        now = self._world.newest(folder)
        if now.columns == (_text(view),):
            return self._world.written(folder)
        return self._world.commit(folder, Version((_text(view),), now.contents, mark))

    def backfill(
        self,
        program: Program,
        view: View,
        states: Mapping[str, RelationState],
        period: Period,
        folder: str,
        mark: Mark,
        span: Span | None = None,
    ) -> Written:
        """Rows whose column is at least the number `since` are replaced; or windows since then."""
        if span is not None:
            return self._backfill_windows(view, states, period, folder, mark, span)
        since = int(period.since)
        rows = [
            row
            for stream in view.streams
            for row in self._world.tables[states[stream].folder][states[stream].version].contents
            if json.loads(row)[period.column] >= since
        ]
        now = self._world.newest(folder)
        kept = [r for r in now.contents if json.loads(r)["row"][period.column] < since]
        return self._world.commit(folder, Version(now.columns, (*kept, *passing(view, rows)), mark))

    def _backfill_windows(
        self,
        view: View,
        states: Mapping[str, RelationState],
        period: Period,
        folder: str,
        mark: Mark,
        span: Span,
    ) -> Written:
        since = read_time(period.since)
        assert since is not None
        now = self._world.newest(folder)
        kept = [r for r in now.contents if original(json.loads(r))["a"] < since]
        rows = self._came(states, {stream: Arrived(None, "") for stream in view.streams})
        new = passing(view, within(rows, span))
        return self._world.commit(folder, Version(now.columns, (*kept, *new), mark))

    def execute(
        self, program: Program, sql: str, states: Mapping[str, RelationState], mark: Mark
    ) -> tuple[str, Written]:
        """INSERT INTO t VALUES (...) of one row, or DELETE FROM t, each in one commit."""
        self._world.fail_if_broken(sql)
        insert, delete = _INSERT.fullmatch(sql), _DELETE.fullmatch(sql)
        name = (insert or delete)[1]  # type: ignore[index]
        folder = states[name].folder
        now = self._world.newest(folder)
        rows = [json.loads(row) for row in now.contents] if insert else []
        if insert:
            values = [int(value) for value in insert[2].split(",")]
            names = [column.name.lower() for column in program.tables[name].columns]
            rows.append(dict(zip(names, values, strict=False)))
        version = replace(_version(now.columns, rows, mark), is_append=insert is not None)
        return name, self._world.commit(folder, version)

    def call(
        self,
        program: Program,
        function: Callable[[Any], object],
        states: Mapping[str, RelationState],
        mark: Mark,
    ) -> None:
        """Call a hook with something that can `execute`."""
        engine = self

        class Context:
            def execute(self, sql: str) -> None:
                engine.execute(program, sql, states, mark)

        function(Context())

    def is_quiet(self, source: Source, connector: ConnectorState) -> bool:
        """Certain when this process read all that lies at its path."""
        rows = self._world.inputs.get(dict(source.options)["path"], [])
        return self._read.get(connector.offsets) == len(rows)

    def ingest(
        self,
        program: Program,
        source: Source,
        connector: ConnectorState,
        table: RelationState,
        mark: Mark,
    ) -> Ingested:
        """Take what is new at the source's path into its table, each row once."""
        self._world.fail_if_broken(source.connector)
        key = (connector.folder, connector.generation)
        rows = self._world.inputs.get(dict(source.options)["path"], [])
        begin, end = self._world.offsets.get(key, 0), len(rows)
        batch = (table.folder, *key, end)
        if begin < end and batch not in self._world.batches:
            now = self._world.newest(table.folder)
            first = program.tables[source.table].columns[0].name.lower()
            kept = [json.loads(row) for row in now.contents]
            new = [{first: value} for value in rows[begin:end]]
            self._world.beat()
            self._world.batches.add(batch)
            version = replace(_version(now.columns, [*kept, *new], mark), is_append=True)
            self._world.tables[table.folder].append(self._world.stamped(version))
            self._world.beat()
        self._world.offsets[key] = end
        self._world.beat()
        self._read[connector.offsets] = end
        # also what a process that was killed had read, and the ledger does not know
        uncounted = end - (connector.batch or 0)
        return Ingested(uncounted, 0, self._world.written(table.folder), batch=end)

    def send(
        self,
        program: Program,
        sink: Sink,
        state: SinkState,
        batch: Batch,
        mark: Mark,
        begin: Callable[[], None],
    ) -> int:
        """Put a batch at the sink's place; a batch that is there must be the same."""
        self._world.fail_if_broken(f"rows of {sink.connector}")
        came = Counter(self._at(batch.after))
        went = Counter(self._at(batch.before) if batch.before else ())
        if not batch.is_whole:
            came, went = came - went, went - came
        gone = [(row, -count) for row, count in went.items()]
        rows = tuple(sorted([*came.items(), *gone]))
        place = self._world.sent.setdefault(dict(sink.options)["path"], {})
        sent = Sent(state.id, batch.before is None, rows, batch.is_whole)
        if not rows:
            return 0
        begin()
        self._world.fail_if_broken(sink.connector)
        self._world.beat()
        assert place.get(batch.number, sent) == sent, f"batch {batch.number} changed"
        place[batch.number] = sent
        self._world.beat()
        return sum(abs(count) for _, count in rows)

    def last_batch(self, program: Program, sink: Sink) -> int:
        """The greatest number at the sink's place."""
        return max(self._world.sent.get(dict(sink.options)["path"], {}), default=0)

    def _at(self, contents: PinnedContents) -> tuple[str, ...]:
        return self._world.tables[contents.folder][contents.version].contents

    def query(
        self, program: Program, sql: str, states: Mapping[str, RelationState]
    ) -> tuple[Sequence[str], Sequence[Mapping[str, Any]]]:
        """Not needed here."""
        raise NotImplementedError


def evaluate(program: Program, name: str, stored: Callable[[str], Version]) -> str:
    """A view's contents: a text that tells its query and all that it read."""
    view = program.views[name]
    parts = []
    for read in sorted(view.reads):
        relation = program.relations[read]
        if isinstance(relation, View) and not relation.is_stored:
            parts.append(evaluate(program, read, stored))
        else:
            version = stored(read)
            parts.append(f"{list(version.columns)}{sorted(version.contents)}")
    query = " ".join(view.query.split())
    return f"<{query} | {' | '.join(parts)}>"


def passing(view: View, rows: Sequence[str]) -> tuple[str, ...]:
    """What a streaming table's query gives of rows: each with the query; one that has a WHERE gives
    nothing for rows with an odd number in `a`."""
    loaded = [json.loads(row) for row in rows]
    if "WHERE" in view.query:
        loaded = [row for row in loaded if not original(row)["a"] % 2]
    windowing = read_windows(view)
    if windowing is not None:
        begins = sorted((windowing.begin(row["a"]), row["a"]) for row in loaded)
        windows: dict[int, list[int]] = {}
        for begin, at in begins:
            windows.setdefault(begin, []).append(at)
        return tuple(
            json.dumps({"query": _text(view), "row": {"a": begin}, "rows": times})
            for begin, times in windows.items()
        )
    return tuple(json.dumps({"query": _text(view), "row": row}) for row in loaded)


def within(rows: Sequence[str], span: Span | None) -> list[str]:
    """The rows of a span."""
    if span is None:
        return list(rows)
    if span.until is None:
        return []
    found = [row for row in rows if json.loads(row)[span.column] < span.until]
    return [
        row for row in found if span.since is None or json.loads(row)[span.column] >= span.since
    ]


def original(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The input table's row that a row of a streaming table was made of."""
    return original(row["row"]) if "row" in row else row


def _text(view: View) -> str:
    return " ".join(view.query.split())


def _columns(table: Table) -> tuple[str, ...]:
    return tuple(column.name.lower() for column in table.columns)


def _version(columns: tuple[str, ...], rows: Sequence[Mapping[str, Any]], mark: Mark) -> Version:
    return Version(columns, tuple(json.dumps(row, sort_keys=True) for row in rows), mark)


@dataclass(frozen=True)
class Revision:
    """A revision of a straight history: its SQL, and what its hooks ask for."""

    id: str
    sql: str
    up: tuple[Directive, ...] = ()
    down: tuple[Directive, ...] = ()

    @property
    def files(self) -> Mapping[str, str]:
        """Path -> text."""
        return {FILE: self.sql}

    @property
    def program(self) -> Program:
        """The parsed program."""
        return parse(self.files)

    def applied(self) -> AppliedRevision:
        """The revision as the ledger holds it."""
        return AppliedRevision(self.id, (), (), (), f"message of {self.id}", f"{self.id}.py", "")


_parsed: dict[tuple[tuple[str, str], ...], Program] = {}


def parse(files: Mapping[str, str]) -> Program:
    """Parse, and keep it: laws parse the same programs over and over."""
    key = tuple(sorted(files.items()))
    if key not in _parsed:
        _parsed[key] = parse_program(files) if files else EMPTY_PROGRAM
    return _parsed[key]


class Clock:
    """A second a reading, from a fixed day."""

    def __init__(self) -> None:
        self.now = datetime(2026, 6, 10, 12, tzinfo=timezone.utc)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


class Pipeline:
    """One process that deploys a straight history of revisions.

    Args:
        world: what lasts.
        revisions: the history, oldest first.
    """

    def __init__(
        self,
        world: World,
        revisions: Sequence[Revision],
        observer: events.Observer = events.ignore,
    ) -> None:
        self.world = world
        self.revisions = {revision.id: revision for revision in revisions}
        self.journal = Journal(MemoryLedger(world), "school", clock=Clock())
        self.warehouse = FakeWarehouse(world)
        self.engine = FakeEngine(world)
        self.executor = Executor(
            self.engine, self.warehouse, self.journal, parse, self._load_hook, observer
        )
        self.observer = observer

    @property
    def runner(self) -> PipelineRunner:
        """What ticks this pipeline."""
        return PipelineRunner(self.engine, self.warehouse, self.journal, parse, self.observer)

    @property
    def deployment(self) -> Deployment:
        """What the ledger says now."""
        return self.journal.refresh()

    def plan(
        self, target: str | None, *, offline: bool = False, at: datetime | None = None
    ) -> Plan:
        """The plan to a revision, None for base."""
        return make_plan(replace(self.request(target, offline=offline), at=at))

    def request(self, target: str | None, *, offline: bool = False) -> Request:
        """What that plan is made from."""
        deployment = self.deployment
        names = list(self.revisions)
        here = names.index(deployment.revision) + 1 if deployment.revision else 0
        there = names.index(target) + 1 if target else 0
        ups, downs = names[here:there], names[there:here][::-1]
        hops = [self._hop(n, "down") for n in downs] + [self._hop(n, "up") for n in ups]
        return Request(
            pipeline="school",
            direction="downgrade" if downs else "upgrade",
            deployment=deployment,
            deployed=parse(deployment.program),
            target=self.revisions[target].program if target else EMPTY_PROGRAM,
            revision=target,
            ups=tuple(self.revisions[n].applied() for n in ups),
            downs=tuple(downs),
            hops=tuple(hops),
            observed={} if offline else self.warehouse.observe(deployment.cut.relations),
            raw={} if offline else self._raw(deployment),
        )

    def _raw(self, deployment: Deployment) -> dict[str, dict[int, RawRecords]]:
        """All that was read of sources that retain raw records."""
        sources = parse(deployment.program).sources
        return {
            state.folder: {
                state.generation: RawRecords(0, state.batch, True, state.rows, 9, "2026-06-10")
            }
            for name, state in deployment.cut.connectors.items()
            if name in sources and sources[name].retain_raw is not None and state.batch is not None
        }

    def go(self, target: str | None) -> Plan:
        """Plan and run; no tick after it."""
        plan = self.plan(target)
        self.executor.run(plan)
        return plan

    def tick(self, *, with_sources: bool = True) -> TickResult:
        """One tick of what is deployed."""
        check_idle(self.deployment)
        program = parse(self.deployment.program)
        return self.runner.once(program, with_sources=with_sources, workers=1)

    def insert(self, table: str, *values: int) -> None:
        """One row into a table, as `sqlmig exec` does."""
        deployment = self.deployment
        sql = f"INSERT INTO {table} VALUES ({', '.join(map(str, values))})"
        mark = Mark("school", f"exec-{deployment.seq}", 1, deployment.revision)
        relations = deployment.cut.relations
        name, now = self.engine.execute(parse(deployment.program), sql, relations, mark)
        state = relations[name].with_rows(now.version, now.rows, now.bytes)
        cut = {"relations": {name: state.to_dict()}}
        self.journal.append(Kind.EXEC, Status.DONE, cut=cut, revision=deployment.revision)

    # what is there

    def contents(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Relation -> columns and contents; the cut must say where they are."""
        found = {}
        for name, state in self.deployment.cut.relations.items():
            now = self.world.newest(state.folder)
            recorded = self.world.tables[state.folder][state.version]
            assert (recorded.columns, recorded.contents) == (now.columns, now.contents), name
            found[name] = (now.columns, tuple(sorted(now.contents)))
        return found

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table, values in the order of its columns."""
        columns, rows = self.contents()[table]
        return sorted(
            (tuple(json.loads(row).get(c) for c in columns) for row in rows),
            key=lambda row: tuple(map(str, row)),
        )

    def check_views(self) -> None:
        """Every materialized view equals its query over the tables as they are."""
        deployment = self.deployment
        program = parse(deployment.program)

        def stored(name: str) -> Version:
            if name in program.views and not deployment.cut.relations[name].takes_in:
                return Version((), (evaluate(program, name, stored),))
            return self.world.newest(deployment.cut.relations[name].folder)

        contents = self.contents()
        assert set(contents) == {n for n, r in program.relations.items() if r.is_stored}
        for name, view in program.views.items():
            if view.is_stored and not deployment.cut.relations[name].takes_in:
                assert contents[name][1] == (evaluate(program, name, stored),), name

    def received(self, connector: str) -> dict[str, int]:
        """What a reader of a sink has that applied its batches in the order of their numbers."""
        state = self.deployment.cut.sinks[connector]
        path = dict(parse(self.deployment.program).sinks[connector].options)["path"]
        has: Counter[str] = Counter()
        for _, batch in sorted(self.world.sent.get(path, {}).items()):
            if batch.id == state.id:
                has = has if not batch.is_snapshot else Counter()
                for row, count in batch.rows:
                    has[row] += count
        return {row: count for row, count in has.items() if count}

    def check_sinks(self) -> None:
        """The readers of every sink have its relation, but for what cutovers passed over."""
        deployment = self.deployment
        passed_over = self._passed_over()
        for name, sink in parse(deployment.program).sinks.items():
            state = deployment.cut.sinks[name]
            relation = deployment.cut.relations[sink.relation]
            expected = Counter(self.world.newest(relation.folder).contents)
            expected.subtract(passed_over.get(state.id, {}))
            assert self.received(name) == {r: n for r, n in expected.items() if n}, name
            assert state.is_continued == (state.id in passed_over), name

    def _passed_over(self) -> dict[str, Counter[str]]:
        """Id of a sink -> what its continuing cutovers changed of what it reads."""
        found: dict[str, Counter[str]] = {}
        folding = Folding()
        for record in self.world.records:
            plan = folding.deployment.unfinished
            folding.take(record)
            if record.kind is not Kind.PLAN or record.status is not Status.APPLIED or not plan:
                continue
            program, after = parse(plan.program), folding.deployment.cut
            for step in Plan.from_dict(plan.plan).steps:
                match step.action:
                    case CutOverSink(name, relation=read, sends="continue"):
                        assert plan.checkpoint is not None
                        old = plan.checkpoint.relations[read]
                        new = after.relations[program.sinks[name].relation]
                        over = found.setdefault(after.sinks[name].id, Counter())
                        over.update(self.world.recall(new.folder, new.version))
                        over.subtract(self.world.recall(old.folder, old.version))
        return found

    def summary(self) -> dict[str, Any]:
        """All that has to be equal after two ways to the same end; no versions, times or ids."""
        now = fold(self.world.records)
        relations = {
            name: (state.kind, state.folder, state.fingerprint, sorted(state.inputs))
            for name, state in now.cut.relations.items()
        }
        return {
            "state": now.state,
            "revision": now.revision,
            "program": dict(now.program),
            "applied": sorted(now.applied),
            "known": sorted(now.known),
            "relations": relations,
            "contents": self.contents(),
            "connectors": dict(now.cut.connectors),
            "detached": {
                folder: self.world.newest(folder).contents
                for folder in now.cut.detached
                if folder in self.world.tables
            },
            "detached connectors": sorted(now.cut.detached_connectors),
            "sinks": {
                n: (s.offsets, s.batch, self._pinned(s.sent)) for n, s in now.cut.sinks.items()
            },
            "detached sinks": sorted(now.cut.detached_sinks),
            "is unfinished": now.unfinished is not None,
        }

    def _pinned(self, pinned: PinnedContents | None) -> tuple[str, list[str]] | None:
        """Folder and rows; a table that a dead process had begun has them at a later version."""
        if pinned is None:
            return None
        return pinned.folder, sorted(self.world.tables[pinned.folder][pinned.version].contents)

    def _hop(self, name: str, hook: str) -> Hop:
        revision = self.revisions[name]
        directives = revision.up if hook == "up" else revision.down
        names = list(self.revisions)
        index = names.index(name)
        parent = self.revisions[names[index - 1]].program if index else EMPTY_PROGRAM
        if not directives:
            return Hop(revision.applied(), hook, (), EMPTY_PROGRAM, EMPTY_PROGRAM)
        ends = (parent, revision.program) if hook == "up" else (revision.program, parent)
        return Hop(revision.applied(), hook, directives, *ends)

    def _load_hook(self, plan: Plan, step: RunFunction) -> Callable[[Any], object]:
        revision = self.revisions[step.revision]
        directive = (revision.up if step.hook == "up" else revision.down)[step.index]
        assert isinstance(directive, Run)
        return directive.function
