"""Sinks into a Delta table of someone else's: each batch one commit, once for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmig.program.sink_options import BATCH, OP
from sqlmig.spark.batch_rows import DELETE
from sqlmig.spark.delta import marked_once
from sqlmig.spark.names import delta_name, quoted
from sqlmig.spark.outgoing import Outgoing
from sqlmig.spark.sessions import USER_METADATA, once

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

_ROWS = "__sqlmig_batch"
_MISSING = ("PATH_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND")


def write_delta(session: SparkSession, rows: DataFrame, batch: Outgoing) -> None:
    """Write a batch: merged by key, or appended with `_op` and `_batch`.

    Delta remembers the batches of each generation of a sink and skips one that it has.
    """
    if not batch.key:
        _append(rows.withColumn(BATCH, _number(batch)), batch)
        return
    _make(session, rows.drop(OP), batch)
    rows.createOrReplaceTempView(_ROWS)
    on = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in batch.key)
    names = [name for name in rows.columns if name != OP]
    sets = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in names)
    into = ", ".join(map(quoted, names))
    values = ", ".join(f"s.{quoted(name)}" for name in names)
    session.conf.set(USER_METADATA, batch.note)
    once(session, batch.application, batch.number)
    session.sql(
        f"MERGE INTO {delta_name(batch.place)} AS t USING {_ROWS} AS s ON {on} "
        f"WHEN MATCHED AND s.{quoted(OP)} = '{DELETE}' THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND s.{quoted(OP)} <> '{DELETE}' THEN INSERT ({into}) VALUES ({values})"
    )


def _make(session: SparkSession, rows: DataFrame, batch: Outgoing) -> None:
    """Make the table where there is none, and add the columns that it lacks."""
    try:
        there = session.read.format("delta").load(batch.place).columns
    except Exception as error:
        if not any(sign in str(error) for sign in _MISSING):
            raise
        there = []
    if {name.lower() for name in rows.columns} <= {name.lower() for name in there}:
        return
    writer = rows.limit(0).write.format("delta").mode("append").option("mergeSchema", "true")
    writer.option("userMetadata", batch.note).save(batch.place)


def _append(rows: DataFrame, batch: Outgoing) -> None:
    (
        rows.write.format("delta")
        .mode("append")
        .option("mergeSchema", "true")
        .options(**marked_once(batch.note, batch.application, batch.number))
        .save(batch.place)
    )


def _number(batch: Outgoing) -> Expression:
    from pyspark.sql import functions as F  # noqa: N812

    return F.lit(batch.number).cast("long")
