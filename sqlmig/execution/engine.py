"""What the executor asks of a warehouse and of Spark: a protocol, and the values that cross it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from sqlmig.ledger.cut import ConnectorState, RelationState
from sqlmig.ledger.sink_state import Batch, SinkState
from sqlmig.planning.request import Observed
from sqlmig.planning.steps import Blocker
from sqlmig.program.model import Program, Sink, Source, Table, View
from sqlmig.program.type_shape import Field


@dataclass(frozen=True)
class Mark:
    """What a Delta commit of sqlmig carries in its metadata: whose it is, what it was made from.

    Args:
        run, step: name the effect; the same pair never commits twice.
        inputs: for a view's contents: stored input -> content id.
        passed: for rows that were taken in: the position after them, as in `RelationState`; None
            for a commit that says nothing about that.
        watermark, late: part of that position, as in `RelationState`.
    """

    pipeline: str
    run: str
    step: int
    revision: str | None
    fingerprint: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    passed: Mapping[str, str] | None = None
    watermark: int | None = None
    late: int = 0

    def to_json(self) -> str:
        """The text put into the commit's `userMetadata`."""
        body: dict[str, Any] = {
            "pipeline": self.pipeline,
            "run": self.run,
            "step": self.step,
            "revision": self.revision,
            "fingerprint": self.fingerprint,
            "inputs": dict(sorted(self.inputs.items())),
        }
        if self.passed is not None:
            body["passed"] = dict(self.passed)
        if self.watermark is not None:
            body["watermark"] = self.watermark
        if self.late:
            body["late"] = self.late
        return json.dumps({"sqlmig": body}, sort_keys=True)

    @staticmethod
    def from_json(text: str | None) -> Mark | None:
        """The mark in a commit's `userMetadata`; None where sqlmig did not write it."""
        try:
            body = json.loads(text or "")["sqlmig"]
            return Mark(
                pipeline=body["pipeline"],
                run=body["run"],
                step=body["step"],
                revision=body["revision"],
                fingerprint=body["fingerprint"],
                inputs=body["inputs"],
                passed=body.get("passed"),
                watermark=body.get("watermark"),
                late=body.get("late", 0),
            )
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True)
class Written:
    """A Delta table after a commit.

    Args:
        version: its Delta version.
        rows, bytes: its size now. written: rows that the commit wrote, where known.
    """

    version: int
    rows: int | None
    bytes: int | None
    written: int | None = None


@dataclass(frozen=True)
class Arrived:
    """The rows of a stream that have not passed yet.

    Args:
        versions: the commits that brought them, ascending; None for every row that is there.
        passed: the stream's position after them.
    """

    versions: tuple[int, ...] | None
    passed: str

    @property
    def is_empty(self) -> bool:
        """No commit brought rows."""
        return self.versions == ()


@dataclass(frozen=True)
class Period:
    """The rows from a time on.

    Args:
        column: of the streaming table and of its stream.
        since: a date or a timestamp as Spark reads it; rows of that very time are among them.
    """

    column: str
    since: str


@dataclass(frozen=True)
class Span:
    """The rows of a stream that fill whole windows.

    Args:
        column: of the stream: a row's time.
        since: rows of that very time are among them; None for no bound. Microseconds since 1970.
        until: rows of that very time are not; None where no window is over: then no row is.
    """

    column: str
    since: int | None
    until: int | None

    @property
    def is_empty(self) -> bool:
        """No window lies in it."""
        return self.until is None or (self.since is not None and self.until <= self.since)


@dataclass(frozen=True)
class Measured:
    """The times of rows that came.

    Args:
        latest: the greatest, in microseconds since 1970; None where no row has one.
        late: rows that came behind a given time.
    """

    latest: int | None
    late: int


@dataclass(frozen=True)
class Ingested:
    """What one round of a source brought.

    Args:
        rows: records read. rejected: bad ones that were kept aside.
        table: the table after it.
        behind: records that the source has and the round did not read; None where that is unknown.
        batch: number of the last batch in `rows`; None where that is unknown.
    """

    rows: int
    rejected: int
    table: Written
    behind: int | None = None
    batch: int | None = None


@dataclass(frozen=True)
class RawSource:
    """A source that has kept raw records: its connector, the folder, the generation in use."""

    connector: str
    folder: str
    generation: int


@dataclass(frozen=True)
class Misfit:
    """Rows of a table that its new definition has no room for, or that change under it.

    Args:
        message: which and how many, with samples.
        is_loss: the cast changes their values; else they can't be kept at all.
    """

    message: str
    is_loss: bool = False


class Warehouse(Protocol):
    """What can be asked of the stored tables without Spark."""

    def observe(self, states: Mapping[str, RelationState]) -> Mapping[str, Observed]:
        """Folder -> the table as it is now, for each state's folder that holds a table."""

    def arrivals(self, folder: str, version: int, passed: str | None) -> Arrived:
        """What came into a table up to `version` and has not passed; None for no position yet."""

    def came_before(self, folder: str, version: int, at: datetime) -> int:
        """The newest version up to `version` before which no commit is from `at` or later; -1 where
        there is none."""

    def positions(self, folder: str) -> Sequence[tuple[int, Mapping[str, str]]]:
        """The commits that say a position: version and position, newest first."""

    def restored_by(self, folder: str, run: str) -> tuple[int, int] | None:
        """The version with which a run put a table back, and the one that it put it back to."""

    def find_mark(self, folder: str, run: str, step: int) -> int | None:
        """The version of the commit that carries this run and step; None if there is none."""

    def restore(self, folder: str, version: int, mark: Mark | None = None) -> Written | None:
        """Put a table back to a version. None where only Spark can (a table feature)."""

    def fence(self, folder: str, mark: Mark) -> int | None:
        """Make a commit that writes begun before it can't pass; its version. None without table."""


class Engine(Protocol):
    """What only Spark can do. Every method is one idempotent effect, or reads only."""

    def analyze(
        self, program: Program, names: Sequence[str], kept: Mapping[str, str] | None = None
    ) -> Sequence[Blocker]:
        """Let Spark analyse the queries and functions of `names` against the declared schemas.

        `kept`: view -> folder of the rows that its new query is to go on with.
        """

    def columns(self, program: Program, names: Sequence[str]) -> Mapping[str, Sequence[Field]]:
        """The columns of relations as Spark finds them; without those that it can't analyse."""

    def create_table(self, table: Table, folder: str, mark: Mark) -> Written:
        """Make an empty table in `folder`, or empty the one that an earlier try left there."""

    def alter_table(
        self, table: Table, folder: str, renamed: Sequence[tuple[str, str]], mark: Mark
    ) -> Written:
        """Bring the table's schema to `table`, keeping its rows. May be called again."""

    def find_misfits(
        self, table: Table, folder: str, renamed: Sequence[tuple[str, str]], *, has_new_key: bool
    ) -> Sequence[Misfit]:
        """What stands in the way of keeping the rows in `folder` under the definition `table`."""

    def convert_table(
        self,
        table: Table,
        folder: str,
        renamed: Sequence[tuple[str, str]],
        mark: Mark,
        *,
        has_new_key: bool,
    ) -> Written:
        """Check the rows, cast them and bring the schema to `table`. May be called again."""

    def lay_out(self, name: str, folder: str, columns: Sequence[str], mark: Mark) -> Written:
        """Write the rows in `folder` anew, partitioned by `columns`, in one commit."""

    def fill_columns(
        self,
        program: Program,
        name: str,
        folder: str,
        columns: Sequence[str],
        sources: Sequence[RawSource],
        mark: Mark,
    ) -> Written:
        """Give new columns of a table the values that raw records have for its rows."""

    def rebuild_table(
        self, program: Program, name: str, folder: str, sources: Sequence[RawSource], mark: Mark
    ) -> Ingested:
        """Bring into an empty table what its sources' raw records say. May be called again."""

    def empty_table(self, table: Table, folder: str, mark: Mark) -> Written:
        """Drop all rows, then bring the schema to `table`. May be called again."""

    def restore(self, folder: str, version: int, mark: Mark) -> Written:
        """Put a table back to a version that delta-rs can't write."""

    def materialize(
        self,
        program: Program,
        view: View,
        states: Mapping[str, RelationState],
        folder: str,
        mark: Mark,
        span: Span | None = None,
    ) -> Written:
        """Replace the view's contents by its query over the inputs at the versions of `states`.

        `span`: for a streaming table with windows: all that its stream is read of.
        """

    def measure(
        self,
        view: View,
        states: Mapping[str, RelationState],
        arrivals: Mapping[str, Arrived],
        column: str,
        over: int | None,
    ) -> Measured:
        """The times of the rows that came into the one stream of a table with windows.

        `over`: rows of an earlier time are late; in microseconds since 1970.
        """

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
        """Append what a streaming table's query gives of the rows that came into its streams.

        `span`: for one with windows: it gives what it gives of all rows of its stream in there.
        """

    def accumulate(
        self,
        program: Program,
        view: View,
        states: Mapping[str, RelationState],
        arrivals: Mapping[str, Arrived],
        stored: RelationState,
        mark: Mark,
    ) -> Written:
        """Merge into a materialized view what its query gives of the rows that came; one commit.

        What it has is read as of `stored`.
        """

    def evolve(self, program: Program, view: View, folder: str, mark: Mark) -> Written:
        """Bring the schema in `folder` to the streaming table's query, and keep its rows."""

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
        """Replace a streaming table's rows of a period by its query over the stream's of it.

        `span`: for one with windows: what its stream is read of, instead of the period's column.
        """

    def execute(
        self, program: Program, sql: str, states: Mapping[str, RelationState], mark: Mark
    ) -> tuple[str, Written]:
        """Run one INSERT, UPDATE, DELETE or MERGE; the table's name and what became of it."""

    def call(
        self,
        program: Program,
        function: Callable[[Any], object],
        states: Mapping[str, RelationState],
        mark: Mark,
    ) -> None:
        """Call a hook's function with a context that can run SQL."""

    def is_quiet(self, source: Source, connector: ConnectorState) -> bool:
        """Whether it is certain, without Spark, that a source has nothing new since it was read.

        By this process, that is: what another one brought and did not record is still to be told.
        """

    def ingest(
        self,
        program: Program,
        source: Source,
        connector: ConnectorState,
        table: RelationState,
        mark: Mark,
    ) -> Ingested:
        """Read what a source has now, each record once, into its table."""

    def send(
        self,
        program: Program,
        sink: Sink,
        state: SinkState,
        batch: Batch,
        mark: Mark,
        begin: Callable[[], None],
    ) -> int:
        """Send one batch; the same batch again sends the same rows. Change rows in it.

        `begin` is called when the rows are worked out and found right, before the first goes out;
        not at all where there are none. What it raises ends the sending.
        """

    def last_batch(self, program: Program, sink: Sink) -> int:
        """The greatest number of a batch that lies at the sink's place; 0 where there is none."""

    def query(
        self, program: Program, sql: str, states: Mapping[str, RelationState]
    ) -> tuple[Sequence[str], Sequence[Mapping[str, Any]]]:
        """Column names and rows (as JSON values) of a query over the relations at `states`."""
