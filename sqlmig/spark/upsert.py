"""Writes rows into an input table in one Delta commit: appended, or upserted by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmig.program.model import Column, Table
from sqlmig.spark.delta import marked_once
from sqlmig.spark.names import delta_name, quoted
from sqlmig.spark.sessions import TXN_APP, TXN_VERSION, USER_METADATA, once
from sqlmig.spark.tables import default_sql, storage_type

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

ORDER = "__sqlmig_order"
_SOURCE = "__sqlmig_rows"


def write_rows(
    rows: DataFrame, table: Table, path: str, note: str, transaction: tuple[str, int]
) -> None:
    """Write `rows` into the table at `path`.

    Args:
        rows: the table's columns, and for a keyed table `__sqlmig_order`: of the rows with equal
            keys the one with the greatest wins.
        note: the commit's `userMetadata`.
        transaction: (application, version): Delta skips the write when it committed these before.
    """
    names = [column.name for column in table.columns]
    if not table.primary_key:
        (
            rows.select(*map(quoted, names))
            .write.format("delta")
            .mode("append")
            .options(**marked_once(note, *transaction))
            .save(path)
        )
        return
    session = rows.sparkSession
    latest(rows, table).select(*map(quoted, names)).createOrReplaceTempView(_SOURCE)
    on = " AND ".join(f"t.{quoted(k)} = s.{quoted(k)}" for k in table.primary_key)
    session.conf.set(USER_METADATA, note)
    once(session, *transaction)
    try:
        session.sql(
            f"MERGE INTO {delta_name(path)} AS t USING {_SOURCE} AS s ON {on} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
    finally:
        for name in (USER_METADATA, TXN_APP, TXN_VERSION):
            session.conf.unset(name)
        session.catalog.dropTempView(_SOURCE)


def latest(rows: DataFrame, table: Table) -> DataFrame:
    """Of the rows with equal keys only the last, by `__sqlmig_order`."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    keys = [F.col(quoted(k)) for k in table.primary_key]
    window = Window.partitionBy(*keys).orderBy(F.col(ORDER).desc())
    ranked = rows.withColumn("__sqlmig_rank", F.row_number().over(window))
    return ranked.where(F.col("__sqlmig_rank") == 1)


def filled(column: Column) -> Expression:
    """The value of a column that is left out."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.expr(default_sql(column))


def stored(value: Expression, column: Column) -> Expression:
    """A value as its column stores it: cast, and not longer than a varchar allows."""
    from pyspark.sql import functions as F  # noqa: N812

    cast = value.cast(storage_type(column.type))
    limit = length_limit(column)
    if limit is None:
        return cast
    message = f"a value for `{column.name}` is longer than {column.type} allows"
    return F.when(F.length(cast) > limit, F.raise_error(F.lit(message))).otherwise(cast)


def length_limit(column: Column) -> int | None:
    """How many characters a char or varchar takes; None for other types."""
    if storage_type(column.type) == column.type:
        return None
    return int(column.type[column.type.index("(") + 1 : -1])
