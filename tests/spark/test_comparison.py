"""Two sets of rows compared: by a key, by columns that happen to be one, as bags."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from sqlmig.planning.preview import Samples
from sqlmig.spark.comparison import compare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows(spark: SparkSession, names: str, *values: str) -> DataFrame:
    """Rows written in SQL."""
    return spark.sql(f"SELECT * FROM VALUES {', '.join(values)} AS t({names})")


def test_rows_with_a_key_are_added_removed_and_changed(spark: SparkSession) -> None:
    # given: a column of another type, one of another case, a map, a NULL as a key, a new column
    before = rows(
        spark,
        "id, name, tags, gone",
        "(1, 'a', map('k', 1), 0)",
        "(2, 'b', map('k', 1), 0)",
        "(3, 'c', NULL, 0)",
        "(NULL, 'n', NULL, 0)",
    )
    after = rows(
        spark,
        "ID, name, tags, more",
        "(1.0BD, 'a', map('k', 1), 9)",
        "(2.0BD, 'B', map('k', 2), 9)",
        "(4.5BD, 'd', NULL, 9)",
        "(NULL, 'n', NULL, 9)",
    )

    # when
    found = compare("r", "table", before, after, ("id",), samples=5)

    # then
    assert (found.added, found.removed, found.changed) == (1, 1, 1)
    assert (found.before, found.after, found.key) == (4, 4, ("ID",))
    assert (found.new_columns, found.lost_columns) == (("more",), ("gone",))
    assert found.samples == Samples(
        added=({"ID": Decimal("4.5"), "name": "d", "tags": None},),
        removed=({"id": 3, "name": "c", "tags": None},),
        changed=(
            (
                {"ID": 2, "name": "b", "tags": {"k": 1}},
                {"ID": Decimal("2.0"), "name": "B", "tags": {"k": 2}},
            ),
        ),
    )


def test_rows_without_a_key_cancel_out_one_by_one(spark: SparkSession) -> None:
    # given: no columns tell the rows apart, not even the key that was asked for
    before = rows(spark, "a, t", "(1, map('k', 1))", "(1, map('k', 1))", "(2, NULL)")
    after = rows(spark, "a, t", "(1, map('k', 1))", "(2, NULL)", "(2, NULL)", "(NULL, NULL)")

    # when
    found = compare("r", "view", before, after, ("a",), samples=1)

    # then
    assert (found.key, found.added, found.removed, found.changed) == ((), 2, 1, 0)
    assert found.samples.added == ({"a": None, "t": None},)
    assert found.samples.removed == ({"a": 1, "t": {"k": 1}},)


def test_what_is_only_on_one_side_is_counted(spark: SparkSession) -> None:
    some = rows(spark, "a, b", "(2, 'y')", "(1, 'x')")
    other = rows(spark, "c", "(5)")

    added = compare("r", "table", None, some, (), samples=1)
    assert (added.before, added.after, added.added) == (0, 2, 2)
    assert added.samples == Samples(added=({"a": 1, "b": "x"},))
    removed = compare("r", "table", some, None, (), samples=0)
    assert (removed.before, removed.after, removed.removed) == (2, 0, 2)
    assert removed.samples == Samples()
    nothing = compare("r", "table", None, None, (), samples=1)
    assert nothing.is_empty is True
    apart = compare("r", "table", some, other, (), samples=1)
    assert (apart.added, apart.removed) == (1, 2)
    assert (apart.new_columns, apart.lost_columns) == (("c",), ("a", "b"))
    same = compare("r", "table", some, some, (), samples=1)
    assert (same.is_empty, same.key) == (True, ("a",))
