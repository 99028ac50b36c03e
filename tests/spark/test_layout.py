"""PARTITIONED BY on real Delta tables: rows are written anew, in one commit, and stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sqlmig.errors import EngineError
from sqlmig.spark.difference import changes
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN = "CREATE TABLE t (id INT, day DATE, n INT NOT NULL, PRIMARY KEY (id))"
BY_DAY = f"{PLAIN} PARTITIONED BY (day)"
VIEW = (
    "CREATE MATERIALIZED VIEW v PARTITIONED BY (day) AS "
    "SELECT day AS Day, sum(n) AS n FROM t GROUP BY day"
)


def test_a_table_is_partitioned_changed_and_let_go_with_its_rows(pipeline: Pipeline) -> None:
    # given
    pipeline.use(PLAIN)
    pipeline.create()
    pipeline.execute("INSERT INTO t VALUES (1, '2026-01-01', 5), (2, NULL, 6)")
    before = pipeline.states["t"]

    # when
    mark = pipeline.mark()
    first = pipeline.engine.lay_out("t", "t", ("day",), mark)
    again = pipeline.note("t", pipeline.engine.lay_out("t", "t", ("day",), mark))

    # then
    assert again == first, "nothing more to do"
    stored = pipeline.warehouse.describe("t")
    assert stored.partitions == ("day",)
    assert stored.properties["delta.enableChangeDataFeed"] == "true"
    path = pipeline.warehouse.table_path("t")
    ours = [commit.operation for commit in pipeline.warehouse.commits(path) if commit.mark == mark]
    assert ours == ["WRITE", "ADD CONSTRAINT", "ADD CONSTRAINT"]
    pipeline.use(BY_DAY)
    pipeline.execute("INSERT INTO t VALUES (1, '2026-01-02', 7), (3, '2026-01-02', 8)")
    assert pipeline.rows("SELECT id, day, n FROM t ORDER BY id") == [
        (1, "2026-01-02", 7),
        (2, None, 6),
        (3, "2026-01-02", 8),
    ]
    with pytest.raises(EngineError) as caught:
        pipeline.execute("UPDATE t SET n = NULL")
    assert caught.value.message == "`t`: `n` may not be NULL"

    # when: another column is cast; the files still lie apart by day
    pipeline.use(BY_DAY.replace("n INT", "n STRING"))
    table = pipeline.table("t")
    pipeline.engine.convert_table(table, "t", [], pipeline.mark(), has_new_key=False)

    # then
    assert pipeline.warehouse.describe("t").partitions == ("day",)

    # when: the table is emptied and made again by a plan that begins anew
    pipeline.note("t", pipeline.engine.create_table(table, "t", pipeline.mark()))

    # then
    assert pipeline.warehouse.describe("t").partitions == ("day",)
    assert pipeline.states["t"].rows == 0

    # when
    back = pipeline.warehouse.restore("t", before.version, pipeline.mark())

    # then
    assert back is not None, "delta-rs puts a partitioned table back"
    assert pipeline.warehouse.describe("t").partitions == ()


def test_tables_and_views_are_made_partitioned(pipeline: Pipeline) -> None:
    # given
    pipeline.use(f"{BY_DAY};\n{VIEW}")
    pipeline.create()
    pipeline.execute("INSERT INTO t VALUES (1, '2026-01-01', 5), (2, '2026-01-01', 6)")

    # when
    pipeline.refresh("v")

    # then
    assert pipeline.warehouse.describe("t").partitions == ("day",)
    assert pipeline.warehouse.describe("v").partitions == ("day",)
    assert pipeline.rows("SELECT day, n FROM v") == [("2026-01-01", 11)]

    # when: a view's rows are laid out in another way, and it is computed again in that
    pipeline.note("v", pipeline.engine.lay_out("v", "v", (), pipeline.mark()))

    # then
    assert pipeline.warehouse.describe("v").partitions == ()
    assert pipeline.rows("SELECT day, n FROM v") == [("2026-01-01", 11)]
    pipeline.refresh("v")
    assert pipeline.warehouse.describe("v").partitions == ("day",)


def test_rows_that_came_before_a_layout_pass_whole_and_a_sink_is_told_what_differs(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    # given: rows that came under three layouts, columns renamed and added between, none has passed
    stream = "CREATE STREAMING TABLE s AS SELECT * FROM STREAM t;"
    pipeline.use("CREATE TABLE t (id INT, day STRING, n INT); " + stream)
    pipeline.create()
    pipeline.begin("s")
    pipeline.execute("INSERT INTO t VALUES (0, 'z', 0)")
    sent = pipeline.contents("t")
    pipeline.execute("INSERT INTO t VALUES (1, 'a', 1)")
    pipeline.note("t", pipeline.engine.lay_out("t", "t", ("day",), pipeline.mark()))
    pipeline.execute("INSERT INTO t VALUES (2, 'b', 2)")
    found = changes(spark, pipeline.warehouse, sent, pipeline.contents("t"))
    difference = sorted(tuple(row) for row in found.collect())
    pipeline.note("t", pipeline.engine.lay_out("t", "t", (), pipeline.mark()))
    renamed = "CREATE TABLE t (id INT, date STRING, n BIGINT, more INT) PARTITIONED BY (id);"
    program = pipeline.use(renamed + stream)
    table = program.tables["t"]
    pipeline.note("t", pipeline.engine.alter_table(table, "t", [("day", "date")], pipeline.mark()))
    pipeline.note("t", pipeline.engine.lay_out("t", "t", ("id",), pipeline.mark()))
    pipeline.execute("INSERT INTO t VALUES (3, 'c', 3, 3)")

    # when
    pipeline.evolve("s")
    taken = pipeline.take_in("s")

    # then
    assert difference == [(1, "a", 1, 1), (2, "b", 2, 1)]
    assert taken == 4
    assert pipeline.rows("SELECT id, date, n, more FROM s ORDER BY id") == [
        (0, "z", 0, None),
        (1, "a", 1, None),
        (2, "b", 2, None),
        (3, "c", 3, 3),
    ]
