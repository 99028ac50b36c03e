"""Previews: which relations they are of, how they are told."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from sqlmig.ledger.cut import RelationState
from sqlmig.planning.explain import to_markdown, to_text
from sqlmig.planning.preview import Difference, Preview, Prospect, Samples, Way, notes, prospects
from sqlmig.planning.steps import (
    Action,
    AlterTable,
    Bootstrap,
    Detach,
    EmptyTable,
    Execute,
    Plan,
    RenameTable,
    Restore,
    Step,
)
from sqlmig.planning.stream_steps import BackfillStream, EvolveStream
from sqlmig.planning.table_steps import ConvertTable, FillColumns, LayOut, RebuildTable
from sqlmig.program.parse import parse_program
from tests.fakes import Pipeline, Revision, World

SQL = """
CREATE TABLE t (a INT, b INT);
CREATE MATERIALIZED VIEW v AS SELECT a FROM t;
CREATE MATERIALIZED VIEW w AS SELECT a FROM v;
"""
AVERAGES = Difference(
    "averages",
    "materialized view",
    ("student", "class"),
    1200,
    1300,
    101,
    1,
    7,
    ("home",),
    ("town",),
    Samples(
        added=({"student": "Al|ice", "class": "algebra", "average": Decimal("97.50")},),
        removed=({"student": "Bob", "class": None, "average": Decimal("1")},),
        changed=(
            (
                {"student": "Eve", "class": "physics", "average": Decimal("9.5")},
                {"student": "Eve", "class": "physics", "average": Decimal("8")},
            ),
        ),
    ),
)
SEEN = Difference(
    "seen", "materialized view", (), 2, 1, 0, 1, samples=Samples(removed=({"x": "``` out"},))
)
SAME = Difference("same", "table", ("id",), 1, 1)
LATER = Difference("later", "streaming table", unknown="it reads `seen`, which is not previewed")
PREVIEW = Preview((AVERAGES, SEEN, SAME, LATER), ("hooks are not run",))


@pytest.fixture
def plan() -> Plan:
    """A plan that computes two views."""
    pipeline = Pipeline(
        World(), [Revision("r1", SQL), Revision("r2", SQL.replace("a FROM t", "b AS a FROM t"))]
    )
    pipeline.go("r1")
    pipeline.insert("t", 1, 2)
    pipeline.tick()
    return pipeline.plan("r2")


def state(name: str) -> RelationState:
    return RelationState(name, "table", 1, f"{name}@1", "f", {})


def found(*actions: Action) -> dict[str, Prospect]:
    """The prospects of a plan with these steps."""
    steps = tuple(Step(number, action, "") for number, action in enumerate(actions, start=1))
    pipeline = Pipeline(World(), [Revision("r1", SQL)])
    made = replace(pipeline.plan("r1"), steps=steps)
    states = {name: state(name) for name in ("t", "v", "old")}
    return {p.relation: p for p in prospects(made, parse_program({"pipeline/p.sql": SQL}), states)}


def test_a_plan_is_previewed_in_program_order(plan: Plan) -> None:
    program = parse_program({"pipeline/p.sql": SQL})
    names = [p.relation for p in prospects(plan, program, {"t": state("t")})]
    assert names == ["v", "w"]


def test_each_step_says_where_rows_come_from() -> None:
    made = found(
        RenameTable("old", "t"),
        AlterTable("t", (), (("x", "y"),)),
        AlterTable("t", (), (("y", "a"), ("p", "q"))),
        Bootstrap("v", "v"),
        Restore("w", "w", 3, "w@1"),
        Detach("gone"),
    )
    assert made["t"] == Prospect("t", state("old"), Way.ROWS, renamed=(("x", "a"), ("p", "q")))
    assert made["v"] == Prospect("v", state("v"), Way.QUERY)
    assert made["w"] == Prospect("w", None, Way.VERSION, ("w", 3))
    assert made["gone"].way is Way.NONE
    assert list(made) == ["t", "v", "w", "gone"]
    assert found(EmptyTable("t"), AlterTable("t", ()))["t"].way is Way.NONE
    assert found(EvolveStream("v", "v", False))["v"].way is Way.ROWS
    assert found(BackfillStream("v", "v", "2026-01-01", "at"))["v"].way is Way.UNKNOWN


def test_rows_that_raw_records_give_are_not_previewed() -> None:
    source = (("t.s", "t.s", 1),)
    filled = found(AlterTable("t", ()), FillColumns("t", ("b",), source), Bootstrap("v", "v"))
    assert filled["t"] == Prospect("t", state("t"), Way.UNKNOWN)
    assert filled["v"].way is Way.QUERY, "over `t`, so that it is not previewed either"
    rebuilt = found(EmptyTable("t"), RebuildTable("t", source))
    assert rebuilt["t"] == Prospect("t", state("t"), Way.UNKNOWN)
    later = found(FillColumns("t", ("b",), source), AlterTable("t", ()), ConvertTable("t", ()))
    assert later["t"].way is Way.UNKNOWN
    assert found(FillColumns("t", ("b",), source), EmptyTable("t"))["t"].way is Way.NONE


def test_rows_that_are_only_laid_out_anew_are_the_same() -> None:
    assert found(LayOut("t", ("b",))) == {}
    assert found(AlterTable("t", ()), LayOut("t", ("b",)))["t"].way is Way.ROWS


def test_hooks_are_said_to_be_left_out(plan: Plan) -> None:
    assert notes(plan) == ()
    hook = Step(9, Execute("r1", "up", 0, "DELETE FROM t"), "")
    assert notes(replace(plan, steps=(hook,))) == (
        "hooks are not run for a preview: what step 9 does to rows is not in it",
    )


def test_a_preview_is_told_in_the_text_of_a_plan(plan: Plan) -> None:
    text = to_text(plan, preview=PREVIEW)
    assert (
        "\ndata:\n"
        "  materialized view averages: 101 added, 1 removed, 7 changed, column home added, column "
        "town dropped; 1,200 -> 1,300 rows, told apart by student, class\n"
        "      - student=Bob, class=NULL, average=1\n"
        "      + student=Al|ice, class=algebra, average=97.50\n"
        "      ~ student=Eve, class=physics: average: 9.5 -> 8\n"
        "  materialized view seen: 1 removed; 2 -> 1 row\n"
        "      - x=``` out\n"
        "  table same: the same 1 row\n"
        "  streaming table later: not previewed: it reads `seen`, which is not previewed\n"
        "  note: hooks are not run\n"
    ) in text
    assert to_text(plan, preview=Preview(())).count("  no relation gets other rows\n") == 1
    assert "data:" not in to_text(plan)


def test_the_comment_of_a_pull_request_is_the_golden_one(plan: Plan) -> None:
    golden = Path(__file__).parent / "golden" / "preview.md"
    told = to_markdown(plan, preview=PREVIEW)
    assert told == golden.read_text(encoding="utf-8").replace("PLAN", plan.id)


def test_a_preview_is_json_too() -> None:
    data = PREVIEW.to_dict()
    assert data["notes"] == ["hooks are not run"]
    first = data["relations"][0]
    assert (first["relation"], first["added"], first["removed"], first["changed"]) == (
        "averages",
        101,
        1,
        7,
    )
    assert first["samples"]["changed"][0]["after"]["average"] == Decimal("8")
    assert data["relations"][3]["unknown"] == "it reads `seen`, which is not previewed"
    assert AVERAGES.is_empty is False
    assert SAME.is_empty is True
