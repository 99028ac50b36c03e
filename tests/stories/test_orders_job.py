"""Upsolver's orders job, v1 to v2: the old logic ends and the new one begins at one time, without
and with a correction of what was put out, into a keyed and an unkeyed table."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig import commands
from sqlmig.errors import BlockedError
from sqlmig.planning.explain import describe_action
from tests.stories.school import make_project, rows, with_hook, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlmig.commands import Project

pytestmark = pytest.mark.example

JOB = """\
CREATE TABLE orders_raw (
  orderid INT, ordertype STRING, nettotal DECIMAL(10, 2), ordered_at TIMESTAMP,
  customer STRUCT<firstname: STRING, lastname: STRING, email: STRING>
);
CREATE STREAMING TABLE orders_transformed AS
SELECT orderid AS order_id, MD5(customer.email) AS customer_id,
  {name} AS customer_name, nettotal AS total, ordered_at
FROM STREAM orders_raw
WHERE {condition};
CREATE SINK by_order FROM orders_transformed USING delta OPTIONS (path 'out/keyed', key 'order_id');
CREATE SINK log FROM orders_transformed USING delta OPTIONS (path 'out/unkeyed');
"""
FULL = "customer.firstname || ' ' || customer.lastname"
V1 = JOB.format(name=FULL, condition="ordertype = 'SHIPPING'")
V2 = JOB.format(name=FULL, condition="UPPER(ordertype) = 'SHIPPING'")
V3 = JOB.format(name="customer.lastname", condition="UPPER(ordertype) = 'SHIPPING'")


def order(project: Project, *orders: tuple[int, str, str]) -> None:
    """Orders come in: number, type, day."""
    values = ", ".join(
        f"({number}, '{kind}', {number * 10}, TIMESTAMP '{day} 12:00:00', "
        f"named_struct('firstname', 'Ann', 'lastname', 'Lee', 'email', 'ann@example.org'))"
        for number, kind, day in orders
    )
    commands.execute(project, f"INSERT INTO orders_raw VALUES {values}")


def transformed(project: Project) -> list[tuple[int, str]]:
    """Order and customer's name, as the job has them."""
    found = rows(project, "SELECT * FROM orders_transformed ORDER BY order_id")
    return [(row["order_id"], row["customer_name"]) for row in found]


def put_out(spark: SparkSession, root: Path, name: str) -> list[tuple[Any, ...]]:
    """Order, customer's name and, where there is one, the operation, as they lie in a table."""
    frame = spark.read.format("delta").load(str(root / "out" / name))
    columns = ["order_id", "customer_name", *(["_op"] if "_op" in frame.columns else [])]
    return sorted(tuple(row) for row in frame.select(*columns).collect())


@pytest.mark.timeout(600)
def test_one_job_ends_where_the_next_one_begins_and_corrects_what_was_put_out(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project = make_project(tmp_path, {"all.sql": V1}, name="orders")
    commands.revision(project, "v1", rev_id="v1")
    commands.upgrade(project, "head")
    deployed = datetime.now(timezone.utc)
    order(project, (9, "shipping", "2022-09-10"), (1, "SHIPPING", "2022-09-16"))
    order(project, (2, "Shipping", "2022-09-17"))
    commands.run(project)
    end_at = datetime.now(timezone.utc)
    order(project, (3, "SHIPPING", "2022-09-18"), (4, "shipping", "2022-09-18"))
    commands.run(project)  # under v1, although the time has come
    order(project, (5, "PICKUP", "2022-09-18"), (6, "Shipping", "2022-09-18"))
    assert transformed(project) == [(1, "Ann Lee"), (3, "Ann Lee")]

    # when v2 counts from a time on that has passed, and nothing is corrected
    write_pipeline(tmp_path, {"all.sql": V2})
    commands.revision(project, "v2", rev_id="v2")
    plan = commands.make_plan(project, at=end_at)
    words = [describe_action(step.action) for step in plan.steps[2:4]]
    assert words == [
        f"take in rows for `orders_transformed` until {end_at:%Y-%m-%d %H:%M:%S.%f} UTC",
        "continue `orders_transformed` in place",
    ]
    commands.upgrade(project, "head", at=end_at)
    commands.run(project)
    # then v1 has what came before, v2 what came since: 2 and 9 came before
    numbers = (1, 3, 4, 6)
    assert transformed(project) == [(n, "Ann Lee") for n in numbers]
    assert put_out(spark, tmp_path, "keyed") == [(n, "Ann Lee") for n in numbers]
    assert put_out(spark, tmp_path, "unkeyed") == [(n, "Ann Lee", "insert") for n in numbers]

    # when v3 corrects what was ordered from the 17th on
    write_pipeline(tmp_path, {"all.sql": V3})
    hook = 'op.backfill("orders_transformed", since="2022-09-17", column="ordered_at")'
    project = with_hook(project, "v3", hook)
    with pytest.raises(BlockedError, match=r"is backfilled .*, so no time parts its rows"):
        commands.upgrade(project, "head", at=datetime.now(timezone.utc))
    with pytest.raises(BlockedError, match="when revision v2 was deployed: other queries were in"):
        commands.upgrade(project, "head", at=deployed)
    commands.upgrade(project, "head")
    commands.run(project)
    # then the key's values are written over, and where there is none, old goes and new comes
    right = [(1, "Ann Lee"), (2, "Lee"), (3, "Lee"), (4, "Lee"), (6, "Lee")]
    assert transformed(project) == right
    assert put_out(spark, tmp_path, "keyed") == right
    assert put_out(spark, tmp_path, "unkeyed") == sorted(
        [(n, "Ann Lee", "insert") for n in numbers]
        + [(n, "Ann Lee", "delete") for n in (3, 4, 6)]
        + [(n, "Lee", "insert") for n in (2, 3, 4, 6)]
    )
