"""The times of a stream's rows: which lie in a span, and how far they reach. It knows one frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.execution.values import Measured, Span
from sqlmig.planning.steps import Blocker
from sqlmig.program.model import Program
from sqlmig.program.windows import read_windows
from sqlmig.spark.names import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def within(frame: DataFrame, span: Span) -> DataFrame:
    """The rows of a span; Delta skips files by it."""
    if span.until is None:
        return frame.where("false")
    column = quoted(span.column)
    frame = frame.where(f"{column} < timestamp_micros({span.until})")
    if span.since is None:
        return frame
    return frame.where(f"{column} >= timestamp_micros({span.since})")


def measured(frame: DataFrame, column: str, over: int | None) -> Measured:
    """How far the rows reach, and how many lie before `over`, in microseconds since 1970.

    Raises:
        EngineError: the column is no TIMESTAMP.
    """
    wrong = _wrong_type(frame.schema, column)
    if wrong is not None:
        raise EngineError(wrong, hint=_HINT)
    name = quoted(column)
    late = "0" if over is None else f"count_if({name} < timestamp_micros({over}))"
    (row,) = frame.selectExpr(f"max(unix_micros({name})) AS latest", f"{late} AS late").collect()
    return Measured(row["latest"], row["late"])


def wrong_watermarks(
    program: Program, names: Collection[str], schemas: Mapping[str, StructType]
) -> list[Blocker]:
    """The streaming tables among `names` whose watermark's column can't be one.

    Args:
        schemas: those of views, as far as Spark has found them.
    """
    found = []
    for name in sorted(set(names) & program.views.keys()):
        view = program.views[name]
        windowing = read_windows(view)
        if windowing is None:
            continue
        table = program.tables.get(windowing.stream)
        if table is not None:
            kinds = {c.name.lower(): c.type for c in table.columns}
            kind = kinds.get(windowing.column)
            wrong = None if kind == "timestamp" else _message(windowing.column, kind)
        elif windowing.stream in schemas:
            wrong = _wrong_type(schemas[windowing.stream], windowing.column)
        else:
            continue
        if wrong is not None:
            found.append(Blocker(f"`{name}`: {wrong}", view.query_location or view.location, _HINT))
    return found


_HINT = "write WATERMARK and a TIMESTAMP of the stream's"


def _wrong_type(schema: StructType, column: str) -> str | None:
    kinds = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    kind = kinds.get(column)
    return None if kind == "timestamp" else _message(column, kind)


def _message(column: str, kind: str | None) -> str:
    if kind is None:
        return f"its WATERMARK is of `{column}`, which the stream does not have"
    return f"its WATERMARK is of `{column}`, which is {kind}"
