"""Raw records of sources: kept as they came, and read by the same rules whenever that is.

A source that retains them has one way from a record to a row, whether the record came just now or
was kept: `RawReader`. It knows no table of the pipeline.

    key, value        bytes; the value of a line is its text, without the end of the line
    topic, partition, offset, timestamp    what Kafka says of it
    __sqlmig_file, __sqlmig_time, __sqlmig_block    as of any stream
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlmig.planning.source_options import raw_options
from sqlmig.program.model import Source, Table
from sqlmig.spark.delta import marked_once
from sqlmig.spark.names import quoted
from sqlmig.spark.streams import (
    BLOCK,
    CORRUPT,
    DELETED,
    FILE,
    TIME,
    UNREADABLE,
    WHY,
    is_deleted,
    record_schema,
)

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

_RECORD = "__sqlmig_record"
_TYPES: Mapping[str, str] = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    FILE: "string",
    TIME: "timestamp",
    BLOCK: "bigint",
}
_STORED: Mapping[str, str] = {FILE: "file", TIME: "time", BLOCK: "block"}
"""What a column of the stream is called where it is kept."""


def raw_stream(session: SparkSession, source: Source, options: Mapping[str, str]) -> DataFrame:
    """The stream of a source's records as they come.

    Args:
        options: by their names in lower case, secrets filled in.
    """
    from pyspark.sql import functions as F  # noqa: N812

    kind = source.format.lower()
    if kind == "kafka":
        from sqlmig.spark.kafka import kafka_records

        frame = kafka_records(session, options)
        place = F.concat_ws("/", "topic", "partition", "offset")
        given = {name: F.col(name) for name in ("key", "value", "topic", "partition", "timestamp")}
        given |= {"offset": F.col("offset"), FILE: place, BLOCK: F.col("offset")}
    else:
        meaning = raw_options(kind, options)
        reading = {key: value for key, value in options.items() if key not in meaning}
        frame = session.readStream.format("text").options(**reading).load()
        frame = frame.where(F.col("value").rlike(r"\S"))  # a blank line is no record
        given = {
            "value": F.col("value"),
            FILE: F.col("_metadata.file_path"),
            TIME: F.col("_metadata.file_modification_time"),
            BLOCK: F.col("_metadata.file_block_start"),
        }
    nothing = F.lit(None)
    return frame.select(
        *(given.get(name, nothing).cast(kind).alias(name) for name, kind in _TYPES.items())
    )


@dataclass(frozen=True)
class RawReader:
    """Reads raw records as rows: the one way for those that come and those that were kept.

    Args:
        kind: the source's format.
        options: of `raw_options`, secrets filled in.
    """

    table: Table
    kind: str
    options: Mapping[str, str] = field(repr=False)

    def read(self, raw: DataFrame) -> DataFrame:
        """The rows, and beside them where each came from, as `streams` tells."""
        if self.kind == "kafka":
            from sqlmig.spark.kafka import read_kafka

            return read_kafka(raw, self.table, self.options)
        return self._lines(raw)

    def _lines(self, raw: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        own = ("avroschema", "delete_when", "format", "sequence_by")
        parsing = {key: value for key, value in self.options.items() if key not in own}
        ours = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, **parsing}
        schema = f"{record_schema(self.table, self.options)}, {quoted(CORRUPT)} string"
        text = F.col("value").cast("string")
        read = F.from_csv if self.kind == "csv" else F.from_json
        frame = raw.select(
            read(text, schema, ours).alias(_RECORD), text.alias("value"), FILE, TIME, BLOCK
        )
        unread = F.col(_RECORD).isNull() | F.col(f"{_RECORD}.{CORRUPT}").isNotNull()
        frame = frame.select(
            f"{_RECORD}.*",
            F.when(unread, F.col("value")).alias(WHY),
            *(F.col(name) for name in (FILE, TIME, BLOCK)),
        )
        return frame.select(
            *(F.col(quoted(column.name)) for column in self.table.columns),
            F.col(WHY).alias(CORRUPT),
            F.when(F.col(WHY).isNotNull(), F.lit(UNREADABLE)).alias(WHY),
            FILE,
            TIME,
            BLOCK,
            is_deleted(self.options).alias(DELETED),
        )


@dataclass(frozen=True)
class RawKeeper:
    """Keeps the raw records of a batch, once.

    Args:
        path: the Delta table that they go into.
        generation: of the source's offsets.
        application: the name under which Delta remembers the batches.
        note: the commits' `userMetadata`.
        secrets: values that must not be stored beside a record.
    """

    path: str
    generation: int
    application: str
    note: str
    reader: RawReader
    secrets: Sequence[str] = ()

    def keep(self, raw: DataFrame, batch: int) -> None:
        """Append a batch's records; nothing where an earlier try did."""
        from pyspark.sql import functions as F  # noqa: N812

        def value(name: str) -> Expression:
            column = F.col(name)
            for secret in self.secrets if name == FILE else ():
                column = F.replace(column, F.lit(secret), F.lit("***"))
            return column.alias(_STORED.get(name, name))

        rows = raw.select(
            F.lit(self.generation).cast("int").alias("generation"),
            F.lit(batch).cast("long").alias("batch"),
            F.current_timestamp().alias("at"),
            *map(value, _TYPES),
            F.monotonically_increasing_id().alias("row"),
        )
        writer = rows.write.format("delta").mode("append")
        writer = writer.options(**marked_once(self.note, f"{self.application}/raw", batch))
        writer.option("delta.enableDeletionVectors", "false").save(self.path)


def kept_records(session: SparkSession, path: str, generation: int | None = None) -> DataFrame:
    """The records that were kept, in the shape of `raw_stream`, in the order in which they came.

    Args:
        generation: only what this generation of the offsets brought.
    """
    from pyspark.sql import functions as F  # noqa: N812

    rows = session.read.format("delta").load(path)
    if generation is not None:
        rows = rows.where(F.col("generation") == generation)
    place = F.struct("generation", "batch", "time", "file", "block", "row")
    ours = {FILE: F.col("file"), TIME: F.lit(None).cast("timestamp"), BLOCK: place}
    return rows.select(*(ours.get(name, F.col(name)).alias(name) for name in _TYPES))
