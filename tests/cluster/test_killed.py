"""Real processes killed at every step of a plan: the next command goes on, or takes back.

The processes are clients of one Spark Connect server: a dozen of them would spend most of their
lives on starting a Spark of their own.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from tests.cluster.desk import Desk
from tests.cluster.servers import Server
from tests.stories.killing import contents, school, undisturbed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def clients(client: Path, without_java: Mapping[str, str], connect: Server) -> Iterator[Desk]:
    """Starts processes that reach Spark over Connect."""
    desk = Desk(client, {"remote": connect.address}, without_java)
    yield desk
    desk.close()


def test_a_run_killed_at_every_step_is_finished_by_the_next_or_taken_back(
    tmp_path: Path, spark: SparkSession, clients: Desk
) -> None:
    # given: two targets, one warehouse
    root = tmp_path / "school"
    project = school(root)
    _add_target(root, clients)
    before = contents(project)
    shutil.copytree(root, tmp_path / "undisturbed")
    after, plan = undisturbed(tmp_path / "undisturbed")
    assert {type(s.action).__name__ for s in plan.steps} >= {
        "Stop",
        "Checkpoint",
        "RenameTable",
        "CreateTable",
        "AlterTable",
        "Execute",
        "RunFunction",
        "StartSource",
        "Bootstrap",
        "Detach",
        "Resume",
    }

    # when: each process goes on where the last one died, and dies after its next step's effect
    for step in plan.steps:
        _run_killed(clients, root, step.number)

        # then: a copy, taken back, is as it was, and says so (at every third step: it takes long)
        if step.number % 3:
            continue
        copy = tmp_path / f"copy{step.number}"
        shutil.copytree(root, copy)
        taken_back = commands.open_project(copy)
        shown = commands.repair(taken_back)
        assert shown is not None
        assert shown.target == "b"
        commands.repair(taken_back, rollback=True)
        state = commands.status(taken_back)
        assert (state.state, state.revision, state.plan) == ("Running", "a", None)
        assert contents(taken_back) == before, step
        shutil.rmtree(copy)

    # then: a plain second upgrade finishes the plan
    result = commands.upgrade(commands.open_project(root), "head", yes=True)
    assert result.resumed == plan.id
    commands.run(commands.open_project(root))
    assert contents(commands.open_project(root)) == after


def _add_target(root: Path, clients: Desk) -> None:
    """The same warehouse, reached over Connect."""
    config = (root / "sqlmig.yml").read_text(encoding="utf-8")
    target = {"spark": dict(clients.spark), "warehouse": "warehouse", "bootstrap_policy": "allow"}
    text = f"{config}  server: {json.dumps(target)}\ndefault_target: local\n"
    (root / "sqlmig.yml").write_text(text, encoding="utf-8")


def _run_killed(clients: Desk, root: Path, step: int) -> None:
    """Upgrade in a process that kills itself when the effect of `step` is made."""
    words = ("tests.stories.killed", str(root), str(step), "effected", "server")
    process = clients.start(root, *words)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, said
