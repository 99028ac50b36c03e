"""Sources of Kafka: each record once, parsed by the table's columns, bad ones kept aside."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kafka.broker import Broker
from tests.kafka.sources import EVENTS, over, record, rejected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_records_become_rows_once_and_bad_ones_are_kept_aside(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    kafka.create_topic("events", partitions=2)
    pipeline = over(kafka, spark, tmp_path, EVENTS, "events")
    kafka.produce("events", [record(None, id=1, kind="a"), record(None, id=2)], partition=0)
    bad = ['{"id": "x"}', "{no", "", "null", '{"kind": "b"}']
    kafka.produce("events", [(None, text) for text in bad], partition=1)
    kafka.produce("events", [("7", None), (None, b'{"id": 3, "kind": "\xff"}')], partition=1)

    # when: it starts at the earliest record, though it was sent before
    first = pipeline.ingest("events.feed")
    idle = pipeline.ingest("events.feed")
    kafka.produce("events", [record(None, id=4, kind="d", more=[1])])
    third = pipeline.ingest("events.feed")

    # then
    assert (first.rows, first.rejected, first.behind) == (3, 6, 0)
    assert (idle.rows, idle.table.version) == (0, first.table.version)
    assert third.rows == 1
    assert pipeline.rows("SELECT * FROM events ORDER BY id") == [
        (1, "a"),
        (2, None),
        (3, "\ufffd"),
        (4, "d"),
    ]
    assert rejected(pipeline, spark, "events.feed") == [
        ("events/1/0", "the record can't be read", '{"id": "x"}'),
        ("events/1/1", "the record can't be read", "{no"),
        ("events/1/2", "the record can't be read", ""),
        ("events/1/3", "the record can't be read", "null"),
        ("events/1/4", "`id` is NULL", '{"kind":"b"}'),
        ("events/1/5", "the record has no value", "7"),
    ]

    # when: the process died behind the table's commit, before Spark noted the batch
    checkpoint = Path(pipeline.warehouse.checkpoint_path("events.feed", 1))
    newest = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    (checkpoint / "commits" / str(newest)).unlink()
    (checkpoint / "commits" / f".{newest}.crc").unlink(missing_ok=True)
    again = pipeline.ingest("events.feed")

    # then
    assert again.table.version == third.table.version, "the batch that came again wrote nothing"


def test_csv_values_are_read_and_what_kafka_says_of_a_record_fills_columns(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    kafka.create_topic("readings")
    table = (
        "CREATE TABLE readings (_topic STRING, sensor STRING, _partition INT, degrees DOUBLE, "
        "_offset BIGINT, _timestamp TIMESTAMP, _key STRING);"
    )
    options = "format 'csv', sep ';', nullValue '-'"
    pipeline = over(kafka, spark, tmp_path, table, "readings", options)
    kafka.produce("readings", [("k1", "a;1.5"), (None, "b;-")], timestamp=1_700_000_000_000)
    kafka.produce("readings", [(None, "a;warm"), (None, "c"), (None, "a;1;2")])

    # when
    read = pipeline.ingest("readings.feed")

    # then
    assert (read.rows, read.rejected) == (2, 3)
    at = datetime(2023, 11, 14, 22, 13, 20, tzinfo=timezone.utc).isoformat()
    rows = pipeline.rows("SELECT * FROM readings ORDER BY _offset")
    assert [(*row[:5], row[6]) for row in rows] == [
        ("readings", "a", 0, 1.5, 0, "k1"),
        ("readings", "b", 0, None, 1, None),
    ]
    assert {datetime.fromisoformat(str(row[5])).isoformat()[:19] for row in rows} == {at[:19]}
    assert [text for _, _, text in rejected(pipeline, spark, "readings.feed")] == [
        "a;warm",
        "c",
        "a;1;2",
    ]


def test_avro_values_are_read_by_the_schema_that_is_given(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.avro.functions import to_avro

    kafka.create_topic("in_avro")
    schema = (
        '{"type": "record", "name": "event", "fields": ['
        '{"name": "id", "type": "int"}, {"name": "extra", "type": "string"}]}'
    )
    pipeline = over(
        kafka, spark, tmp_path, EVENTS, "in_avro", f"format 'avro', avroSchema '{schema}'"
    )
    rows = spark.sql("SELECT 1 AS id, 'x' AS extra UNION ALL SELECT 2, 'y'")
    (
        rows.select(to_avro(F.struct("id", "extra"), schema).alias("value"))
        .write.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("topic", "in_avro")
        .save()
    )
    kafka.produce("in_avro", [(None, b"\x01")])

    # when
    read = pipeline.ingest("events.feed")

    # then
    assert (read.rows, read.rejected) == (2, 1)
    assert pipeline.rows("SELECT * FROM events ORDER BY id") == [(1, None), (2, None)]
    assert rejected(pipeline, spark, "events.feed") == [
        ("in_avro/0/2", "the record can't be read", "AQ==")
    ]
