"""Rows of a query as JSON values."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sqlmig.errors import EngineError
from sqlmig.spark.query import check_reads_only
from tests.spark.pipelines import Pipeline

VALUES = """SELECT
  CAST(1.10 AS DECIMAL(5,2)) AS d, 1 AS i, 2.5D AS f, double('NaN') AS nan, true AS b,
  DATE '2025-09-15' AS day, TIMESTAMP '2025-09-15 10:00:00.5' AS at,
  TIMESTAMP_NTZ '2025-09-15 10:00:00' AS local, array(1, NULL) AS a,
  named_struct('x', 1, 'day', DATE '2026-01-01') AS s, map('k', 1.5) AS m, map(2, 'v') AS n,
  CAST('abc' AS BINARY) AS bin, INTERVAL '1' DAY AS period, NULL AS nothing, 7 AS i"""


def test_every_type_has_one_form_in_json(pipeline: Pipeline) -> None:
    # when
    names, rows = pipeline.engine.query(pipeline.program, VALUES + ";", {})

    # then
    assert dict(rows[0]) == {
        "d": Decimal("1.10"),
        "i": 1,
        "f": 2.5,
        "nan": "NaN",
        "b": True,
        "day": "2025-09-15",
        "at": "2025-09-15T10:00:00.500000Z",
        "local": "2025-09-15T10:00:00",
        "a": [1, None],
        "s": {"x": 1, "day": "2026-01-01"},
        "m": {"k": Decimal("1.5")},
        "n": [{"key": 2, "value": "v"}],
        "bin": "YWJj",
        "period": "PT86400S",
        "nothing": None,
        "i_2": 7,
    }
    assert list(names) == list(rows[0]), "names in the query's order, the second `i` apart"


def test_a_mistake_in_a_query_is_one_line(pipeline: Pipeline) -> None:
    # given
    pipeline.use("CREATE TABLE t (a INT)")

    # when
    with pytest.raises(EngineError) as unknown:
        pipeline.engine.query(pipeline.program, "SELECT * FROM nowhere", {})
    with pytest.raises(EngineError) as absent:
        pipeline.engine.query(pipeline.program, "SELECT * FROM t", {})

    # then
    assert "`nowhere` cannot be found" in unknown.value.message
    assert "\n" not in unknown.value.message
    assert absent.value.message == "`t` has no contents yet"


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE t",
        "delete from t",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
        "FROM t INSERT INTO u SELECT *",
        "EXPLAIN DELETE FROM t",
        "",
    ],
)
def test_a_query_only_reads(sql: str) -> None:
    with pytest.raises(EngineError) as caught:
        check_reads_only(sql)
    assert "sqlmig" in (caught.value.hint or "")
