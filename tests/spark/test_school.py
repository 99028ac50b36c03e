"""The worked example on the engine alone: tables, statements, views pinned to versions."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from sqlmig.errors import EngineError
from sqlmig.execution.values import Mark
from tests.spark.pipelines import Pipeline

SCHOOL = """
CREATE TABLE students (id INT, name STRING, PRIMARY KEY (id));
CREATE TABLE grades (student_id INT, class STRING, grade DECIMAL(5,2), class_date DATE);
CREATE VIEW avg_grade AS
SELECT student_id, class, AVG(grade) AS class_avg FROM grades
WHERE class_date BETWEEN DATE '2025-09-01' AND DATE '{until}'
GROUP BY student_id, class;
CREATE MATERIALIZED VIEW avg_grade_enriched AS
SELECT s.name AS student_name, a.class, CAST(a.class_avg AS DECIMAL(5,2)) AS class_avg
FROM avg_grade a JOIN students s ON s.id = a.student_id;
"""
GRADES = """INSERT INTO grades VALUES
  (1, 'algebra', 97, '2025-09-15'), (1, 'physics', 89, '2025-11-15'),
  (2, 'algebra', 85, '2025-10-22'), (2, 'physics', 93, '2025-12-05'),
  (1, 'algebra', 95, '2026-01-15'), (1, 'physics', 87, '2026-03-15'),
  (2, 'algebra', 98, '2026-04-22'), (2, 'physics', 91, '2026-05-05')"""
ALL = "SELECT * FROM avg_grade_enriched ORDER BY student_name, class"


@pytest.fixture
def school(pipeline: Pipeline) -> Pipeline:
    pipeline.use(SCHOOL.format(until="2025-12-15"))
    pipeline.create()
    pipeline.execute("INSERT INTO students VALUES (1, 'Alice'), (2, 'Bob')")
    pipeline.execute(GRADES)
    pipeline.refresh("avg_grade_enriched")
    return pipeline


def test_the_worked_example_is_computed_extended_and_put_back(school: Pipeline) -> None:
    # given: revision 1
    first = school.states["avg_grade_enriched"]
    before = [
        ("Alice", "algebra", Decimal("97.00")),
        ("Alice", "physics", Decimal("89.00")),
        ("Bob", "algebra", Decimal("85.00")),
        ("Bob", "physics", Decimal("93.00")),
    ]
    assert school.rows(ALL) == before, "revision 1"

    # when: the range is extended
    school.use(SCHOOL.format(until="2026-06-10"))
    written = school.refresh("avg_grade_enriched")

    # then
    assert written.rows == written.written == 4, "rows come from Delta's statistics"
    assert [row[2] for row in school.rows(ALL)] == [
        Decimal("96.00"),
        Decimal("88.00"),
        Decimal("91.50"),
        Decimal("92.00"),
    ], "revision 2"
    back = school.warehouse.restore("avg_grade_enriched", first.version)
    assert back is not None, "delta-rs restores what Spark wrote"
    school.note("avg_grade_enriched", back)
    assert school.rows(ALL) == before, "put back"


def test_a_view_reads_its_inputs_at_the_versions_of_the_cut(school: Pipeline) -> None:
    # given: rows that came after the cut
    cut = dict(school.states)
    school.execute("DELETE FROM grades")

    # when
    school.states = cut
    school.refresh("avg_grade_enriched")

    # then
    assert len(school.rows(ALL)) == 4, "the deleted rows are in the cut's version"


def test_a_refresh_carries_its_mark_and_is_made_once(school: Pipeline) -> None:
    # given
    mark = Mark("school", "run-7", 3, "r7", "print", {"grades": "grades@1"})
    first = school.refresh("avg_grade_enriched", mark)

    # when: the process died before it could note the step, and runs it again
    again = school.refresh("avg_grade_enriched", mark)

    # then
    assert again == first, "the second run changes nothing"
    assert school.warehouse.find_mark("avg_grade_enriched", "run-7", 3) == first.version
    assert school.warehouse.find_mark("avg_grade_enriched", "run-7", 4) is None
    state = {"v": school.states["avg_grade_enriched"]}
    state["v"] = type(state["v"])(**{**state["v"].__dict__, "version": -1})
    seen = school.warehouse.observe(state)["avg_grade_enriched"]
    assert seen.fingerprint == "print", "the commit says what it was computed from"
    assert seen.inputs == {"grades": "grades@1"}


def test_a_view_takes_over_a_folder_and_any_column_name(school: Pipeline) -> None:
    # given: a table with change data feed left in the folder
    school.use(
        "CREATE TABLE counts (n INT); CREATE TABLE students (id INT, name STRING, PRIMARY KEY (id))"
    )
    school.create("counts")

    # when
    school.use(
        "CREATE TABLE students (id INT, name STRING, PRIMARY KEY (id));"
        "CREATE MATERIALIZED VIEW counts AS "
        "SELECT count(1), max(name) AS `most, of all` FROM students"
    )
    school.refresh("counts")

    # then
    names, rows = school.engine.query(school.program, "SELECT * FROM counts", school.states)
    assert list(names) == ["count(1)", "most, of all"]
    assert [list(row.values()) for row in rows] == [[2, "Bob"]]


def test_a_view_that_fails_keeps_its_contents_and_says_why(school: Pipeline) -> None:
    # given
    school.use(SCHOOL.format(until="2025-12-15").replace("s.name AS", "CAST(s.name AS INT) AS"))

    # when
    with pytest.raises(EngineError) as caught:
        school.refresh("avg_grade_enriched")

    # then
    assert "cannot be cast" in caught.value.message
    assert "\n" not in caught.value.message
    assert "Exception" not in caught.value.message
    school.use(SCHOOL.format(until="2025-12-15"))
    assert len(school.rows(ALL)) == 4, "what was there is still there"


def test_the_mark_of_a_commit_is_json(school: Pipeline) -> None:
    # when
    path = school.warehouse.table_path("avg_grade_enriched")
    newest = next(school.warehouse.commits(path))

    # then
    assert newest.mark is not None
    assert json.loads(newest.mark.to_json()) == newest.note
