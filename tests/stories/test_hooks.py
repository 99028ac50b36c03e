"""Hooks on real Spark and Delta: run once, not on a dry run; a failing one changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.errors import StepFailed
from tests.stories.school import as_bag, make_project, rows, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = """\
CREATE TABLE pupils (id BIGINT, name STRING, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW names AS SELECT upper(name) AS name FROM pupils;
"""
SECOND = (
    FIRST.replace("pupils", "students")
    .replace("name STRING", "full_name STRING, year INT")
    .replace("upper(name)", "upper(full_name)")
)
HOOKS = '''

def note(context):
    """Leaves a line in a file for each call."""
    with open({log!r}, "a", encoding="utf-8") as file:
        file.write(str(context.sql("SELECT count(*) AS n FROM students")[0]["n"]) + "\\n")
    {last}


def up(op):
    op.rename_table("pupils", "students")
    op.rename_column("students", "name", "full_name")
    op.execute("UPDATE students SET year = 2026")
    op.run(note)


def down(op):
    op.execute("UPDATE students SET full_name = concat(full_name, '!')")
    op.rename_table("students", "pupils")
    op.rename_column("pupils", "full_name", "name")
'''


def prepared(root: Path, last: str) -> tuple[Project, Path]:
    """Revision a deployed with two rows; revision b, with hooks, is ready."""
    project = make_project(root, {"all.sql": FIRST})
    commands.revision(project, "first", rev_id="a")
    commands.upgrade(project, "head")
    commands.execute(project, "INSERT INTO pupils VALUES (1, 'Alice'), (2, 'Bob')")
    commands.run(project)
    write_pipeline(root, {"all.sql": SECOND})
    file = commands.revision(project, "second", rev_id="b").file
    assert file is not None
    log = root / "calls.txt"
    text = file.text.split("\n\ndef up(op)")[0] + HOOKS.format(log=str(log), last=last)
    (root / file.path).write_text(text, encoding="utf-8")
    return commands.open_project(root), log


def test_hooks_are_shown_by_a_plan_and_run_once_by_an_upgrade(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project, log = prepared(tmp_path, "")

    # when it is only planned
    plan = commands.make_plan(project)

    # then
    from sqlmig.planning.explain import to_text

    shown = to_text(plan)
    assert "rename table `pupils` to `students`" in shown
    assert "execute: UPDATE students SET year = 2026" in shown
    assert "run note()" in shown
    assert not log.exists()

    # when
    commands.upgrade(project)

    # then
    assert log.read_text(encoding="utf-8") == "2\n"
    assert as_bag(rows(project, "SELECT * FROM students")) == as_bag(
        [{"id": 1, "full_name": "Alice", "year": 2026}, {"id": 2, "full_name": "Bob", "year": 2026}]
    )
    assert as_bag(rows(project, "SELECT * FROM names")) == as_bag(
        [{"name": "ALICE"}, {"name": "BOB"}]
    )

    # when the file is gone and it is taken back
    (tmp_path / "revisions").rename(tmp_path / "gone")
    project = commands.open_project(tmp_path)
    commands.downgrade(project, "-1")

    # then: down() ran before the tables were altered back
    assert as_bag(rows(project, "SELECT * FROM pupils")) == as_bag(
        [{"id": 1, "name": "Alice!"}, {"id": 2, "name": "Bob!"}]
    )
    assert as_bag(rows(project, "SELECT * FROM names")) == as_bag(
        [{"name": "ALICE!"}, {"name": "BOB!"}]
    )


def test_a_failing_hook_leaves_the_old_revision_and_its_data(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project, log = prepared(tmp_path, 'raise ValueError("no such school")')
    before = as_bag(rows(project, "SELECT * FROM pupils"))

    # when
    with pytest.raises(StepFailed) as failed:
        commands.upgrade(project)

    # then
    assert "no such school" in failed.value.message
    assert "back at revision a" in failed.value.message
    assert log.read_text(encoding="utf-8") == "2\n"
    state = commands.status(project)
    assert (state.state, state.revision, state.plan) == ("Running", "a", None)
    assert state.error is not None
    assert "no such school" in state.error
    assert as_bag(rows(project, "SELECT * FROM pupils")) == before
    assert as_bag(rows(project, "SELECT * FROM names")) == as_bag(
        [{"name": "ALICE"}, {"name": "BOB"}]
    )
