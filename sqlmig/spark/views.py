"""Materialized views, and streaming tables that are made anew: each time one atomic Delta commit
that carries its mark."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmig.execution.values import Mark, Span, Written
from sqlmig.ledger.cut import RelationState
from sqlmig.program.model import Program, View
from sqlmig.spark.delta import read_version, step_options
from sqlmig.spark.failures import told
from sqlmig.spark.names import delta_name, quoted
from sqlmig.spark.relations import register, run_query
from sqlmig.spark.sessions import Sessions, once_only, transaction_name
from sqlmig.spark.spans import within
from sqlmig.warehouse import DeltaWarehouse

RETENTION = {
    "delta.deletedFileRetentionDuration": "interval 30 days",
    "delta.logRetentionDuration": "interval 30 days",
}
# No change data feed for a materialized view: with it, column mapping refuses a commit that changes
# names and rows at once.
_PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.setTransactionRetentionDuration": "interval 30 days",
    **RETENTION,
}


def materialize(
    sessions: Sessions,
    warehouse: DeltaWarehouse,
    program: Program,
    view: View,
    states: Mapping[str, RelationState],
    folder: str,
    mark: Mark,
    span: Span | None = None,
) -> Written:
    """Replace the contents in `folder` by the view's query over the inputs at `states`.

    Args:
        span: for a streaming table with windows: all that its stream is read of.

    Returns:
        The table after the commit; `written` counts its rows. When this run and step committed
        before, nothing is written.

    Raises:
        EngineError: the query fails; what was there before is still there.
    """
    path = warehouse.table_path(folder)
    if warehouse.find_mark(folder, mark.run, mark.step) is not None:
        if view.is_streaming:
            with told(f"`{view.name}`"):
                _set_feed(sessions, path, "true")
        return warehouse.written(folder, by=mark)
    session = sessions.fresh(mark)
    if warehouse.exists(folder):
        properties = warehouse.describe(folder).properties
        if properties.get("delta.enableChangeDataFeed") == "true":
            with told(f"`{view.name}`"):
                _set_feed(sessions, path, "false")
    register(session, warehouse, program, states, program.reads(view.name), view.called)
    if span is not None:
        (stream,) = view.streams
        state = states[stream]
        with told(f"`{stream}`"):
            rows = read_version(session, warehouse.table_path(state.folder), state.version)
            within(rows, span).createOrReplaceTempView(quoted(stream))
    frame = run_query(session, view)
    with told(f"`{view.name}`", query=view.query, begins=view.query_location):
        writer = frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer = writer.options(**_PROPERTIES, **step_options(mark))
        if view.partitioned_by:
            spelled = {name.lower(): name for name in frame.columns}
            writer = writer.partitionBy(*(spelled.get(name, name) for name in view.layout))
        with once_only(warehouse, path, transaction_name(mark)):
            writer.save(path)
    if view.is_streaming:  # what is appended from here on, its own readers are told by the feed
        with told(f"`{view.name}`"):
            _set_feed(sessions, path, "true")
    return warehouse.written(folder, by=mark)


def _set_feed(sessions: Sessions, path: str, value: str) -> None:
    """Switch the change feed; unmarked, for a mark is for contents."""
    sessions.fresh().sql(
        f"ALTER TABLE {delta_name(path)} SET TBLPROPERTIES "
        f"('delta.enableChangeDataFeed' = '{value}')"
    )
