"""Which values a column takes: Spark's ANSI rules for storing, and text that reads as the type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlmig.program.model import Column
from sqlmig.spark.tables import storage_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_DATES = ("date", "timestamp", "timestamp_ntz")


def obstacle(kind: DataType, wanted: str) -> str | None:
    """Why a value of type `kind` can't go into a column of type `wanted`; None when it can.

    Numbers go into numbers and dates into dates (a value that doesn't fit fails as it is
    written), anything simple into a string, and a string into anything simple that it reads as.
    """
    found = kind.simpleString()
    wanted = storage_type(wanted)
    if found in ("void", wanted):
        return None
    nested = ("array<", "map<", "struct<")
    if found.startswith(nested) or wanted.startswith(nested):
        is_alike = found.split("<")[0] == wanted.split("<")[0]
        return None if is_alike else f"a value of type {found} can't be stored as {wanted}"
    if wanted == "string" or found == "string":
        is_opaque = "variant" in (found, wanted)
        return f"a value of type {found} can't be stored as {wanted}" if is_opaque else None
    if found.startswith(_NUMBERS) and wanted.startswith(_NUMBERS):
        return None
    if found in _DATES and wanted in _DATES:
        return None
    return f"a value of type {found} can't be stored as {wanted}"


def explain_cast(frame: DataFrame, columns: Sequence[Column]) -> tuple[Column, Any] | None:
    """The first column with a value that does not read as its type, and that value."""
    from pyspark.sql import functions as F  # noqa: N812

    checks = []
    for name, column in zip(frame.columns, columns, strict=True):
        value = F.col(name)
        is_bad = value.isNotNull() & value.try_cast(storage_type(column.type)).isNull()
        checks.append(F.min(F.when(is_bad, value.cast("string"))).alias(name))
    try:
        row = frame.agg(*checks).collect()[0]
    except Exception:  # the query itself fails: there is no culprit among the columns
        return None
    for column, value in zip(columns, row, strict=True):
        if value is not None:
            return column, value
    return None
