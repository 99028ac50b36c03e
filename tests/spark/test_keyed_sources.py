"""Files into keyed tables: sequence and deletes, as Kafka's sources have them."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig.errors import EngineError
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PEOPLE = "CREATE TABLE people (id BIGINT, name STRING, seen TIMESTAMP, PRIMARY KEY (id));\n"
ALL = "SELECT id, name FROM people ORDER BY id"


def forget_last_batch(warehouse: Path) -> None:
    """Let Spark not know that the second batch was finished."""
    commits = warehouse / "checkpoints" / "people.feed" / "1" / "commits"
    (commits / "1").unlink()
    (commits / ".1.crc").unlink(missing_ok=True)


def test_files_bring_upserts_and_deletes_in_the_order_of_their_sequence(pipeline: Pipeline) -> None:
    # given
    pipeline.use(
        PEOPLE + "CREATE SOURCE feed INTO people USING json OPTIONS (path 'in', "
        "sequence_by 'seen', delete_when 'gone');"
    )
    pipeline.create()
    folder = pipeline.root / "in"
    folder.mkdir()
    (folder / "1.json").write_text(
        '{"id": 1, "name": "new", "seen": "2026-01-05T00:00:00Z"}\n'
        '{"id": 1, "name": "old", "seen": "2026-01-03T00:00:00Z"}\n'
        '{"id": 2, "seen": "2026-01-08T00:00:00Z", "gone": true}\n'
        '{"id": 3, "name": "stays", "seen": "2026-01-01T00:00:00Z", "gone": false}\n'
    )

    # when
    first = pipeline.ingest("people.feed")
    (folder / "2.json").write_text(
        '{"id": 2, "name": "late", "seen": "2026-01-07T00:00:00Z"}\n'
        '{"id": 1, "seen": "2026-01-04T00:00:00Z", "gone": true}\n'
        '{"id": 3, "gone": true}\n'
    )
    second = pipeline.ingest("people.feed")

    # then
    assert (first.rows, first.rejected, first.behind) == (4, 0, None)
    assert (second.rows, second.rejected) == (3, 0)
    assert pipeline.rows(ALL) == [(1, "new")]

    # when: the batch comes again, as after a crash behind both of its commits
    gone = pipeline.warehouse.deleted_path("people.feed", 1)
    before = pipeline.warehouse.latest(gone)
    forget_last_batch(pipeline.root / "warehouse")
    again = pipeline.ingest("people.feed")

    # then
    assert again.table.version == second.table.version
    assert pipeline.warehouse.latest(gone) == before


def test_a_crash_between_the_two_commits_of_a_batch_with_deletes_is_made_good(
    spark: SparkSession, tmp_path: Path
) -> None:
    # given: a batch was written whole, and a copy has its first commit only
    whole, half = Pipeline(spark, tmp_path / "whole"), Pipeline(spark, tmp_path / "half")
    folder = tmp_path / "in"
    folder.mkdir()
    for pipeline in (whole, half):
        pipeline.use(
            PEOPLE + f"CREATE SOURCE feed INTO people USING json OPTIONS (path '{folder}', "
            "sequence_by 'seen', delete_when 'gone');"
        )
    whole.create()
    (folder / "1.json").write_text(
        '{"id": 1, "name": "one", "seen": "2026-01-01T00:00:00Z"}\n'
        '{"id": 2, "name": "two", "seen": "2026-01-01T00:00:00Z"}\n'
        '{"id": 3, "seen": "2026-01-02T00:00:00Z", "gone": true}\n'
    )
    whole.ingest("people.feed")
    table = Path("warehouse") / "tables"
    shutil.copytree(whole.root / table, half.root / table)
    (folder / "2.json").write_text(
        '{"id": 1, "gone": true}\n'
        '{"id": 2, "name": "newer", "seen": "2026-01-03T00:00:00Z"}\n'
        '{"id": 3, "name": "again", "seen": "2026-01-03T00:00:00Z"}\n'
    )
    whole.ingest("people.feed")
    for part in ("checkpoints", "deleted"):
        shutil.copytree(whole.root / "warehouse" / part, half.root / "warehouse" / part)
    forget_last_batch(half.root / "warehouse")
    half.states = dict(whole.states)

    # when
    half.ingest("people.feed")

    # then
    assert whole.rows(ALL) == [(2, "newer"), (3, "again")]
    assert half.rows(ALL) == whole.rows(ALL)


def test_of_files_the_later_counts_and_of_one_time_the_one_with_the_later_name(
    pipeline: Pipeline,
) -> None:
    # given: of one key a record in each file of a batch
    pipeline.use(PEOPLE + "CREATE SOURCE feed INTO people USING json OPTIONS (path 'in');")
    pipeline.create()
    folder = pipeline.root / "in"
    folder.mkdir()

    def send(*files: tuple[str, int]) -> list[tuple[object, ...]]:
        for name, at in files:
            path = folder / f"{name}.json"
            path.write_text(
                f'{{"id": 1, "name": "first of {name}"}}\n{{"id": 1, "name": "{name}"}}'
            )
            os.utime(path, (at, at))
        pipeline.ingest("people.feed")
        return pipeline.rows(ALL)

    # then
    assert send(("b", 1_800_000_000), ("a", 1_800_000_009)) == [(1, "a")]
    assert send(("d", 1_800_000_020), ("c", 1_800_000_020)) == [(1, "d")]
    assert send(("e", 1_800_000_031), ("g", 1_800_000_030), ("f", 1_800_000_030)) == [(1, "e")]


@pytest.mark.parametrize("options", ["", ", sequence_by 'seen'"], ids=["arrival", "sequence"])
def test_every_record_of_a_key_is_counted_and_every_bad_one_told(
    pipeline: Pipeline, spark: SparkSession, options: str
) -> None:
    # given
    pipeline.use(
        PEOPLE.replace("name STRING", "name VARCHAR(5)")
        + f"CREATE SOURCE feed INTO people USING json OPTIONS (path 'in'{options});"
    )
    pipeline.create()
    folder = pipeline.root / "in"
    folder.mkdir()
    (folder / "1.json").write_text(
        '{"id": 1, "name": "newer", "seen": "2026-01-05T00:00:00Z"}\n'
        '{"id": 1, "name": "older", "seen": "2026-01-03T00:00:00Z"}\n'
        '{"id": 1, "name": "too long", "seen": "2026-01-06T00:00:00Z"}\n'
        '{"id": 1, "name": "longer still", "seen": "2026-01-06T00:00:00Z"}\n'
        '{"id": 2, "name": "other", "seen": "2026-01-01T00:00:00Z"}\n'
        '{"name": "none", "seen": "2026-01-01T00:00:00Z"}\n'
        '{"name": "none", "seen": "2026-01-01T00:00:00Z"}\n'
        "{not json\n"
        "{not json\n"
    )

    # when
    first = pipeline.ingest("people.feed")
    (folder / "2.json").write_text(
        '{"id": 1, "name": "late", "seen": "2026-01-04T00:00:00Z"}\n'
        '{"id": 2, "name": "again", "seen": "2026-01-01T00:00:00Z"}\n'
    )
    second = pipeline.ingest("people.feed")

    # then
    assert (first.rows, first.rejected) == (3, 6)
    assert (second.rows, second.rejected) == (2, 0)
    assert pipeline.rows(ALL) == [(1, "newer" if options else "late"), (2, "again")]
    path = pipeline.warehouse.rejected_path("people.feed")
    bad = spark.read.format("delta").load(path).collect()
    assert {Path(row["file"]).name for row in bad} == {"1.json"}
    assert Counter(row["reason"] for row in bad) == {
        "`id` is NULL": 2,
        "`name` is longer than 5": 2,
        "the record can't be read": 2,
    }


def test_in_csv_what_a_condition_names_stands_behind_the_columns(pipeline: Pipeline) -> None:
    # given
    pipeline.use(
        PEOPLE + "CREATE SOURCE feed INTO people USING csv OPTIONS (path 'in', header true, "
        "delete_when 'op = ''d''');"
    )
    pipeline.create()
    folder = pipeline.root / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("id,name,seen,op\n1,Ann,,c\n2,Bob,,c\n1,,,d\n")

    # when
    pipeline.ingest("people.feed")

    # then
    assert pipeline.rows(ALL) == [(2, "Bob")]


def test_a_condition_that_spark_can_not_read_is_told(pipeline: Pipeline) -> None:
    # given
    pipeline.use(
        PEOPLE + "CREATE SOURCE feed INTO people USING json OPTIONS (path 'in', "
        "delete_when 'nosuch(name)');"
    )
    pipeline.create()
    (pipeline.root / "in").mkdir()

    # when
    with pytest.raises(EngineError) as caught:
        pipeline.ingest("people.feed")

    # then
    assert caught.value.message.startswith("source `people.feed`: ")
    assert "nosuch" in caught.value.message
    assert str(caught.value.location) == "pipeline/school.sql:2:1"
