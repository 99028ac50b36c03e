"""Materialized views that go on in place: what came is aggregated by itself, merged with what they
have, and written over it, rows and position in one Delta commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.execution.values import Arrived, Mark, Written
from sqlmig.ledger.cut import RelationState
from sqlmig.planning.steps import Blocker
from sqlmig.program.accumulation import Refusal, read_accumulation
from sqlmig.program.model import Program, View
from sqlmig.spark.delta import read_version, step_options
from sqlmig.spark.failures import told
from sqlmig.spark.names import quoted
from sqlmig.spark.relations import register, run_query
from sqlmig.spark.sessions import Sessions, once_only, transaction_name
from sqlmig.spark.streaming import StreamingTables
from sqlmig.stored import StoredTable, spark_type
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class AccumulatingViews:
    """Lets materialized views take in what came. Every method may be called again.

    Args:
        sessions: where Spark is.
        warehouse: where the tables are.
        streaming: reads what came.
    """

    def __init__(
        self, sessions: Sessions, warehouse: DeltaWarehouse, streaming: StreamingTables
    ) -> None:
        self._sessions = sessions
        self._warehouse = warehouse
        self._streaming = streaming

    def accumulate(
        self,
        program: Program,
        view: View,
        states: Mapping[str, RelationState],
        arrivals: Mapping[str, Arrived],
        stored: RelationState,
        mark: Mark,
    ) -> Written:
        """Write over the contents at `stored` by them merged with what the query gives of the rows
        that came.

        Raises:
            EngineError: the query fails, or its result can't be merged; nothing was written.
        """
        how = read_accumulation(program, view.name)
        if isinstance(how, Refusal):
            raise EngineError(f"`{view.name}` {how.reason}", location=view.location, hint=how.hint)
        path = self._warehouse.table_path(stored.folder)
        if self._warehouse.last_transaction(path, transaction_name(mark)) is not None:
            return self._warehouse.written(stored.folder, by=mark)
        session = self._sessions.fresh(mark)
        register(session, self._warehouse, program, states, (), view.called)
        self._streaming.register(session, states, arrivals)
        came = run_query(session, view)
        with told(f"`{view.name}`", query=view.query, begins=view.query_location):
            before = read_version(session, path, stored.version)
            merged = _merged(before, came, how.merges)
            writer = merged.write.format("delta").mode("overwrite").options(**step_options(mark))
            with once_only(self._warehouse, path, transaction_name(mark)):
                writer.save(path)
        return self._warehouse.written(stored.folder, by=mark)


def other_columns(view: View, schema: StructType, stored: StoredTable) -> list[Blocker]:
    """What keeps the rows that are stored from being merged with those that the query will give."""
    wanted = [
        (field["name"], spark_type(field["type"], {}))
        for field in json.loads(schema.json())["fields"]
    ]
    there = [(column.name, column.type) for column in stored.columns]
    hint = "take op.in_place out of the revision, and it is computed anew; or CAST it"
    where = view.query_location or view.location
    if [name.lower() for name, _ in wanted] != [name.lower() for name, _ in there]:
        names = ", ".join(name for name, _ in there)
        return [Blocker(f"`{view.name}` has the columns {names} in the rows there", where, hint)]
    return [
        Blocker(f"`{view.name}.{name}` is {was} in the rows there, and becomes {now}", where, hint)
        for (name, now), (_, was) in zip(wanted, there, strict=True)
        if now != was
    ]


def _merged(before: DataFrame, came: DataFrame, merges: tuple[str | None, ...]) -> DataFrame:
    """The rows of both, those of one key together; columns are told by their place."""
    from pyspark.sql import functions as F  # noqa: N812

    fields = before.schema.fields
    both = before.union(came)
    names = [quoted(field.name) for field in fields]
    keys = [F.col(name) for name, merge in zip(names, merges, strict=True) if merge is None]
    values = [
        F.expr(f"{merge}({name})").alias(field.name)
        for field, name, merge in zip(fields, names, merges, strict=True)
        if merge is not None
    ]
    grouped = both.groupBy(*keys).agg(*values)
    return grouped.select(
        *(
            F.col(name).cast(field.dataType).alias(field.name)
            for field, name in zip(fields, names, strict=True)
        )
    )
