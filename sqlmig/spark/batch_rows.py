"""The rows of a sink's batch: upserts and tombstones by key, or inserts and deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.program.sink_options import OP
from sqlmig.spark.difference import COUNT
from sqlmig.spark.names import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

UPSERT, INSERT, DELETE = "upsert", "insert", "delete"
IS_BAD = "__sqlmig_is_bad"
_ROW = "__sqlmig_row"
_CAME = "__sqlmig_came"
_SHOWN = 3


def unkeyed_rows(changed: DataFrame) -> DataFrame:
    """`_op` and the columns: a row that came is inserted, one that went is deleted.

    Args:
        changed: of `changes`; a row that came twice is inserted twice.
    """
    from pyspark.sql import functions as F  # noqa: N812

    times = F.explode(F.array_repeat(F.lit(0), F.abs(F.col(COUNT)).cast("int")))
    op = F.when(F.col(COUNT) > 0, F.lit(INSERT)).otherwise(F.lit(DELETE))
    names = [name for name in changed.columns if name != COUNT]
    values = (F.col(quoted(name)) for name in names)
    return changed.select(op.alias(OP), *values, times.alias(_CAME)).drop(_CAME)


def keyed_rows(changed: DataFrame, columns: Sequence[str], key: Sequence[str]) -> DataFrame:
    """One row for each key that changed.

    Args:
        changed: of `changes`.
        columns: those of the relation now. key: those of them that name a row.

    Returns:
        `_op` and the columns: `upsert` with the new row, or `delete` with the key alone; and
        `__sqlmig_is_bad`, true for a key that several rows came with, or that is NULL.
    """
    from pyspark.sql import functions as F  # noqa: N812

    came = F.col(COUNT) > 0
    row = F.struct(*(F.col(quoted(name)) for name in columns))
    by_key = changed.groupBy(*(F.col(quoted(name)).alias(name) for name in key)).agg(
        F.first(F.when(came, row), ignorenulls=True).alias(_ROW),
        F.sum(F.when(came, F.col(COUNT)).otherwise(F.lit(0))).alias(_CAME),
    )
    keys = {name.lower() for name in key}
    values = [
        F.col(quoted(name)) if name.lower() in keys else F.col(f"{_ROW}.{quoted(name)}").alias(name)
        for name in columns
    ]
    op = F.when(F.col(_ROW).isNull(), F.lit(DELETE)).otherwise(F.lit(UPSERT))
    is_null = F.lit(False)
    for name in key:
        is_null = is_null | F.col(quoted(name)).isNull()
    is_bad = (F.col(_CAME) > 1) | is_null
    return by_key.where(~is_null | (F.col(_CAME) > 0)).select(
        op.alias(OP), *values, is_bad.alias(IS_BAD)
    )


def repeated_keys(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The keys that several rows of a relation have."""
    from pyspark.sql import functions as F  # noqa: N812

    grouped = rows.groupBy(*(F.col(quoted(name)) for name in key)).count()
    return grouped.where(F.col("count") > 1).drop("count")


def refuse_keys(bad: DataFrame, key: Sequence[str], relation: str) -> None:
    """Raise where `bad` names a key.

    Raises:
        EngineError: names it.
    """
    found = bad.limit(_SHOWN + 1).collect()
    if not found:
        return
    nulls = [row for row in found if any(value is None for value in row)]
    if nulls:
        raise EngineError(
            f"a row of `{relation}` has no value in its key ({', '.join(key)})",
            hint="leave such rows out of the relation, or choose another `key`",
        )
    shown = sorted(
        ", ".join(f"{n} = {v!r}" for n, v in zip(key, row, strict=True)) for row in found[:_SHOWN]
    )
    more = ", ..." if len(found) > _SHOWN else ""
    raise EngineError(
        f"several rows of `{relation}` have one key: {'; '.join(shown)}{more}",
        hint="choose a `key` that names one row, or `key ''` for a sink without one",
    )
