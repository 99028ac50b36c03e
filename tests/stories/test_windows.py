"""Windows over a stream, by the commands on real Spark: backfilled, filtered otherwise, kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig import commands
from sqlmig.planning.explain import describe_action, to_markdown
from tests.stories.school import make_project, rows, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlmig.commands import Project

pytestmark = pytest.mark.example

ORDERS = "CREATE TABLE orders (event_time TIMESTAMP, amount INT);\n"
COUNTED = """\
CREATE STREAMING TABLE ten_minutes AS
SELECT window.start AS window_start, count(*) AS orders{more}
FROM STREAM orders WATERMARK event_time DELAY OF INTERVAL 5 MINUTES{where}
GROUP BY window(event_time, '10 minutes');
"""
SUMMED = COUNTED.replace("{more}", ", sum(amount) AS amount")


def change(project: Project, sql: str, name: str, hook: str = "") -> Project:
    """A revision with this pipeline, and `hook` in its `up`; it is not deployed."""
    write_pipeline(project.root, {"all.sql": ORDERS + sql})
    file = commands.revision(project, name, rev_id=name).file
    assert file is not None
    if hook:
        path = project.root / file.path
        text = path.read_text(encoding="utf-8")
        up = re.compile(r"(?<=^def up\(op\):\n)(?:    .*\n)+", re.MULTILINE)
        path.write_text(up.sub(f"    {hook}\n", text, count=1), encoding="utf-8")
    return commands.open_project(project.root)


def order(project: Project, *orders: tuple[str, int]) -> None:
    """Orders of that day, each a time and an amount, and a tick."""
    values = ", ".join(f"(TIMESTAMP '2024-06-11 {at}', {amount})" for at, amount in orders)
    commands.execute(project, f"INSERT INTO orders VALUES {values}")
    commands.run(project)


def windows(project: Project, columns: str = "orders, amount") -> list[tuple[Any, ...]]:
    """The windows that have been emitted, each with the time of day at which it begins."""
    found = rows(
        project,
        f"SELECT date_format(window_start, 'HH:mm') AS at, {columns} FROM ten_minutes ORDER BY at",
    )
    return [tuple(row.values()) for row in found]


@pytest.mark.timeout(600)
def test_ten_minute_windows_are_backfilled_filtered_otherwise_and_kept(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given orders up to 16:00, of which windows are over that end by 15:55
    project = make_project(tmp_path, {"all.sql": ORDERS}, name="shop")
    project = change(project, COUNTED.format(more="", where=""), "r1")
    commands.upgrade(project, "head")
    early = (("15:31", 10), ("15:38", 20), ("15:42", 5), ("15:44", -3), ("15:49", 8))
    order(project, *early, ("15:53", 7), ("16:00", 1))
    assert windows(project, "orders") == [("15:30", 2), ("15:40", 3)]

    # when a sum is wanted since 15:45, it begins with the window that holds that time
    hook = 'op.backfill("ten_minutes", since="2024-06-11 15:45", column="window_start")'
    project = change(project, SUMMED.format(where=""), "r2", hook)
    plan = commands.make_plan(project)
    assert [describe_action(step.action) for step in plan.steps][2:4] == [
        "take in rows for `ten_minutes`",
        "backfill `ten_minutes` since 2024-06-11 15:40:00",
    ]
    assert (
        "rows with `window_start` from 2024-06-11 15:40:00 (the start of the window that holds "
        "2024-06-11 15:45) on are made anew, earlier ones stay (historical)"
    ) in to_markdown(plan)
    commands.upgrade(project, "head")
    assert windows(project) == [("15:30", 2, None), ("15:40", 3, 10)]

    # when an order comes after its window, it is counted as late, and the next window goes on
    order(project, ("15:41", 2), ("16:05", 20))
    assert windows(project) == [("15:30", 2, None), ("15:40", 3, 10), ("15:50", 1, 7)]
    now = commands.status(project).relations["ten_minutes"]
    assert (now["watermark"], now["late"], now["is_historical"]) == (
        "2024-06-11 16:00:00",
        1,
        True,
    )

    # when only the filter changes, no window mixes old and new logic: all are made anew
    project = change(project, SUMMED.format(where=" WHERE amount > 0"), "r3")
    plan = commands.make_plan(project)
    assert [describe_action(step.action) for step in plan.steps][2] == "bootstrap `ten_minutes`"
    assert plan.steps[2].cause.endswith("rebuilt: its windows gathered rows under the former query")
    commands.upgrade(project, "head")
    filtered = [("15:30", 2, 30), ("15:40", 3, 15), ("15:50", 1, 7)]
    assert windows(project) == filtered
    now = commands.status(project).relations["ten_minutes"]
    assert (now["late"], now["is_historical"]) == (0, False)

    # when it changes in place, old windows are by the old filter and new ones by the new one
    hook = 'op.in_place("ten_minutes")'
    project = change(project, SUMMED.format(where=" WHERE amount > 5"), "r4", hook)
    commands.upgrade(project, "head")
    assert windows(project) == filtered
    order(project, ("16:03", 4), ("16:04", 6), ("16:20", 9))
    assert windows(project) == [*filtered, ("16:00", 2, 26)]
    now = commands.status(project).relations["ten_minutes"]
    assert (now["watermark"], now["is_historical"]) == ("2024-06-11 16:15:00", True)

    # and what can't be kept blocks the plan
    longer = SUMMED.replace("10 minutes", "15 minutes").format(where="")
    plan = commands.make_plan(change(project, longer, "r5", hook))
    (blocker,) = plan.blockers
    assert blocker.message == (
        "up() of r5: op.in_place can't keep windows of `ten_minutes`: its windows were 10 minutes "
        "of `orders.event_time`, and become 15 minutes of `orders.event_time`"
    )
    assert blocker.hint == 'write op.rebuild("ten_minutes")'
