"""The example project as a user runs it: its walkthrough, and the installed command."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stories.school import WHOLE_SPARK

EXAMPLE = Path(__file__).parents[2] / "example_project"
SQLMIG = Path(sys.executable).with_name("sqlmig")


def run(root: Path, *command: str, expected: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in the project, as typed."""
    environment = {**WHOLE_SPARK, "NO_COLOR": "1", "COLUMNS": "100"}
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=400, check=False, env=environment
    )
    assert done.returncode == expected, done.stdout + done.stderr
    return done


def table_after(output: str, command: str, nth: int) -> list[list[str]]:
    """The cells of the table that the `nth` run of `command` printed."""
    section = output.split(f"$ sqlmig {command}\n")[nth + 1]
    lines = section.split("\n$ ")[0].splitlines()
    rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in lines if line.startswith("|")]
    return rows[1:]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_walkthrough_shows_the_numbers_of_the_worked_example(tmp_path: Path) -> None:
    # given
    root = tmp_path / "example"
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("warehouse", ".sqlmig"))

    # when
    output = run(root, sys.executable, "walkthrough.py").stdout

    # then: the rows before, after approval, and after going back
    enriched = 'query "SELECT * FROM avg_grade_enriched ORDER BY ALL"'
    before = [
        ["Alice", "algebra", "97.000000"],
        ["Alice", "physics", "89.000000"],
        ["Bob", "algebra", "85.000000"],
        ["Bob", "physics", "93.000000"],
    ]
    assert table_after(output, enriched, 0) == before
    assert table_after(output, enriched, 1) == [
        ["Alice", "algebra", "96.000000"],
        ["Alice", "physics", "88.000000"],
        ["Bob", "algebra", "91.500000"],
        ["Bob", "physics", "92.000000"],
    ]
    courses = 'query "SELECT * FROM avg_grade_all_courses ORDER BY ALL"'
    assert [[a, float(b)] for a, b in table_after(output, courses, 0)] == [
        ["1", 92.0],
        ["2", 91.75],
    ]
    assert table_after(output, enriched, 2) == before
    assert re.search(r"^state +AwaitingApproval$", output, re.MULTILINE)

    # then: the installed command goes on from there; what needs no Spark starts none
    without_java = {"JAVA_HOME": "/nowhere"}
    environment = {**os.environ, **without_java}
    current = subprocess.run(
        [SQLMIG, "current", "--json"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert json.loads(current.stdout)["revision"] == "4f1c2d9a7b60"
    subprocess.run(
        [SQLMIG, "downgrade", "base"], cwd=root, capture_output=True, check=True, env=environment
    )
    status = json.loads(run(root, str(SQLMIG), "status", "--json").stdout)
    assert status["revision"] is None
    assert status["relations"] == {}


def test_the_example_is_what_its_head_froze(tmp_path: Path) -> None:
    # when
    done = run(EXAMPLE, str(SQLMIG), "check")
    difference = run(EXAMPLE, str(SQLMIG), "diff", "head-1", "head", "--json")

    # then
    assert "No changes" in done.stderr
    assert json.loads(difference.stdout)["program_diff"] == {
        "added_tables": [],
        "added_views": ["avg_grade_all_courses"],
        "modified_tables": [],
        "modified_views": ["avg_grade", "avg_grade_enriched"],
        "removed_tables": [],
        "removed_views": [],
    }
