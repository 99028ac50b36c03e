"""PARTITIONED BY on real Delta tables: rows are written anew, in one commit, and stay the same."""

from __future__ import annotations

import pytest

from sqlmig.errors import EngineError
from tests.spark.pipelines import Pipeline

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
