"""Materialized views in place on Spark and Delta: what came is merged by key, exactly once."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sqlmig.errors import EngineError
from sqlmig.ledger.cut import RelationState
from tests.spark.pipelines import Pipeline

SQL = """
CREATE TABLE sales (product STRING, size INT, price DECIMAL(10, 2), weight DOUBLE, ok BOOLEAN);
CREATE STREAMING TABLE valid AS SELECT * FROM STREAM sales WHERE size > 0;
CREATE MATERIALIZED VIEW stats AS
SELECT product, size % 2 AS odd, count(*) AS n, count(price) AS priced, sum(price) AS total,
  min(product) AS low, max(weight) AS top, sum(size) AS sizes, bool_and(ok) AS all_ok
FROM valid {} GROUP BY product, size % 2;
"""


def test_what_came_is_merged_with_what_is_there_in_one_commit(pipeline: Pipeline) -> None:
    pipeline.use(SQL.format(""))
    pipeline.create()
    pipeline.execute(
        "INSERT INTO sales VALUES ('tea', 1, 2.50, 1.5, true), ('tea', 3, NULL, 2.5, true), "
        "('tea', 2, 4.00, 0.5, false), (NULL, 1, 1.00, NULL, NULL), ('no', 0, 9.99, 9.0, true)"
    )
    pipeline.begin("valid")
    pipeline.refresh("stats")
    pipeline.keep("stats")
    before = pipeline.states["stats"]
    # when another query takes in what comes
    pipeline.use(SQL.format("WHERE price > 1 OR price IS NULL"))
    pipeline.execute(
        "INSERT INTO sales VALUES ('tea', 5, 3.25, 0.25, NULL), ('tea', 1, 0.50, 50.0, false), "
        "(NULL, 3, NULL, 7.0, false), ('cup', 2, 8.00, 1.0, true)"
    )
    pipeline.take_in("valid")
    mark = pipeline.mark("f2")
    assert pipeline.take_in("stats", mark) == 4
    after = pipeline.states["stats"]
    pipeline.states["stats"] = before  # the process died before it could record that
    assert pipeline.take_in("stats", mark) == 4, "the same step again writes nothing"
    assert pipeline.states["stats"] == after
    assert after.version == before.version + 1
    assert pipeline.take_in("stats") is None
    # then
    order = "ORDER BY product NULLS FIRST, odd"
    assert pipeline.rows(f"SELECT * FROM stats {order}") == [
        (None, 1, 2, 1, Decimal("1.00"), None, 7.0, 4, False),
        ("cup", 0, 1, 1, Decimal("8.00"), "cup", 1.0, 2, True),
        ("tea", 0, 1, 1, Decimal("4.00"), "tea", 0.5, 2, False),
        ("tea", 1, 3, 2, Decimal("5.75"), "tea", 2.5, 9, True),
    ]
    # the table itself says how far it is, also to one who knows it only as it was before
    known = replace(before, version=before.version)
    now = pipeline.warehouse.observe({"stats": known})["stats"]
    assert (now.passed, now.inputs) == (after.passed, after.inputs)
    # an input that was put back brings nothing, and what was computed from it tells so
    version = pipeline.states["valid"].version
    pipeline.execute("INSERT INTO sales VALUES ('pot', 1, 5.00, 1.0, true)")
    pipeline.take_in("valid")
    content = pipeline.states["valid"]
    restored = pipeline.warehouse.restore("valid", version, pipeline.mark())
    assert restored is not None
    moved = RelationState("valid", content.kind, restored.version, f"valid@{restored.version}", "f")
    pipeline.states["valid"] = moved
    assert pipeline.take_in("stats") is None
    assert pipeline.rows("SELECT count(*) FROM stats") == [(4,)]


def test_other_columns_block_the_plan_and_a_query_that_can_not_be_merged_is_refused(
    pipeline: Pipeline,
) -> None:
    sql = "CREATE TABLE t (a INT, b INT); CREATE MATERIALIZED VIEW v AS SELECT {} FROM t GROUP BY a"
    pipeline.use(sql.format("a, sum(b) AS s"))
    pipeline.create()
    pipeline.refresh("v")
    pipeline.keep("v")
    program = pipeline.use(sql.format("a, sum(b * 2.5) AS s"))
    (blocker,) = pipeline.engine.analyze(program, ["v"], {"v": "v"})
    assert blocker.message == "`v.s` is bigint in the rows there, and becomes decimal(23,1)"
    assert blocker.hint == (
        "take op.in_place out of the revision, and it is computed anew; or CAST it"
    )
    program = pipeline.use(sql.format("a, sum(b) AS total"))
    (blocker,) = pipeline.engine.analyze(program, ["v"], {"v": "v"})
    assert blocker.message == "`v` has the columns a, s in the rows there"
    program = pipeline.use(sql.format("a, sum(b * 2) AS s"))
    assert pipeline.engine.analyze(program, ["v"], {"v": "v"}) == []
    pipeline.use(sql.format("a, avg(b) AS s"))
    pipeline.execute("INSERT INTO t VALUES (1, 1)")
    with pytest.raises(EngineError, match="`v` has `s`, an average: of two averages"):
        pipeline.take_in("v")
