"""The engine on Spark and Delta: each method one effect, done by the module that knows it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

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
from sqlmig.planning.preview import Difference, Prospect
from sqlmig.planning.steps import Blocker
from sqlmig.program.model import Program, Sink, Source, Table, View
from sqlmig.program.type_shape import Field
from sqlmig.spark.accumulating import AccumulatingViews, other_columns
from sqlmig.spark.analysis import analyze, columns
from sqlmig.spark.arrivals import Arrivals
from sqlmig.spark.converter import TableConverter
from sqlmig.spark.failures import told
from sqlmig.spark.hooks import HookContext
from sqlmig.spark.preview import Previewer
from sqlmig.spark.query import check_reads_only, collect
from sqlmig.spark.raw_rows import RawRows
from sqlmig.spark.relations import mentioned, register
from sqlmig.spark.sessions import Sessions
from sqlmig.spark.settings import LOCAL_CHECKPOINTS
from sqlmig.spark.sinks import SinkWriter
from sqlmig.spark.source_options import OptionReader
from sqlmig.spark.sources import Ingestion, SourceReader
from sqlmig.spark.spans import wrong_watermarks
from sqlmig.spark.statements import execute
from sqlmig.spark.streaming import StreamingTables, misfits
from sqlmig.spark.tables import Tables
from sqlmig.spark.views import materialize
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Method = Callable[Concatenate["SparkEngine", Parameters], Result]


def _operation(method: Method[Parameters, Result]) -> Method[Parameters, Result]:
    """The method, with its sessions let go at its end."""

    @functools.wraps(method)
    def operating(
        engine: SparkEngine, /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        with engine.sessions.operation():
            return method(engine, *args, **kwargs)

    return operating


class SparkEngine:
    """What only Spark can do; Spark is started by the first method that needs it.

    Args:
        open_session: gives the shared session.
        warehouse: where the tables are.
        project_root: what a connector's relative `path` starts from.
        secrets: gives the value of `${env:NAME}`, None where there is none.
    """

    def __init__(
        self,
        open_session: Callable[[], SparkSession],
        warehouse: DeltaWarehouse,
        project_root: Path,
        secrets: Callable[[str], str | None] = os.environ.get,
    ) -> None:
        self.sessions = Sessions(open_session, LOCAL_CHECKPOINTS if warehouse.is_local else {})
        self._warehouse = warehouse
        self._tables = Tables(self.sessions, warehouse)
        self._streaming = StreamingTables(self.sessions, warehouse, self._tables)
        self._accumulating = AccumulatingViews(self.sessions, warehouse, self._streaming)
        self._converter = TableConverter(self.sessions, warehouse, self._tables)
        self._sources = SourceReader(project_root, secrets)
        self._raw = RawRows(self.sessions, warehouse, OptionReader(project_root, secrets))
        self._arrivals = Arrivals(project_root)
        self._sinks = SinkWriter(self.sessions, warehouse, project_root, secrets)

    @_operation
    def analyze(
        self, program: Program, names: Sequence[str], kept: Mapping[str, str] | None = None
    ) -> Sequence[Blocker]:
        """Let Spark analyse the queries and functions of `names` against the declared schemas.

        Args:
            kept: view -> folder of the rows that its new query is to go on with.
        """
        schemas: dict[str, StructType] = {}
        blockers = list(analyze(self.sessions.fresh(), program, names, schemas))
        blockers += wrong_watermarks(program, names, schemas)
        for name, folder in sorted((kept or {}).items()):
            if name in schemas:
                stored = self._warehouse.describe(folder)
                view = program.views[name]
                found = misfits if view.is_streaming else other_columns
                blockers += found(view, schemas[name], stored)
        return blockers

    @_operation
    def columns(self, program: Program, names: Sequence[str]) -> Mapping[str, Sequence[Field]]:
        """The columns of relations as Spark finds them; without those that it can't analyse."""
        return columns(self.sessions.fresh(), program, names)

    @_operation
    def create_table(self, table: Table, folder: str, mark: Mark) -> Written:
        """Make an empty table in `folder`, or empty the one that an earlier try left there."""
        return self._tables.create(table, folder, mark)

    @_operation
    def alter_table(
        self, table: Table, folder: str, renamed: Sequence[tuple[str, str]], mark: Mark
    ) -> Written:
        """Bring the table's schema to `table`, keeping its rows. May be called again."""
        return self._tables.alter(table, folder, renamed, mark)

    @_operation
    def find_misfits(
        self, table: Table, folder: str, renamed: Sequence[tuple[str, str]], *, has_new_key: bool
    ) -> Sequence[Misfit]:
        """What stands in the way of keeping the rows in `folder` under the definition `table`."""
        return self._converter.find_misfits(table, folder, renamed, has_new_key=has_new_key)

    @_operation
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
        return self._converter.convert(table, folder, renamed, mark, has_new_key=has_new_key)

    @_operation
    def lay_out(self, name: str, folder: str, columns: Sequence[str], mark: Mark) -> Written:
        """Write the rows in `folder` anew, partitioned by `columns`, in one commit."""
        return self._tables.lay_out(name, folder, columns, mark)

    @_operation
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
        return self._raw.fill(program, name, folder, columns, sources, mark)

    @_operation
    def rebuild_table(
        self, program: Program, name: str, folder: str, sources: Sequence[RawSource], mark: Mark
    ) -> Ingested:
        """Bring into an empty table what its sources' raw records say. May be called again."""
        return self._raw.rebuild(program, name, folder, sources, mark)

    @_operation
    def empty_table(self, table: Table, folder: str, mark: Mark) -> Written:
        """Drop all rows, then bring the schema to `table`. May be called again."""
        return self._tables.empty(table, folder, mark)

    @_operation
    def restore(self, folder: str, version: int, mark: Mark) -> Written:
        """Put a table back to a version that delta-rs can't write."""
        return self._tables.restore(folder, version, mark)

    @_operation
    def materialize(
        self,
        program: Program,
        view: View,
        states: Mapping[str, RelationState],
        folder: str,
        mark: Mark,
        span: Span | None = None,
    ) -> Written:
        """Replace the view's contents by its query over the inputs at the versions of `states`."""
        sessions, warehouse = self.sessions, self._warehouse
        return materialize(sessions, warehouse, program, view, states, folder, mark, span)

    @_operation
    def measure(
        self,
        view: View,
        states: Mapping[str, RelationState],
        arrivals: Mapping[str, Arrived],
        column: str,
        over: int | None,
    ) -> Measured:
        """The times of the rows that came into the one stream of a table with windows."""
        return self._streaming.measure(view, states, arrivals, column, over)

    @_operation
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
        """Append what a streaming table's query gives of the rows that came into its streams."""
        return self._streaming.advance(program, view, states, arrivals, folder, mark, span)

    @_operation
    def accumulate(
        self,
        program: Program,
        view: View,
        states: Mapping[str, RelationState],
        arrivals: Mapping[str, Arrived],
        stored: RelationState,
        mark: Mark,
    ) -> Written:
        """Merge into a materialized view what its query gives of the rows that came."""
        return self._accumulating.accumulate(program, view, states, arrivals, stored, mark)

    @_operation
    def evolve(self, program: Program, view: View, folder: str, mark: Mark) -> Written:
        """Bring the schema in `folder` to the streaming table's query, and keep its rows."""
        return self._streaming.evolve(program, view, folder, mark)

    @_operation
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
        """Replace a streaming table's rows of a period by its query over the stream's of it."""
        return self._streaming.backfill(program, view, states, period, folder, mark, span)

    @_operation
    def execute(
        self, program: Program, sql: str, states: Mapping[str, RelationState], mark: Mark
    ) -> tuple[str, Written]:
        """Run one INSERT, UPDATE, DELETE or MERGE; the table's name and what became of it."""
        return execute(self.sessions, self._warehouse, program, sql, states, mark)

    @_operation
    def call(
        self,
        program: Program,
        function: Callable[[Any], object],
        states: Mapping[str, RelationState],
        mark: Mark,
    ) -> None:
        """Call a hook's function with a `HookContext`."""
        function(HookContext(self.sessions, self._warehouse, program, states, mark))

    def is_quiet(self, source: Source, connector: ConnectorState) -> bool:
        """Whether it is certain, without Spark, that a source has nothing new since it was read."""
        return self._arrivals.is_quiet(source, connector)

    @_operation
    def ingest(
        self,
        program: Program,
        source: Source,
        connector: ConnectorState,
        table: RelationState,
        mark: Mark,
    ) -> Ingested:
        """Read what a source has now, each record once, into its table."""
        ingestion = Ingestion(
            self._warehouse, program.tables[source.table], source, connector, table, mark
        )
        seen = self._arrivals.look(source)
        ingested = self._sources.ingest(self.sessions, ingestion)
        self._arrivals.remember(connector, seen)
        return ingested

    @_operation
    def send(
        self,
        program: Program,
        sink: Sink,
        state: SinkState,
        batch: Batch,
        mark: Mark,
        begin: Callable[[], None],
    ) -> int:
        """Send one batch to a sink; the same batch again sends the same rows. Change rows in it."""
        return self._sinks.send(program, sink, state, batch, mark, begin)

    @_operation
    def last_batch(self, program: Program, sink: Sink) -> int:
        """The greatest number of a batch that lies at the sink's place; 0 where there is none."""
        return self._sinks.last_batch(program, sink)

    @_operation
    def query(
        self, program: Program, sql: str, states: Mapping[str, RelationState]
    ) -> tuple[Sequence[str], Sequence[Mapping[str, Any]]]:
        """Column names and rows (as JSON values) of a query over the relations at `states`."""
        sql = check_reads_only(sql)
        session = self.sessions.fresh()
        needed = mentioned(program, sql)
        register(session, self._warehouse, program, states, needed.relations, needed.functions)
        with told(query=sql):
            return collect(session.sql(sql))

    @_operation
    def preview(
        self,
        program: Program,
        prospects: Sequence[Prospect],
        states: Mapping[str, RelationState],
        keys: Mapping[str, Sequence[str]],
        samples: int,
    ) -> Sequence[Difference]:
        """What becomes of the rows of `prospects` under `program`, over the versions of `states`.

        Nothing is written. `keys`: relation -> columns that are declared to tell its rows apart.
        """
        previewer = Previewer(self.sessions.fresh(), self._warehouse, program, states, samples)
        return previewer.preview(prospects, keys)
