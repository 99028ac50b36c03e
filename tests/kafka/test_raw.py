"""RETAIN RAW of a Kafka source: keys, values and offsets are kept, and read again by one rule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlmig.execution.values import RawSource
from tests.kafka.broker import Broker
from tests.kafka.sources import record
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_keyed_table_gets_a_column_of_records_that_the_topic_has_no_more(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    def sql(more: str = "") -> str:
        return (
            f"CREATE TABLE people (id BIGINT, name STRING, _offset BIGINT{more}, PRIMARY KEY (id));"
            "CREATE SOURCE feed INTO people USING kafka OPTIONS ('kafka.bootstrap.servers' "
            f"'{kafka.bootstrap_servers}', subscribe 'raw_people', format 'json', "
            "'kafka.client.id' '${env:CLIENT}') RETAIN RAW;"
        )

    kafka.create_topic("raw_people")
    pipeline = Pipeline(spark, tmp_path, {"CLIENT": "s3cret"})
    pipeline.use(sql())
    pipeline.create()
    kafka.produce(
        "raw_people",
        [
            record(1, id=1, name="Ann", city="Rome"),
            record(2, id=2, name="Bob", city="Oslo"),
            record(3, id=3, name="Cid", city="Bern"),
            (None, "{broken"),
            ("3", None),
            record(1, id=1, name="Anna", city="Riga"),
        ],
    )
    first = pipeline.ingest("people.feed")
    kafka.produce("raw_people", [record(2, id=2, name="Bob")])
    pipeline.ingest("people.feed")
    kafka.delete_records("raw_people", {0: 7})

    # when
    program = pipeline.use(sql(", city STRING"))
    table, sources = program.tables["people"], [RawSource("people.feed", "people.feed", 1)]
    pipeline.note("people", pipeline.engine.alter_table(table, "people", [], pipeline.mark()))
    filled = pipeline.engine.fill_columns(
        program, "people", "people", ("city",), sources, pipeline.mark()
    )
    pipeline.note("people", filled)

    # then
    expected = [(1, "Anna", 5, "Riga"), (2, "Bob", 6, None)]
    assert (first.rows, first.rejected) == (5, 1)
    assert filled.written == 1
    assert pipeline.rows("SELECT * FROM people ORDER BY id") == expected

    # when: all of it is made again
    pipeline.note("people", pipeline.engine.empty_table(table, "people", pipeline.mark()))
    made = pipeline.engine.rebuild_table(program, "people", "people", sources, pipeline.mark())
    pipeline.note("people", made.table)

    # then
    assert (made.rows, made.rejected) == (6, 1)
    assert pipeline.rows("SELECT * FROM people ORDER BY id") == expected
    raw = spark.read.format("delta").load(pipeline.warehouse.raw_path("people.feed"))
    kept = raw.where("offset = 4").select("key", "value", "topic", "partition", "file").collect()
    assert [tuple(row) for row in kept] == [
        (bytearray(b"3"), None, "raw_people", 0, "raw_people/0/4")
    ]
    stored = [p.read_text() for p in (tmp_path / "warehouse").rglob("*.json")]
    assert not any("s3cret" in text for text in stored)
