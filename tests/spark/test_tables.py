"""Input tables in Delta: made, altered with their rows, emptied; each again after a death."""

from __future__ import annotations

import pytest

from sqlmig.errors import EngineError
from tests.spark.pipelines import Pipeline

BEFORE = "CREATE TABLE t (id INT NOT NULL, name STRING COMMENT 'as called', gone INT, n INT)"


def test_a_table_is_made_with_its_properties_and_again_empty(pipeline: Pipeline) -> None:
    # given
    pipeline.use(
        "CREATE TABLE t (id INT, `on sale` DECIMAL(5,2), PRIMARY KEY (id)) COMMENT 'it''s'"
    )
    mark = pipeline.mark()
    first = pipeline.engine.create_table(pipeline.table("t"), "t", mark)

    # when: the process died, and makes it again
    again = pipeline.engine.create_table(pipeline.table("t"), "t", mark)

    # then
    assert again == first, "nothing more to do"
    made = pipeline.warehouse.describe("t")
    assert [(c.name, c.type, c.nullable) for c in made.columns] == [
        ("id", "int", False),
        ("on sale", "decimal(5,2)", True),
    ]
    assert made.comment == "it's"
    assert made.properties["delta.enableChangeDataFeed"] == "true"
    assert made.properties["delta.deletedFileRetentionDuration"] == "interval 30 days"

    # when: an aborted plan left another table with rows in the folder
    pipeline.note("t", first)
    pipeline.execute("INSERT INTO t VALUES (1, 2.5)")
    pipeline.use("CREATE TABLE t (id STRING, other INT NOT NULL)")
    pipeline.create()

    # then
    left = pipeline.warehouse.describe("t")
    assert [(c.name, c.type) for c in left.columns] == [("id", "string"), ("other", "int")]
    assert pipeline.states["t"].rows == 0, "it is empty"
    with pytest.raises(EngineError) as caught:
        pipeline.execute("INSERT INTO t (id, other) VALUES ('a', NULL)")
    assert caught.value.message == "`t`: `other` may not be NULL"


def test_alterations_keep_the_rows_and_can_be_repeated(pipeline: Pipeline) -> None:
    # given
    pipeline.use(BEFORE)
    pipeline.create()
    pipeline.execute("INSERT INTO t VALUES (1, 'Ann', 7, 10), (2, 'Bob', 8, 20)")
    deployed = pipeline.states["t"]

    # when: columns are added, dropped, renamed, widened and put in another order
    pipeline.use(
        "CREATE TABLE t (n BIGINT, id INT, called STRING, "
        "since DATE DEFAULT '2026-01-01', rank INT NOT NULL DEFAULT 1 + 1, free STRING) "
        "COMMENT 'people'"
    )
    mark = pipeline.mark()
    first = pipeline.engine.alter_table(pipeline.table("t"), "t", [("name", "called")], mark)
    again = pipeline.engine.alter_table(pipeline.table("t"), "t", [("name", "called")], mark)
    pipeline.note("t", again)

    # then
    assert again == first, "the second run finds nothing to do"
    names, rows = pipeline.engine.query(
        pipeline.program, "SELECT * FROM t ORDER BY id", pipeline.states
    )
    assert list(names) == ["n", "id", "called", "since", "rank", "free"]
    assert [list(row.values()) for row in rows] == [
        [10, 1, "Ann", "2026-01-01", 2, None],
        [20, 2, "Bob", "2026-01-01", 2, None],
    ]
    altered = pipeline.warehouse.describe("t")
    assert altered.comment == "people"
    assert altered.columns[1].nullable, "NOT NULL is dropped"
    with pytest.raises(EngineError) as caught:
        pipeline.execute("UPDATE t SET rank = NULL")
    assert caught.value.message == "`t`: `rank` may not be NULL"

    # when: it is taken back; delta-rs can't write a table with widened types
    assert pipeline.warehouse.restore("t", deployed.version) is None
    back = pipeline.engine.restore("t", deployed.version, pipeline.mark())
    pipeline.use(BEFORE)
    pipeline.note("t", back)

    # then
    assert pipeline.rows("SELECT * FROM t ORDER BY id") == [
        (1, "Ann", 7, 10),
        (2, "Bob", 8, 20),
    ], "rows, names and types are those of before"


def test_two_columns_swap_their_names_though_the_step_runs_twice(pipeline: Pipeline) -> None:
    # given
    pipeline.use("CREATE TABLE t (a STRING, b STRING)")
    pipeline.create()
    pipeline.execute("INSERT INTO t VALUES ('was a', 'was b')")

    # when
    mark = pipeline.mark()
    swap = [("a", "b"), ("b", "a")]
    first = pipeline.engine.alter_table(pipeline.table("t"), "t", swap, mark)
    again = pipeline.note("t", pipeline.engine.alter_table(pipeline.table("t"), "t", swap, mark))

    # then
    assert again == first
    assert pipeline.rows("SELECT a, b FROM t") == [("was b", "was a")]


def test_an_emptied_table_gets_another_key_and_other_types(pipeline: Pipeline) -> None:
    # given
    pipeline.use("CREATE TABLE t (id INT, v INT)")
    pipeline.create()
    pipeline.execute("INSERT INTO t VALUES (1, 2), (3, 4)")
    before = pipeline.states["t"]

    # when
    pipeline.use("CREATE TABLE t (id STRING, v DATE, PRIMARY KEY (id))")
    mark = pipeline.mark()
    first = pipeline.engine.empty_table(pipeline.table("t"), "t", mark)
    again = pipeline.engine.empty_table(pipeline.table("t"), "t", mark)
    pipeline.note("t", again)

    # then
    assert first == again
    assert again.rows == 0
    pipeline.execute("INSERT INTO t VALUES ('a', '2026-01-02'), ('a', '2026-01-03')")
    assert pipeline.rows("SELECT * FROM t") == [("a", "2026-01-03")]

    # when
    back = pipeline.warehouse.restore("t", before.version, pipeline.mark())

    # then
    assert back is not None, "delta-rs puts rows and schema back"
    pipeline.use("CREATE TABLE t (id INT, v INT)")
    pipeline.note("t", back)
    assert pipeline.rows("SELECT * FROM t ORDER BY id") == [(1, 2), (3, 4)]


def test_rows_that_can_not_be_kept_are_an_error_not_a_loss(pipeline: Pipeline) -> None:
    # given
    pipeline.use("CREATE TABLE t (id STRING)")
    pipeline.create()

    # when
    pipeline.use("CREATE TABLE t (id INT)")
    with pytest.raises(EngineError) as caught:
        pipeline.engine.alter_table(pipeline.table("t"), "t", [], pipeline.mark())

    # then
    assert caught.value.message == "`t.id` can't become int, it is string"
    assert caught.value.hint == "run the command again: it makes a new plan, which casts the rows"


def test_order_comments_and_nullability_change_metadata_alone(pipeline: Pipeline) -> None:
    # given
    pipeline.use("CREATE TABLE t (a INT NOT NULL COMMENT 'x', b INT, PRIMARY KEY (a))")
    pipeline.create()
    pipeline.execute("INSERT INTO t VALUES (1, 2)")
    size = pipeline.states["t"].bytes

    # when: the key is dropped, too
    pipeline.use("CREATE TABLE t (b INT COMMENT 'y', a INT) COMMENT 'z'")
    mark = pipeline.mark()
    pipeline.note("t", pipeline.engine.alter_table(pipeline.table("t"), "t", [], mark))

    # then
    path = pipeline.warehouse.table_path("t")
    ours = [commit.operation for commit in pipeline.warehouse.commits(path) if commit.mark == mark]
    assert sorted(ours) == ["CHANGE COLUMN"] * 4 + ["SET TBLPROPERTIES"], "no row is written"
    altered = pipeline.warehouse.describe("t")
    assert [(c.name, c.nullable, c.comment) for c in altered.columns] == [
        ("b", True, "y"),
        ("a", True, ""),
    ]
    assert altered.comment == "z"
    assert (pipeline.states["t"].rows, pipeline.states["t"].bytes) == (1, size)
    assert pipeline.rows("SELECT b, a FROM t") == [(2, 1)]
