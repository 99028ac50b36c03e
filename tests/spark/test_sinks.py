"""Sinks of files and Delta: what they get, once and only once, and what they refuse."""

from __future__ import annotations

import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig.errors import EngineError
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE TABLE orders (id INT PRIMARY KEY, name STRING, amount DECIMAL(10, 2), at TIMESTAMP);
CREATE MATERIALIZED VIEW names AS SELECT name FROM orders;
CREATE MATERIALIZED VIEW totals AS SELECT name, sum(amount) AS total FROM orders GROUP BY name;
CREATE SINK files FROM orders USING json OPTIONS (path 'out/orders');
CREATE SINK bag FROM names USING csv OPTIONS (path 'out/names');
CREATE SINK copy FROM orders USING delta OPTIONS (path 'out/copy');
CREATE SINK log FROM orders USING delta OPTIONS (path 'out/log', key '');
CREATE SINK wrong FROM names USING json OPTIONS (path 'out/wrong', key 'NAME');
CREATE SINK lost FROM totals USING json OPTIONS (path 'out/lost', key 'nme');
CREATE SINK secret FROM orders USING json OPTIONS (path '${env:PLACE}/x');
"""
FIRST = (
    "INSERT INTO orders VALUES (1, 'Ann', 1.50, TIMESTAMP '2026-06-10 12:00:00'), "
    "(2, 'Bob', NULL, NULL), (3, 'Bob', 3, NULL)"
)
SECOND = (
    "MERGE INTO orders AS o USING (SELECT * FROM VALUES (1, 'Ann'), (2, 'Bo'), (4, 'Dan') "
    "AS s (id, name)) AS s ON o.id = s.id WHEN MATCHED AND s.id = 1 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET name = s.name "
    "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
)


@pytest.fixture
def orders(pipeline: Pipeline) -> Pipeline:
    """Three orders, and the views over them."""
    pipeline.use(SQL)
    pipeline.create("orders")
    pipeline.execute(FIRST)
    return pipeline


def lines(folder: Path) -> list[str]:
    """All lines of the files in a folder that a reader looks at."""
    files = [p for p in sorted(folder.iterdir()) if not p.name.startswith(("_", "."))]
    return sorted(line for p in files for line in p.read_text("utf-8").splitlines())


def state(folder: Path) -> dict[str, int]:
    """The files of a folder and when they were written."""
    return {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}


def test_a_keyed_sink_of_files_gets_upserts_and_deletes_each_batch_once(orders: Pipeline) -> None:
    out = orders.root / "out" / "orders"

    # when: a snapshot, then changes
    assert orders.send("orders.files") == 3
    orders.execute(SECOND)
    batch = orders.due("orders.files")
    assert orders.send("orders.files", batch) == 3

    # then
    assert lines(out / "batch=1") == [
        '{"_op":"upsert","id":1,"name":"Ann","amount":1.50,"at":"2026-06-10T12:00:00.000Z"}',
        '{"_op":"upsert","id":2,"name":"Bob","amount":null,"at":null}',
        '{"_op":"upsert","id":3,"name":"Bob","amount":3.00,"at":null}',
    ]
    second = [
        '{"_op":"delete","id":1,"name":null,"amount":null,"at":null}',
        '{"_op":"upsert","id":2,"name":"Bo","amount":null,"at":null}',
        '{"_op":"upsert","id":4,"name":"Dan","amount":null,"at":null}',
    ]
    assert lines(out / "batch=2") == second
    assert (out / "batch=2" / "_SUCCESS").exists()

    # when: the same batch again, as after a kill behind it
    before = state(out / "batch=2")
    assert orders.send("orders.files", batch) == 3
    assert state(out / "batch=2") == before, "a batch that is complete is left alone"

    # when: the same batch again, as after a kill in the middle of it
    (out / "batch=2" / "_SUCCESS").unlink()
    (out / "batch=2" / "part-half.json").write_text('{"_op":"upsert","id":2', "utf-8")
    orders.execute("DELETE FROM orders WHERE id = 2")  # later rows don't come into it
    assert orders.send("orders.files", batch) == 3
    assert lines(out / "batch=2") == second
    assert (out / "batch=2" / "_SUCCESS").exists()

    # then: a sink that knows of no batch numbers its own behind these
    assert orders.engine.last_batch(orders.program, orders.program.sinks["orders.files"]) == 2
    assert orders.engine.last_batch(orders.program, orders.program.sinks["names.bag"]) == 0
    assert orders.engine.last_batch(orders.program, orders.program.sinks["orders.copy"]) == 0


def test_an_unkeyed_sink_gets_rows_that_came_and_went_as_often_as_they_did(
    orders: Pipeline,
) -> None:
    out = orders.root / "out" / "names"
    orders.refresh("names")
    assert orders.send("names.bag") == 3
    assert lines(out / "batch=1") == ["_op,name", "insert,Ann", "insert,Bob", "insert,Bob"]

    # when: one of two Bobs is called Bo, Ann goes, Dan comes
    orders.execute(SECOND)
    orders.refresh("names")
    assert orders.send("names.bag") == 4
    assert lines(out / "batch=2") == [
        "_op,name",
        "delete,Ann",
        "delete,Bob",
        "insert,Bo",
        "insert,Dan",
    ]

    # when: it is computed again and nothing differs
    begun = len(orders.begun)
    orders.refresh("names")
    assert orders.send("names.bag") == 0
    assert len(orders.begun) == begun
    assert not (out / "batch=3").exists()

    # when: its query has another column, every row is another row
    orders.use(SQL.replace("SELECT name FROM", "SELECT id, name FROM"))
    orders.refresh("names")
    assert orders.send("names.bag") == 6
    assert lines(out / "batch=4") == [
        "_op,id,name",
        "delete,,Bo",
        "delete,,Bob",
        "delete,,Dan",
        "insert,2,Bo",
        "insert,3,Bob",
        "insert,4,Dan",
    ]


def test_a_whole_batch_has_every_row_and_what_is_gone(orders: Pipeline) -> None:
    # given
    out = orders.root / "out"
    orders.refresh("names")
    assert (orders.send("orders.files"), orders.send("names.bag")) == (3, 3)
    orders.execute("DELETE FROM orders WHERE id = 1")
    orders.refresh("names")

    # when
    keyed = orders.send("orders.files", replace(orders.due("orders.files"), is_whole=True))
    unkeyed = orders.send("names.bag", replace(orders.due("names.bag"), is_whole=True))

    # then
    assert (keyed, unkeyed) == (3, 5)
    assert [line[:24] for line in lines(out / "orders" / "batch=2")] == [
        '{"_op":"delete","id":1,"',
        '{"_op":"upsert","id":2,"',
        '{"_op":"upsert","id":3,"',
    ]
    assert lines(out / "names" / "batch=2") == [
        "_op,name",
        "delete,Ann",
        "delete,Bob",
        "delete,Bob",
        "insert,Bob",
        "insert,Bob",
    ]


@pytest.mark.parametrize("kind", ["avro", "orc", "parquet"])
def test_files_of_other_formats_hold_the_same_rows(
    orders: Pipeline, spark: SparkSession, kind: str
) -> None:
    orders.use(
        SQL.replace("USING json OPTIONS (path 'out/orders')", f"USING {kind} OPTIONS (path 'x')")
    )
    assert orders.send("orders.files") == 3
    found = spark.read.format(kind).load(str(orders.root / "x" / "batch=1"))
    rows = sorted((row["_op"], row["id"], row["name"]) for row in found.collect())
    assert rows == [("upsert", 1, "Ann"), ("upsert", 2, "Bob"), ("upsert", 3, "Bob")]


def test_rows_with_one_key_or_none_are_refused_before_anything_is_sent(orders: Pipeline) -> None:
    orders.refresh("names")
    with pytest.raises(EngineError) as raised:
        orders.send("names.wrong")
    assert raised.value.message == "several rows of `names` have one key: name = 'Bob'"
    assert "names one row" in (raised.value.hint or "")

    orders.execute("UPDATE orders SET name = NULL WHERE id = 2")
    orders.refresh("names")
    with pytest.raises(EngineError) as raised:
        orders.send("names.wrong")
    assert raised.value.message == "a row of `names` has no value in its key (name)"

    # only one of two rows with one key is new
    orders.execute("DELETE FROM orders WHERE id = 2")
    orders.refresh("names")
    assert orders.send("names.wrong") == 2
    orders.execute("INSERT INTO orders VALUES (5, 'Ann', NULL, NULL), (6, 'Eve', NULL, NULL)")
    orders.refresh("names")
    with pytest.raises(EngineError, match="have one key: name = 'Ann'"):
        orders.send("names.wrong")
    assert orders.begun == ["names.wrong"]
    assert [p.name for p in (orders.root / "out" / "wrong").iterdir()] == ["batch=1"]

    orders.refresh("totals")
    with pytest.raises(EngineError) as raised:
        orders.send("totals.lost")
    assert raised.value.message == "sink `totals.lost`: key column `nme` is no column of `totals`"
    assert raised.value.hint == "did you mean `name`?"


def table(spark: SparkSession, path: Path, order: str) -> list[tuple[Any, ...]]:
    """The rows of a Delta table, sorted."""
    return [
        tuple(row) for row in spark.read.format("delta").load(str(path)).orderBy(order).collect()
    ]


def test_a_keyed_sink_into_delta_keeps_the_table_equal_and_writes_each_batch_once(
    orders: Pipeline, spark: SparkSession
) -> None:
    out = orders.root / "out" / "copy"
    orders.send("orders.copy")
    orders.execute(SECOND)
    batch = orders.due("orders.copy")
    orders.send("orders.copy", batch)
    mine = (
        spark.read.format("delta")
        .load(str(out))
        .limit(1)
        .selectExpr("9 AS id", "'mine' AS name", "amount", "at")
    )
    mine.write.format("delta").mode("append").save(str(out))
    kept = [(2, "Bo"), (3, "Bob"), (4, "Dan"), (9, "mine")]
    assert [row[:2] for row in table(spark, out, "id")] == kept

    # when: the same batch again
    spark.sql(f"UPDATE delta.`{out}` SET name = 'theirs' WHERE id = 4")
    orders.send("orders.copy", batch)
    assert table(spark, out, "id")[2][1] == "theirs", "Delta knows the batch and skips it"

    # when: the relation has another column
    orders.use(SQL.replace("at TIMESTAMP)", "at TIMESTAMP, note STRING)"))
    orders.engine.alter_table(orders.table("orders"), "orders", (), orders.mark())
    orders.note("orders", orders.warehouse.written("orders"))
    orders.execute("UPDATE orders SET note = 'new' WHERE id = 2")
    assert orders.send("orders.copy") == 3
    found = spark.read.format("delta").load(str(out)).orderBy("id")
    assert found.columns == ["id", "name", "amount", "at", "note"]
    assert [(r["name"], r["note"]) for r in found.collect()] == [
        ("Bo", "new"),
        ("Bob", None),
        ("Dan", None),
        ("mine", None),
    ]


def test_an_unkeyed_sink_into_delta_appends_each_batch_once(
    orders: Pipeline, spark: SparkSession
) -> None:
    out = orders.root / "out" / "log"
    orders.send("orders.log")
    orders.execute(SECOND)
    batch = orders.due("orders.log")
    assert orders.send("orders.log", batch) == 4
    orders.send("orders.log", batch)
    rows = spark.read.format("delta").load(str(out)).collect()
    assert sorted((r["_batch"], r["_op"], r["id"], r["name"]) for r in rows) == [
        (1, "insert", 1, "Ann"),
        (1, "insert", 2, "Bob"),
        (1, "insert", 3, "Bob"),
        (2, "delete", 1, "Ann"),
        (2, "delete", 2, "Bob"),
        (2, "insert", 2, "Bo"),
        (2, "insert", 4, "Dan"),
    ]


def test_a_secret_is_in_no_error_of_a_sink(spark: SparkSession, tmp_path: Path) -> None:
    blocked = tmp_path / "s3cret-file"
    blocked.write_text("no folder", "utf-8")
    pipeline = Pipeline(spark, tmp_path, {"PLACE": str(blocked)})
    pipeline.use(SQL)
    pipeline.create("orders")
    pipeline.execute(FIRST)
    with pytest.raises(EngineError) as raised:
        pipeline.send("orders.secret")
    told = "".join(traceback.format_exception(raised.value))
    assert raised.value.message.startswith("sink `orders.secret`: ")
    assert str(raised.value.location) == "pipeline/school.sql:11:1"
    assert "s3cret" not in told

    without = Pipeline(spark, tmp_path / "other")
    without.use(SQL)
    without.create("orders")
    without.execute(FIRST)
    with pytest.raises(EngineError) as raised:
        without.send("orders.secret")
    assert raised.value.message == (
        "sink `orders.secret`: the environment variable PLACE is not set"
    )
    assert raised.value.hint == "export PLACE=..."
    assert without.begun == []
