"""Kafka's faults: what is lost is told, what is there is read once, nothing waits for ever."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig.errors import EngineError
from tests.kafka.broker import Broker
from tests.kafka.sources import EVENTS, over, record, rejected, use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IDS = "SELECT id FROM events ORDER BY id"


def test_records_that_retention_deleted_are_told_and_passed_over_if_asked(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given: ten read, ten more of which five are gone
    kafka.create_topic("retained")
    pipeline = over(kafka, spark, tmp_path, EVENTS, "retained")
    kafka.produce("retained", [record(None, id=n) for n in range(10)])
    pipeline.ingest("events.feed")
    kafka.produce("retained", [record(None, id=n) for n in range(10, 20)])
    kafka.delete_records("retained", {0: 15})

    # when
    with pytest.raises(EngineError) as caught:
        pipeline.ingest("events.feed")

    # then
    assert caught.value.message == (
        "source `events.feed`: records of `retained` that were not read are gone "
        "(partition 0, from offset 10)"
    )
    assert "on_data_loss 'skip'" in (caught.value.hint or "")
    assert str(caught.value.location) == "pipeline/school.sql:2:1"
    assert pipeline.rows("SELECT count(*) FROM events") == [(10,)]

    # when
    use(pipeline, kafka, EVENTS, "retained", "format 'json', on_data_loss 'skip'")
    read = pipeline.ingest("events.feed")

    # then
    assert (read.rows, read.rejected) == (5, 5)
    assert pipeline.rows(IDS) == [(n,) for n in [*range(10), *range(15, 20)]]
    [(file, reason, offsets)] = rejected(pipeline, spark, "events.feed")
    assert (file, reason) == (None, "5 offsets of the batch hold no record any more")
    assert offsets == 'from {"retained":{"0":10}} to {"retained":{"0":20}}'


def test_a_topic_that_was_deleted_or_made_anew_is_told(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    kafka.create_topic("deleted")
    pipeline = over(kafka, spark, tmp_path, EVENTS, "deleted")
    kafka.produce("deleted", [record(None, id=n) for n in range(10)])
    pipeline.ingest("events.feed")
    kafka.delete_topic("deleted")

    # when
    with pytest.raises(EngineError) as gone:
        pipeline.ingest("events.feed")

    # then
    assert "topic `deleted`" in gone.value.message
    assert str(gone.value.location) == "pipeline/school.sql:2:1"
    assert gone.value.hint is not None

    # when: it is made anew, and its offsets are lower
    kafka.create_topic("deleted")
    kafka.produce("deleted", [record(None, id=n) for n in range(100, 103)])
    with pytest.raises(EngineError) as anew:
        pipeline.ingest("events.feed")

    # then
    assert "`deleted`" in anew.value.message
    assert "deleted and made anew" in anew.value.message
    assert pipeline.rows("SELECT count(*) FROM events") == [(10,)]

    # when: a revision changes the source, which starts its next generation
    read = pipeline.ingest("events.feed", generation=2)

    # then
    assert read.rows == 3


def test_partitions_that_are_added_are_read_from_their_beginning(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    kafka.create_topic("grown")
    pipeline = over(kafka, spark, tmp_path, EVENTS, "grown")
    kafka.produce("grown", [record(None, id=0)])
    pipeline.ingest("events.feed")

    # when
    kafka.add_partitions("grown", 3)
    for partition in (0, 1, 2):
        kafka.produce("grown", [record(None, id=partition + 1)], partition=partition)
    read = pipeline.ingest("events.feed")

    # then
    assert (read.rows, read.rejected) == (3, 0)
    assert pipeline.rows(IDS) == [(0,), (1,), (2,), (3,)]


def test_a_broker_that_does_not_answer_ends_in_an_error_that_names_the_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    # given
    nobody = Broker(tmp_path / "never")
    pipeline = over(nobody, spark, tmp_path, EVENTS, "events")

    # when
    began = time.monotonic()
    with pytest.raises(EngineError) as caught:
        pipeline.ingest("events.feed")

    # then
    assert time.monotonic() - began < 90
    assert caught.value.message == (
        f"source `events.feed`: no Kafka broker answers at {nobody.bootstrap_servers}"
    )
    assert str(caught.value.location) == "pipeline/school.sql:2:1"
    assert "kafka.bootstrap.servers" in (caught.value.hint or "")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_broker_killed_in_the_middle_of_a_round_loses_and_repeats_nothing(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given: a round of ten batches, each fetched on its own
    kafka.create_topic("killed")
    small = (
        "maxOffsetsPerTrigger 100, kafkaConsumer.pollTimeoutMs 3000, "
        "'kafka.max.poll.records' '50', 'kafka.max.partition.fetch.bytes' '1000', "
        "'kafka.default.api.timeout.ms' '6000', 'kafka.request.timeout.ms' '3000'"
    )
    pipeline = over(kafka, spark, tmp_path, EVENTS, "killed", f"format 'json', {small}")
    for start in range(0, 1000, 50):
        kafka.produce(
            "killed", [record(None, id=n, kind="x" * 200) for n in range(start, start + 50)]
        )
    log = Path(pipeline.warehouse.table_path("events")) / "_delta_log"

    def kill_after_two_batches() -> None:
        while not (log / f"{2:020}.json").exists():
            time.sleep(0.02)
        kafka.kill()

    # when
    killer = threading.Thread(target=kill_after_two_batches)
    killer.start()
    with pytest.raises(EngineError) as caught:
        pipeline.ingest("events.feed")
    killer.join()

    # then
    assert caught.value.message.startswith("source `events.feed`: ")
    assert str(caught.value.location) == "pipeline/school.sql:2:1"
    read = pipeline.rows(
        "SELECT count(*) FROM delta.`" + pipeline.warehouse.table_path("events") + "`"
    )
    assert 0 < read[0][0] < 1000

    # when
    kafka.start()
    pipeline.ingest("events.feed")

    # then
    assert pipeline.rows("SELECT count(*), count(DISTINCT id) FROM events") == [(1000, 1000)]
