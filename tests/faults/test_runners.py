"""Runners that are killed while they tick: the next one goes on, and counts every record once."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from tests.faults.processes import RUNS
from tests.stories.running import Producer, await_records, log, make_project, runner, taken_in
from tests.stories.school import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_runner_killed_at_random_points_loses_nothing_and_reads_nothing_twice(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    root = tmp_path / "events"
    project = make_project(root)
    commands.upgrade(project, "head")

    # when: each runner takes the place of the one that was killed before
    with Producer(root / "landing", every=0.2) as producer:
        for seed in range(max(2, RUNS // 10)):
            before = taken_in(project)
            with runner(root) as process:
                await_records(project, before)
                time.sleep(random.Random(seed).uniform(0, 3))
                process.send_signal(signal.SIGKILL)
                process.wait(timeout=60)
            assert "Running revision r0" in log(root)

    # then
    commands.run(commands.open_project(root))
    project = commands.open_project(root)
    expected = {"events": producer.count, "ids": producer.count}
    assert rows(project, "SELECT * FROM totals") == [expected]
    taken = [r for r in project.ledger.read(is_whole=True)[1] if r.status.value == "taken_over"]
    assert taken, "the ledger tells that a runner was replaced"
