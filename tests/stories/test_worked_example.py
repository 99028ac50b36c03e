"""The worked example, command by command, with its exact results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig import commands
from tests.stories.school import (
    FIRST,
    GRADES,
    SECOND,
    STUDENTS,
    TABLES,
    make_project,
    rows,
    write_pipeline,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.example

ENRICHED = "SELECT * FROM avg_grade_enriched ORDER BY student_name, class"
BEFORE = [
    {"student_name": "Alice", "class": "algebra", "class_avg": 97.0},
    {"student_name": "Alice", "class": "physics", "class_avg": 89.0},
    {"student_name": "Bob", "class": "algebra", "class_avg": 85.0},
    {"student_name": "Bob", "class": "physics", "class_avg": 93.0},
]
AFTER = [
    {"student_name": "Alice", "class": "algebra", "class_avg": 96.0},
    {"student_name": "Alice", "class": "physics", "class_avg": 88.0},
    {"student_name": "Bob", "class": "algebra", "class_avg": 91.5},
    {"student_name": "Bob", "class": "physics", "class_avg": 92.0},
]
DETAILS: dict[str, Any] = {
    "added_input_connectors": [],
    "added_output_connectors": [],
    "modified_input_connectors": [],
    "modified_output_connectors": [],
    "program_diff": {
        "added_tables": [],
        "added_views": ["avg_grade_all_courses"],
        "modified_tables": [],
        "modified_views": ["avg_grade", "avg_grade_enriched"],
        "removed_tables": [],
        "removed_views": [],
    },
    "program_diff_error": None,
    "removed_input_connectors": [],
    "removed_output_connectors": [],
}


def test_the_worked_example_comes_out_exactly(tmp_path: Path, spark: SparkSession) -> None:
    # given: revision 1 with its rows
    project = make_project(tmp_path, {"tables.sql": TABLES, "marts.sql": FIRST})
    commands.revision(project, "averages per class", rev_id="r1")
    commands.upgrade(project, "head")
    commands.execute(project, STUDENTS)
    commands.execute(project, GRADES)
    commands.run(project)
    assert rows(project, ENRICHED) == BEFORE
    inputs = {n: commands.status(project).relations[n]["version"] for n in ("students", "grades")}

    # when: the date range is extended and a view added
    write_pipeline(tmp_path, {"tables.sql": TABLES, "marts.sql": SECOND})
    commands.revision(project, "extend date range", rev_id="r2")
    waiting = commands.upgrade(project, "head", policy="await_approval")

    # then: nothing has changed, and the state says what would
    state = commands.status(project)
    assert waiting.status == "awaiting_approval"
    assert (state.state, state.plan) == ("AwaitingApproval", waiting.plan.id)
    assert state.details == DETAILS
    assert waiting.plan.diff.to_json() == DETAILS
    assert rows(project, ENRICHED) == BEFORE

    # when it is approved
    commands.approve(project)

    # then: computed from the stored tables, which nobody wrote to
    assert rows(project, ENRICHED) == AFTER
    assert rows(project, "SELECT * FROM avg_grade_all_courses ORDER BY student_id") == [
        {"student_id": 1, "avg": 92.0},
        {"student_id": 2, "avg": 91.75},
    ]
    state = commands.status(project)
    assert (state.state, state.revision) == ("Running", "r2")
    assert {n: state.relations[n]["version"] for n in inputs} == inputs

    # when it is taken back
    back = commands.downgrade(project, "-1")

    # then: the first table holds again, restored and not computed, and the added view is gone
    assert rows(project, ENRICHED) == BEFORE
    assert [type(step.action).__name__ for step in back.plan.steps] == [
        "Stop",
        "Checkpoint",
        "Restore",
        "Detach",
        "Resume",
    ]
    with pytest.raises(Exception, match="avg_grade_all_courses"):
        commands.query(project, "SELECT * FROM avg_grade_all_courses")

    # when it is upgraded again, then the contents come back without computing
    again = commands.upgrade(project, "head")
    assert rows(project, ENRICHED) == AFTER
    assert "Bootstrap" not in [type(step.action).__name__ for step in again.plan.steps]
