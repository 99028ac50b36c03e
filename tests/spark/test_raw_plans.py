"""RETAIN RAW through the commands: what the plan knows of raw records, and what becomes of rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from tests.stories.school import make_project, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = (
    "CREATE TABLE clicks (id {kind}, page STRING{more});\n"
    "CREATE SOURCE web INTO clicks USING json OPTIONS (path 'landing') RETAIN RAW FOR 30 DAYS;\n"
    "CREATE MATERIALIZED VIEW pages AS SELECT page, count(*) AS n FROM clicks GROUP BY page;\n"
)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_pipeline_fills_a_column_and_makes_a_table_again_without_its_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    # given
    landing = tmp_path / "landing"
    landing.mkdir()
    rows = [{"id": 1, "page": "a", "agent": "x"}, {"id": "two", "page": "b", "agent": "y"}]
    (landing / "1.json").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def revise(name: str, sql: str) -> commands.Project:
        write_pipeline(tmp_path, {"all.sql": sql})
        commands.revision(commands.open_project(tmp_path), name, rev_id=name)
        return commands.open_project(tmp_path)

    make_project(tmp_path, {})
    commands.upgrade(revise("a", SQL.format(kind="STRING", more="")), "head")
    (landing / "1.json").unlink()

    # when
    project = revise("b", SQL.format(kind="STRING", more=", agent STRING"))
    plan = commands.upgrade(project, "head").plan

    # then
    assert [(v.relation, v.rows) for v in plan.steps[3].reads] == [("raw records of clicks.web", 2)]
    assert plan.warnings == ()
    found = commands.query(project, "SELECT * FROM clicks ORDER BY id").rows
    assert [row["agent"] for row in found] == ["x", "y"]

    # when: a value that can't be cast
    project = revise("c", SQL.format(kind="INT", more=", agent STRING"))
    done = commands.upgrade(project, "head", allow_destructive=True)

    # then
    causes = [step.cause for step in done.plan.steps]
    assert "its sources have kept all their raw records, and go on where they are" in causes
    assert done.tick is not None
    assert done.tick.ingested == {}
    found = commands.query(project, "SELECT * FROM clicks").rows
    assert [tuple(row.values()) for row in found] == [(1, "a", "x")]
    found = commands.query(project, "SELECT page, n FROM pages").rows
    assert [tuple(row.values()) for row in found] == [("a", 1)]
