"""Writes upserts and deletes into a keyed table, in an order that the records themselves may say.

With a sequence column an older record changes nothing, whenever it comes. That needs a memory of
what was deleted: else a late record would bring a deleted row back. It is a Delta table with one
row for each key that a source ever deleted: the key, and the sequence up to which it is gone.

A batch writes that table first and the input table then. Each knows the batch by Delta's
transaction id, so a batch that comes again after a crash writes only what it had not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmig.program.model import Table
from sqlmig.spark.names import delta_name, quoted
from sqlmig.spark.sessions import TXN_APP, TXN_VERSION, USER_METADATA, once
from sqlmig.spark.streams import DELETED
from sqlmig.spark.upsert import ORDER, first_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEQUENCE = "__sqlmig_sequence"
GONE_UNTIL = "gone_until"
_ROWS = "__sqlmig_rows"
_KNOWN = "__sqlmig_known"


@dataclass(frozen=True)
class Target:
    """Where changes go.

    Args:
        sequence: the column whose greater value is the later one; None for order of arrival.
        deleted_path: the Delta table of deleted keys; None if nothing needs it.
    """

    table: Table
    path: str
    sequence: str | None
    deleted_path: str | None


def make_deleted(session: SparkSession, target: Target) -> None:
    """Make the table of deleted keys, empty."""
    assert target.deleted_path is not None
    assert target.sequence is not None
    stored = session.read.format("delta").load(target.path)
    shape = stored.selectExpr(*_as_gone(target), f"{quoted(target.sequence)} AS {GONE_UNTIL}")
    shape.limit(0).write.format("delta").mode("ignore").save(target.deleted_path)


def write_changes(
    winners: DataFrame,
    target: Target,
    note: str,
    transaction: tuple[str, int],
    *,
    has_deletes: bool,
) -> None:
    """Write a batch of upserts and deletes.

    Args:
        winners: of `winners_of`: read several times, so better cached.
        note: the commit's `userMetadata`.
        transaction: (application, version): Delta skips a write when it committed these before.
        has_deletes: some rows are deletes.
    """
    session = winners.sparkSession
    try:
        if target.deleted_path is not None and has_deletes:
            _remember(session, winners, target, transaction)
        session.conf.set(USER_METADATA, note)
        _merge(session, _living(session, winners, target), target, transaction)
    finally:
        for name in (USER_METADATA, TXN_APP, TXN_VERSION):
            session.conf.unset(name)
        session.catalog.dropTempView(_ROWS)


def winners_of(rows: DataFrame, target: Target, *, has_deletes: bool) -> DataFrame:
    """Of the rows with equal keys only the last, with its sequence.

    Args:
        rows: the table's columns, `__sqlmig_deleted` and `__sqlmig_order`, the order of arrival.
        has_deletes: some rows are deletes.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    keys = [F.col(quoted(key)) for key in target.table.primary_key]
    by_key = Window.partitionBy(*keys)
    order = [F.col(ORDER).desc()]
    if target.sequence is not None:
        rows = rows.withColumn(SEQUENCE, F.col(quoted(target.sequence)))
        if has_deletes:
            # A delete may say no sequence: it is as late as the latest that came before it.
            rows = _with_known(rows, target)
            arrived = by_key.orderBy(ORDER).rowsBetween(Window.unboundedPreceding, 0)
            latest = F.max(SEQUENCE).over(arrived)
            rows = rows.withColumn(
                SEQUENCE, F.coalesce(SEQUENCE, F.greatest(latest, F.col(_KNOWN)))
            ).drop(_KNOWN)
        order = [F.col(SEQUENCE).desc_nulls_last(), *order]
    return first_of(rows, by_key, order)


def _with_known(rows: DataFrame, target: Target) -> DataFrame:
    """The rows, each delete without a sequence with the latest that is known of its key."""
    from pyspark.sql import functions as F  # noqa: N812

    assert target.sequence is not None
    session = rows.sparkSession
    keys = list(target.table.primary_key)
    bare = rows.where(F.col(DELETED) & F.col(SEQUENCE).isNull()).select(*map(quoted, keys))
    if bare.isEmpty():
        return rows.withColumn(_KNOWN, F.lit(None).cast(rows.schema[SEQUENCE].dataType))
    stored = session.read.format("delta").load(target.path)
    known = stored.selectExpr(*map(quoted, keys), f"{quoted(target.sequence)} AS {_KNOWN}")
    if target.deleted_path is not None:
        # by place: its keys have numbers for names, then comes until when they are gone
        known = known.union(session.read.format("delta").load(target.deleted_path))
    known = known.join(bare.distinct(), keys, "left_semi")
    known = known.groupBy(*map(quoted, keys)).agg(F.max(_KNOWN).alias(_KNOWN))
    return rows.join(known, keys, "left")


def _remember(
    session: SparkSession, winners: DataFrame, target: Target, transaction: tuple[str, int]
) -> None:
    """Note the keys that the batch deletes, and until when."""
    assert target.deleted_path is not None
    winners.where(f"{DELETED} AND {SEQUENCE} IS NOT NULL").selectExpr(
        *_as_gone(target), f"{SEQUENCE} AS {GONE_UNTIL}"
    ).createOrReplaceTempView(_ROWS)
    once(session, *transaction)
    session.sql(
        f"MERGE INTO {delta_name(target.deleted_path)} AS t USING {_ROWS} AS s "
        f"ON {_same_key(_gone_keys(target))} "
        f"WHEN MATCHED AND s.{GONE_UNTIL} > t.{GONE_UNTIL} THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )


def _living(session: SparkSession, winners: DataFrame, target: Target) -> DataFrame:
    """The winners without those that come too late for a key that is gone."""
    from pyspark.sql import functions as F  # noqa: N812

    if target.deleted_path is None:
        return winners
    gone = session.read.format("delta").load(target.deleted_path)
    if gone.isEmpty():
        return winners
    pairs = zip(target.table.primary_key, _gone_keys(target), strict=True)
    on = [F.col(f"s.{quoted(key)}") == F.col(f"g.{number}") for key, number in pairs]
    late = ~F.col(f"s.{DELETED}") & (F.col(f"g.{GONE_UNTIL}") > F.col(f"s.{SEQUENCE}"))
    return winners.alias("s").join(gone.alias("g"), [*on, late], "left_anti")


def _merge(
    session: SparkSession, rows: DataFrame, target: Target, transaction: tuple[str, int]
) -> None:
    rows.createOrReplaceTempView(_ROWS)
    names = [quoted(column.name) for column in target.table.columns]
    sets = ", ".join(f"t.{name} = s.{name}" for name in names)
    later = "true"
    if target.sequence is not None:
        stored = f"t.{quoted(target.sequence)}"
        later = f"(s.{SEQUENCE} IS NULL OR {stored} IS NULL OR s.{SEQUENCE} >= {stored})"
    once(session, *transaction)
    session.sql(
        f"MERGE INTO {delta_name(target.path)} AS t USING {_ROWS} AS s "
        f"ON {_same_key([quoted(key) for key in target.table.primary_key])} "
        f"WHEN MATCHED AND s.{DELETED} AND {later} THEN DELETE "
        f"WHEN MATCHED AND NOT s.{DELETED} AND {later} THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT s.{DELETED} THEN INSERT ({', '.join(names)}) "
        f"VALUES ({', '.join(f's.{name}' for name in names)})"
    )


def _gone_keys(target: Target) -> list[str]:
    """The names of the keys in the table of deleted keys: a key that is renamed stays the same."""
    return [f"key_{number}" for number, _ in enumerate(target.table.primary_key, 1)]


def _as_gone(target: Target) -> list[str]:
    pairs = zip(target.table.primary_key, _gone_keys(target), strict=True)
    return [f"{quoted(key)} AS {number}" for key, number in pairs]


def _same_key(keys: list[str]) -> str:
    return " AND ".join(f"t.{key} = s.{key}" for key in keys)
