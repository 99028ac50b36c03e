"""Delta tables as sources: what is appended to them, or their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sqlmig.errors import EngineError
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = "CREATE SOURCE feed INTO {table} USING delta OPTIONS (path 'lake/orders'{more});"


def test_appended_rows_are_read_once_and_a_change_of_others_is_told(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    # given
    orders = f"delta.`{pipeline.root}/lake/orders`"
    spark.sql(f"CREATE TABLE {orders} (id INT, amount DOUBLE, extra STRING) USING delta")
    spark.sql(f"INSERT INTO {orders} VALUES (1, 1.5, 'x'), (2, 2.5, 'y')")
    table = "CREATE TABLE orders (id BIGINT NOT NULL, amount DOUBLE, at DATE);"
    pipeline.use(table + FEED.format(table="orders", more=""))
    pipeline.create()

    # when
    first = pipeline.ingest("orders.feed")
    spark.sql(f"INSERT INTO {orders} VALUES (3, 3.5, 'z'), (NULL, 4.5, 'no id')")
    second = pipeline.ingest("orders.feed")
    idle = pipeline.ingest("orders.feed")

    # then
    assert (first.rows, second.rows, second.rejected, idle.rows) == (2, 1, 1, 0)
    assert pipeline.rows("SELECT id, amount, at FROM orders ORDER BY id") == [
        (1, 1.5, None),
        (2, 2.5, None),
        (3, 3.5, None),
    ]

    # when
    spark.sql(f"UPDATE {orders} SET amount = 9 WHERE id = 1")
    with pytest.raises(EngineError) as caught:
        pipeline.ingest("orders.feed")

    # then
    assert "rows of the Delta table were changed or deleted" in caught.value.message
    assert "readChangeFeed" in (caught.value.hint or "")
    assert str(caught.value.location) == "pipeline/school.sql:1:66"

    # when: changes are to be left out
    pipeline.use(table + FEED.format(table="orders", more=", skipChangeCommits true"))
    spark.sql(f"INSERT INTO {orders} VALUES (5, 5.5, '')")
    third = pipeline.ingest("orders.feed")

    # then
    assert third.rows == 1
    assert pipeline.rows("SELECT sum(amount) FROM orders") == [(1.5 + 2.5 + 3.5 + 5.5,)]


def test_the_change_feed_brings_updates_and_deletes_into_a_keyed_table(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    # given
    orders = f"delta.`{pipeline.root}/lake/orders`"
    spark.sql(
        f"CREATE TABLE {orders} (id INT, amount DOUBLE) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(f"INSERT INTO {orders} VALUES (1, 1.5), (2, 2.5), (3, 3.5)")
    pipeline.use(
        "CREATE TABLE orders (id BIGINT, amount DOUBLE, PRIMARY KEY (id));"
        + FEED.format(table="orders", more=", readChangeFeed true")
    )
    pipeline.create()

    # when
    pipeline.ingest("orders.feed")
    spark.sql(f"UPDATE {orders} SET amount = 9 WHERE id = 1")
    spark.sql(f"DELETE FROM {orders} WHERE id = 2")
    spark.sql(f"INSERT INTO {orders} VALUES (2, 7)")
    spark.sql(f"DELETE FROM {orders} WHERE id = 3")
    pipeline.ingest("orders.feed")

    # then
    assert pipeline.rows("SELECT * FROM orders ORDER BY id") == [(1, 9.0), (2, 7.0)]
