"""Sinks into Kafka, on a real broker: upserts, tombstones, repetitions, a broker that is gone."""

from __future__ import annotations

import json
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig.errors import EngineError
from tests.kafka.broker import Broker, Message
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = """
CREATE TABLE people (id BIGINT PRIMARY KEY, name STRING, seen TIMESTAMP);
CREATE TABLE marks (class STRING, id INT, mark DECIMAL(4, 1), PRIMARY KEY (class, id));
"""
FIRST = "INSERT INTO people VALUES (1, 'Ann', TIMESTAMP '2026-06-10 12:00:00'), (2, 'Bob', NULL)"
SECOND = "INSERT INTO people VALUES (2, 'Bo', NULL), (3, 'Cid', NULL)"


def over(kafka: Broker, spark: SparkSession, root: Path, sinks: str) -> Pipeline:
    """A pipeline whose tables are made and whose sinks write to `kafka`."""
    pipeline = Pipeline(spark, root, {"PASSWORD": "s3cret"})
    servers = f"'kafka.bootstrap.servers' '{kafka.bootstrap_servers}'"
    pipeline.use(TABLES + sinks.replace("SERVERS", servers))
    pipeline.create()
    return pipeline


def decoded(messages: list[Message]) -> list[tuple[str | None, str | None]]:
    """Key and value of the records, as text, in the order of the topic."""
    return [
        (m.key.decode() if m.key is not None else None, m.value.decode() if m.value else None)
        for m in messages
    ]


def compacted(messages: list[Message]) -> dict[str | None, str]:
    """What a consumer has that applied the records in order: the last value of each key."""
    found: dict[str | None, str] = {}
    for key, value in decoded(messages):
        found.pop(key, None)
        if value is not None:
            found[key] = value
    return found


def test_a_keyed_sink_sends_upserts_and_tombstones_and_its_readers_have_the_relation(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    kafka.create_topic("sent_people")
    sink = "CREATE SINK feed FROM people USING kafka OPTIONS (SERVERS, topic 'sent_people');"
    pipeline = over(kafka, spark, tmp_path, sink)

    # when
    pipeline.execute(FIRST)
    assert pipeline.send("people.feed") == 2
    pipeline.execute(SECOND)
    pipeline.execute("DELETE FROM people WHERE id = 1")
    batch = pipeline.due("people.feed")
    assert pipeline.send("people.feed", batch) == 3

    # then
    first = decoded(kafka.consume("sent_people"))[:2]
    assert sorted(first) == [
        ("1", '{"id":1,"name":"Ann","seen":"2026-06-10T12:00:00.000Z"}'),
        ("2", '{"id":2,"name":"Bob","seen":null}'),
    ]
    second = decoded(kafka.consume("sent_people"))[2:]
    assert sorted(second, key=str) == [
        ("1", None),
        ("2", '{"id":2,"name":"Bo","seen":null}'),
        ("3", '{"id":3,"name":"Cid","seen":null}'),
    ]

    # when: the batch again, as after a kill; rows that came in between are not in it
    pipeline.execute("DELETE FROM people")
    assert pipeline.send("people.feed", batch) == 3

    # then: the same records, and readers who have the same
    messages = kafka.consume("sent_people")
    assert sorted(decoded(messages)[5:], key=str) == sorted(second, key=str)
    assert compacted(messages) == {key: value for key, value in second if value is not None}

    # when: the rest
    assert pipeline.send("people.feed") == 2
    assert compacted(kafka.consume("sent_people")) == {}


def test_several_key_columns_are_a_json_object_and_without_a_key_rows_have_op_and_batch(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    for topic in ("sent_marks", "sent_log", "sent_rows"):
        kafka.create_topic(topic, 2)
    pipeline = over(
        kafka,
        spark,
        tmp_path,
        """
        CREATE SINK feed FROM marks USING kafka OPTIONS (SERVERS, topic 'sent_marks', format 'csv');
        CREATE SINK log FROM marks USING kafka OPTIONS (SERVERS, topic 'sent_log', key '');
        CREATE SINK avro FROM marks USING kafka OPTIONS (SERVERS, topic 'sent_rows', format 'avro');
        """,
    )
    pipeline.execute("INSERT INTO marks VALUES ('a', 1, 9.5), ('b', 1, NULL)")

    # when
    for name in ("feed", "log", "avro"):
        assert pipeline.send(f"marks.{name}") == 2
    pipeline.execute("UPDATE marks SET mark = 10 WHERE class = 'b'")
    assert pipeline.send("marks.log") == 2

    # then
    assert sorted(decoded(kafka.consume("sent_marks"))) == [
        ('{"class":"a","id":1}', "a,1,9.5"),
        ('{"class":"b","id":1}', "b,1,"),
    ]
    log = decoded(kafka.consume("sent_log"))
    assert {key for key, _ in log} == {None}
    rows = [json.loads(value or "") for _, value in log]
    assert sorted((r["_batch"], r["_op"], r["class"], r["mark"] or 0) for r in rows) == [
        (1, "insert", "a", 9.5),
        (1, "insert", "b", 0),
        (2, "delete", "b", 0),
        (2, "insert", "b", 10.0),
    ]
    avro = kafka.consume("sent_rows")
    assert sorted(m.key for m in avro if m.key) == [
        b'{"class":"a","id":1}',
        b'{"class":"b","id":1}',
    ]
    assert all(m.value and b"{" not in m.value for m in avro)


def test_a_broker_that_does_not_answer_ends_in_an_error_without_secrets(
    spark: SparkSession, tmp_path: Path
) -> None:
    # given
    nobody = Broker(tmp_path / "never")
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required "
    options = (
        "SERVERS, topic 'people', 'kafka.max.block.ms' 3000, 'kafka.sasl.mechanism' 'PLAIN', "
        "'kafka.security.protocol' 'SASL_PLAINTEXT', "
        f"'kafka.sasl.jaas.config' '{jaas} username=\"u\" password=\"${{env:PASSWORD}}\";'"
    )
    sink = f"CREATE SINK feed FROM people USING kafka OPTIONS ({options});"
    pipeline = over(nobody, spark, tmp_path, sink)
    pipeline.execute(FIRST)

    # when
    began = time.monotonic()
    with pytest.raises(EngineError) as raised:
        pipeline.send("people.feed")

    # then
    assert time.monotonic() - began < 60
    assert raised.value.message == (
        f"sink `people.feed`: no Kafka broker at {nobody.bootstrap_servers} "
        "answers for topic `people`"
    )
    assert str(raised.value.location) == "pipeline/school.sql:4:1"
    assert "kafka.bootstrap.servers" in (raised.value.hint or "")
    assert "s3cret" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_broker_that_was_killed_and_came_back_gets_all_that_is_due(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    kafka.create_topic("killed_people")
    sink = (
        "CREATE SINK feed FROM people USING kafka OPTIONS (SERVERS, topic 'killed_people', "
        "'kafka.max.block.ms' 3000, 'kafka.delivery.timeout.ms' 6000, "
        "'kafka.request.timeout.ms' 3000);"
    )
    pipeline = over(kafka, spark, tmp_path, sink)
    pipeline.execute(FIRST)
    pipeline.send("people.feed")
    pipeline.execute(SECOND)

    # when
    kafka.kill()
    with pytest.raises(EngineError, match=r"sink `people\.feed`: "):
        pipeline.send("people.feed")
    kafka.start()
    assert pipeline.send("people.feed") == 2

    # then
    has = compacted(kafka.consume("killed_people"))
    names = {key: json.loads(value)["name"] for key, value in has.items()}
    assert names == {"1": "Ann", "2": "Bo", "3": "Cid"}
