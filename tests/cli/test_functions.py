"""Functions on the command line: frozen, compared, shown and planned without Spark."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import new_project

SQL = """\
CREATE TABLE grades (student STRING, grade INT);
CREATE FUNCTION passed(grade INT) RETURNS BOOLEAN RETURN grade >= 50;
CREATE MATERIALIZED VIEW winners AS
SELECT initials(student) AS name FROM grades WHERE passed(grade);
"""
PYTHON = '''\
from sqlmig import function

@function(packages=["names==1.0"])
def initials(name: str) -> str:
    """As on a badge."""
    raise SystemExit("a file runs only when Spark needs it")
'''
PATH = "pipeline/functions/names.py"


def test_functions_are_frozen_compared_and_planned_with_the_sql(tmp_path: Path) -> None:
    # given
    shell = new_project(tmp_path, all=SQL)
    shell.write(PATH, PYTHON)
    said = shell("revision", "-m", "first", "--rev-id", "r1")
    frozen = shell.file_of("r1").read_text()

    # when
    planned = shell("plan", "head", "--offline")
    markdown = shell("plan", "head", "--offline", "--format", "markdown").out
    shown = shell("show", "r1").out
    shell.write(PATH, PYTHON.replace("As on a badge.", "As on a ring.") + "# the end\n")
    shell("check")
    shell.write(PATH, PYTHON.replace("1.0", "1.1"))
    changed = shell("check", code=1)
    difference = shell("diff", "head", "working").out
    as_json = shell("diff", "head", "working", "--json").json
    shell.freeze("r2")
    back = shell("diff", "r2", "r1").out

    # then
    for text in (said.err + said.out, planned.out):
        assert "+ function initials" in text
        assert "+ function passed" in text
        assert "+ materialized view winners" in text
    assert "| added | function | `passed` |  |" in markdown
    assert f'"{PATH}": """\\\n{PYTHON.splitlines()[0]}' in frozen
    assert "+ function passed" in shown
    assert "initials" in changed.err + changed.out
    assert difference.splitlines() == [
        "~ function initials: package `names` became 1.1 (was 1.0)",
        "~ materialized view winners: calls `initials`, whose pinned version of `names` changed",
    ]
    assert as_json["program_diff"]["modified_views"] == ["winners"]
    assert "initials" not in str(as_json)
    assert "package `names` became 1.0 (was 1.1)" in back


def test_mistakes_in_both_languages_are_told_together(tmp_path: Path) -> None:
    # given
    shell = new_project(tmp_path, all=SQL.replace("passed(grade INT)", "grades(grade INT)"))
    shell.write(PATH, "def initials(name:\n")

    # when
    said = shell("revision", "-m", "first", code=1)

    # then
    assert "error: pipeline/all.sql:2:17: `grades` is created twice" in said.err
    assert f"error: {PATH}:1:13: this is not Python: '(' was never closed" in said.err
