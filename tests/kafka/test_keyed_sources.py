"""Kafka into keyed tables: the last record of a key counts, whenever it comes, deletes too."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kafka.broker import Broker
from tests.kafka.sources import PEOPLE, over, record, rejected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = "SELECT * FROM people ORDER BY id"


def test_the_last_to_arrive_counts_and_a_record_without_a_value_deletes(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    kafka.create_topic("people")
    options = "format 'json', delete_when 'op = ''d'' OR payload.op = ''d'''"
    pipeline = over(kafka, spark, tmp_path, PEOPLE, "people", options)
    kafka.produce(
        "people",
        [
            record(1, id=1, name="Ann", seen=9),
            record(2, id=2, name="Bob", op="c"),
            record(3, id=3, name="Cid"),
            record(4, id=4, name="Dan"),
            record(1, id=1, name="Anna", seen=1, payload={"op": "u"}),
            record(3, id=3, op="d"),
        ],
    )

    # when
    pipeline.ingest("people.feed")

    # then
    assert pipeline.rows(ALL) == [(1, "Anna", 1), (2, "Bob", None), (4, "Dan", None)]

    # when: keys as text and as JSON; one that is none, and deletes of what is not there
    kafka.produce(
        "people",
        [
            ("1", None),
            ('{"id": 2}', None),
            ("nobody", None),
            (None, None),
            ("99", None),
            record(98, id=98, payload={"op": "d"}),
            record(None, op="d"),
            record(3, id=3, name="Cid again"),
        ],
    )
    second = pipeline.ingest("people.feed")

    # then
    assert (second.rows, second.rejected) == (5, 3)
    assert pipeline.rows(ALL) == [(3, "Cid again", None), (4, "Dan", None)]
    assert rejected(pipeline, spark, "people.feed") == [
        ("people/0/12", "`id` is NULL", "{}"),
        ("people/0/8", "the record has no value, and its key gives no `id`", "nobody"),
        ("people/0/9", "the record has no value, and its key gives no `id`", ""),
    ]


def test_a_key_of_several_columns_is_a_json_object(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    kafka.create_topic("marks")
    table = "CREATE TABLE marks (class STRING, id INT, mark INT, PRIMARY KEY (class, id));"
    pipeline = over(kafka, spark, tmp_path, table, "marks")
    kafka.produce("marks", [(None, json.dumps({"class": c, "id": 1})) for c in "ab"])
    kafka.produce("marks", [('{"id": 1, "class": "a"}', None), ('{"id": 1}', None)])

    # when
    read = pipeline.ingest("marks.feed")

    # then
    assert (read.rows, read.rejected) == (3, 1)
    assert pipeline.rows("SELECT * FROM marks") == [("b", 1, None)]


def test_an_older_record_that_comes_later_changes_nothing_and_brings_nothing_back(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    kafka.create_topic("sequenced")
    options = "format 'json', sequence_by 'seen', delete_when 'gone'"
    pipeline = over(kafka, spark, tmp_path, PEOPLE, "sequenced", options)
    kafka.produce(
        "sequenced",
        [
            record(1, id=1, name="new", seen=5),
            record(1, id=1, name="old", seen=3),
            record(2, id=2, seen=8, gone=True),
            record(3, id=3, name="here", seen=4),
            record(4, id=4, name="no order"),
        ],
    )
    first = pipeline.ingest("people.feed")
    assert (first.rows, first.rejected) == (4, 1)
    assert rejected(pipeline, spark, "people.feed")[0][1] == (
        "`seen` is NULL, and says what comes later"
    )
    assert pipeline.rows(ALL) == [(1, "new", 5), (3, "here", 4)]

    # when: everything late; a delete without a value is as late as what is known of its key
    kafka.produce(
        "sequenced",
        [
            record(1, id=1, name="older", seen=4),
            record(1, id=1, seen=2, gone=True),
            record(2, id=2, name="back", seen=7),
            ("3", None),
            record(3, id=3, name="late", seen=2),
        ],
    )
    pipeline.ingest("people.feed")

    # then
    assert pipeline.rows(ALL) == [(1, "new", 5)]

    # when: later than the deletes
    kafka.produce(
        "sequenced",
        [
            record(2, id=2, name="newer", seen=9),
            record(3, id=3, name="as old as what was deleted", seen=4),
            record(3, id=3, name="older", seen=3),
        ],
    )
    pipeline.ingest("people.feed")

    # then
    assert pipeline.rows(ALL) == [
        (1, "new", 5),
        (2, "newer", 9),
        (3, "as old as what was deleted", 4),
    ]


def test_whatever_order_records_come_in_the_greatest_sequence_of_each_key_remains(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given: a history of 40 keys, shuffled, some records twice, over three batches
    kafka.create_topic("shuffled", partitions=3)
    options = "format 'json', sequence_by 'seen', delete_when 'gone'"
    pipeline = over(kafka, spark, tmp_path, PEOPLE, "shuffled", options)
    chance = random.Random(7)
    history = [
        (key, seen, chance.random() < 0.4)
        for key in range(40)
        for seen in chance.sample(range(100), 6)
    ]
    arrivals = [*history, *chance.sample(history, 60)]
    chance.shuffle(arrivals)
    expected = []
    for key in range(40):
        _, seen, gone = max(entry for entry in history if entry[0] == key)
        if not gone:
            expected.append((key, f"at {seen}", seen))

    # when
    for part in range(3):
        records = [
            record(key, id=key, name=f"at {seen}", seen=seen, gone=gone)
            for key, seen, gone in arrivals[part::3]
        ]
        kafka.produce("shuffled", records)
        pipeline.ingest("people.feed")

    # then
    assert pipeline.rows(ALL) == expected

    # when: all of it comes again
    kafka.produce(
        "shuffled",
        [
            record(key, id=key, name=f"at {seen}", seen=seen, gone=gone)
            for key, seen, gone in arrivals
        ],
    )
    pipeline.ingest("people.feed")

    # then
    assert pipeline.rows(ALL) == expected
