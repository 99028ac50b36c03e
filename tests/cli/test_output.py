"""How values and runs are shown."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sqlmig.cli.output import cell, painted, print_csv, print_table, to_json
from sqlmig.cli.progress import _LiveList, _plain
from sqlmig.commands import make_plan
from sqlmig.execution import events
from sqlmig.planning.steps import Plan
from tests.cli.shell import new_project

ROWS: list[dict[str, Any]] = [
    {"class": "algebra", "avg": Decimal("91.50"), "day": date(2026, 6, 10), "tags": ["a", "b"]},
    {"class": None, "avg": Decimal("1E+3"), "day": None, "tags": []},
]


def test_json_keeps_every_digit() -> None:
    text = to_json({"a": Decimal("0.1000"), "b": [Decimal("1E+3")], "c": float("nan")}, indent=None)

    assert text == '{"a": 0.1000, "b": [1000], "c": "nan"}'
    assert json.loads(to_json({"a": Decimal("NaN")})) == {"a": "NaN"}
    assert (
        to_json({"d": date(2026, 6, 10), "t": "é"}, indent=None) == '{"d": "2026-06-10", "t": "é"}'
    )


def test_a_table_is_whole_and_numbers_stand_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["class", "avg"], ROWS)
    print_table(["long"], [{"long": "[bold]" + "x" * 300}])

    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[3:5] == ["| algebra | 91.50 |", "| NULL    |  1000 |"]
    assert f"[bold]{'x' * 300}" in told.out
    assert told.err == "2 rows\n1 row\n"


def test_csv_is_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    print_csv(["class", "avg", "tags"], [{**ROWS[0], "class": 'a "b",\nc'}, ROWS[1]])

    read = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert read == [
        ["class", "avg", "tags"],
        ['a "b",\nc', "91.50", '["a", "b"]'],
        ["", "1000", "[]"],
    ]


def test_cells() -> None:
    assert [cell(v) for v in (None, True, Decimal("1E+2"), {"a": 1}, 1.5)] == [
        "NULL",
        "true",
        "100",
        '{"a": 1}',
        "1.5",
    ]


def test_only_signs_and_words_at_the_start_are_painted() -> None:
    text = "error: x\n  + view a\n  - 1 of error: y\n- table b\n~ streaming table c\nhint: z"

    assert painted(text).count("\x1b[0m") == 5
    assert "  - 1 of error: y\n" in painted(text)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    shell = new_project(tmp_path / "school")
    shell.freeze("aaaa1111", message="first\nwith a body")
    return make_plan(shell.project, offline=True)


def test_plain_lines_tell_a_run(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    for event in (
        events.PlanStarted(plan, False),
        events.StepStarted(plan.steps[2]),
        events.StepFinished(plan.steps[2], 1.23, None),
        events.StepFinished(plan.steps[3], 0.1, 1, "restored"),
        events.StepFailedEvent(plan.steps[4], 2.0, "[BROKEN] it broke"),
        events.PlanRolledBack(plan),
        events.Ingestion("t.s", 1, 2, 0.1),
        events.Refresh("v", 2000, 0.1),
        events.TickFailure("v", "no"),
        events.TimeAwaited(datetime(2026, 6, 10, 18, 30, tzinfo=timezone.utc)),
    ):
        _plain(event)

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        "Running upgrade base -> aaaa1111\n"
        "  apply aaaa1111, first\n"
        "  done     3  create table `grades`  1.2 s\n"
        "  done     4  create table `students`  (restored)  1 row  0.1 s\n"
        "  FAILED   5  bootstrap `honours`  2.0 s: [BROKEN] it broke\n"
        "taken back to base\n"
        "  tick    read t.s  1 row, 2 bad kept aside  0.1 s\n"
        "  tick    refresh `v`  2,000 rows  0.1 s\n"
        "  tick    FAILED v: no\n"
        "Waiting until 2026-06-10 18:30:00 UTC; nothing is begun, Ctrl-C gives it up.\n"
    )


def test_a_revision_without_a_message_is_applied_too(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    ups = tuple(replace(up, message="") for up in plan.ups)

    _plain(events.PlanStarted(replace(plan, ups=ups), True))

    assert capsys.readouterr().err == "Resuming upgrade base -> aaaa1111\n  apply aaaa1111\n"


def live(plan: Plan, height: int, *told: events.Event) -> str:
    """What a terminal shows after these events, while the run goes on."""
    console = Console(file=io.StringIO(), width=80, height=height, force_terminal=True)
    shown = _LiveList(console)
    shown(events.PlanStarted(plan, False))
    for event in told:
        shown(event)
    screen = io.StringIO()
    Console(file=screen, width=80, force_terminal=True).print(shown._table())
    shown._stop()
    return screen.getvalue()


def test_the_live_list_shows_each_step(plan: Plan) -> None:
    steps = plan.steps
    text = live(
        plan,
        24,
        events.StepFinished(steps[0], 0.1, None, "[note]"),
        events.StepStarted(steps[2]),
    )

    lines = [line.split("\x1b[0m")[-1].strip() for line in text.splitlines()]
    assert lines[0].startswith("1  stop")
    assert lines[0].endswith("0.1 s  [note]")
    assert lines[1].endswith("before"), "another process did it"
    assert lines[2].startswith("3  create table `grades`")
    assert lines[3] == "4  create table `students`"


def test_a_long_list_stays_around_the_running_step(plan: Plan) -> None:
    many = tuple(replace(plan.steps[2], number=number) for number in range(1, 101))

    text = live(replace(plan, steps=many), 14, events.StepStarted(many[49]))

    assert len(text.splitlines()) == 10
    assert " 50  create" in text
    assert "  1  create" not in text
