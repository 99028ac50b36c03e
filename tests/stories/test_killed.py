"""Real processes killed in a plan: the next command goes on, or takes back.

Killed at every step: `tests/cluster/test_killed.py`, where a process needs no Java of its own.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig import commands
from sqlmig.planning.steps import Checkpoint, Resume, Stop
from tests.stories.killing import contents, school, undisturbed
from tests.stories.school import QUICK_JAVA, as_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_killed(root: Path, step: int, phase: str) -> int:
    """Upgrade in another process that kills itself; its exit code."""
    command = [sys.executable, "-m", "tests.stories.killed", str(root), str(step), phase]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        env=QUICK_JAVA,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_killed_before_an_effect_is_finished_by_repair(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    root = tmp_path / "school"
    project = school(root)
    shutil.copytree(root, tmp_path / "undisturbed")
    after, plan = undisturbed(tmp_path / "undisturbed")
    quiet = (Stop, Checkpoint, Resume)
    numbers = [s.number for s in plan.steps if not isinstance(s.action, quiet)]

    # when
    for number in (numbers[0], numbers[len(numbers) // 2], numbers[-1]):
        assert run_killed(root, number, "started") == -signal.SIGKILL
        with pytest.raises(Exception, match="unfinished") as refused:
            commands.execute(project, "INSERT INTO notes VALUES ('no')")
        assert "repair" in str(getattr(refused.value, "hint", ""))
    commands.repair(project, resume=True)
    commands.run(project)

    # then
    assert contents(project) == after


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_downgrade_takes_a_killed_upgrade_back_and_does_not_finish_it_first(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    root = tmp_path / "school"
    project = school(root)
    before = contents(project)
    _, plan = undisturbed(shutil.copytree(root, tmp_path / "undisturbed"))
    half = plan.steps[len(plan.steps) // 2].number
    assert run_killed(root, half, "effected") == -signal.SIGKILL
    shutil.copytree(root, tmp_path / "to_base")

    # when: `-1` counts from the revision that the upgrade was going to
    result = commands.downgrade(project, "-1")
    below = commands.downgrade(commands.open_project(tmp_path / "to_base"), "base")

    # then
    assert (result.status, result.taken_back, result.resumed) == ("applied", plan.id, None)
    state = commands.status(project)
    assert (state.state, state.revision, state.plan) == ("Running", "a", None)
    assert contents(project) == before
    assert (below.status, below.taken_back) == ("applied", plan.id)
    at_base = commands.status(commands.open_project(tmp_path / "to_base"))
    assert (at_base.state, at_base.revision) == ("Stopped", None)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_of_two_upgrades_at_once_one_applies_and_the_other_is_told(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    root = tmp_path / "school"
    project = school(root)
    command = [sys.executable, "-m", "sqlmig", "upgrade", "head", "--yes"]

    # when
    racers: list[Any] = [
        subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True, env=QUICK_JAVA)
        for _ in range(2)
    ]
    told = [racer.communicate(timeout=300)[1] for racer in racers]
    codes = [racer.returncode for racer in racers]

    # then
    assert sorted(codes) in ([0, 1], [0, 5]), told
    loser = told[codes.index(max(codes))]
    assert "is being run by process" in loser or "has moved since plan" in loser, loser
    assert "hint: " in loser
    assert "Traceback" not in loser
    assert commands.status(project).revision == "b"
    assert contents(project)["room_count"] == as_bag([{"rooms": 2}])
