"""How a plan is told: the worked example as text and as Markdown, to the letter."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from sqlmig.errors import Location
from sqlmig.planning.explain import describe_action, to_markdown, to_text
from sqlmig.planning.planner import make_plan
from sqlmig.planning.sink_steps import ContinueSink, CutOverSink, DetachSink, StartSink
from sqlmig.planning.steps import (
    Action,
    AlterTable,
    Attach,
    Blocker,
    ContinueSource,
    CreateTable,
    DetachSource,
    EmptyTable,
    Execute,
    Plan,
    RenameTable,
    Restore,
    RestoreTable,
    RunFunction,
    StartSource,
    action_from_dict,
    action_to_dict,
)
from sqlmig.planning.table_steps import ConvertTable, LayOut
from sqlmig.planning.volume import size
from tests.fakes import Pipeline, Revision, World

SCHOOL = """
CREATE TABLE students (id INT, name STRING);
CREATE TABLE grades (student_id INT, class STRING, grade DECIMAL(5,2), class_date DATE);
CREATE VIEW avg_grade AS
SELECT student_id, class, AVG(grade) AS class_avg FROM grades
WHERE class_date >= DATE '2025-09-01' AND class_date <= DATE '2025-12-15'
GROUP BY student_id, class;
CREATE MATERIALIZED VIEW avg_grade_enriched AS
SELECT s.name AS student_name, a.class, a.class_avg
FROM avg_grade a JOIN students s ON s.id = a.student_id;
"""
EXTENDED = (
    SCHOOL.replace("2025-12-15", "2026-06-10")
    + """
CREATE MATERIALIZED VIEW avg_grade_all_courses AS
SELECT student_id, AVG(class_avg) AS avg FROM avg_grade GROUP BY student_id;
"""
)


def golden(name: str, plan: Plan) -> str:
    """A text that was looked at and found right; the plan's id is put in."""
    path = Path(__file__).parent / "golden" / name
    return path.read_text(encoding="utf-8").replace("PLAN", plan.id)


@pytest.fixture
def school() -> Pipeline:
    """The worked example, its first revision applied."""
    revisions = [Revision("8f3c2a91d0be", SCHOOL), Revision("b7e4d9025c11", EXTENDED)]
    pipeline = Pipeline(World(), revisions)
    pipeline.go("8f3c2a91d0be")
    for row in range(2):
        pipeline.insert("students", row)
    for row in range(8):
        pipeline.insert("grades", row)
    pipeline.tick()
    return pipeline


def test_the_worked_example_as_text(school: Pipeline) -> None:
    plan = school.plan("b7e4d9025c11")
    assert to_text(plan) == golden("upgrade.txt", plan)


def test_the_worked_example_as_markdown(school: Pipeline) -> None:
    plan = school.plan("b7e4d9025c11")
    assert to_markdown(plan) == golden("upgrade.md", plan)


def test_the_way_back_reads_nothing(school: Pipeline) -> None:
    school.go("b7e4d9025c11")
    plan = school.plan("8f3c2a91d0be")
    assert to_text(plan) == golden("downgrade.txt", plan)


def test_nothing_to_do_is_said(school: Pipeline) -> None:
    plan = school.plan("8f3c2a91d0be")
    assert to_text(plan) == (
        f"upgrade 8f3c2a91d0be -> 8f3c2a91d0be (plan {plan.id})\n\nnothing to do\n"
    )
    assert to_markdown(plan).endswith("\n\nNothing to do.\n")


def test_what_is_destructive_and_what_blocks_is_said() -> None:
    sql = "CREATE TABLE t (a INT, b INT);\nCREATE TABLE u (a INT);\n"
    after = "CREATE TABLE t (a STRING);\nCREATE TABLE u (c INT);\nCREATE SINK k FROM t USING json;"
    pipeline = Pipeline(World(), [Revision("r1", sql), Revision("r2", after)])
    pipeline.go("r1")
    pipeline.insert("t", 1, 2)
    plan = make_plan(replace(pipeline.request("r2"), emptied={"t": "1 of 1 rows can't be cast"}))
    text = to_text(plan)
    assert "\ndestructive (needs --allow-destructive)" in text
    assert "    3  1 row of `t`: 1 of 1 rows can't be cast\n" in text
    assert "\nwarnings:\n  `u`: drop column `a`: its values are lost\n" in text
    assert (
        "\nblocked:\n"
        "  pipeline/p.sql:3:1: sink `t.k`: it has no `path`\n"
        "    hint: OPTIONS (path 'out/grades')\n"
    ) in text
    markdown = to_markdown(plan)
    assert "- `pipeline/p.sql:3:1`: sink `t.k`: it has no `path`" in markdown
    assert "**Destructive:**\n\n- step 3: 1 row of `t`" in markdown
    assert "**Warnings:**\n\n- `u`: drop column `a`" in markdown


ACTIONS: list[tuple[Action, str]] = [
    (RenameTable("t", "u"), "rename table `t` to `u`"),
    (CreateTable("t", "t"), "create table `t`"),
    (AlterTable("t", ("add column `b int`",)), "alter table `t`: add column `b int`"),
    (AlterTable("t", ()), "alter table `t`"),
    (
        ConvertTable("t", ("cast `a` from int to string",), (("b", "a"),), True, True, 2),
        "rewrite table `t`: cast `a` from int to string",
    ),
    (ConvertTable("t", ("add the primary key (a)",)), "alter table `t`: add the primary key (a)"),
    (LayOut("t", ("a", "b"), 1), "rewrite `t`: partitioned by (a, b)"),
    (LayOut("v", ()), "rewrite `v`: not partitioned"),
    (EmptyTable("t"), "empty table `t`"),
    (Attach("t", "t"), "attach `t`"),
    (RestoreTable("t", "t", 3, "t@1", True, (("a", "b"),)), "restore `t` to version 3"),
    (RestoreTable("t", "t", 3, "t@1", True, (), 1, True, True), "restore `t` to version 3"),
    (Restore("v", "v", 3, "v@1"), "restore `v` to version 3"),
    (Execute("r1", "up", 0, "DELETE\n  FROM t"), "execute: DELETE FROM t"),
    (
        Execute("r1", "up", 0, "DELETE FROM t WHERE " + "a" * 60),
        "execute: DELETE FROM t WHERE " + "a" * 49 + "...",
    ),
    (RunFunction("r1", "up", 0, "fill"), "run fill()"),
    (StartSource("t.s", "t.s", 1, "f"), "start source `t.s`"),
    (StartSource("t.s", "t.s", 2, "f"), "start source `t.s` again"),
    (ContinueSource("t.s", "t.s", 2, "f"), "continue source `t.s`"),
    (DetachSource("t.s"), "detach source `t.s`"),
    (StartSink("t.k", "t.k", 1, "f"), "start sink `t.k` with a snapshot"),
    (StartSink("t.k", "t.k", 2, "f"), "start sink `t.k` again with a snapshot"),
    (ContinueSink("t.k", "t.k", 2, "f"), "continue sink `t.k`"),
    (
        CutOverSink("t.k", "t.k", 1, "f", "continue", "t", "difference"),
        "cut over sink `t.k` with the difference",
    ),
    (
        CutOverSink("t.k", "t.k", 1, "f", "difference", "t", "snapshot"),
        "cut over sink `t.k` with a snapshot",
    ),
    (
        CutOverSink("t.k", "t.k", 1, "f", "difference", "t", "continue"),
        "cut over sink `t.k` without sending",
    ),
    (DetachSink("t.k"), "detach sink `t.k`"),
]


@pytest.mark.parametrize(("action", "words"), ACTIONS)
def test_each_action_has_its_words(action: Action, words: str) -> None:
    assert describe_action(action) == words


@pytest.mark.parametrize("action", [action for action, _ in ACTIONS])
def test_each_action_comes_back_from_json(action: Action) -> None:
    assert action_from_dict(action_to_dict(action)) == action


def test_every_action_is_told_and_done() -> None:
    """mypy finds a reader that forgot one; this finds one that mypy is not shown."""
    from sqlmig.execution.effects import Effects

    for action in get_args(Action):
        assert f"{action.__name__}(" in inspect.getsource(describe_action)
        assert f"{action.__name__}(" in inspect.getsource(Effects.make)


def test_a_blocker_comes_back_from_json(school: Pipeline) -> None:
    blockers = (Blocker("no", Location("p.sql", 1, 2), "do"), Blocker("never"))
    plan = replace(school.plan("b7e4d9025c11"), blockers=blockers)
    assert Plan.from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (5 * 2**40, "5.0 TiB")],
)
def test_sizes_are_told_in_words(count: int, words: str) -> None:
    assert size(count) == words
