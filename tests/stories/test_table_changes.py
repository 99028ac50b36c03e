"""A table's column becomes another type on a whole project: refused, mended, cast, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.errors import BlockedError
from sqlmig.planning.explain import describe_action, to_text
from sqlmig.planning.steps import Plan
from tests.stories.school import make_project, rows, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = """\
CREATE TABLE orders (id BIGINT, amount STRING);
CREATE SOURCE files INTO orders USING json OPTIONS (path 'landing');
CREATE MATERIALIZED VIEW total AS
SELECT count(*) AS n, sum(try_cast(amount AS INT)) AS s FROM orders;
CREATE SINK out FROM orders USING json OPTIONS (path 'out', key 'id');
"""
NUMBERS = TEXTS.replace("id BIGINT, amount STRING", "id BIGINT PRIMARY KEY, amount INT")


def arrive(root: Path, name: str, *orders: tuple[int, str | int]) -> None:
    """Put a file of orders where the source finds it."""
    (root / "landing").mkdir(exist_ok=True)
    lines = [json.dumps({"id": number, "amount": amount}) for number, amount in orders]
    (root / "landing" / name).write_text("\n".join(lines), encoding="utf-8")


def received(root: Path) -> dict[int, object]:
    """What a reader of the sink has: id -> amount."""
    has: dict[int, object] = {}
    folders = (root / "out").glob("batch=*")
    for folder in sorted(folders, key=lambda folder: int(folder.name.split("=")[1])):
        lines = [
            json.loads(line)
            for file in sorted(folder.glob("*.json"))
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
        for line in sorted(lines, key=lambda line: str(line["_op"])):
            if line["_op"] == "delete":
                has.pop(line["id"], None)
            else:
                has[line["id"]] = line["amount"]
    return has


def words(plan: Plan) -> list[str]:
    """The steps but those that each plan has."""
    return [describe_action(step.action) for step in plan.steps][2:-1]


def orders(project: Project) -> list[tuple[object, ...]]:
    """The rows of the table."""
    return [tuple(r.values()) for r in rows(project, "SELECT * FROM orders ORDER BY id")]


@pytest.mark.timeout(600)
def test_a_column_is_cast_once_its_rows_fit_and_sources_and_sinks_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    # given
    project = make_project(tmp_path, {"all.sql": TEXTS})
    arrive(tmp_path, "1.json", (1, "7"), (2, "n/a"), (3, "08"))
    commands.revision(project, "texts", rev_id="a")
    commands.upgrade(project, "head")
    write_pipeline(tmp_path, {"all.sql": NUMBERS})
    commands.revision(project, "numbers", rev_id="b")

    # when: a row does not fit
    plan = commands.make_plan(project)
    with pytest.raises(BlockedError) as caught:
        commands.upgrade(project, "head")

    # then
    reason = "`orders.amount` can't be cast from string to int in 1 of 3 rows: 'n/a'"
    assert [blocker.message for blocker in plan.blockers] == [reason]
    assert words(plan)[0] == (
        "rewrite table `orders`: require a value in `id`, cast `amount` from string to int, "
        "add the primary key (id)"
    )
    assert plan.steps[2].cost.startswith("rewrites 3 rows, ")
    assert f"\nblocked:\n  pipeline/all.sql:1:1: {reason}\n" in to_text(plan)
    assert caught.value.message == reason
    assert "`--allow-destructive` empties the table instead" in (caught.value.hint or "")
    assert project.deployment().revision == "a"

    # when: it may be lost
    emptying = commands.make_plan(project, allow_destructive=True)

    # then
    assert words(emptying)[0] == "empty table `orders`"
    assert [step.destructive for step in emptying.destructive] == [f"3 rows of `orders`: {reason}"]

    # when: it is mended
    commands.execute(project, "UPDATE orders SET amount = '9' WHERE amount = 'n/a'")
    done = commands.upgrade(project, "head")

    # then
    assert done.plan.warnings == (
        "`orders.amount` changes by the cast from string to int in 1 of 3 rows: '08' becomes 8",
    )
    assert not any("source" in step for step in words(done.plan)), "it goes on at its offsets"
    assert orders(project) == [(1, 7), (2, 9), (3, 8)]
    assert rows(project, "SELECT * FROM total") == [{"n": 3, "s": 24}]
    arrive(tmp_path, "2.json", (3, 30), (4, 40))
    commands.run(project)
    assert orders(project) == [(1, 7), (2, 9), (3, 30), (4, 40)]
    assert received(tmp_path) == {1: 7, 2: 9, 3: 30, 4: 40}

    # when
    back = commands.downgrade(project, "-1")

    # then: rows have come since, so they are cast back
    assert words(back.plan)[0].startswith("rewrite table `orders`: ")
    assert orders(project) == [(1, "7"), (2, "9"), (3, "30"), (4, "40")]
