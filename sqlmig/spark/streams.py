"""The stream of a source: its records as the table's columns, and beside them where each came from.

Every format gives the same columns, so that a batch is written one way whatever it was read from:

    the table's columns     as the record has them; NULL where it has none
    __sqlmig_corrupt        the text of a record that can't be read, else NULL
    __sqlmig_why            why a record is bad, else NULL
    __sqlmig_file           the file, or topic/partition/offset
    __sqlmig_time           when that file came; NULL where a record has a number of its own
    __sqlmig_block          that number, or the place in the file: the order of arrival
    __sqlmig_deleted        the record says that its key is to go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlmig.planning.source_options import FILE_FORMATS
from sqlmig.program.model import Source, Table
from sqlmig.program.predicate import fields_beyond
from sqlmig.spark.names import quoted
from sqlmig.spark.tables import storage_type

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

CORRUPT = "__sqlmig_corrupt"
WHY = "__sqlmig_why"
FILE = "__sqlmig_file"
TIME = "__sqlmig_time"
BLOCK = "__sqlmig_block"
DELETED = "__sqlmig_deleted"

_TEXT = frozenset({"json", "csv", "xml"})
"""Formats whose reader hands over the text of a record that it can't read."""
UNREADABLE = "the record can't be read"


def open_stream(
    session: SparkSession, source: Source, table: Table, options: Mapping[str, str]
) -> DataFrame:
    """The stream that a source is.

    Args:
        options: by their names in lower case, secrets filled in.
    """
    kind = source.format.lower()
    if kind == "kafka":
        from sqlmig.spark.kafka import kafka_stream

        return kafka_stream(session, table, options)
    if kind == "delta":
        from sqlmig.spark.delta_stream import delta_stream

        return delta_stream(session, table, options)
    if kind in FILE_FORMATS:
        return _files(session, kind, table, options)
    return _others(session, source.format, table, options)


def _files(session: SparkSession, kind: str, table: Table, options: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    ours = {"ignorecorruptfiles": "false"}
    schema = record_schema(table, options)
    if kind in _TEXT:
        ours |= {"mode": "PERMISSIVE", "columnnameofcorruptrecord": CORRUPT}
        schema += f", {quoted(CORRUPT)} string"
        if options.get("header", "").lower() == "true":
            ours["enforceschema"] = "false"  # else columns are taken by place, whatever their names
    reader = session.readStream.format(kind).options(**{**ours, **_passed_on(options)})
    frame = reader.schema(schema).load()
    corrupt = F.col(CORRUPT) if kind in _TEXT else F.lit(None).cast("string")
    return frame.select(
        *(F.col(quoted(c.name)) for c in table.columns),
        corrupt.alias(CORRUPT),
        F.when(corrupt.isNotNull(), F.lit(UNREADABLE)).alias(WHY),
        F.col("_metadata.file_path").alias(FILE),
        F.col("_metadata.file_modification_time").alias(TIME),
        F.col("_metadata.file_block_start").alias(BLOCK),
        is_deleted(options).alias(DELETED),
    )


def _others(
    session: SparkSession, kind: str, table: Table, options: Mapping[str, str]
) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    frame = session.readStream.format(kind).options(**_passed_on(options)).load()
    given = {name.lower() for name in frame.columns}
    nothing = F.lit(None)
    return frame.select(
        *(
            F.col(quoted(c.name)) if c.name.lower() in given else nothing.alias(c.name)
            for c in table.columns
        ),
        nothing.cast("string").alias(CORRUPT),
        nothing.cast("string").alias(WHY),
        nothing.cast("string").alias(FILE),
        nothing.cast("timestamp").alias(TIME),
        nothing.cast("long").alias(BLOCK),
        is_deleted(options).alias(DELETED),
    )


def record_schema(
    table: Table, options: Mapping[str, str], without: frozenset[str] = frozenset()
) -> str:
    """What is read of a record, as DDL: the table's columns, and what `delete_when` names besides.

    Args:
        without: names, in lower case, that come from elsewhere.
    """
    fields = [(c.name, storage_type(c.type)) for c in table.columns]
    fields += fields_beyond(
        options.get("delete_when", ""), [name for name, _ in fields] + [*without]
    )
    return ", ".join(
        f"{quoted(name)} {kind}" for name, kind in fields if name.lower() not in without
    )


def is_deleted(options: Mapping[str, str]) -> Expression:
    """Whether `delete_when` holds for the record; where it is unknown (NULL), it does not."""
    from pyspark.sql import functions as F  # noqa: N812

    predicate = options.get("delete_when")
    if predicate is None:
        return F.lit(False)
    return F.expr(f"coalesce(CAST((\n{predicate}\n) AS BOOLEAN), false)")


def _passed_on(options: Mapping[str, str]) -> dict[str, str]:
    own = ("delete_when", "sequence_by")
    return {key: value for key, value in options.items() if key not in own}
