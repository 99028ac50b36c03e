"""Real processes killed at every step of a plan: the next command goes on, or takes back."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.planning.steps import Checkpoint, Plan, Resume, Stop
from tests.stories.school import QUICK_JAVA, as_bag, make_project, write_pipeline
from tests.stories.school import contents as school_contents

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = """\
CREATE TABLE students (id BIGINT, name STRING, PRIMARY KEY (id));
CREATE TABLE grades (student_id BIGINT, class STRING, grade DECIMAL(5, 2));
CREATE TABLE notes (text STRING);
CREATE MATERIALIZED VIEW averages AS
SELECT name, avg(grade) AS average FROM grades JOIN students ON id = student_id GROUP BY name;
CREATE MATERIALIZED VIEW best AS SELECT max(average) AS best FROM averages;
CREATE MATERIALIZED VIEW note_count AS SELECT count(*) AS notes FROM notes;
"""
AFTER = """\
CREATE TABLE students (id BIGINT, full_name STRING, year INT, PRIMARY KEY (id));
CREATE TABLE marks (student_id BIGINT, class STRING, grade DECIMAL(5, 2));
CREATE TABLE rooms (id BIGINT);
CREATE SOURCE files INTO rooms USING json OPTIONS (path 'landing');
CREATE MATERIALIZED VIEW averages AS
SELECT full_name, year, avg(grade) AS average
FROM marks JOIN students ON id = student_id GROUP BY full_name, year;
CREATE MATERIALIZED VIEW best AS SELECT max(average) AS best FROM averages;
CREATE MATERIALIZED VIEW room_count AS SELECT count(*) AS rooms FROM rooms;
"""
HOOKS = '''

def count(context):
    """Called by a step of its own."""
    assert context.sql("SELECT count(*) AS n FROM students")[0]["n"] == 2


def up(op):
    op.rename_table("grades", "marks")
    op.rename_column("students", "name", "full_name")
    op.execute("UPDATE students SET year = 2026")
    op.execute("INSERT INTO marks VALUES (2, 'music', 10)")
    op.run(count)


def down(op):
    op.rename_table("marks", "grades")
    op.rename_column("students", "full_name", "name")
'''


def school(root: Path) -> Project:
    """Revision a is deployed with rows; revision b, with every kind of step, is ready."""
    project = make_project(root, {"all.sql": BEFORE})
    commands.revision(project, "first", rev_id="a")
    commands.upgrade(project, "head")
    commands.execute(project, "INSERT INTO students VALUES (1, 'Alice'), (2, 'Bob')")
    commands.execute(project, "INSERT INTO grades VALUES (1, 'algebra', 97), (2, 'algebra', 85)")
    commands.run(project)
    (root / "landing").mkdir()
    (root / "landing" / "rooms.json").write_text('{"id": 1}\n{"id": 2}\n', encoding="utf-8")
    write_pipeline(root, {"all.sql": AFTER})
    file = commands.revision(project, "second", rev_id="b").file
    assert file is not None
    path = root / file.path
    path.write_text(file.text.split("\n\ndef up(op)")[0] + HOOKS, encoding="utf-8")
    return commands.open_project(root)


def contents(project: Project) -> dict[str, list[str]]:
    """All rows of all deployed relations, as bags."""
    return school_contents(project, commands.status(project).relations)


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


def undisturbed(root: Path) -> tuple[dict[str, list[str]], Plan]:
    """What a copy of the project holds after an upgrade that nobody disturbs."""
    project = commands.open_project(root)
    plan = commands.upgrade(project, "head", yes=True).plan
    return contents(project), plan


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_killed_at_every_step_is_finished_by_the_next_or_taken_back(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    root = tmp_path / "school"
    project = school(root)
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
        assert run_killed(root, step.number, "effected") == -signal.SIGKILL

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
    assert sorted(codes) == [0, 1], told
    loser = told[codes.index(1)]
    assert "is being run by process" in loser or "has moved since plan" in loser, loser
    assert "hint: " in loser
    assert "Traceback" not in loser
    assert commands.status(project).revision == "b"
    assert contents(project)["room_count"] == as_bag([{"rooms": 2}])
