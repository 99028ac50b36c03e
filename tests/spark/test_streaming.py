"""Streaming tables on Spark and Delta: what passes, in which columns, exactly once."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, ParseException

from sqlmig.errors import EngineError
from sqlmig.execution.values import Period, Span
from sqlmig.ledger.cut import RelationState
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = """
CREATE TABLE orders (id INT, state STRING, products ARRAY<STRUCT<name: STRING, price: INT>>);
CREATE TABLE labels (state STRING, label STRING);
"""
ROUTED = """
CREATE VIEW labelled AS SELECT upper(state) AS state, max(label) AS label FROM labels GROUP BY 1;
CREATE STREAMING TABLE shipped COMMENT 'a filter' AS
SELECT * FROM STREAM orders WHERE state = 'shipped';
CREATE STREAMING TABLE routed (id, state, label) AS
SELECT id, 'kept', label FROM STREAM(orders) o JOIN labelled l ON upper(o.state) = l.state
WHERE id IN (SELECT id FROM orders_seen)
UNION ALL
SELECT id, 'other', NULL FROM STREAM orders WHERE state NOT IN ('shipped', 'new');
CREATE VIEW orders_seen AS SELECT id FROM orders;
CREATE STREAMING TABLE products AS
SELECT id, p.name, p.price * 100 AS cents FROM STREAM orders LATERAL VIEW explode(products) AS p;
"""


def insert(id_: int, state: str, *products: tuple[str, int]) -> str:
    """An order as an INSERT."""
    listed = ", ".join(f"named_struct('name', '{name}', 'price', {p})" for name, p in products)
    return f"INSERT INTO orders VALUES ({id_}, '{state}', array({listed}))"


def test_rows_pass_once_through_filter_router_function_join_and_expansion(
    pipeline: Pipeline,
) -> None:
    pipeline.use(ORDERS + ROUTED)
    pipeline.create()
    pipeline.execute("INSERT INTO labels VALUES ('new', 'n'), ('shipped', 's')")
    pipeline.execute(insert(1, "shipped", ("tea", 3), ("cup", 5)))
    for name in ("shipped", "routed", "products"):
        pipeline.begin(name)
    pipeline.execute(insert(2, "new"))
    pipeline.execute(insert(3, "lost", ("pot", 7)))
    # changed and deleted rows don't pass again, inserted ones do, also by MERGE
    pipeline.execute("UPDATE orders SET state = 'shipped' WHERE id = 1")
    pipeline.execute("DELETE FROM orders WHERE id = 2")
    pipeline.execute(
        "MERGE INTO orders o USING (SELECT 3 AS id UNION ALL SELECT 4) n ON o.id = n.id "
        "WHEN MATCHED THEN UPDATE SET state = 'shipped' "
        "WHEN NOT MATCHED THEN INSERT (id, state) VALUES (n.id, 'shipped')"
    )
    mark = pipeline.mark("f1")
    before = pipeline.states["shipped"]
    assert pipeline.take_in("shipped", mark) == 1
    pipeline.states["shipped"] = before  # the process died before it could record that
    assert pipeline.take_in("shipped", mark) == 1, "the same step again writes nothing"
    assert pipeline.take_in("shipped") is None
    assert pipeline.take_in("routed") == 2
    assert pipeline.take_in("products") == 1
    # then
    assert pipeline.rows("SELECT id, state FROM shipped ORDER BY id") == [
        (1, "shipped"),
        (4, "shipped"),
    ]
    assert pipeline.rows("SELECT * FROM routed ORDER BY id, state") == [
        (1, "kept", "s"),
        (3, "other", None),
        (4, "kept", "s"),
    ]
    assert pipeline.rows("SELECT * FROM products ORDER BY cents") == [
        (1, "tea", 300),
        (1, "cup", 500),
        (3, "pot", 700),
    ]
    # a commit without rows still says how far the table is
    pipeline.execute(insert(5, "new"))
    assert pipeline.take_in("shipped") == 0
    state = pipeline.states["shipped"]
    now = pipeline.warehouse.observe({"s": RelationState("shipped", state.kind, 0, "", "f1")})
    assert now["shipped"].passed == state.passed
    assert now["shipped"].inputs == state.inputs


def test_a_stream_may_change_its_columns_and_be_put_back_between_rows(pipeline: Pipeline) -> None:
    pipeline.use(
        "CREATE TABLE t (a INT, b STRING);"
        "CREATE STREAMING TABLE s AS SELECT a, b FROM STREAM t;"
        "CREATE STREAMING TABLE s2 AS SELECT *, 1 AS one FROM STREAM s;"
    )
    pipeline.create()
    pipeline.begin("s")
    pipeline.begin("s2")
    pipeline.execute("INSERT INTO t VALUES (1, 'x')")
    program = pipeline.use(
        "CREATE TABLE t (a BIGINT, bb STRING, c INT);"
        "CREATE STREAMING TABLE s AS SELECT bb, a + 0 AS a, c FROM STREAM t;"
        "CREATE STREAMING TABLE s2 AS SELECT *, 2 AS one FROM STREAM s;"
    )
    table = program.tables["t"]
    pipeline.note("t", pipeline.engine.alter_table(table, "t", [("b", "bb")], pipeline.mark()))
    pipeline.execute("INSERT INTO t VALUES (2, 'y', 5)")
    at = pipeline.states["t"].version
    pipeline.execute("INSERT INTO t VALUES (66, 'never', 6)")
    restored = pipeline.warehouse.restore("t", at, pipeline.mark())
    restored = restored or pipeline.engine.restore("t", at, pipeline.mark())  # a widened type
    pipeline.note("t", restored)
    pipeline.execute("INSERT INTO t VALUES (3, 'z', 7)")
    # when
    pipeline.evolve("s")
    pipeline.evolve("s2")
    assert pipeline.evolve("s").version == pipeline.states["s"].version, "nothing left to alter"
    assert pipeline.take_in("s") == 3
    assert pipeline.take_in("s2") == 3
    # then
    expected = [("x", 1, None), ("y", 2, 5), ("z", 3, 7)]
    assert pipeline.rows("SELECT * FROM s ORDER BY a") == expected
    assert pipeline.rows("SELECT * FROM s2 ORDER BY a") == [(*row, 2) for row in expected]
    # a rebuild with other columns is one commit of rows, and its readers take in only what follows
    pipeline.use(
        "CREATE TABLE t (a BIGINT, bb STRING, c INT);"
        "CREATE STREAMING TABLE s AS SELECT a, -a AS minus FROM STREAM t;"
        "CREATE STREAMING TABLE s2 AS SELECT a, minus AS one FROM STREAM s;"
    )
    version = pipeline.states["s"].version
    pipeline.begin("s")
    commits = pipeline.warehouse.commits(pipeline.warehouse.table_path("s"), after=version)
    assert [c.operation for c in commits] == ["SET TBLPROPERTIES", "WRITE", "SET TBLPROPERTIES"]
    pipeline.evolve("s2")
    assert pipeline.take_in("s2") is None
    pipeline.execute("INSERT INTO t VALUES (4, 'w', 8)")
    assert pipeline.take_in("s") == 1
    assert pipeline.take_in("s2") == 1
    assert pipeline.rows("SELECT * FROM s ORDER BY a") == [(1, -1), (2, -2), (3, -3), (4, -4)]
    assert pipeline.rows("SELECT * FROM s2 ORDER BY a") == [(1, 2), (2, 2), (3, 2), (4, -4)]


def test_a_backfill_replaces_the_rows_of_its_period_in_one_commit(pipeline: Pipeline) -> None:
    sql = (
        "CREATE TABLE t (at TIMESTAMP, a INT);"
        "CREATE STREAMING TABLE s AS SELECT at, a * {} AS b FROM STREAM t;"
    )
    program = pipeline.use(sql.format(1))
    pipeline.create()
    pipeline.execute(
        "INSERT INTO t VALUES (TIMESTAMP '2026-06-01 23:59:59', 1), "
        "(TIMESTAMP '2026-06-02 00:00:00', 2), (TIMESTAMP '2026-06-03 10:00:00', 3), (NULL, 4)"
    )
    pipeline.begin("s")
    program = pipeline.use(sql.format(10))
    view, period = program.views["s"], Period("at", "2026-06-02")
    before = pipeline.states["s"].version
    backfill = pipeline.engine.backfill
    mark = pipeline.mark("f2")
    written = backfill(program, view, pipeline.states, period, "s", mark)
    again = backfill(program, view, pipeline.states, period, "s", mark)
    assert written.version == again.version == before + 1
    pipeline.note("s", written)
    assert pipeline.rows("SELECT b FROM s ORDER BY b") == [(1,), (4,), (20,), (30,)]
    # a row outside the period, and a column that is not there, are refused
    outside = pipeline.use(
        sql.format(10).replace("SELECT at", "SELECT at - INTERVAL 10 DAYS AS at")
    )
    with pytest.raises(EngineError) as failed:
        backfill(outside, outside.views["s"], pipeline.states, period, "s", pipeline.mark())
    assert "partial table overwrite condition" in failed.value.message
    wrong = Period("day", "2026-06-02")
    with pytest.raises(EngineError, match="the stream `t` has no column `day`, by which rows"):
        backfill(program, view, pipeline.states, wrong, "s", pipeline.mark())
    assert pipeline.warehouse.version("s") == written.version


def test_columns_for_which_the_rows_can_not_be_kept_are_told_before_anything_runs(
    pipeline: Pipeline,
) -> None:
    sql = "CREATE TABLE t (a INT, b STRING); CREATE STREAMING TABLE s AS SELECT {} FROM STREAM t;"
    pipeline.use(sql.format("a, b"))
    pipeline.create()
    pipeline.begin("s")
    program = pipeline.use(sql.format("CAST(a AS STRING) AS a, b, 1 AS c"))
    (blocker,) = pipeline.engine.analyze(program, ["s"], {"s": "s"})
    assert blocker.message == "`s.a` is int in the rows that are there, and becomes string"
    assert blocker.hint == 'write op.rebuild("s") into up(op) of the revision, or CAST it'
    program = pipeline.use(sql.format("CAST(a AS BIGINT) AS a, upper(b) AS x"))
    assert pipeline.engine.analyze(program, ["s"], {"s": "s"}) == []


WINDOWS = """
CREATE TABLE t (at TIMESTAMP, k STRING, n INT);
CREATE TABLE labels (k STRING, label STRING);
CREATE STREAMING TABLE s AS
SELECT window.start AS window_start, label, sum(n) AS total, count(DISTINCT n) AS kinds
FROM STREAM t WATERMARK at DELAY OF INTERVAL 5 MINUTES AS x LEFT JOIN labels USING (k)
WHERE n > 0 GROUP BY window(x.at, '10 minutes'), label HAVING sum(n) > 1;
"""


def came(*rows: tuple[str, str, int]) -> str:
    """Rows of t as an INSERT: minutes after 15:00, key, number."""
    listed = ", ".join(f"(TIMESTAMP '2024-06-11 15:{at}', '{k}', {n})" for at, k, n in rows)
    return f"INSERT INTO t VALUES {listed}"


def at(minute: int, second: int = 0) -> int:
    """A time on that day, in microseconds since 1970."""
    day = datetime(2024, 6, 11, 15, minute, second, tzinfo=timezone.utc)
    return round(day.timestamp() * 1_000_000)


def test_a_window_is_emitted_when_the_watermark_has_passed_it_and_late_rows_are_counted(
    pipeline: Pipeline,
) -> None:
    # given
    program = pipeline.use(WINDOWS)
    pipeline.create()
    assert pipeline.engine.analyze(program, ["s"]) == []
    pipeline.execute("INSERT INTO labels VALUES ('a', 'A')")
    pipeline.execute(came(("09:59.999999", "a", 2), ("10", "a", 3), ("14:59", "b", 1)))
    pipeline.execute("INSERT INTO t VALUES (NULL, 'a', 9)")
    pipeline.begin("s")
    read = (
        "SELECT date_format(window_start, 'mm') AS m, label, total, kinds FROM s ORDER BY m, label"
    )
    assert (pipeline.rows(read), pipeline.states["s"].watermark) == ([], at(9, 59))

    # when it reaches 15:10, what came meanwhile is in the first window, too
    pipeline.execute(came(("05", "a", 2), ("01", "b", 1), ("15", "a", -4)))
    mark = pipeline.mark("f1")
    before = pipeline.states["s"]
    assert pipeline.take_in("s", mark) == 1
    pipeline.states["s"] = before  # the process died before it could record that
    assert pipeline.take_in("s", mark) == 1, "the same step again writes nothing"
    first = [("00", "A", 4, 1)]
    assert pipeline.rows(read) == first
    assert pipeline.states["s"].watermark == at(10)

    # when rows come that are late, and no window is over, nothing is committed
    version = pipeline.states["s"].version
    pipeline.execute(came(("09:59", "a", 50), ("17", "b", 5)))
    pipeline.execute("UPDATE t SET n = 7 WHERE n = 5")
    assert pipeline.take_in("s") is None
    state = pipeline.states["s"]
    assert (state.version, state.watermark, state.late) == (version, at(12), 1)
    pipeline.execute(came(("30", "a", 1)))
    assert pipeline.take_in("s") == 2
    assert pipeline.rows(read) == [*first, ("10", None, 8, 2), ("10", "A", 3, 1)]

    # then the table says by itself how far it is
    known = RelationState("s", pipeline.states["s"].kind, 0, "", "f1")
    now = pipeline.warehouse.observe({"s": known})["s"]
    assert (now.watermark, now.late, now.passed) == (at(25), 1, pipeline.states["s"].passed)

    # and windows that are made anew have their late rows
    view = program.views["s"]
    span = Span("at", at(0), at(20))
    period = Period("window_start", "2024-06-11 15:00:00+00:00")
    args = (program, view, pipeline.states, period, "s", pipeline.mark("f2"), span)
    pipeline.note("s", pipeline.engine.backfill(*args))
    assert pipeline.rows(read) == [("00", "A", 54, 2), ("10", None, 8, 2), ("10", "A", 3, 1)]


def test_a_watermark_is_written_as_spark_writes_it_and_is_of_a_timestamp(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    pipeline.use(WINDOWS)
    with pytest.raises(AnalysisException) as failed:
        spark.sql(pipeline.program.views["s"].query).schema  # noqa: B018
    assert not isinstance(failed.value, ParseException), "it is read; there is no such stream"
    for kind in ("DATE", "TIMESTAMP_NTZ"):
        program = pipeline.use(WINDOWS.replace("(at TIMESTAMP", f"(at {kind}"))
        (blocker,) = pipeline.engine.analyze(program, ["s"])
        assert blocker.message == f"`s`: its WATERMARK is of `at`, which is {kind.lower()}"
        assert blocker.hint == "write WATERMARK and a TIMESTAMP of the stream's"
    over = WINDOWS.replace("STREAM t", "STREAM u") + (
        "CREATE STREAMING TABLE u AS SELECT CAST(at AS STRING) AS at, k, n FROM STREAM t;"
    )
    (blocker,) = pipeline.engine.analyze(pipeline.use(over), ["s"])
    assert blocker.message == "`s`: its WATERMARK is of `at`, which is string"
