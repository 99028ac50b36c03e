"""Sources of files: each record once, bad ones kept aside and counted, secrets kept secret."""

from __future__ import annotations

import shutil
import threading
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig.errors import EngineError
from sqlmig.execution.values import Written
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE TABLE grades (student_id INT NOT NULL, class STRING DEFAULT 'none', grade DECIMAL(5,2));
CREATE TABLE students (id INT, name STRING, PRIMARY KEY (id));
CREATE TABLE marks (id BIGINT, mark DOUBLE);
CREATE SOURCE landed INTO grades USING json OPTIONS (path '{path}');
CREATE SOURCE roll INTO students USING csv OPTIONS (path 'roll', header 'true');
CREATE SOURCE old INTO marks USING parquet OPTIONS (path 'old');
"""


def rejected(pipeline: Pipeline, spark: SparkSession, connector: str) -> list[tuple[Any, ...]]:
    """(batch, reason, file's name, record) of the bad records, in order."""
    rows = spark.read.format("delta").load(pipeline.warehouse.rejected_path(connector)).collect()
    return sorted((r["batch"], r["reason"], Path(r["file"]).name, r["record"]) for r in rows)


def test_json_is_read_once_and_bad_records_are_kept_aside(
    spark: SparkSession, tmp_path: Path
) -> None:
    # given
    pipeline = Pipeline(spark, tmp_path, {"LANDING": "landing-s3cret"})
    pipeline.use(SQL.format(path="${env:LANDING}"))
    pipeline.create("grades")
    landing = tmp_path / "landing-s3cret"
    landing.mkdir()
    (landing / "a.json").write_text(
        '{"student_id": 1, "class": "algebra", "grade": 97.5}\n'
        '{"student_id": 2}\n'
        "{not json\n"
        '{"student_id": null, "grade": 1}\n'
        '{"student_id": 3, "grade": "many"}\n'
    )

    # when: two rounds, and a new file before a third
    first = pipeline.ingest("grades.landed")
    idle = pipeline.ingest("grades.landed")
    (landing / "b.json").write_text('{"student_id": 4}\n')
    pipeline.ingest("grades.landed", is_recorded=False)
    third = pipeline.ingest("grades.landed")
    assert third.rows == 1, "those of the round that was killed before it recorded them"

    # then
    assert (first.rows, first.rejected) == (2, 3)
    assert idle.rows == 0
    assert idle.table.version == first.table.version, "no commit where nothing is new"
    assert third.rows == 1
    assert pipeline.rows("SELECT * FROM grades ORDER BY 1") == [
        (1, "algebra", Decimal("97.50")),
        (2, "none", None),
        (4, "none", None),
    ]
    kept = rejected(pipeline, spark, "grades.landed")
    assert [(batch, reason, record) for batch, reason, _, record in kept] == [
        (0, "`student_id` is NULL", '{"class":"none","grade":1.00}'),
        (0, "the record can't be read", '{"student_id": 3, "grade": "many"}'),
        (0, "the record can't be read", "{not json"),
    ]

    # when: the process died behind the table's commit, before Spark noted the batch
    checkpoint = Path(pipeline.warehouse.checkpoint_path("grades.landed", 1))
    for number in (0, 1):
        (checkpoint / "commits" / f"{number}").unlink()
        (checkpoint / "commits" / f".{number}.crc").unlink(missing_ok=True)
    again = pipeline.ingest("grades.landed")

    # then
    assert again.table.version == third.table.version, "the batch that came again wrote nothing"
    assert rejected(pipeline, spark, "grades.landed") == kept, "nor did its bad records"

    # when: the offsets are lost
    shutil.rmtree(checkpoint)
    with pytest.raises(EngineError) as lost:
        pipeline.ingest("grades.landed")

    # then: Delta would skip new batches silently
    assert "offsets" in lost.value.message

    # then: the secret is in no message, commit or row
    stored = [p.read_text() for p in (tmp_path / "warehouse").rglob("*.json")]
    assert not any("s3cret" in text for text in stored)
    rows = spark.read.format("delta").load(pipeline.warehouse.rejected_path("grades.landed"))
    assert not any("s3cret" in str(row) for row in rows.collect())
    shutil.rmtree(landing)
    with pytest.raises(EngineError) as missing:
        pipeline.ingest("grades.landed", generation=2)
    assert "s3cret" not in missing.value.render()
    assert "there is no directory ***" in missing.value.message


def test_a_keyed_table_takes_the_last_record_of_csv_files(pipeline: Pipeline) -> None:
    # given: files in the order of their arrival
    pipeline.use(SQL.format(path="x"))
    pipeline.create("students")
    roll = pipeline.root / "roll"
    roll.mkdir()
    (roll / "1.csv").write_text("id,name\n1,Ann\n2,Bob\n1,Anna\n")

    # when
    first = pipeline.ingest("students.roll")
    (roll / "2.csv").write_text("id,name\n2,Rob\n,Nobody\n3,Cid,extra\n")
    second = pipeline.ingest("students.roll")

    # then
    assert (first.rows, first.rejected) == (3, 0)
    assert (second.rows, second.rejected) == (1, 2)
    assert pipeline.rows("SELECT * FROM students ORDER BY id") == [(1, "Anna"), (2, "Rob")]

    # when: a file's columns are others
    (roll / "3.csv").write_text("name,id\nDan,4\n")
    with pytest.raises(EngineError) as caught:
        pipeline.ingest("students.roll")

    # then
    assert "3.csv" in caught.value.message
    assert "its header is (name, id)" in caught.value.message


def test_rounds_leave_no_connections_and_no_listeners_behind(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    # given: a file for each of several rounds, all of which call back into this process
    pipeline.use("CREATE TABLE t (id INT); CREATE SOURCE s INTO t USING json OPTIONS (path 'in');")
    pipeline.create()
    folder = pipeline.root / "in"
    folder.mkdir()
    threads: list[int] = []  # one waits at each connection
    listeners: list[int] = []
    bus = spark.sparkContext._jsc.sc().listenerBus()

    # when
    for number in range(6):
        (folder / f"{number}.json").write_text(f'{{"id": {number}}}\n')
        pipeline.ingest("t.s")
        threads.append(threading.active_count())
        listeners.append(bus.listeners().size())

    # then: that of the last round may still be there
    assert max(threads[1:]) <= min(threads[1:]) + 1
    assert len(set(listeners)) == 1
    assert pipeline.rows("SELECT count(*) FROM t") == [(6,)]


def test_a_parquet_file_that_can_not_be_read_is_named(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    # given
    pipeline.use(SQL.format(path="x"))
    pipeline.create("marks")
    old = pipeline.root / "old"
    spark.range(3).selectExpr("id", "id * 1.5D AS mark").coalesce(1).write.parquet(str(old))

    # when
    done = pipeline.ingest("marks.old")
    (old / "broken.parquet").write_bytes(b"PAR1 this is none PAR1")
    with pytest.raises(EngineError) as caught:
        pipeline.ingest("marks.old")

    # then
    assert (done.rows, done.rejected) == (3, 0)
    assert pipeline.rows("SELECT sum(mark) FROM marks") == [(4.5,)]
    assert "broken.parquet" in caught.value.message
    assert "\n" not in caught.value.message

    # when: it is mended
    (old / "broken.parquet").unlink()
    one = spark.range(3, 4).selectExpr("id", "1D AS mark").coalesce(1)
    one.write.parquet(str(pipeline.root / "more"))
    for file in (pipeline.root / "more").glob("*.parquet"):
        shutil.copy(file, old / "broken.parquet")
    mended = pipeline.ingest("marks.old")

    # then
    assert mended.rows == 1, "the source goes on where it stopped"


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ("path 'nowhere'", "there is no directory nowhere", "make it"),
        ("path '${env:ABSENT}'", "the environment variable ABSENT is not set", "export ABSENT"),
        ("multiLine 'true'", "has no `path`", "OPTIONS"),
        ("path '.', mode 'DROPMALFORMED'", "would drop records silently", "kept aside"),
    ],
)
def test_a_source_that_can_not_be_opened_says_what_to_do(
    tmp_path: Path, options: str, message: str, hint: str
) -> None:
    # given: an engine that must not start Spark for this
    pipeline = Pipeline(None, tmp_path)  # type: ignore[arg-type]
    pipeline.use(
        "CREATE TABLE grades (id INT);"
        f"CREATE SOURCE landed INTO grades USING json OPTIONS ({options})"
    )
    pipeline.note("grades", Written(0, 0, 0))

    # when
    with pytest.raises(EngineError) as caught:
        pipeline.ingest("grades.landed")

    # then
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert str(caught.value.location) == "pipeline/school.sql:1:30"
