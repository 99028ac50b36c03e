"""plan, stamp, approve, reject, repair: as far as they need no Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.ledger.records import Kind, Owner, Status
from tests.cli.shell import TABLES, VIEWS, Shell, new_project
from tests.commands.ledgers import await_approval, living_process, start


@pytest.fixture
def two(school: Shell) -> Shell:
    """Two revisions; the first is stamped."""
    school.freeze("aaaa1111", message="first")
    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 95"))
    school.freeze("bbbb2222", message="stricter")
    school("stamp", "aaaa")
    return school


def test_a_plan_is_told_as_text_json_and_markdown(two: Shell) -> None:
    text = two("plan", "--offline").out
    data = two("plan", "--offline", "--format", "json").json
    markdown = two("plan", "--offline", "--format", "markdown").out

    assert text.startswith(f"upgrade aaaa1111 -> bbbb2222 (plan {data['id']})\n\nchanges:\n")
    assert "  ~ materialized view honours: " in text
    assert "bootstrap `honours`" in text
    assert max(map(len, text.splitlines())) < 80
    assert data == two("plan", "head", "--offline", "--json").json
    assert data["diff"] == two("diff", "aaaa", "bbbb", "--json").json
    assert [up["revision"] for up in data["ups"]] == ["bbbb2222"]
    assert [step["number"] for step in data["steps"]] == list(range(1, len(data["steps"]) + 1))
    assert markdown.startswith("### sqlmig upgrade `aaaa1111` → `bbbb2222`\n")
    assert f"Plan `{data['id']}` of pipeline `school`." in markdown


@pytest.mark.parametrize("style", ["text", "json", "markdown"])
def test_a_plan_is_written_to_a_file(two: Shell, style: str) -> None:
    said = two("plan", "--offline", "--format", style, "-o", "plan.out")

    assert said.out == ""
    assert said.err.startswith("Plan ")
    assert said.err.endswith(" is written to plan.out.\n")
    assert two.read("plan.out") == two("plan", "--offline", "--format", style).out


def test_a_plan_leads_down_too(two: Shell) -> None:
    assert two("plan", "base", "--offline").out.startswith("downgrade aaaa1111 -> base (plan ")
    assert two("plan", "-1", "--offline", "--json").json["downs"] == ["aaaa1111"]


def test_plans_are_equal_when_nothing_moved(two: Shell) -> None:
    first = two("plan", "--offline", "--json").json["id"]
    assert two("plan", "--offline", "--json").json["id"] == first
    two("stamp", "aaaa")
    assert two("plan", "--offline", "--json").json["id"] != first


def test_a_blocked_plan_ends_with_4_and_is_still_told(two: Shell) -> None:
    two.write("pipeline/sink.sql", "CREATE SINK out FROM honours USING json;")
    two.freeze("cccc3333")

    for words in (["--offline"], ["--offline", "--json"], ["--offline", "-o", "plan.txt"]):
        two("plan", *words, code=4)

    text = two("plan", "--offline", code=4).out
    assert "\nblocked:\n  pipeline/sink.sql:1:1: sink `honours.out`: it has no `path`" in text
    assert json.loads(two("plan", "--offline", "--json", code=4).out)["blockers"]
    said = two("upgrade", "--yes", code=4)
    assert said.err.startswith("error: pipeline/sink.sql:1:1: sink `honours.out`: it has no `path`")


@pytest.fixture
def tables(tmp_path: Path) -> Shell:
    """A revision with two tables and no view, which Spark isn't asked about."""
    shell = new_project(tmp_path / "tables", tables=TABLES)
    shell.freeze("aaaa1111")
    return shell


def test_upgrade_waits_for_approval_where_nobody_can_be_asked(tables: Shell) -> None:
    said = tables("upgrade", code=3)

    plan = tables("plan", "--offline").out
    assert said.out == ""
    assert said.err.startswith(plan)
    name = tables("status", "--json").json["plan"]
    assert said.err[len(plan) :] == (
        f"\nAwaitingApproval: plan {name} is recorded, and nothing was run.\n\n"
        f"hint: `sqlmig approve {name}` carries it out, `sqlmig reject {name}` turns it down\n"
    )
    assert tables("upgrade", "--json", code=3).json["status"] == "awaiting_approval"
    assert len(tables.project.ledger.read()[1]) == 1, "the same plan is recorded once"


def test_upgrade_by_the_policy_reject_lists_the_changes(tables: Shell) -> None:
    said = tables("upgrade", "--bootstrap-policy", "reject", code=4)

    assert re.fullmatch(
        r"error: the policy rejects changes; plan \w+ would make these:\n"
        r"  \+ table grades\n  \+ table students\n\n"
        r"hint: `--bootstrap-policy await_approval` records the plan for approval\n",
        said.err,
    )
    tables.write(
        "sqlmig.yml",
        "pipeline: school\ntargets:\n  p: {warehouse: w, bootstrap_policy: reject}\n",
    )
    tables("upgrade", code=4)
    tables("upgrade", "--bootstrap-policy", "await_approval", code=3)


def test_what_loses_rows_has_to_be_allowed(tables: Shell) -> None:
    tables("stamp", "head")
    state = RelationState("marks", "table", 1, "marks@1", "f", rows=12)  # another program's
    journal = tables.project.journal
    journal.refresh()
    journal.append(Kind.TICK, Status.DONE, cut=Cut({"marks": state}).to_dict())
    tables.write("pipeline/tables.sql", TABLES + "CREATE TABLE marks (grade INT);\n")
    tables.freeze("bbbb2222")

    text = tables("plan", "--offline").out
    said = tables("upgrade", "--yes", code=4)

    assert "destructive (needs --allow-destructive)" in text
    assert said.err.startswith("error: the plan is destructive: it loses 12 rows of `marks`: ")
    assert "hint: add `--allow-destructive` if that is meant" in said.err


def test_the_way_must_lead_there(two: Shell) -> None:
    two("stamp", "head")

    said = two("upgrade", "aaaa", code=1)
    assert said.err.startswith("error: revision aaaa1111 is below the deployed bbbb2222\n\n")
    assert "hint: `sqlmig downgrade aaaa1111` goes there" in said.err
    two("stamp", "aaaa")
    said = two("downgrade", "head", code=1)
    assert said.err.startswith("error: revision bbbb2222 is above the deployed aaaa1111\n\n")
    said = two("downgrade", "nope", code=1)
    assert said.err.startswith("error: no revision or branch `nope`")


def test_another_branch_is_no_way(branched: Shell) -> None:
    branched("stamp", "cccc")

    said = branched("upgrade", "dddd", code=1)

    assert said.err.startswith(
        "error: revision dddd4444 is not on the same branch as the deployed cccc3333\n\n"
        "hint: `sqlmig merge` joins the branches, or `sqlmig downgrade bbbb2222` goes back"
    )


def test_stamp_writes_down_and_takes_back(two: Shell) -> None:
    said = two("stamp", "head")
    assert (said.out, said.err) == ("", "Target `local` is stamped with bbbb2222.\n")
    assert two("current").out == "bbbb2222 (head)\n"
    assert two("stamp", "base").err == "Target `local` is stamped with base.\n"
    assert two("current").out == ""
    assert two("stamp", "nope", code=1).err.startswith("error: no revision or branch `nope`")


def test_stamp_refuses_while_a_plan_runs_and_purge_does_not(two: Shell) -> None:
    start(two.project, owner=living_process())
    assert "is being run by process" in two("stamp", "head", code=1).err

    two("stamp", "head", "--purge")

    assert two("current").out == "bbbb2222 (head)\n"
    assert two("repair").err == "No plan is unfinished.\n"


def test_approve_and_reject_want_a_plan_that_waits(two: Shell) -> None:
    for words in (["approve"], ["reject"], ["approve", "123"]):
        said = two(*words, code=5)
        assert said.err == (
            "error: no plan waits for approval\n\n"
            "hint: `sqlmig upgrade head --bootstrap-policy await_approval` records one\n"
        )
    plan = await_approval(two.project)
    said = two("reject", "nope", code=5)
    assert said.err.startswith(
        f"error: plan nope does not wait for approval; plan {plan.id} does\n\nhint: "
    )


def test_reject_turns_a_plan_down_by_the_beginning_of_its_id(two: Shell) -> None:
    plan = await_approval(two.project)

    said = two("reject", plan.id[:5])

    assert said.err == f"Plan {plan.id} is rejected; nothing was run.\n"
    assert two("status", "--json").json["state"] == "Running"
    two("reject", code=5)


def test_a_plan_is_not_approved_after_the_state_moved(two: Shell) -> None:
    plan = await_approval(two.project)
    two("stamp", "head")

    assert two("approve", plan.id, code=5).err.startswith("error: no plan waits for approval")


def test_repair_without_a_plan(two: Shell) -> None:
    assert two("repair").err == "No plan is unfinished.\n"
    assert two("repair", "--resume").err == "No plan is unfinished.\n"
    assert two("repair", "--rollback", "--json").json is None


def test_repair_shows_how_far_a_dead_plan_is(two: Shell) -> None:
    plan = start(two.project)

    said = two("repair")

    lines = said.out.splitlines()
    assert lines[0].startswith(f"plan {plan.id}, to bbbb2222, begun 20")
    assert lines[1:4] == [
        "  done      1  stop",
        "  done      2  checkpoint",
        f"  started   3  {lines[3].partition('3  ')[2]}",
    ]
    assert said.err.startswith("\nhint: `sqlmig repair --resume` goes on")
    answer = two("repair", "--json").json
    assert [step["status"] for step in answer["steps"]][:4] == ["done", "done", "started", None]
    assert answer["diff"] == two("diff", "aaaa", "bbbb", "--json").json


@pytest.mark.parametrize("words", [["run", "--once"], ["exec", "x"], ["stamp", "head"]])
def test_while_a_plan_is_unfinished_others_wait(two: Shell, words: list[str]) -> None:
    plan = start(two.project, owner=Owner("far", "elsewhere", 1, ""))

    said = two(*words, code=1)

    assert said.err.startswith(f"error: plan {plan.id} is unfinished: process 1 on elsewhere was")
    assert "hint: `sqlmig repair` shows it" in said.err


@pytest.mark.parametrize(
    "words", [["query", "SELECT 1"], ["exec", "INSERT INTO x VALUES (1)"], ["run", "--once"]]
)
def test_nothing_is_read_or_run_where_nothing_is_deployed(school: Shell, words: list[str]) -> None:
    school.freeze("aaaa1111")

    assert school(*words, code=1).err == (
        "error: nothing is deployed to target `local`\n\n"
        "hint: `sqlmig upgrade head` deploys the head\n"
    )


def test_run_takes_either_a_single_tick_or_an_interval(two: Shell) -> None:
    assert (
        "'--once' excludes '--interval' and '--until'"
        in two("run", "--once", "--interval", "5s", code=2).err
    )
    assert (
        "`soon` is no duration: write 5s, 10m, 2h or 7d"
        in two("run", "--interval", "soon", code=2).err
    )
    assert (
        "`later` is no time: write 2026-06-10T18:30" in two("run", "--until", "later", code=2).err
    )


def test_run_ends_when_its_time_has_come_and_lets_its_lease_go(two: Shell) -> None:
    assert two("run", "--until", "-1s").err == "Ended after 0 ticks.\n"
    status = two("status", "--json").json
    assert (status["state"], status["runner"]) == ("Running", None)


def test_a_pipeline_is_stopped_and_let_go_on(two: Shell) -> None:
    assert two("stop").err == "The pipeline is stopped.\n"
    assert two("status", "--json").json["state"] == "Stopped"
    said = two("run", "--once", code=1).err
    assert said.startswith("error: the pipeline is stopped since ")
    assert said.endswith("hint: `sqlmig resume` lets it tick again\n")
    assert two("resume").err == "The pipeline may tick: `sqlmig run` does it.\n"
    assert two("status", "--json").json["state"] == "Running"
    assert re.fullmatch(
        r"The pipeline stops at \d{4}-\d\d-\d\d 18:30:00 UTC\.\n",
        two("stop", "--at", "18:30").err,
    )
    assert re.search(r"^stops +from \S+ 18:30:00 UTC on$", two("status").out, re.MULTILINE)


def test_a_checkpoint_has_a_number_and_a_name(two: Shell) -> None:
    number = two("checkpoint", "before", "--json").json["checkpoint"]
    assert two("checkpoint").err == (f"Checkpoint {number + 1}: `sqlmig query --at {number + 1}`\n")
    said = two("query", "SELECT 1", "--at", "never", code=1).err
    assert said.startswith("error: there is no checkpoint `never`")


def test_nothing_to_do_is_said(school: Shell) -> None:
    school.write("pipeline/views.sql", "")
    school.write("pipeline/tables.sql", "CREATE VIEW one AS SELECT 1 AS a;")
    school.freeze("aaaa1111")
    school("stamp", "head")

    for words in (["upgrade"], ["upgrade", "head", "--yes"], ["downgrade", "aaaa"]):
        assert school(*words).err == "Nothing to do: aaaa1111 is deployed.\n"
    assert school("upgrade", "--json").json["status"] == "nothing_to_do"
    assert "\nnothing to do\n" in school("plan", "--offline").out
