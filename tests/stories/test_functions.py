"""Functions change, and what calls them follows: by the frozen text, whatever the checkout says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlmig import commands
from sqlmig.planning.explain import to_markdown, to_text
from sqlmig.planning.steps import Bootstrap, Plan, Restore
from sqlmig.program.diff import ProgramDiff
from tests.stories.school import make_project, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """\
CREATE TABLE grades (student STRING, grade INT);
CREATE FUNCTION passed(grade INT) RETURNS BOOLEAN RETURN grade >= 50;
CREATE FUNCTION verdict(grade INT) RETURNS STRING RETURN if(passed(grade), 'yes', 'no');
CREATE VIEW verdicts AS SELECT student, verdict(grade) AS verdict FROM grades;
CREATE MATERIALIZED VIEW winners AS SELECT student FROM verdicts WHERE verdict = 'yes';
CREATE MATERIALIZED VIEW names AS SELECT initials(student) AS name FROM grades;
CREATE MATERIALIZED VIEW plain AS SELECT student FROM grades;
"""
PYTHON = """\
from sqlmig import function

@function
def initials(name: str) -> str:
    return name[:1] + "."
"""


def test_a_changed_function_recomputes_its_readers_and_going_back_restores_them(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project = make_project(tmp_path, {"all.sql": SQL})
    python = tmp_path / "pipeline/functions/names.py"
    python.parent.mkdir()
    python.write_text(PYTHON, encoding="utf-8")
    first = commands.revision(project, "first", rev_id="r1")
    commands.upgrade(project, "head")
    commands.execute(project, "INSERT INTO grades VALUES ('Alice', 60), ('Bob', 40)")
    python.write_text("this is no Python", encoding="utf-8")  # the checkout goes on
    commands.run(commands.open_project(tmp_path))
    before = state(tmp_path)

    # when: a body in SQL
    python.write_text("# a comment\n" + PYTHON, encoding="utf-8")
    sql = tmp_path / "pipeline/all.sql"
    sql.write_text(SQL.replace("grade >= 50", "grade >= 30"), encoding="utf-8")
    project = commands.open_project(tmp_path)
    second = commands.revision(project, "milder", rev_id="r2")
    plan = commands.make_plan(project, "head")
    commands.upgrade(project, "head")
    milder = state(tmp_path)

    # and: a body in Python
    python.write_text(PYTHON.replace('"."', '"*"'), encoding="utf-8")
    project = commands.open_project(tmp_path)
    third = commands.revision(project, "stars", rev_id="r3")
    starred = commands.make_plan(project, "head")
    commands.upgrade(project, "head")
    stars = state(tmp_path)
    back = commands.make_plan(project, "r1")
    commands.downgrade(project, "r1")

    # then
    assert "pipeline/functions/names.py" in (first.file.files if first.file else {})
    assert before == (["Alice"], ["A.", "B."], ["Alice", "Bob"])
    assert milder == (["Alice", "Bob"], ["A.", "B."], ["Alice", "Bob"])
    assert stars == (["Alice", "Bob"], ["A*", "B*"], ["Alice", "Bob"])
    assert state(tmp_path) == before
    assert lines(second.diff) == [
        "function passed modified: `grade >= 50` became `30`",
        "function verdict affected: `verdict` calls `passed`, whose body changed",
        "view verdicts modified: calls `verdict`, which calls `passed`, whose body changed",
        "view winners affected: reads `verdicts`, which changed",
    ]
    assert second.diff.to_json()["program_diff"] == {
        "added_tables": [],
        "added_views": [],
        "modified_tables": [],
        "modified_views": ["verdicts", "winners"],
        "removed_tables": [],
        "removed_views": [],
    }
    assert "~ view verdicts: calls `verdict`, which calls `passed`" in to_text(plan)
    assert "| modified | function | `passed` | `grade >= 50` became `30` |" in to_markdown(plan)
    assert computed(plan) == ["winners"]
    assert lines(third.diff) == [
        "function initials modified: its body changed, or what that depends on in its file",
        "view names modified: calls `initials`, whose body changed",
    ]
    assert computed(starred) == ["names"]
    assert computed(back) == []
    assert restored(back) == ["names", "winners"]


def state(root: Path) -> tuple[list[str], ...]:
    project = commands.open_project(root)
    sql = (
        "SELECT 1 AS n, student AS x FROM winners UNION ALL SELECT 2, name FROM names "
        "UNION ALL SELECT 3, student FROM plain ORDER BY n, x"
    )
    found = rows(project, sql)
    return tuple([row["x"] for row in found if row["n"] == n] for n in (1, 2, 3))


def lines(diff: ProgramDiff) -> list[str]:
    return [f"{c.what} {c.name} {c.how}: {'; '.join(c.reasons)}" for c in diff.changes]


def computed(plan: Plan) -> list[str]:
    return sorted(s.action.relation for s in plan.steps if isinstance(s.action, Bootstrap))


def restored(plan: Plan) -> list[str]:
    return sorted(s.action.relation for s in plan.steps if isinstance(s.action, Restore))
