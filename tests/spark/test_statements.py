"""INSERT, UPDATE, DELETE and MERGE on input tables: one commit each, made once."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig.errors import EngineError
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE TABLE people (id INT, name STRING DEFAULT 'nobody', code VARCHAR(3), PRIMARY KEY (id));
CREATE TABLE log (at DATE, n DECIMAL(5,2) DEFAULT 1.5, ok BOOLEAN);
CREATE VIEW named AS SELECT id FROM people WHERE name <> 'nobody';
CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM log;
"""


@pytest.fixture(scope="module")
def shared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    pipeline = Pipeline(spark, tmp_path_factory.mktemp("statements"))
    pipeline.use(SQL)
    pipeline.create()
    return pipeline


@pytest.fixture
def pipeline(shared: Pipeline) -> Iterator[Pipeline]:
    """The shared pipeline, its tables put back to empty."""
    yield shared
    for name in ("people", "log"):
        if shared.states[name].version:
            written = shared.warehouse.restore(name, 0)
            assert written is not None
            shared.note(name, written)


def test_a_keyed_table_keeps_the_last_row_of_each_key(pipeline: Pipeline) -> None:
    # when: within one statement, and then across statements
    pipeline.execute("INSERT INTO people VALUES (1, 'a', 'x'), (2, 'b', 'x'), (1, 'c', 'y')")
    first = pipeline.rows("SELECT * FROM people ORDER BY id")
    written = pipeline.execute("INSERT INTO people (id) VALUES (2), (3)")

    # then
    assert first == [(1, "c", "y"), (2, "b", "x")], "the last of VALUES wins"
    assert pipeline.rows("SELECT * FROM people ORDER BY id") == [
        (1, "c", "y"),
        (2, "nobody", None),
        (3, "nobody", None),
    ], "later rows replace; what is left out has its default"
    assert (written.rows, written.written) == (3, 2)


def test_an_unkeyed_table_appends_and_casts(pipeline: Pipeline) -> None:
    # when
    pipeline.execute("INSERT INTO log VALUES ('2026-01-02', 3, true), (NULL, DEFAULT, NULL)")
    pipeline.execute("INSERT INTO log (ok, at) SELECT ok, at FROM log WHERE ok")

    # then
    assert pipeline.rows("SELECT * FROM log ORDER BY n, ok") == [
        (None, Decimal("1.50"), None),
        ("2026-01-02", Decimal("1.50"), True),
        ("2026-01-02", Decimal("3.00"), True),
    ]


def test_a_statement_is_one_commit_and_is_made_once(pipeline: Pipeline) -> None:
    # given
    mark = pipeline.mark()
    first = pipeline.execute("INSERT INTO log (n) VALUES (1), (2)", mark)

    # when
    again = pipeline.execute("INSERT INTO log (n) VALUES (1), (2)", mark)

    # then
    assert again == first
    assert first.written == 2
    assert pipeline.rows("SELECT count(*) FROM log") == [(2,)]
    assert pipeline.warehouse.find_mark("log", mark.run, mark.step) == first.version


def test_update_delete_and_merge_work_on_the_newest_rows(pipeline: Pipeline) -> None:
    # given
    pipeline.execute("INSERT INTO people VALUES (1, 'a', NULL), (2, 'b', NULL), (3, 'c', NULL)")

    # when
    updated = pipeline.execute("UPDATE people SET name = DEFAULT WHERE people.id = 2")
    pipeline.execute("DELETE FROM people p WHERE p.id = 3")
    pipeline.execute(
        "MERGE INTO people USING (SELECT id + 10 AS id FROM named) s ON people.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')"
    )
    nothing = pipeline.execute("DELETE FROM people WHERE id = 99")

    # then
    assert pipeline.rows("SELECT id, name FROM people ORDER BY id") == [
        (1, "a"),
        (2, "nobody"),
        (11, "new"),
    ]
    assert updated.written == 1
    assert nothing.written == 0


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("INSERT INTO total VALUES (1)", "`total` is a materialized view"),
        ("INSERT INTO log (m) VALUES (1)", "`log` has no column `m`"),
        ("INSERT INTO log VALUES (1, 2, 3, 4)", "`log` takes 3 values here, a row has 4"),
        ("INSERT INTO log (ok) VALUES (1)", "`log.ok`: a value of type int can't be stored"),
        ("INSERT INTO log (n) VALUES (1000)", "`log.n`: '1000' is no decimal(5,2)"),
        ("INSERT INTO log (at) VALUES ('2026-02-30')", "`log.at`: '2026-02-30' is no date"),
        ("INSERT INTO people (name) VALUES ('x')", "`people.id` may not be NULL"),
        ("INSERT INTO people VALUES (NULL, 'x', 'x')", "`people`: `id` may not be NULL"),
        ("INSERT INTO people VALUES (1, 'x', 'long')", "longer than varchar(3) allows"),
        ("INSERT INTO log (n, n) VALUES (1, 2)", "column `n` is given twice"),
        ("INSERT INTO log (n) SELECT x FROM people", "there is no column `x`"),
        ("UPDATE people SET id = 2", "`people.id` is a key and can't be updated"),
        ("DELETE FROM log WHERE n IN (SELECT id FROM people)", "subqueries are not supported"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_column_and_writes_nothing(
    shared: Pipeline, sql: str, message: str
) -> None:
    # given
    before = {n: shared.warehouse.version(n) for n in ("people", "log")}

    # when
    with pytest.raises(EngineError) as caught:
        shared.execute(sql)

    # then
    assert message in caught.value.message
    assert "\n" not in caught.value.message, "one line"
    assert {n: shared.warehouse.version(n) for n in before} == before, "nothing was written"


def test_a_hooks_function_reads_and_writes_and_may_be_called_again(pipeline: Pipeline) -> None:
    # given
    seen: list[Any] = []

    def fill(context: Any) -> None:
        context.execute("INSERT INTO log (n) VALUES (1)")
        seen.append(context.sql("SELECT count(*) AS n FROM log"))
        seen.append(context.spark.table("log").count())

    # when: the process died in it, and it is called again
    mark = pipeline.mark()
    pipeline.engine.call(pipeline.program, fill, pipeline.states, mark)
    pipeline.engine.call(pipeline.program, fill, pipeline.states, mark)
    pipeline.note("log", pipeline.warehouse.written("log"))

    # then
    assert seen == [[{"n": 1}], 1, [{"n": 1}], 1], "the statement was made once"
