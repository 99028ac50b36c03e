"""Pipelines that run in a process of their own, and are upgraded by another."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.ledger.records import Kind, Status
from tests.stories.running import (
    Producer,
    await_records,
    counted_program,
    eventually,
    freeze,
    log,
    make_project,
    runner,
    taken_in,
)
from tests.stories.school import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UPGRADES = 20


def total(project: Project) -> dict[str, int]:
    """What the view that no upgrade changes counts."""
    return rows(project, "SELECT * FROM totals")[0]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_upgrades_while_data_keeps_coming_lose_nothing_and_read_nothing_twice(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    root = tmp_path / "events"
    project = make_project(root)
    links = counted_program(tmp_path / "programs", "readlink")
    commands.upgrade(project, "head")
    with runner(root, links.parent) as process, Producer(root / "landing") as producer:
        await_records(project, 0)

        # when
        for number in range(1, UPGRADES + 1):
            freeze(root, number)
            result = commands.upgrade(commands.open_project(root), "head", yes=True)
            assert result.tick is None, f"the runner goes on, and ticks by itself\n{log(root)}"
            if number % 5 == 0:  # four come at once after another; then the runner has five ticks
                for _ in range(5):
                    await_records(project, taken_in(project))
        assert process.poll() is None, log(root)

        # then: the same process went on with each, and no input was read between stop and resume
        eventually(lambda: f"Running revision r{UPGRADES}" in log(root))
    project = commands.open_project(root)
    commands.run(project)
    assert total(project) == {"events": producer.count, "ids": producer.count}
    kinds = rows(project, "SELECT sum(n) AS n, count(*) AS kinds FROM kinds")[0]
    assert kinds == {"n": producer.count + 3 * UPGRADES, "kinds": 3}
    assert input_read_during_upgrades(project) == []

    # and the runner's JVM started no process for a file that it commits or keeps offsets in
    calls = links.read_text(encoding="utf-8").splitlines()
    assert [call for call in calls if "/warehouse/" in call] == []


def input_read_during_upgrades(project: Project) -> list[int]:
    """The ticks that began between an upgrade's checkpoint and its end, and wrote to the table."""
    spans, began = [], 0
    for record in project.ledger.read(is_whole=True)[1]:
        if record.kind is Kind.STEP and record.details.get("is_checkpoint"):
            began = record.seq
        if record.kind is Kind.PLAN and record.status is Status.APPLIED:
            spans.append((began, record.seq))
    assert len(spans) == UPGRADES + 1
    marks = [c.mark for c in project.warehouse.commits(project.warehouse.table_path("events"))]
    ticks = [int(m.run.split("-")[1]) for m in marks if m and m.run.startswith("tick-")]
    assert len(ticks) > UPGRADES, "records came all the time"
    return [seq for seq in ticks if any(start <= seq < end for start, end in spans)]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_runner_that_was_stopped_for_longer_than_its_lease_wakes_up_fenced_off(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    root = tmp_path / "events"
    project = make_project(root, lease="4s")
    commands.upgrade(project, "head")
    with runner(root) as process:
        Producer(root / "landing").produce()
        eventually(lambda: "tick    refresh `totals`" in log(root))
        eventually(lambda: taken_in(project) == 1)

        # when
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        freeze(root, 1)
        began = time.monotonic()
        commands.upgrade(commands.open_project(root), "head", yes=True)
        waited = time.monotonic() - began
        versions = {n: r["version"] for n, r in commands.status(project).relations.items()}
        another = Producer(root / "landing")
        another.count = 1
        another.produce()
        process.send_signal(signal.SIGCONT)
        code = process.wait(timeout=120)

    # then
    assert waited >= 4
    assert code == 1
    assert "error: the tick was fenced off: another process works on the pipeline" in log(root)
    observed = project.warehouse.observe(project.deployment().cut.relations)
    assert {n: observed[n].version for n in versions} == versions
    stop = next(
        r
        for r in reversed(project.ledger.read(is_whole=True)[1])
        if r.kind is Kind.STEP and r.step == 1 and r.status is Status.DONE
    )
    assert "was gone, and was replaced" in stop.details["note"]
    commands.run(commands.open_project(root))
    assert total(commands.open_project(root)) == {"events": 2, "ids": 2}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_runner_is_stopped_resumed_and_ended_and_former_cuts_can_be_read(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    root = tmp_path / "events"
    project = make_project(root)
    commands.upgrade(project, "head")
    producer = Producer(root / "landing")
    with runner(root) as process:
        producer.produce()
        eventually(lambda: taken_in(project) == 1)
        eventually(lambda: commands.status(project).relations["totals"]["version"] == 1)
        commands.checkpoint(project, "one")

        # when
        commands.stop(project)
        eventually(lambda: commands.status(project).state == "Stopped")
        producer.produce()
        time.sleep(1)
        assert taken_in(project) == 1
        commands.resume(project)
        eventually(lambda: taken_in(project) == 2)
        eventually(lambda: commands.status(project).relations["totals"]["version"] == 2)
        process.send_signal(signal.SIGTERM)

        # then
        assert process.wait(timeout=120) == 0
    assert "Ended after" in log(root)
    status = commands.status(project)
    assert (status.state, status.runner) == ("Running", None)
    before = commands.query(project, "SELECT events FROM totals", at="one").rows
    now = commands.query(project, "SELECT events FROM totals").rows
    assert (before, now) == ([{"events": 1}], [{"events": 2}])
