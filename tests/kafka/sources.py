"""What the tests of Kafka sources share: a pipeline over a topic, and its bad records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.kafka.broker import Broker
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = "CREATE TABLE events (id BIGINT NOT NULL, kind STRING);"
PEOPLE = "CREATE TABLE people (id BIGINT, name STRING, seen BIGINT, PRIMARY KEY (id));"


def over(
    kafka: Broker,
    spark: SparkSession,
    root: Path,
    table: str,
    topic: str,
    options: str = "format 'json'",
) -> Pipeline:
    """A pipeline whose one table, made, is fed by the source `feed` from `topic`."""
    pipeline = Pipeline(spark, root)
    use(pipeline, kafka, table, topic, options)
    pipeline.create()
    return pipeline


def use(pipeline: Pipeline, kafka: Broker, table: str, topic: str, options: str) -> None:
    """Let the pipeline's program have the source with these options."""
    name = table.split()[2]
    pipeline.use(
        f"{table}\nCREATE SOURCE feed INTO {name} USING kafka OPTIONS ("
        f"'kafka.bootstrap.servers' '{kafka.bootstrap_servers}', subscribe '{topic}', {options});"
    )


def rejected(pipeline: Pipeline, spark: SparkSession, connector: str) -> list[tuple[Any, ...]]:
    """(file, reason, record) of the bad records, in order."""
    rows = spark.read.format("delta").load(pipeline.warehouse.rejected_path(connector)).collect()
    return sorted((row["file"], row["reason"], row["record"]) for row in rows)


def record(key: object, **fields: object) -> tuple[str | None, str]:
    """A record: a key and a JSON object."""
    return None if key is None else str(key), json.dumps(fields)
