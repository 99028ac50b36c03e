"""Flink's stateless statements with carried-over offsets: a filter, a router, a per-row
transformation with a function and an expansion, each changed so that no row is lost or comes
twice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.planning.explain import describe_action
from tests.stories.school import make_project, rows, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlmig.commands import Project

pytestmark = pytest.mark.example

ORDERS = """\
CREATE TABLE orders (
  id INT, status STRING,
  products ARRAY<STRUCT<product_id: INT, category: STRING, quantity: INT, unit_price: DOUBLE>>
);
"""
BEFORE = """\
CREATE STREAMING TABLE shipped_orders AS SELECT * FROM STREAM orders WHERE status = 'shipped';
CREATE STREAMING TABLE cancelled_orders AS SELECT * FROM STREAM orders WHERE status = 'cancelled';
CREATE STREAMING TABLE other_orders AS
SELECT * FROM STREAM orders WHERE status NOT IN ('shipped', 'cancelled');

CREATE FUNCTION to_minor_currency(price DOUBLE) RETURNS BIGINT RETURN CAST(price * 100 AS BIGINT);
CREATE STREAMING TABLE ordered_products AS
SELECT o.id, p.product_id, to_minor_currency(p.unit_price) AS price
FROM STREAM orders AS o LATERAL VIEW explode(o.products) AS p;
"""
AFTER = """\
CREATE STREAMING TABLE shipped_orders AS
SELECT * FROM STREAM orders WHERE lower(status) = 'shipped';
CREATE STREAMING TABLE cancelled_orders AS SELECT * FROM STREAM orders WHERE status = 'cancelled';
CREATE STREAMING TABLE returned_orders AS SELECT * FROM STREAM orders WHERE status = 'returned';
CREATE STREAMING TABLE other_orders AS
SELECT * FROM STREAM orders
WHERE status NOT IN ('returned', 'cancelled') AND lower(status) <> 'shipped';

CREATE FUNCTION to_minor_currency(price DOUBLE) RETURNS BIGINT
RETURN CAST(round(price * 100) AS BIGINT);
CREATE STREAMING TABLE ordered_products AS
SELECT o.id, p.product_id, to_minor_currency(p.unit_price) AS price, p.quantity
FROM STREAM orders AS o LATERAL VIEW explode(o.products) AS p;
"""


def order(project: Project, number: int, status: str, *products: tuple[int, int, float]) -> str:
    """An order as values: products are number, quantity and price."""
    listed = ", ".join(
        f"named_struct('product_id', {product}, 'category', 'c', 'quantity', {quantity}, "
        f"'unit_price', CAST({price} AS DOUBLE))"
        for product, quantity, price in products
    )
    return f"({number}, '{status}', array({listed}))"


def ids(project: Project, *tables: str) -> list[list[int]]:
    """The numbers of the orders in each table."""
    union = " UNION ALL ".join(f"SELECT '{name}' AS name, id FROM {name}" for name in tables)
    found = rows(project, f"{union} ORDER BY id")
    return [[row["id"] for row in found if row["name"] == name] for name in tables]


@pytest.mark.timeout(600)
def test_a_changed_filter_router_and_transformation_go_on_exactly_where_they_stopped(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project = make_project(tmp_path, {"all.sql": ORDERS + BEFORE}, name="orders")
    commands.revision(project, "v1", rev_id="v1")
    commands.upgrade(project, "head")
    values = [
        order(project, 1, "shipped", (10, 2, 1.5), (11, 1, 0.29)),
        order(project, 2, "Shipped"),
        order(project, 3, "returned"),
    ]
    commands.execute(project, f"INSERT INTO orders VALUES {', '.join(values)}")
    commands.run(project)
    # these come before the change, and no tick has seen them
    values = [order(project, 4, "shipped", (10, 1, 2.0)), order(project, 5, "cancelled")]
    commands.execute(project, f"INSERT INTO orders VALUES {', '.join(values)}")

    # when
    write_pipeline(tmp_path, {"all.sql": ORDERS + AFTER})
    commands.revision(project, "v2", rev_id="v2")
    words = [describe_action(step.action) for step in commands.make_plan(project).steps]
    assert [word for word in words if "in place" in word or "bootstrap" in word] == [
        "continue `ordered_products` in place",
        "continue `other_orders` in place",
        "bootstrap `returned_orders`",
        "continue `shipped_orders` in place",
    ]
    commands.upgrade(project, "head")
    values = [
        order(project, 6, "Shipped", (12, 3, 0.29)),
        order(project, 7, "returned"),
        order(project, 8, "new"),
    ]
    commands.execute(project, f"INSERT INTO orders VALUES {', '.join(values)}")
    commands.run(project)

    # then: a table that is new begins with the earliest row, the others go on where they stopped
    tables = ("shipped_orders", "cancelled_orders", "returned_orders", "other_orders")
    assert ids(project, *tables) == [[1, 4, 6], [5], [3, 7], [2, 3, 8]]
    # 0.29 * 100 is a little less than 29: v1 cut it off, v2 rounds
    found = rows(project, "SELECT * FROM ordered_products ORDER BY id, product_id")
    assert [tuple(row.values()) for row in found] == [
        (1, 10, 150, None),
        (1, 11, 28, None),
        (4, 10, 200, None),
        (6, 12, 29, 3),
    ]
