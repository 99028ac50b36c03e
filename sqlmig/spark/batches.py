"""One micro-batch of a source: good rows into the table, bad records aside, each exactly once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlmig.program.model import Table
from sqlmig.spark.changes import SEQUENCE, Target, winners_of, write_changes
from sqlmig.spark.delta import marked_once
from sqlmig.spark.names import quoted
from sqlmig.spark.progress import Gap
from sqlmig.spark.raw import RawKeeper
from sqlmig.spark.streams import BLOCK, CORRUPT, DELETED, FILE, TIME, WHY
from sqlmig.spark.upsert import (
    ORDER,
    append_rows,
    filled,
    first_of,
    length_limit,
    merge_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

REASON = "__sqlmig_reason"
ROW = "__sqlmig_row"
RECORDS = "__sqlmig_records"
_APART = "__sqlmig_apart"


@dataclass
class BatchWriter:
    """Writes the batches of a stream. Spark may hand over a batch again: then nothing changes.

    Args:
        application: the name under which Delta remembers the batches.
        mark: JSON that each commit carries.
        secrets: values that must not be stored.
        sequence: the column whose greater value is the later one; None for order of arrival.
        deleted_path: where it is kept which keys were deleted, and when; None if nothing needs it.
        raw: keeps the records of a stream of raw ones, and reads them; else they are rows.
    """

    table: Table
    table_path: str
    rejected_path: str
    application: str
    connector: str
    generation: int
    mark: str
    secrets: tuple[str, ...] = ()
    sequence: str | None = None
    deleted_path: str | None = None
    raw: RawKeeper | None = None
    failure: Exception | None = field(default=None, init=False)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write one batch."""
        try:
            self._write(frame, batch)
        except Exception as error:
            self.failure = error
            raise

    def _write(self, frame: DataFrame, batch: int) -> None:
        from pyspark.sql import functions as F  # noqa: N812

        if self.raw is not None:
            self.raw.keep(frame, batch)  # first: what the table has can then be made again
            frame = self.raw.reader.read(frame)
        rows = self._placed(self.judged(frame)).persist()
        try:
            is_good = F.col(REASON).isNull()
            [counts] = rows.agg(  # in the pass that fills the cache
                F.sum(F.when(is_good, F.col(RECORDS))).alias("good"),
                F.count(F.when(is_good & F.col(DELETED), 1)).alias("deletes"),
                F.count(REASON).alias("rejected"),
            ).collect()
            note = self._note(batch, int(counts["good"] or 0), int(counts["rejected"]))
            if counts["rejected"]:
                self._reject(rows.where(~is_good), batch, note)
            if counts["good"]:
                self._keep(rows.where(is_good), batch, note, has_deletes=counts["deletes"] > 0)
        finally:
            rows.unpersist()

    def _placed(self, rows: DataFrame) -> DataFrame:
        """The rows with their order of arrival, and for how many records each stands (RECORDS).

        Where only the last row of a key counts, the others are left out, so that the cache holds
        no row in vain; bad ones stay.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812

        # the time of a file comes first, then its name; a record with a number has no file
        name = F.when(F.col(TIME).isNotNull(), F.col(FILE))
        rows = rows.withColumn(ORDER, F.struct(TIME, name, BLOCK, ROW))
        if not self._is_ranked:
            return rows.withColumn(RECORDS, F.lit(1))
        is_bad = F.col(REASON).isNotNull()
        rows = rows.withColumn(_APART, F.when(is_bad, F.col(ROW)))
        rows = rows.withColumn(FILE, F.when(is_bad, F.col(FILE))).drop(TIME, BLOCK, ROW)
        by_key = Window.partitionBy(*(F.col(quoted(k)) for k in self.table.primary_key), _APART)
        order = [F.col(ORDER).desc()]
        if self.sequence is not None:
            rows = rows.withColumn(SEQUENCE, F.col(quoted(self.sequence)))
            order.insert(0, F.col(SEQUENCE).desc())
        whole = by_key.orderBy(*order).rowsBetween(
            Window.unboundedPreceding, Window.unboundedFollowing
        )
        rows = rows.withColumn(RECORDS, F.count(F.lit(1)).over(whole))
        return first_of(rows, by_key, order).drop(_APART, ORDER)

    @property
    def _is_ranked(self) -> bool:
        """Whether the last row of a key can be told from the batch alone.

        Not where a delete without a sequence takes the one that the tables have of its key.
        """
        return bool(self.table.primary_key) and self.deleted_path is None

    def _keep(self, rows: DataFrame, batch: int, note: str, *, has_deletes: bool) -> None:
        transaction = (self.application, batch)
        if not self.table.primary_key:
            append_rows(rows, self.table, self.table_path, note, transaction)
            return
        target = Target(self.table, self.table_path, self.sequence, self.deleted_path)
        if self.sequence is None and not has_deletes:
            merge_rows(rows, self.table, self.table_path, note, transaction)
        elif self._is_ranked:
            write_changes(rows, target, note, transaction, has_deletes=has_deletes)
        else:
            winners = winners_of(rows, target, has_deletes=has_deletes).persist()
            try:
                write_changes(winners, target, note, transaction, has_deletes=has_deletes)
            finally:
                winners.unpersist()

    def judged(self, frame: DataFrame) -> DataFrame:
        """The rows with defaults filled in, their order, and why a row is bad (REASON)."""
        from pyspark.sql import functions as F  # noqa: N812

        values: list[Expression] = []
        reason: Any = F.when(F.col(WHY).isNotNull(), F.col(WHY))
        for column in self.table.columns:
            value = F.col(quoted(column.name))
            if column.default is not None:
                value = F.coalesce(value, filled(column))
            values.append(value.alias(column.name))
            # what deletes a row has to name it, and no more
            counts = ~F.col(DELETED) | F.lit(column.name in self.table.primary_key)
            limit = length_limit(column)
            if limit is not None:
                too_long = F.lit(f"`{column.name}` is longer than {limit}")
                reason = reason.when(counts & (F.length(value) > limit), too_long)
            if not column.nullable:
                reason = reason.when(counts & value.isNull(), F.lit(f"`{column.name}` is NULL"))
            if column.name == self.sequence:
                unordered = F.lit(f"`{column.name}` is NULL, and says what comes later")
                reason = reason.when(~F.col(DELETED) & value.isNull(), unordered)
        return frame.select(
            *values,
            F.col(CORRUPT),
            F.col(FILE),
            F.col(DELETED),
            F.col(TIME),
            F.col(BLOCK),
            F.monotonically_increasing_id().alias(ROW),
            reason.alias(REASON),
        )

    def note_gap(self, session: SparkSession, gap: Gap) -> None:
        """Tell among the bad records of offsets that a batch found empty."""
        from pyspark.sql import functions as F  # noqa: N812

        reason = f"{gap.count} offsets of the batch hold no record any more"
        row = session.range(1).select(
            F.lit(None).cast("string").alias(FILE),
            F.lit(reason).alias(REASON),
            F.lit(f"from {gap.start} to {gap.end}").alias(CORRUPT),
        )
        note = self._note(gap.batch, 0, gap.count, is_gap=True)
        self._append_rejected(row, gap.batch, note, f"{self.application}/gaps")

    def _reject(self, rows: DataFrame, batch: int, note: str) -> None:
        from pyspark.sql import functions as F  # noqa: N812

        record = F.to_json(F.struct(*(F.col(quoted(c.name)) for c in self.table.columns)))
        told = rows.select(FILE, REASON, F.coalesce(F.col(CORRUPT), record).alias(CORRUPT))
        self._append_rejected(told, batch, note, self.application)

    def _append_rejected(self, rows: DataFrame, batch: int, note: str, application: str) -> None:
        from pyspark.sql import functions as F  # noqa: N812

        file = F.col(FILE)
        for secret in self.secrets:
            file = F.replace(file, F.lit(secret), F.lit("***"))
        (
            rows.select(
                F.lit(self.connector).alias("connector"),
                F.lit(self.generation).alias("generation"),
                F.lit(batch).cast("long").alias("batch"),
                F.current_timestamp().alias("at"),
                file.alias("file"),
                F.col(REASON).alias("reason"),
                F.col(CORRUPT).alias("record"),
            )
            .write.format("delta")
            .mode("append")
            .options(**marked_once(note, application, batch))
            .option("delta.logRetentionDuration", "interval 3650 days")
            .save(self.rejected_path)
        )

    def _note(self, batch: int, rows: int, rejected: int, *, is_gap: bool = False) -> str:
        source: dict[str, object] = {
            "application": self.application,
            "batch": batch,
            "rows": rows,
            "rejected": rejected,
        }
        if is_gap:
            source["is_gap"] = True
        return json.dumps({**json.loads(self.mark), "source": source}, sort_keys=True)
