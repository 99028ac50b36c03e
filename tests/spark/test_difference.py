"""The changes between two contents: the change feed and the comparison of all rows say the same."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig.errors import EngineError
from sqlmig.ledger.sink_state import PinnedContents
from sqlmig.spark.difference import COUNT, changes, is_fed
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SQL = """
CREATE TABLE plain (id INT, name STRING, tags MAP<STRING, INT>, x DOUBLE);
CREATE TABLE keyed (id INT PRIMARY KEY, name STRING);
CREATE TABLE other (id INT PRIMARY KEY, name STRING);
CREATE MATERIALIZED VIEW v AS SELECT id, name FROM keyed;
"""


def bag(frame: DataFrame) -> Counter[str]:
    """Rows as text, with how often they came."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    found: Counter[str] = Counter()
    for row in rows:
        found[text(row)] += row.get(COUNT, 1)
    assert all(found.values())
    return found


def text(row: dict[str, Any]) -> str:
    return repr(sorted((name, repr(value)) for name, value in row.items() if name != COUNT))


def read(spark: SparkSession, pipeline: Pipeline, at: PinnedContents) -> Counter[str]:
    path = pipeline.warehouse.table_path(at.folder)
    return bag(spark.read.format("delta").option("versionAsOf", at.version).load(path))


def difference(before: Counter[str], after: Counter[str]) -> Counter[str]:
    """By hand: how often each row came, or went."""
    found = Counter(after)
    found.subtract(before)
    return Counter({row: count for row, count in found.items() if count})


WRITES = {
    "plain": [
        "INSERT INTO plain VALUES (1, 'a', map('k', 1), 1.5), (1, 'a', map('k', 1), 1.5), "
        "(2, NULL, NULL, double('NaN')), (3, 'c', map(), NULL)",
        "DELETE FROM plain WHERE id = 3",
        "UPDATE plain SET name = 'b' WHERE id = 2",
        "INSERT INTO plain VALUES (1, 'a', map('k', 1), 1.5), (3, 'c', map(), NULL)",
        "UPDATE plain SET name = NULL WHERE id = 2",
        "DELETE FROM plain WHERE id = 1",
    ],
    "keyed": [
        "INSERT INTO keyed VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "INSERT INTO keyed VALUES (2, 'B'), (4, 'd')",
        "MERGE INTO keyed AS k USING (SELECT 3 AS id UNION ALL SELECT 4) AS s ON k.id = s.id "
        "WHEN MATCHED AND k.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'D'",
        "INSERT INTO keyed VALUES (2, 'b'), (3, 'c')",
    ],
}


@pytest.mark.parametrize("table", WRITES)
def test_the_feed_and_the_comparison_of_all_rows_give_the_same_between_any_two_versions(
    pipeline: Pipeline, spark: SparkSession, table: str
) -> None:
    # given
    pipeline.use(SQL)
    pipeline.create(table)
    points = [pipeline.contents(table)]
    for sql in WRITES[table]:
        pipeline.execute(sql)
        points.append(pipeline.contents(table))
    rows = [read(spark, pipeline, at) for at in points]
    session = spark.newSession()
    last = len(points) - 1

    for before, after in [(0, last), (1, last - 1)]:
        expected = difference(rows[before], rows[after])
        assert expected, "something differs"
        one, other = points[before], points[after]
        columns = list(
            session.read.format("delta").load(pipeline.warehouse.table_path(table)).columns
        )
        assert is_fed(pipeline.warehouse, one, other, columns)

        # when, then
        assert bag(changes(session, pipeline.warehouse, one, other)) == expected
        compared = changes(session, pipeline.warehouse, one, other, may_use_feed=False)
        assert bag(compared) == expected
    backwards = changes(session, pipeline.warehouse, points[last], points[1])
    assert bag(backwards) == difference(rows[last], rows[1])
    assert bag(changes(session, pipeline.warehouse, None, points[last])) == rows[last]


def test_what_the_feed_does_not_tell_is_compared_as_a_whole(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    """Between them: a restored version, an altered table, another folder, a view's overwrite."""
    pipeline.use(SQL)
    pipeline.create("keyed", "other")
    warehouse = pipeline.warehouse
    pipeline.execute("INSERT INTO keyed VALUES (1, 'a'), (2, 'b')")
    one = pipeline.contents("keyed")
    pipeline.refresh("v")
    view = pipeline.contents("v")
    pipeline.execute("INSERT INTO keyed VALUES (2, 'B')")
    restored = warehouse.restore("keyed", one.version)
    assert restored is not None
    pipeline.note("keyed", restored)
    pipeline.execute("INSERT INTO keyed VALUES (3, 'c')")
    two = pipeline.contents("keyed")
    session = spark.newSession()
    names = ["id", "name"]

    # a restored version lies between
    assert not is_fed(warehouse, one, two, names)
    assert sorted(bag(changes(session, warehouse, one, two)).values()) == [1]

    # another folder
    pipeline.execute("INSERT INTO other VALUES (2, 'b'), (3, 'c')")
    other = pipeline.contents("other")
    assert not is_fed(warehouse, two, other, names)
    assert list(bag(changes(session, warehouse, two, other)).values()) == [-1]

    # a view, which has no feed
    pipeline.refresh("v")
    assert not is_fed(warehouse, view, pipeline.contents("v"), names)
    assert sorted(bag(changes(session, warehouse, view, pipeline.contents("v"))).values()) == [1]

    # another shape: every row is another row
    altered = SQL.replace("(id INT PRIMARY KEY, name STRING)", "(id INT PRIMARY KEY, n INT)", 1)
    pipeline.use(altered)
    pipeline.engine.alter_table(pipeline.table("keyed"), "keyed", (), pipeline.mark())
    pipeline.note("keyed", warehouse.written("keyed"))
    three = pipeline.contents("keyed")
    assert not is_fed(warehouse, two, three, ["id", "n"])
    found = changes(session, warehouse, two, three)
    assert found.columns == ["id", "n", COUNT, "name"]
    assert sorted(bag(found).values()) == [-1, -1, -1, 1, 1, 1]

    # contents that retention has removed
    with pytest.raises(EngineError) as raised:
        changes(session, warehouse, PinnedContents("keyed", 99, "keyed@99"), three)
    assert raised.value.message == (
        "version 99 of the table in folder `keyed` can't be read any more"
    )
    assert "starts it anew" in (raised.value.hint or "")
