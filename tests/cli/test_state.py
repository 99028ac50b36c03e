"""current, status, diff: what the ledger says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timezone

import git
import pytest

from sqlmig.ledger.cut import ConnectorState, Cut, RelationState
from sqlmig.ledger.records import Kind, Status
from sqlmig.ledger.sink_state import Batch, Owed, PinnedContents, SinkState
from tests.cli.shell import TABLES, VIEWS, Shell
from tests.commands.ledgers import await_approval, living_process, start

SCHOOL = """\
CREATE TABLE students (id BIGINT, name STRING);
CREATE TABLE grades (student_id BIGINT, class STRING, grade DECIMAL(5, 2), class_date DATE);
CREATE VIEW avg_grade AS
  SELECT student_id, class, AVG(grade) AS class_avg FROM grades
  WHERE class_date BETWEEN DATE '2025-09-01' AND DATE '2025-12-15' GROUP BY student_id, class;
CREATE MATERIALIZED VIEW avg_grade_enriched AS
  SELECT s.name AS student_name, a.class, a.class_avg
  FROM avg_grade a JOIN students s ON s.id = a.student_id;
"""
EXTENDED = (
    SCHOOL.replace("2025-12-15", "2026-06-10")
    + """\
CREATE MATERIALIZED VIEW avg_grade_all_courses AS
  SELECT student_id, AVG(class_avg) AS avg FROM avg_grade GROUP BY student_id;
"""
)
WORKED_EXAMPLE = """\
{
  "added_input_connectors": [],
  "added_output_connectors": [],
  "modified_input_connectors": [],
  "modified_output_connectors": [],
  "program_diff": {
    "added_tables": [],
    "added_views": [
      "avg_grade_all_courses"
    ],
    "modified_tables": [],
    "modified_views": [
      "avg_grade",
      "avg_grade_enriched"
    ],
    "removed_tables": [],
    "removed_views": []
  },
  "program_diff_error": null,
  "removed_input_connectors": [],
  "removed_output_connectors": []
}
"""
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


@pytest.fixture
def two(school: Shell) -> Shell:
    """Two revisions; the first is stamped."""
    school.freeze("aaaa1111", message="first")
    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 95"))
    school.freeze("bbbb2222", message="stricter")
    school("stamp", "aaaa")
    return school


def test_nothing_is_current_before_the_first_deployment(school: Shell) -> None:
    said = school("current")
    assert (said.out, said.err) == ("", "Nothing is deployed to target `local`.\n")
    assert school("current", "--json").json["revision"] is None
    school("current", "--check-heads")

    school.freeze("aaaa1111")
    assert school("current", "--check-heads", code=1).err.endswith(
        "error: the head is not deployed: base is, and the head is aaaa1111\n\n"
        "hint: `sqlmig upgrade head`\n"
    )


def test_current_is_alembics_line(two: Shell) -> None:
    assert two("current").out == "aaaa1111\n"
    assert two("current", "--check-heads", code=1).out == "aaaa1111\n"
    two("stamp", "head")
    assert two("current", "--check-heads").out == "bbbb2222 (head)\n"
    assert two("current", "--json").json == {
        "revision": "bbbb2222",
        "is_head": True,
        "since": two("current", "--json").json["since"],
        "commit": two("current", "--json").json["commit"],
        "actor": two("current", "--json").json["actor"],
    }


def test_with_two_heads_neither_is_the_deployed_one(branched: Shell) -> None:
    branched("stamp", "eeee")

    said = branched("current", "--check-heads", code=1)

    assert "eeee5555 is, and the head is cccc3333, eeee5555" in said.err


def test_current_v_says_since_when(two: Shell) -> None:
    said = two("current", "-v")

    assert said.out.startswith(
        "Current revision of pipeline school on target local:\nRev: aaaa1111 (current)\n"
    )
    assert re.search(rf"\n    Deployed: {TIME}", said.out)
    assert "None" not in said.out


def test_a_stamp_keeps_the_commit_in_the_ledger(two: Shell) -> None:
    repository = git.Repo.init(two.folder)
    with repository.config_writer() as config:
        config.set_value("user", "name", "A. Tester")
        config.set_value("user", "email", "tester@example.org")
    repository.git.add(".")
    repository.git.commit("-m", "all", "--author", "A. Tester <tester@example.org>")

    two("stamp", "bbbb")

    record = two.project.ledger.read()[1][-1]
    assert record.kind is Kind.STAMP
    assert record.commit == repository.head.commit.hexsha
    assert record.author == "A. Tester <tester@example.org>"
    assert record.dirty is False
    repository.close()


def test_status_of_nothing(school: Shell) -> None:
    assert school("status").out == (
        "pipeline    school\ntarget      local\nstate       Stopped\ndeployed    base\n"
    )


def test_status_of_a_running_pipeline(two: Shell) -> None:
    cut = Cut(
        {
            "grades": RelationState("grades", "table", 3, "grades@3", "f", rows=12_000, bytes=2048),
            "honours": RelationState("honours", "materialized view", 1, "h@1", "f", rows=1),
            "odd": RelationState("odd", "table", 1, "h@1", "f"),
            "s": RelationState(
                "s", "streaming table", 2, "s@1", "f", rows=3, bytes=9, is_historical=True
            ),
            "w": RelationState(
                "w",
                "streaming table",
                1,
                "w@1",
                "f",
                rows=1,
                is_historical=True,
                watermark=1_718_120_700_000_000,
                late=2,
            ),
        },
        {"grades.files": ConnectorState("grades.files", 1, "f", rows=12_000, rejected=3)},
    )
    journal = two.project.journal
    journal.refresh()
    journal.append(Kind.TICK, Status.DONE, cut=cut.to_dict(), error="source grades.files: bad")

    said = two("status")

    told = re.sub(TIME, "TIME", said.out)
    assert re.sub(r"at (\S+ )?\d\d:\d\d:\d\d", "at CLOCK", told) == (
        "pipeline    school\n"
        "target      local\n"
        "state       Running\n"
        "deployed    aaaa1111, since TIME\n"
        "last tick   TIME\n"
        "last error  source grades.files: bad\n"
        "\n"
        "relations:\n"
        "  table              grades   12,000 rows  2.0 KiB  version 3  at CLOCK\n"
        "  materialized view  honours        1 row           version 1  at CLOCK\n"
        "  table              odd           ? rows           version 1  at CLOCK\n"
        "  streaming table    s             3 rows      9 B  version 2  at CLOCK  historical\n"
        "  streaming table    w              1 row           version 1  at CLOCK  historical, "
        "watermark 2024-06-11 15:45:00, 2 rows late\n"
        "\n"
        "sources:\n"
        "  grades.files  12,000 rows read  3 bad kept aside  at CLOCK\n"
    )
    answer = two("status", "--json").json
    assert answer["relations"]["grades"]["rows"] == 12_000
    assert answer["connectors"]["grades.files"]["rejected"] == 3
    assert datetime.fromisoformat(answer["last_tick"]).tzinfo == timezone.utc


def test_status_of_sinks(two: Shell) -> None:
    sent = PinnedContents("grades", 2, "grades@2")
    cut = Cut(
        {"grades": RelationState("grades", "table", 3, "grades@3", "f", rows=1, bytes=8)},
        sinks={
            "grades.copy": SinkState("grades.copy", 1, "f", "a"),
            "grades.feed": SinkState(
                "grades.feed",
                1,
                "f",
                "b",
                sent,
                4,
                1200,
                "2026-06-10T12:00:05+00:00",
                mode="continue",
                is_continued=True,
            ),
            "grades.moved": SinkState(
                "old.moved",
                1,
                "f",
                "d",
                PinnedContents("old", 7, "old@7"),
                owed=(Owed(None, sent),),
            ),
            "grades.files": SinkState(
                "grades.files",
                1,
                "f",
                "c",
                PinnedContents("grades", 3, "grades@3"),
                5,
                1,
                "2026-06-10T12:00:06+00:00",
            ),
        },
    )
    journal = two.project.journal
    journal.refresh()
    journal.append(Kind.TICK, Status.DONE, cut=cut.to_dict())

    said = two("status")

    assert said.out.endswith(
        "\n"
        "sinks:\n"
        "  grades.copy       0 rows sent  nothing yet                      "
        "behind: the next tick sends\n"
        "  grades.feed   1,200 rows sent  last at 2026-06-10 12:00:05 UTC  "
        "behind by 1 version: the next tick sends; cutover: continue; a cutover was not sent\n"
        "  grades.files       1 row sent  last at 2026-06-10 12:00:06 UTC\n"
        "  grades.moved      0 rows sent  nothing yet                      "
        "cutting over: the next tick sends\n"
    )
    sinks = two("status", "--json").json["sinks"]
    assert {name: (sink["state"], sink["is_behind"]) for name, sink in sinks.items()} == {
        "grades.copy": ("new", True),
        "grades.feed": ("behind", True),
        "grades.files": ("current", False),
        "grades.moved": ("cutting over", True),
    }
    assert sinks["grades.moved"]["versions_behind"] is None
    assert sinks["grades.moved"]["owed"] == 1
    assert sinks["grades.feed"] == {
        "state": "behind",
        "mode": "continue",
        "generation": 1,
        "rows": 1200,
        "batch": 4,
        "sent_at": "2026-06-10T12:00:05+00:00",
        "sent": {"folder": "grades", "version": 2, "content": "grades@2"},
        "is_behind": True,
        "versions_behind": 1,
        "owed": 0,
        "is_continued": True,
        "error": None,
    }

    # when: one fails, and another began a batch that did not end
    batch = Batch(6, sent, PinnedContents("grades", 3, "grades@3"))
    begun = {"grades.copy/1": batch.to_dict()}
    journal.append(Kind.SEND, Status.STARTED, details={"batches": begun})
    failures = {"grades.feed": "no broker answers"}
    journal.append(Kind.TICK, Status.DONE, details={"failures": failures})

    # then
    sinks = two("status", "--json").json["sinks"]
    assert [sinks[f"grades.{name}"]["state"] for name in ("copy", "feed")] == ["sending", "failing"]
    assert sinks["grades.feed"]["error"] == "no broker answers"
    text = two("status").out
    assert "UTC  FAILS; cutover: continue; a cutover was not sent\n" in text
    assert "  grades.feed: no broker answers\n" in text


def test_status_of_a_runner_and_of_what_fails(two: Shell) -> None:
    journal = two.project.journal
    owner = replace(living_process(), lease=60.0)
    details = {"owner": owner.to_dict(), "interval": 5.0}
    journal.refresh()
    journal.append(Kind.RUNNER, Status.STARTED, details=details)
    journal.append(
        Kind.TICK,
        Status.DONE,
        error="grades.files: no such folder",
        details={
            "token": owner.token,
            "ticks": 7,
            "seconds": 1.25,
            "failures": {"grades.files": "no such folder"},
            "hints": {"grades.files": "make it"},
        },
    )

    said = two("status").out

    assert re.search(
        r"^runner      process \d+ on \S+, since \S+ \S+ UTC, 7 ticks, "
        r"[\d.e+]+ a minute, 1\.2 s each$",
        said,
        re.MULTILINE,
    ), said
    assert said.endswith("\nerrors:\n  grades.files: no such folder\n    hint: make it\n")
    answer = two("status", "--json").json
    assert answer["failures"] == {"grades.files": "no such folder"}
    assert answer["hints"] == {"grades.files": "make it"}
    assert (answer["runner"]["is_alive"], answer["runner"]["ticks"]) == (True, 7)


def test_status_tells_how_far_a_source_is_behind(two: Shell) -> None:
    connectors = {
        "grades.feed": ConnectorState("grades.feed", 1, "f", rows=12_000, behind=1_234),
        "grades.files": ConnectorState("grades.files", 1, "f", rows=1),
        "grades.slow": ConnectorState("grades.slow", 1, "f", rows=2, rejected=3, behind=1),
    }
    two.project.journal.refresh()
    two.project.journal.append(Kind.TICK, Status.DONE, cut=Cut({}, connectors).to_dict())

    said = re.sub(r" +at \S+$", "", two("status").out, flags=re.MULTILINE)
    assert said.endswith(
        "sources:\n"
        "  grades.feed   12,000 rows read  1,234 messages behind\n"
        "  grades.files        1 row read\n"
        "  grades.slow        2 rows read       1 message behind  3 bad kept aside\n"
    )
    assert two("status", "--json").json["connectors"]["grades.feed"]["behind"] == 1_234


def test_status_is_watched_until_it_is_interrupted(
    two: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    # not `time.sleep`, which others call, too: what is left of other tests would be interrupted
    monkeypatch.setattr("sqlmig.cli.state.sleep", sleep)
    assert two("status", "--watch").out.count("state       Running\n") == 2
    pauses.clear()
    lines = two("status", "--watch", "--json").out.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["Running", "Running"]
    assert pauses == [2.0, 2.0]


def test_status_while_a_plan_waits(two: Shell) -> None:
    plan = await_approval(two.project)

    said = two("status")

    assert "state       AwaitingApproval\n" in said.out
    assert f"plan        {plan.id} to bbbb2222\n" in said.out
    assert "\nchanges of the plan:\n  modified views: honours\n" in said.out
    assert said.out.endswith(f"\nhint: `sqlmig approve {plan.id}`, or `sqlmig reject {plan.id}`\n")
    answer = two("status", "--json").json
    assert answer["state"] == "AwaitingApproval"
    assert answer["details"] == two("diff", "deployed", "head", "--json").json
    assert answer["plan_target"] == "bbbb2222"
    assert answer["deployer"] is None


def test_status_while_a_plan_runs_and_after_its_process_died(two: Shell) -> None:
    running = start(two.project, owner=living_process())
    said = two("status").out
    assert "state       Bootstrapping\n" in said
    assert f"plan        {running.id} to bbbb2222, 2 of {len(running.steps)} steps done\n" in said
    assert re.search(r"run by      process \d+ on \S+\n", said)
    assert "hint" not in said
    two("stamp", "aaaa", "--purge")

    start(two.project)

    assert ", which died\n" in two("status").out
    assert two("status").out.endswith(
        "\nhint: `sqlmig repair` shows the plan, finishes it or takes it back\n"
    )
    assert two("status", "--json").json["is_deployer_alive"] is False


def test_the_worked_examples_diff_is_printed_exactly(school: Shell) -> None:
    for file in (school.folder / "pipeline").glob("*.sql"):
        file.unlink()
    school.write("pipeline/school.sql", SCHOOL)
    school.freeze("aaaa1111")
    school("stamp", "head")
    school.write("pipeline/school.sql", EXTENDED)
    school.freeze("bbbb2222", message="extend date range")

    for names in (["aaaa", "bbbb"], ["deployed", "head"], [], ["current", "working"]):
        assert school("diff", *names, "--json").out == WORKED_EXAMPLE
    await_approval(school.project)
    assert school("status", "--json").json["details"] == school("diff", "--json").json
    assert school("plan", "--offline", "--json").json["diff"] == school("diff", "--json").json


def test_diff_gives_reasons_and_goes_both_ways(two: Shell) -> None:
    assert two("diff").out == two("diff", "aaaa", "bbbb").out
    assert two("diff").out.startswith("~ materialized view honours: ")
    assert two("diff", "bbbb", "aaaa").out.startswith("~ materialized view honours: ")
    assert two("diff", "base", "aaaa").out == (
        "+ view avg_grade\n+ table grades\n+ materialized view honours\n+ table students\n"
    )
    assert two("diff", "aaaa", "base").out.splitlines()[0] == "- view avg_grade"
    said = two("diff", "head", "working")
    assert (said.out, said.err) == ("", "No changes.\n")


def test_diff_refuses_what_is_no_program(two: Shell) -> None:
    assert two("diff", "nope", code=1).err.startswith("error: no revision or branch `nope`")
    two.write("pipeline/tables.sql", TABLES.replace("BIGINT", "BIGINTT", 1))
    assert two("diff", code=1).err.startswith("error: pipeline/tables.sql:2:27: ")
    two("diff", "aaaa", "bbbb")


def test_reading_commands_need_no_ledger(school: Shell) -> None:
    school.freeze("aaaa1111")
    for words in (["status"], ["current"], ["diff"], ["history", "-i"], ["plan", "--offline"]):
        school(*words)

    assert not (school.folder / "warehouse").exists(), "and make none"
