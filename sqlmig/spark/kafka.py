"""Kafka as a source: values parsed by the table's columns, a null value deletes its key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlmig.planning.source_options import METADATA, PARSER_OPTIONS
from sqlmig.program.model import Column, Table
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
from sqlmig.spark.tables import storage_type

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

_OWN = frozenset({"avroschema", "delete_when", "format", "on_data_loss", "sequence_by"})
_RAW = "__sqlmig_raw"
_RECORD = "__sqlmig_record"
_KEY = "__sqlmig_key"


def kafka_stream(session: SparkSession, table: Table, options: Mapping[str, str]) -> DataFrame:
    """The rows of a Kafka source, from the earliest on unless `startingOffsets` says otherwise."""
    return read_kafka(kafka_records(session, options), table, options)


def kafka_records(session: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The stream of the records as Kafka has them."""
    parser = {name.lower() for name in PARSER_OPTIONS[options["format"].lower()]}
    reading = {k: v for k, v in options.items() if k not in _OWN | parser}
    if not any(key.startswith("starting") for key in reading):
        reading["startingoffsets"] = "earliest"
    return session.readStream.format("kafka").options(**reading).load()


def read_kafka(raw: DataFrame, table: Table, options: Mapping[str, str]) -> DataFrame:
    """The rows that records say.

    Columns of the table named `_topic`, `_partition`, `_offset`, `_timestamp` and `_key` take up
    what Kafka says of the record. A record without a value deletes the row of its key.
    """
    from pyspark.sql import functions as F  # noqa: N812

    parser = {name.lower() for name in PARSER_OPTIONS[options["format"].lower()]}
    parsing = {key: value for key, value in options.items() if key in parser}
    frame = raw.select(
        F.struct(raw["*"]).alias(_RAW),
        _parsed(table, options, parsing).alias(_RECORD),
        _parsed_key(table).alias(_KEY),
    )
    fields = frame.schema[_RECORD].dataType.fieldNames()  # type: ignore[attr-defined]
    known = {name.lower() for name in fields}
    has_value = F.col(f"{_RAW}.value").isNotNull()
    unread = _unread(options, fields)
    beyond = [n for n in fields if n != CORRUPT and n.lower() not in _names(table) | set(METADATA)]
    frame = frame.select(
        _RAW,
        _KEY,
        *(_value(column, known, has_value, table).alias(column.name) for column in table.columns),
        *(_metadata(name) for name in METADATA if name not in _names(table)),
        *(F.col(f"{_RECORD}.{quoted(name)}") for name in beyond),
        _corrupt(table, has_value, unread, options).alias(CORRUPT),
        _why(table, has_value, unread).alias(WHY),
    )
    place = F.concat_ws("/", *(F.col(f"{_RAW}.{n}") for n in ("topic", "partition", "offset")))
    return frame.select(
        *(F.col(quoted(column.name)) for column in table.columns),
        CORRUPT,
        WHY,
        place.alias(FILE),
        F.lit(None).cast("timestamp").alias(TIME),
        F.col(f"{_RAW}.{BLOCK if BLOCK in raw.columns else 'offset'}").alias(BLOCK),
        (F.col(f"{_RAW}.value").isNull() | is_deleted(options)).alias(DELETED),
    )


def _names(table: Table) -> set[str]:
    return {column.name.lower() for column in table.columns}


def _parsed(table: Table, options: Mapping[str, str], parsing: Mapping[str, str]) -> Expression:
    """The value as a structure; NULL, or with its text in `__sqlmig_corrupt`, if it can't be."""
    from pyspark.sql import functions as F  # noqa: N812

    form = options["format"].lower()
    if form == "avro":
        from pyspark.sql.avro.functions import from_avro

        return from_avro(F.col("value"), options["avroschema"], {"mode": "PERMISSIVE"})
    schema = record_schema(table, options, frozenset(METADATA)) + f", {quoted(CORRUPT)} string"
    ours = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, **parsing}
    text = F.col("value").cast("string")
    if form == "csv":
        return F.from_csv(text, schema, ours)
    return F.from_json(text, schema, ours)


def _parsed_key(table: Table) -> Expression:
    """The primary key that a record's key is: a JSON object, or the text of a single column."""
    from pyspark.sql import functions as F  # noqa: N812

    columns = [c for c in table.columns if c.name in table.primary_key]
    if not columns:
        return F.lit(None)
    text = F.col("key").cast("string")
    schema = ", ".join(f"{quoted(c.name)} {storage_type(c.type)}" for c in columns)
    key = F.from_json(text, schema)
    if len(columns) > 1:
        return key
    [column] = columns
    value = F.coalesce(key[column.name], text.try_cast(storage_type(column.type)))
    return F.struct(value.alias(column.name))


def _value(column: Column, known: set[str], has_value: Expression, table: Table) -> Expression:
    from pyspark.sql import functions as F  # noqa: N812

    if column.name.lower() in METADATA:
        return _metadata(column.name.lower()).cast(storage_type(column.type))
    missing = F.lit(None).cast(storage_type(column.type))
    value = missing
    if column.name.lower() in known:
        value = F.col(f"{_RECORD}.{quoted(column.name)}").cast(storage_type(column.type))
    without = (
        F.col(f"{_KEY}.{quoted(column.name)}") if column.name in table.primary_key else missing
    )
    return F.when(has_value, value).otherwise(without)


def _metadata(name: str) -> Expression:
    from pyspark.sql import functions as F  # noqa: N812

    value = F.col(f"{_RAW}.{name[1:]}")
    return (value.cast("string") if name == "_key" else value).alias(name)


def _unread(options: Mapping[str, str], fields: Sequence[str]) -> Expression:
    """There is a value, and it could not be parsed. Avro says so by fields that are all NULL."""
    from pyspark.sql import functions as F  # noqa: N812

    is_gone = F.col(_RECORD).isNull()
    if options["format"].lower() == "avro":
        is_empty = F.lit(True)
        for name in fields:
            is_empty = is_empty & F.col(f"{_RECORD}.{quoted(name)}").isNull()
        return is_gone | is_empty
    return is_gone | F.col(f"{_RECORD}.{CORRUPT}").isNotNull()


def _corrupt(
    table: Table, has_value: Expression, unread: Expression, options: Mapping[str, str]
) -> Expression:
    from pyspark.sql import functions as F  # noqa: N812

    value = F.col(f"{_RAW}.value")
    text = F.base64(value) if options["format"].lower() == "avro" else value.cast("string")
    key = F.col(f"{_RAW}.key").cast("string")
    return F.when(has_value & unread, text).when(
        ~has_value & _keyless(table), F.coalesce(key, F.lit(""))
    )


def _why(table: Table, has_value: Expression, unread: Expression) -> Expression:
    from pyspark.sql import functions as F  # noqa: N812

    without = "the record has no value"
    if table.primary_key:
        named = " and ".join(f"`{name}`" for name in table.primary_key)
        without += f", and its key gives no {named}"
    return F.when(has_value & unread, F.lit(UNREADABLE)).when(
        ~has_value & _keyless(table), F.lit(without)
    )


def _keyless(table: Table) -> Expression:
    """The record's own key does not say which row it means."""
    from pyspark.sql import functions as F  # noqa: N812

    missing = F.lit(not table.primary_key)
    for name in table.primary_key:
        if name.lower() not in METADATA:
            missing = missing | F.col(f"{_KEY}.{quoted(name)}").isNull()
    return missing
