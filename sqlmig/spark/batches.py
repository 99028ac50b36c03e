"""One micro-batch of a source: good rows into the table, bad records aside, each exactly once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlmig.program.model import Table
from sqlmig.spark.names import quoted
from sqlmig.spark.upsert import ORDER, filled, length_limit, write_rows

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

CORRUPT = "__sqlmig_corrupt"
FILE = "__sqlmig_file"
TIME = "__sqlmig_time"
BLOCK = "__sqlmig_block"
_REASON = "__sqlmig_reason"


@dataclass
class BatchWriter:
    """Writes the batches of a stream. Spark may hand over a batch again: then nothing changes.

    Args:
        application: the name under which Delta remembers the batches.
        mark: JSON that each commit carries.
        secrets: values that must not be stored.
        is_text: the format is text, so a record may be unreadable.
    """

    table: Table
    table_path: str
    rejected_path: str
    application: str
    connector: str
    generation: int
    mark: str
    secrets: tuple[str, ...] = ()
    is_text: bool = False
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

        rows = self._judged(frame).persist()
        try:
            counts = rows.agg(
                F.count(F.lit(1)).alias("all"), F.count(F.col(_REASON)).alias("bad")
            ).collect()[0]
            rejected = int(counts["bad"])
            good = int(counts["all"]) - rejected
            note = self._note(batch, good, rejected)
            if rejected:
                self._reject(rows.where(F.col(_REASON).isNotNull()), batch, note)
            if good:
                kept = rows.where(F.col(_REASON).isNull())
                write_rows(kept, self.table, self.table_path, note, (self.application, batch))
        finally:
            rows.unpersist()

    def _judged(self, frame: DataFrame) -> DataFrame:
        """The rows with defaults filled in, their order, and why a row is bad."""
        from pyspark.sql import functions as F  # noqa: N812

        place = F.struct(
            F.col(TIME), F.col(FILE), F.col(BLOCK), F.monotonically_increasing_id().alias("row")
        )
        values: list[Expression] = []
        reason: Any = F.when(F.col(CORRUPT).isNotNull(), F.lit("the record can't be read"))
        for column in self.table.columns:
            value = F.col(quoted(column.name))
            if column.default is not None:
                value = F.coalesce(value, filled(column))
            values.append(value.alias(column.name))
            limit = length_limit(column)
            if limit is not None:
                too_long = F.lit(f"`{column.name}` is longer than {limit}")
                reason = reason.when(F.length(value) > limit, too_long)
            if not column.nullable:
                reason = reason.when(value.isNull(), F.lit(f"`{column.name}` is NULL"))
        return frame.select(
            *values,
            F.col(CORRUPT),
            F.col(FILE),
            place.alias(ORDER),
            reason.alias(_REASON),
        )

    def _reject(self, rows: DataFrame, batch: int, note: str) -> None:
        from pyspark.sql import functions as F  # noqa: N812

        file = F.col(FILE)
        for secret in self.secrets:
            file = F.replace(file, F.lit(secret), F.lit("***"))
        record = F.to_json(F.struct(*(F.col(quoted(c.name)) for c in self.table.columns)))
        (
            rows.select(
                F.lit(self.connector).alias("connector"),
                F.lit(self.generation).alias("generation"),
                F.lit(batch).cast("long").alias("batch"),
                F.current_timestamp().alias("at"),
                file.alias("file"),
                F.col(_REASON).alias("reason"),
                F.coalesce(F.col(CORRUPT), record).alias("record"),
            )
            .write.format("delta")
            .mode("append")
            .option("userMetadata", note)
            .option("txnAppId", self.application)
            .option("txnVersion", str(batch))
            .option("delta.logRetentionDuration", "interval 3650 days")
            .save(self.rejected_path)
        )

    def _note(self, batch: int, rows: int, rejected: int) -> str:
        source = {
            "application": self.application,
            "batch": batch,
            "rows": rows,
            "rejected": rejected,
        }
        return json.dumps({**json.loads(self.mark), "source": source}, sort_keys=True)
