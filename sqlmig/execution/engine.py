"""What execution asks of a warehouse and of Spark: two protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

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
from sqlmig.ledger.sink_state import Batch, SinkState
from sqlmig.planning.request import Observed
from sqlmig.planning.steps import Blocker
from sqlmig.program.model import Program, Sink, Source, Table, View
from sqlmig.program.type_shape import Field


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
