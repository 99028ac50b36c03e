"""gc as a command, on a ledger without data; and a silent deployer, which is watched once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sqlmig import commands
from sqlmig.commands.cuts import find_cut
from sqlmig.errors import EngineError, RejectedError, UnfinishedPlanError
from sqlmig.execution import events
from sqlmig.execution.clock import utc_now
from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.ledger.records import Kind, Owner, Status
from tests.cli.shell import Shell, new_project
from tests.commands.ledgers import start
from tests.stories.school import make_project


def with_dropped(tmp_path: Path) -> Shell:
    """A project whose ledger knows a dropped table, of which a file lies there."""
    shell = new_project(tmp_path, tables="CREATE VIEW v AS SELECT 1 AS a;")
    shell.freeze("r1")
    project = shell.project
    commands.stamp(project, "head")
    dropped = RelationState("old", "table", 3, "old@3", "f", rows=1, bytes=8)
    project.journal.append(
        Kind.TICK, Status.DONE, cut=Cut(relations={"old": dropped}).to_dict(), revision="r1"
    )
    project.journal.append(
        Kind.STAMP, Status.DONE, revision="r1", program={}, cut={"removed": ["old"]}
    )
    shell.write("warehouse/tables/old/part-0.parquet", "12345678")
    return shell


def test_what_would_go_is_listed_and_then_goes(tmp_path: Path) -> None:
    # given
    shell = with_dropped(tmp_path)
    folder = tmp_path / "warehouse" / "tables" / "old"

    # when
    kept = shell("gc")
    listed = shell("gc", "--older-than", "0s", "--dry-run")
    assert folder.exists()
    gone = shell("gc", "--older-than", "0s", "--json")

    # then
    assert (kept.out, kept.err) == ("", "Nothing to remove.\n")
    assert listed.out == (
        "all  tables/old  1 file  8 B  no revision that was deployed for 0 seconds has it\n"
    )
    assert listed.err == "Would remove 1 file, 8 B.\n"
    assert gone.json == {
        "dry_run": False,
        "files": 1,
        "bytes": 8,
        "removed": [
            {
                "kind": "tables",
                "name": "old",
                "is_whole": True,
                "files": 1,
                "bytes": 8,
                "why": "no revision that was deployed for 0 seconds has it",
            }
        ],
    }
    assert not folder.exists()
    assert shell.project.deployment().cut.detached == {}
    assert shell("status", "--json").json["collected_at"] is not None


def test_a_person_may_refuse(tmp_path: Path) -> None:
    project = with_dropped(tmp_path).project
    with pytest.raises(RejectedError) as caught:
        commands.gc(project, older_than=0, confirm=lambda findings: findings.files == 0)
    assert caught.value.message == "not confirmed; nothing was removed"
    assert (tmp_path / "warehouse" / "tables" / "old").exists()


def test_a_cut_that_was_removed_is_refused_with_the_date(tmp_path: Path) -> None:
    shell = with_dropped(tmp_path)
    then = utc_now()
    commands.gc(shell.project, older_than=0)
    with pytest.raises(EngineError) as caught:
        find_cut(shell.project, then.isoformat())
    assert "what only cuts before " in caught.value.message
    assert f"{then:%Y-%m-%d}" in caught.value.message


def test_an_object_store_is_refused(tmp_path: Path) -> None:
    shell = new_project(tmp_path)
    shell.write("sqlmig.yml", "pipeline: s\ntargets: {local: {warehouse: 's3a://lake/school'}}\n")
    said = shell("gc", code=1)
    assert "the warehouse at s3a://lake/school is in an object store" in said.err
    assert "hint: run Spark's VACUUM on its tables" in said.err


def test_while_a_plan_is_unfinished_it_is_refused(tmp_path: Path) -> None:
    shell = new_project(tmp_path)
    shell.freeze("r1")
    start(shell.project)
    with pytest.raises(UnfinishedPlanError):
        commands.gc(shell.project, older_than=0)


def test_a_downgrade_watches_a_silent_deployer_of_another_machine_once(tmp_path: Path) -> None:
    # given: a downgrade that died elsewhere, of revisions that differ in a logical view
    project = make_project(tmp_path, {"all.sql": "CREATE VIEW v AS SELECT 1 AS a;"})
    commands.revision(project, "first", rev_id="r1")
    (tmp_path / "pipeline" / "all.sql").write_text("CREATE VIEW v AS SELECT 2 AS a;")
    commands.revision(commands.open_project(tmp_path), "second", rev_id="r2")
    project = commands.open_project(tmp_path)
    commands.stamp(project, "r2")
    plan = commands.make_plan(project, "r1", direction="downgrade", offline=True)
    owner = Owner("dead", "another-host", 7, "1", "another-machine", lease=0.3)
    project.journal._clock = lambda: utc_now() - timedelta(hours=1)
    project.journal.append(
        Kind.PLAN,
        Status.STARTED,
        plan=plan.id,
        revision=plan.target,
        program=dict(plan.stages[-1]),
        program_diff=plan.diff.to_json(),
        details={"plan": plan.to_dict(), "owner": owner.to_dict()},
    )
    told: list[events.Event] = []

    # when
    done = commands.downgrade(commands.open_project(tmp_path), "r1", observer=told.append)

    # then
    assert (done.status, done.resumed) == ("nothing_to_do", plan.id)
    watched = [event for event in told if isinstance(event, events.LeaseWatched)]
    assert watched == [events.LeaseWatched("process 7 on another-host", 0.3)]
