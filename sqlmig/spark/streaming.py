"""Streaming tables in Delta: each piece of their streams is one append that carries the position.

Nothing of Structured Streaming is used: no checkpoint and no state, which could be another's than
the query's. What came is read from the streams' change feeds, the query is run over it as any
other, and rows and position are one atomic commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.execution.values import Arrived, Mark, Measured, Period, Span, Written
from sqlmig.ledger.cut import RelationState
from sqlmig.planning.steps import Blocker
from sqlmig.planning.table_change import widens
from sqlmig.program.model import Column, Program, Table, View
from sqlmig.spark.analysis import schema_of
from sqlmig.spark.arrived_rows import arrived
from sqlmig.spark.delta import step_options
from sqlmig.spark.failures import told
from sqlmig.spark.names import literal, quoted
from sqlmig.spark.relations import register, run_query
from sqlmig.spark.sessions import Sessions, once_only, transaction_name
from sqlmig.spark.spans import measured, within
from sqlmig.spark.tables import Tables, storage_type
from sqlmig.stored import StoredTable, spark_type
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_EVERYTHING = Arrived(None, "")

States = Mapping[str, RelationState]


class StreamingTables:
    """Lets streaming tables take in what came. Every method may be called again.

    Args:
        sessions: where Spark is.
        warehouse: where the tables are.
        tables: alters them.
    """

    def __init__(self, sessions: Sessions, warehouse: DeltaWarehouse, tables: Tables) -> None:
        self._sessions = sessions
        self._warehouse = warehouse
        self._tables = tables

    def measure(
        self,
        view: View,
        states: States,
        arrivals: Mapping[str, Arrived],
        column: str,
        over: int | None,
    ) -> Measured:
        """The times of the rows that came into the one stream of a table with windows.

        Args:
            over: rows of an earlier time are late; in microseconds since 1970.

        Raises:
            EngineError: the stream can't be read, or its column is no TIMESTAMP.
        """
        (name,) = view.streams
        came = {name: arrivals[name]}
        rows = arrived(self._sessions.fresh(), self._warehouse, states, came)[name]
        with told(f"`{name}`"):
            return measured(rows, column, over)

    def advance(
        self,
        program: Program,
        view: View,
        states: States,
        arrivals: Mapping[str, Arrived],
        folder: str,
        mark: Mark,
        span: Span | None = None,
    ) -> Written:
        """Append what the query gives of the rows that came; one commit, also if that is nothing.

        Args:
            span: for a table with windows: it gives what it gives of all rows of its stream in it.

        Raises:
            EngineError: the query fails; nothing was written.
        """
        if not self._is_written(folder, mark):
            session = self._sessions.fresh(mark)
            register(session, self._warehouse, program, states, _static(program, view), view.called)
            self.register(session, states, {s: arrivals[s] for s in view.streams}, span)
            self._write(session, view, folder, mark, None)
        return self._warehouse.written(folder, by=mark)

    def register(
        self,
        session: SparkSession,
        states: States,
        arrivals: Mapping[str, Arrived],
        span: Span | None = None,
    ) -> None:
        """Let the names of streams stand for the rows that came into them.

        Args:
            span: for a table with windows: for all rows of its stream in it.
        """
        came = arrivals if span is None else dict.fromkeys(arrivals, _EVERYTHING)
        for name, rows in arrived(session, self._warehouse, states, came).items():
            with told(f"`{name}`"):
                shown = rows if span is None else within(rows, span)
                shown.createOrReplaceTempView(quoted(name))

    def backfill(
        self,
        program: Program,
        view: View,
        states: States,
        period: Period,
        folder: str,
        mark: Mark,
        span: Span | None = None,
    ) -> Written:
        """Replace the rows of a period by what the query gives of the streams' rows of it.

        Args:
            span: for a table with windows: the rows of its stream that make those of the period.

        Raises:
            EngineError: the query fails, or gives a row outside the period; nothing was written.
        """
        if not self._is_written(folder, mark):
            session = self._sessions.fresh(mark)
            register(session, self._warehouse, program, states, _static(program, view), view.called)
            condition = f"{quoted(period.column)} >= {literal(period.since)}"
            came = dict.fromkeys(view.streams, _EVERYTHING)
            for name, rows in arrived(session, self._warehouse, states, came).items():
                if span is None:
                    _need(rows.columns, period, f"the stream `{name}`", view)
                with told(f"`{name}`"):
                    rows = rows.where(condition) if span is None else within(rows, span)
                    rows.createOrReplaceTempView(quoted(name))
            columns = [column.name for column in self._warehouse.describe(folder).columns]
            _need(columns, period, f"`{view.name}`", view)
            self._write(session, view, folder, mark, condition)
        return self._warehouse.written(folder, by=mark)

    def evolve(self, program: Program, view: View, folder: str, mark: Mark) -> Written:
        """Bring the table's columns to those of the query, and keep its rows.

        A new column is NULL in them; one that the query no longer has is dropped.

        Raises:
            EngineError: a column has another type by now, to which Delta can't widen the old one.
        """
        schema = schema_of(self._sessions.fresh(), program, view.name)
        stored = self._warehouse.describe(folder)
        wanted = _columns(schema, stored)
        if [(c.name, c.type) for c in wanted] == [(c.name, c.type) for c in stored.columns]:
            return self._warehouse.written(folder)
        table = Table(view.name, wanted, comment=stored.comment, location=view.location)
        return self._tables.alter(table, folder, (), mark)

    def _is_written(self, folder: str, mark: Mark) -> bool:
        path = self._warehouse.table_path(folder)
        return self._warehouse.last_transaction(path, transaction_name(mark)) is not None

    def _write(
        self,
        session: SparkSession,
        view: View,
        folder: str,
        mark: Mark,
        condition: str | None,
    ) -> None:
        path = self._warehouse.table_path(folder)
        frame = run_query(session, view)
        with told(f"`{view.name}`", query=view.query, begins=view.query_location):
            writer = frame.write.format("delta").mode("overwrite" if condition else "append")
            writer = writer.options(**step_options(mark))
            if condition:
                writer = writer.option("replaceWhere", condition)
            with once_only(self._warehouse, path, transaction_name(mark)):
                writer.save(path)


def misfits(view: View, schema: StructType, stored: StoredTable) -> list[Blocker]:
    """The columns for which the rows that are stored can't be kept."""
    there = {column.name.lower(): column.type for column in stored.columns}
    return [
        Blocker(
            f"`{view.name}.{column.name}` is {there[column.name.lower()]} in the rows that are "
            f"there, and becomes {column.type}",
            view.query_location or view.location,
            f'write op.rebuild("{view.name}") into up(op) of the revision, or CAST it',
        )
        for column in _columns(schema, stored)
        if column.type != there.get(column.name.lower(), column.type)
        and not widens(there[column.name.lower()], column.type)
    ]


def _static(program: Program, view: View) -> frozenset[str]:
    """What the query reads besides its streams, for the streams' names stand for what came."""
    return program.reads(view.name) - frozenset(view.streams)


def _need(columns: list[str], period: Period, what: str, view: View) -> None:
    if period.column not in [column.lower() for column in columns]:
        raise EngineError(
            f"{what} has no column `{period.column}`, by which rows since {period.since} are told",
            location=view.location,
            hint="op.backfill takes a column that the streaming table and its stream both have; "
            "op.rebuild needs none",
        )


def _columns(schema: StructType, stored: StoredTable) -> tuple[Column, ...]:
    """The columns of a query's result; a string stays a VARCHAR where it is stored as one."""
    there = {column.name.lower(): column.type for column in stored.columns}
    columns = []
    for field in json.loads(schema.json())["fields"]:
        kind = spark_type(field["type"], {})
        known = there.get(field["name"].lower(), kind)
        columns.append(Column(field["name"], known if storage_type(known) == kind else kind))
    return tuple(columns)
