"""Writes rows into an input table in one Delta commit: appended, or upserted by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmig.program.model import Column, Table
from sqlmig.spark.delta import marked_once
from sqlmig.spark.names import delta_name, quoted
from sqlmig.spark.sessions import TXN_APP, TXN_VERSION, USER_METADATA, once
from sqlmig.spark.tables import default_sql, storage_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame
    from pyspark.sql.window import WindowSpec

ORDER = "__sqlmig_order"
_SOURCE = "__sqlmig_rows"
_RANK = "__sqlmig_rank"


def write_rows(
    rows: DataFrame, table: Table, path: str, note: str, transaction: tuple[str, int]
) -> None:
    """Write `rows` into the table at `path`: appended, or upserted by key.

    Args:
        rows: the table's columns, and for a keyed table `__sqlmig_order`: of the rows with equal
            keys the one with the greatest wins.
        note: the commit's `userMetadata`.
        transaction: (application, version): Delta skips the write when it committed these before.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    if not table.primary_key:
        append_rows(rows, table, path, note, transaction)
        return
    by_key = Window.partitionBy(*map(quoted, table.primary_key))
    winners = first_of(rows, by_key, [F.col(ORDER).desc()])
    merge_rows(winners, table, path, note, transaction)


def append_rows(
    rows: DataFrame, table: Table, path: str, note: str, transaction: tuple[str, int]
) -> None:
    """Append the table's columns of `rows`; the rest is as in `write_rows`."""
    (
        rows.select(*_names(table))
        .write.format("delta")
        .mode("append")
        .options(**marked_once(note, *transaction))
        .save(path)
    )


def merge_rows(
    rows: DataFrame, table: Table, path: str, note: str, transaction: tuple[str, int]
) -> None:
    """Upsert `rows`, no two of which have one key; the rest is as in `write_rows`."""
    session = rows.sparkSession
    rows.select(*_names(table)).createOrReplaceTempView(_SOURCE)
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


def first_of(rows: DataFrame, by_key: WindowSpec, order: Sequence[Expression]) -> DataFrame:
    """Of the rows with equal keys only the one that `order` puts first."""
    from pyspark.sql import functions as F  # noqa: N812

    rank = F.row_number().over(by_key.orderBy(*order))
    return rows.withColumn(_RANK, rank).where(F.col(_RANK) == 1).drop(_RANK)


def _names(table: Table) -> list[str]:
    return [quoted(column.name) for column in table.columns]


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
