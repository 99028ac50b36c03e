"""ksqlDB's purchase_stats: evolved in place, and replaced, with the numbers worked out by hand.

An average can't be gone on with, so the materialized view counts and sums, and a view divides.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.errors import BlockedError
from sqlmig.planning.explain import describe_action, to_text
from tests.stories.school import make_project, rows, with_hook, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlmig.commands import Project

pytestmark = pytest.mark.example

PURCHASES = """\
CREATE TABLE purchases (product_id INT, name STRING, cost DOUBLE, quantity INT);
CREATE STREAMING TABLE valid_purchases AS SELECT * FROM STREAM purchases WHERE quantity > 0;
"""
TOTALS = """\
CREATE MATERIALIZED VIEW purchase_totals AS
SELECT product_id, COUNT(*) AS num_sales, SUM(cost * quantity) AS total
FROM valid_purchases{}
GROUP BY product_id;
CREATE VIEW purchase_stats AS
SELECT product_id, num_sales, total / num_sales AS average_sale FROM purchase_totals;
"""
AVERAGE = """\
CREATE MATERIALIZED VIEW purchase_totals AS
SELECT product_id, COUNT(*) AS num_sales, AVG(cost * quantity) AS total
FROM valid_purchases
GROUP BY product_id;
"""
SOLD = "\nWHERE cost > 0"
IN_PLACE = 'op.in_place("purchase_totals")'


def stats(project: Project) -> list[tuple[int, int, float]]:
    """Product, number of sales, average sale."""
    found = rows(project, "SELECT * FROM purchase_stats ORDER BY product_id")
    return [(r["product_id"], r["num_sales"], r["average_sale"]) for r in found]


def buy(project: Project, *purchases: str) -> None:
    """Let purchases come in, as values of a row each."""
    commands.execute(project, f"INSERT INTO purchases VALUES {', '.join(purchases)}")


@pytest.mark.timeout(600)
def test_refunds_that_were_counted_stay_counted_until_the_view_is_replaced(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project = make_project(tmp_path, {"all.sql": PURCHASES + TOTALS.format("")}, name="mart")
    commands.revision(project, "stats", rev_id="r1")
    commands.upgrade(project, "head")
    buy(project, "(1, 'tea', 2.5, 2)", "(1, 'tea', -2.5, 1)", "(2, 'cup', 4.0, 1)")
    commands.run(project)
    assert stats(project) == [(1, 2, 1.25), (2, 1, 4.0)]

    # when refunds count no more from now on: one came before, which no tick has seen
    buy(project, "(2, 'cup', -4.0, 1)")
    write_pipeline(tmp_path, {"all.sql": PURCHASES + TOTALS.format(SOLD)})
    project = with_hook(project, "r2", IN_PLACE)
    plan = commands.make_plan(project)
    words = [describe_action(step.action) for step in plan.steps]
    assert words[2:5] == [
        "take in rows for `valid_purchases`",
        "take in rows for `purchase_totals`",
        "continue `purchase_totals` in place",
    ]
    assert "taken       in place: `WHERE cost > 0` added; in place" in to_text(plan, verbose=True)
    commands.upgrade(project, "head")
    assert stats(project) == [(1, 2, 1.25), (2, 2, 0.0)]
    buy(project, "(1, 'tea', -2.5, 1)", "(1, 'tea', 3.5, 1)", "(3, 'pot', 7.0, 1)")
    commands.run(project)
    assert stats(project) == [(1, 3, 2.0), (2, 2, 0.0), (3, 1, 7.0)]
    relation = commands.status(project).relations["purchase_totals"]
    assert (relation["kind"], relation["is_historical"]) == ("materialized view", True)

    # when it is taken back after rows have come: the older query, over all of them
    commands.downgrade(project, "-1")
    assert stats(project) == [(1, 4, 0.875), (2, 2, 0.0), (3, 1, 7.0)]
    assert not commands.status(project).relations["purchase_totals"]["is_historical"]

    # when it goes on in place again, and is then replaced, as if refunds had never counted
    commands.upgrade(project, "head")
    assert stats(project) == [(1, 4, 0.875), (2, 2, 0.0), (3, 1, 7.0)]
    project = with_hook(project, "r3", 'op.rebuild("purchase_totals")', empty=True)
    commands.upgrade(project, "head")
    assert stats(project) == [(1, 2, 4.25), (2, 1, 4.0), (3, 1, 7.0)]
    assert not commands.status(project).relations["purchase_totals"]["is_historical"]

    # and an average in place is refused before anything is stopped, with what to write instead
    write_pipeline(tmp_path, {"all.sql": PURCHASES + AVERAGE})
    project = with_hook(project, "r4", IN_PLACE)
    with pytest.raises(BlockedError) as blocked:
        commands.upgrade(project, "head")
    assert "it has `total`, an average: of two averages, that of all rows can't be told" in str(
        blocked.value
    )
    assert blocked.value.hint == "write sum(...) and count(...), and divide them in a view over it"
