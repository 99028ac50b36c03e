"""What a Kafka sink wrote, a Kafka source reads back: two tables that end up equal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kafka.broker import Broker
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "one": "id BIGINT PRIMARY KEY, name STRING, seen TIMESTAMP, tags ARRAY<STRING>",
    "two": "class STRING, id BIGINT, name STRING, day DATE, x DECIMAL(10, 2), "
    "PRIMARY KEY (class, id)",
}
WRITES = {
    "one": [
        "INSERT INTO here VALUES (1, 'Ann', TIMESTAMP '2026-06-10 12:00:00.25', array('a', NULL)), "
        "(2, 'Bob \"B\" \\n', NULL, NULL)",
        "INSERT INTO here VALUES (2, NULL, NULL, array()), (3, 'Cid', NULL, NULL)",
        "DELETE FROM here WHERE id IN (1, 3)",
    ],
    "two": [
        "INSERT INTO here VALUES ('a', 1, 'Ann', DATE '2026-06-10', 1.50), "
        "('b', 1, 'Bob', NULL, 0)",
        "DELETE FROM here WHERE class = 'a'",
        "INSERT INTO here VALUES ('a', 1, 'Eve', NULL, 2), ('b', 1, 'Bo', NULL, NULL)",
    ],
}


@pytest.mark.parametrize("case", COLUMNS)
def test_a_source_reads_back_what_a_sink_of_the_same_key_wrote(
    kafka: Broker, spark: SparkSession, tmp_path: Path, case: str
) -> None:
    # given
    topic = f"round_trip_{case}"
    kafka.create_topic(topic, 2)
    servers = f"'kafka.bootstrap.servers' '{kafka.bootstrap_servers}'"
    pipeline = Pipeline(spark, tmp_path)
    pipeline.use(
        f"CREATE TABLE here ({COLUMNS[case]});\nCREATE TABLE there ({COLUMNS[case]});\n"
        f"CREATE SINK out FROM here USING kafka OPTIONS ({servers}, topic '{topic}');\n"
        "CREATE SOURCE feed INTO there USING kafka "
        f"OPTIONS ({servers}, subscribe '{topic}', format 'json');"
    )
    pipeline.create()

    for sql in WRITES[case]:
        # when
        pipeline.execute(sql)
        batch = pipeline.due("here.out")
        pipeline.send("here.out", batch)
        pipeline.send("here.out", batch)
        read = pipeline.ingest("there.feed")

        # then
        assert read.rejected == 0
        assert pipeline.rows("SELECT * FROM there ORDER BY id") == pipeline.rows(
            "SELECT * FROM here ORDER BY id"
        )
    assert pipeline.rows("SELECT * FROM here")
