"""Streaming tables through the commands, on real Spark: each change in place, every row counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig import commands
from sqlmig.planning.explain import describe_action, to_markdown
from tests.stories.school import as_bag, make_project, rows, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlmig.commands import Project

pytestmark = pytest.mark.example

PURCHASES = "CREATE TABLE purchases (product_id INT, name STRING, cost DOUBLE, quantity INT);\n"
POPULAR = PURCHASES.replace("quantity INT", "quantity INT, popularity DOUBLE")
VALID = "CREATE STREAMING TABLE valid_purchases AS SELECT * FROM STREAM purchases WHERE {};\n"
COUNTED = """\
CREATE MATERIALIZED VIEW sold AS
SELECT product_id, count(*) AS sales FROM valid_purchases GROUP BY product_id;
"""


def change(project: Project, sql: str, name: str) -> None:
    """Let the pipeline be `sql`, by a revision that is deployed at once."""
    write_pipeline(project.root, {"all.sql": sql})
    commands.revision(project, name, rev_id=name)
    commands.upgrade(project, "head")


def bought(project: Project) -> list[tuple[Any, ...]]:
    """The valid purchases, as tuples in the order of product and cost."""
    found = rows(project, "SELECT * FROM valid_purchases ORDER BY product_id, cost")
    return [tuple(row.values()) for row in found]


@pytest.mark.timeout(600)
def test_purchases_are_filtered_otherwise_and_get_a_column_and_are_made_anew(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project = make_project(tmp_path, {"all.sql": ""}, name="mart")
    change(project, PURCHASES + VALID.format("cost > 0.00 AND quantity > 0") + COUNTED, "r1")
    commands.execute(
        project,
        "INSERT INTO purchases VALUES (1, 'tea', 2.5, 1), (2, 'cup', -4.0, 1), (3, 'pot', 7.0, 0)",
    )
    commands.run(project)
    assert bought(project) == [(1, "tea", 2.5, 1)]

    # when refunds become valid, what was refused stays so, and new ones come in
    commands.execute(project, "INSERT INTO purchases VALUES (4, 'old', -1.0, 1)")
    change(project, PURCHASES + VALID.format("quantity > 0") + COUNTED, "r2")
    commands.execute(project, "INSERT INTO purchases VALUES (2, 'cup', -4.5, 1)")
    commands.run(project)
    assert bought(project) == [(1, "tea", 2.5, 1), (2, "cup", -4.5, 1)]
    assert rows(project, "SELECT sales FROM sold ORDER BY product_id") == [
        {"sales": 1},
        {"sales": 1},
    ]
    relation = commands.status(project).relations["valid_purchases"]
    assert (relation["kind"], relation["is_historical"]) == ("streaming table", True)

    # when the purchases get a column, `*` has it at once
    write_pipeline(tmp_path, {"all.sql": POPULAR + VALID.format("quantity > 0") + COUNTED})
    commands.revision(project, "popularity", rev_id="r3")
    plan = commands.make_plan(project)
    words = [describe_action(step.action) for step in plan.steps]
    assert words[2:5] == [
        "take in rows for `valid_purchases`",
        "alter table `purchases`: add column `popularity double`",
        "continue `valid_purchases` in place",
    ]
    assert "its rows stay (historical)" in to_markdown(plan)
    commands.upgrade(project, "head")
    commands.execute(project, "INSERT INTO purchases VALUES (5, 'mug', 3.0, 2, 0.9)")
    commands.run(project)
    assert bought(project) == [
        (1, "tea", 2.5, 1, None),
        (2, "cup", -4.5, 1, None),
        (5, "mug", 3.0, 2, 0.9),
    ]

    # when it is taken back after a row has passed, that row stays
    commands.downgrade(project, "-1")
    assert bought(project) == [(1, "tea", 2.5, 1), (2, "cup", -4.5, 1), (5, "mug", 3.0, 2)]

    # when all is made anew, what an earlier query refused is there
    commands.upgrade(project, "head")
    new = commands.revision(project, "anew", rev_id="r4", empty=True)
    assert new.file is not None
    path = tmp_path / new.file.path
    text = path.read_text(encoding="utf-8")
    hook = 'def up(op):\n    op.rebuild("valid_purchases")\n'
    path.write_text(text.replace("def up(op):\n    pass\n", hook), encoding="utf-8")
    project = commands.open_project(tmp_path)
    commands.upgrade(project, "head")
    assert [row[:3] for row in bought(project)] == [
        (1, "tea", 2.5),
        (2, "cup", -4.5),
        (2, "cup", -4.0),
        (4, "old", -1.0),
        (5, "mug", 3.0),
    ]
    assert not commands.status(project).relations["valid_purchases"]["is_historical"]
    assert as_bag(rows(project, "SELECT product_id, sales FROM sold")) == as_bag(
        [{"product_id": n, "sales": 2 if n == 2 else 1} for n in (1, 2, 4, 5)]
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_over_twenty_changes_every_row_passes_once_under_the_logic_in_force(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    tables = "CREATE TABLE events (n INT);\nCREATE TABLE names (n INT, name STRING);\n"
    project = make_project(tmp_path, {"all.sql": ""}, name="events")
    expected: Counter[tuple[int, int]] = Counter()

    def query(logic: int) -> str:
        extra = ["", ", e.n * 2 AS twice", ", name", ", array(e.n) AS list"][logic % 4]
        join = " LEFT JOIN names USING (n)" if "name" in extra else ""
        where = " WHERE e.n >= 0" if logic % 3 else ""
        return (
            f"CREATE STREAMING TABLE s AS SELECT n, {logic} AS logic{extra} "
            f"FROM STREAM(events) AS e{join}{where};\n"
        )

    # when
    for logic in range(21):
        change(project, tables + query(logic), f"r{logic}")
        force = logic
        if logic % 7 == 6:  # back, a row, and forth again
            commands.downgrade(project, "-1")
            force = logic - 1
        commands.execute(project, f"INSERT INTO events VALUES ({2 * logic}), ({2 * logic + 1})")
        expected.update({(2 * logic, force): 1, (2 * logic + 1, force): 1})
        if force != logic:
            commands.upgrade(project, "head")
        if logic % 5 == 4:
            commands.run(project)
    commands.run(project)

    # then
    found = rows(project, "SELECT n, logic FROM s")
    assert Counter((row["n"], row["logic"]) for row in found) == expected
    assert len(found) == 42
