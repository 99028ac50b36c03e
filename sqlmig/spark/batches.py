"""One micro-batch of a source: good rows into the table, bad records aside, each exactly once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlmig.program.model import Table
from sqlmig.spark.changes import Target, write_changes
from sqlmig.spark.delta import marked_once
from sqlmig.spark.names import quoted
from sqlmig.spark.progress import Gap
from sqlmig.spark.raw import RawKeeper
from sqlmig.spark.streams import BLOCK, CORRUPT, DELETED, FILE, TIME, WHY
from sqlmig.spark.upsert import ORDER, filled, length_limit, write_rows

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

REASON = "__sqlmig_reason"
ROW = "__sqlmig_row"


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
        rows = self.judged(frame).persist()
        try:
            is_good = F.col(REASON).isNull()
            # nothing but counts and short keys: a hash aggregate, in the pass that fills the cache
            file = F.when(F.col(TIME).isNotNull(), F.col(FILE))
            files = (
                rows.groupBy(F.unix_micros(TIME).alias("time"), file.alias("file"))
                .agg(
                    F.count(F.lit(1)).alias("all"),
                    F.count(F.when(is_good, 1)).alias("good"),
                    F.count(F.when(is_good & F.col(DELETED), 1)).alias("deletes"),
                )
                .collect()
            )
            good = sum(int(each["good"]) for each in files)
            deletes = sum(int(each["deletes"]) for each in files)
            rejected = sum(int(each["all"]) for each in files) - good
            note = self._note(batch, good, rejected)
            if rejected:
                self._reject(rows.where(F.col(REASON).isNotNull()), batch, note)
            if good:
                # names of files are long to sort by, and seldom say more than their times do
                names = [FILE] if len({each["time"] for each in files}) < len(files) else []
                ordered = rows.withColumn(ORDER, F.struct(TIME, *names, BLOCK, ROW))
                self._keep(ordered.where(is_good), batch, note, has_deletes=deletes > 0)
        finally:
            rows.unpersist()

    def _keep(self, rows: DataFrame, batch: int, note: str, *, has_deletes: bool) -> None:
        transaction = (self.application, batch)
        if self.sequence is None and not has_deletes:
            write_rows(rows, self.table, self.table_path, note, transaction)
            return
        target = Target(self.table, self.table_path, self.sequence, self.deleted_path)
        write_changes(rows, target, note, transaction, has_deletes=has_deletes)

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
