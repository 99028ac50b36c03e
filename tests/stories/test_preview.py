"""`plan --preview`: what it says of the rows is what the upgrade then does to them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.planning.explain import to_text
from sqlmig.planning.preview import Preview
from tests.stories.school import contents, deployed_project, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = """\
CREATE TABLE students (id BIGINT PRIMARY KEY, name STRING, tags MAP<STRING, INT>);
CREATE TABLE grades (student_id BIGINT, class STRING, grade INT);
CREATE VIEW good AS SELECT * FROM grades WHERE grade >= 90;
CREATE MATERIALIZED VIEW averages AS
SELECT student_id, class, avg(grade) AS average FROM good GROUP BY student_id, class;
CREATE MATERIALIZED VIEW best AS
SELECT name, max(average) AS average
FROM averages JOIN students ON students.id = averages.student_id GROUP BY name;
CREATE MATERIALIZED VIEW seen AS SELECT class FROM good;
CREATE MATERIALIZED VIEW leaving AS SELECT name FROM students;
CREATE MATERIALIZED VIEW untouched AS SELECT count(*) AS n FROM students;
"""
AFTER = """\
CREATE TABLE students (id BIGINT PRIMARY KEY, name STRING, tags MAP<STRING, INT>, home STRING);
CREATE TABLE grades (student_id BIGINT, class STRING, grade DECIMAL(5, 2));
CREATE VIEW good AS SELECT * FROM grades WHERE grade >= 85;
CREATE MATERIALIZED VIEW averages AS
SELECT student_id, class, avg(grade) AS average FROM good GROUP BY student_id, class;
CREATE MATERIALIZED VIEW best AS
SELECT name, max(average) AS average
FROM averages JOIN students ON students.id = averages.student_id GROUP BY name;
CREATE MATERIALIZED VIEW seen AS SELECT class FROM good;
CREATE MATERIALIZED VIEW untouched AS SELECT count(*) AS n FROM students;
CREATE MATERIALIZED VIEW homes AS SELECT home, count(*) AS n FROM students GROUP BY home;
"""
STUDENTS = (
    "INSERT INTO students VALUES (1, 'Alice', map('k', 1)), (2, 'Bob', NULL), (3, 'Eve', map())"
)
GRADES = """\
INSERT INTO grades VALUES (1, 'algebra', 97), (1, 'algebra', 85), (1, 'physics', 89),
(2, 'algebra', 85), (2, 'physics', 93), (3, 'algebra', 40)"""
LATE = "INSERT INTO grades VALUES (3, 'physics', 100)"


def versions(project: Project) -> dict[str, int]:
    """The Delta version of each folder of the warehouse."""
    return {
        state.folder: project.warehouse.version(state.folder)
        for state in project.deployment().cut.relations.values()
    }


def counts(preview: Preview) -> dict[str, tuple[int, int, int]]:
    """Rows added, removed and changed, by relation."""
    return {d.relation: (d.added, d.removed, d.changed) for d in preview.differences}


def test_the_rows_that_a_preview_tells_are_those_that_the_upgrade_makes(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given: a pipeline with rows, one of which no tick has seen
    project = deployed_project(tmp_path, {"all.sql": BEFORE})
    commands.execute(project, STUDENTS)
    commands.execute(project, GRADES)
    commands.run(project)
    commands.execute(project, LATE)
    write_pipeline(tmp_path, {"all.sql": AFTER})
    commands.revision(project, "more grades count", rev_id="r2")
    views = ["averages", "best", "seen"]
    rows = contents(project, [*views, "leaving", "untouched"])
    was, seq = versions(project), project.deployment().seq

    # when
    plan = commands.make_plan(project)
    preview = commands.preview(project, plan, samples=2)

    # then: nothing was written
    assert preview is not None
    assert (versions(project), project.deployment().seq) == (was, seq)
    # and what each relation gets is told, at the cut at which the views agree with the tables
    assert counts(preview) == {
        "averages": (2, 0, 1),
        "best": (0, 0, 1),
        "grades": (0, 0, 0),
        "homes": (1, 0, 0),
        "leaving": (0, 3, 0),
        "seen": (3, 0, 0),
        "students": (0, 0, 0),
        "untouched": (0, 0, 0),
    }
    by = {difference.relation: difference for difference in preview.differences}
    assert by["averages"].key == ("student_id", "class")
    assert by["best"].key == ("name",)
    assert by["seen"].key == ()
    assert by["students"].key == ("id",)
    assert by["students"].new_columns == ("home",)
    assert [dict(row) for row in by["leaving"].samples.removed] == [
        {"name": "Alice"},
        {"name": "Bob"},
    ]
    told = to_text(plan, preview=preview)
    assert "  materialized view averages: 2 added, 1 changed; 2 -> 4 rows, told apart by" in told
    assert "      ~ student_id=1, class=algebra: average: 97.0 -> " in told
    assert "  table students: column home added; 3 -> 3 rows\n" in told
    assert "  materialized view untouched: the same 1 row\n" in told

    # when: the late row is taken away again and the upgrade is made
    commands.execute(project, "DELETE FROM grades WHERE grade = 100")
    commands.upgrade(project, "head")

    # then: row by row, it did what was told
    now = contents(project, [*views, "homes", "untouched"])
    for name in views:
        gone, came = (
            Counter(rows[name]) - Counter(now[name]),
            Counter(now[name]) - Counter(rows[name]),
        )
        told_of = by[name]
        assert came.total() == told_of.added + told_of.changed, name
        assert gone.total() == told_of.removed + told_of.changed, name
        assert (told_of.before, told_of.after) == (len(rows[name]), len(now[name]))
    assert len(now["homes"]) == 1
    assert now["untouched"] == rows["untouched"]

    # and the way back is previewed, too, from the versions that are there
    back = commands.preview(project, commands.make_plan(project, "r1"), samples=0)
    assert back is not None
    assert counts(back) | {"leaving": (3, 0, 0)} == counts(back)
    assert counts(back)["averages"] == (0, 2, 1)
    assert all(not d.samples.added and not d.samples.changed for d in back.differences)


STREAMS = """\
CREATE TABLE people (id BIGINT PRIMARY KEY, name STRING);
CREATE TABLE events (id BIGINT, kind STRING, at DATE);
CREATE STREAMING TABLE seen AS SELECT id, kind, at FROM STREAM events;
CREATE STREAMING TABLE late AS SELECT id, at FROM STREAM events;
CREATE MATERIALIZED VIEW kinds AS SELECT kind, count(*) AS n FROM seen GROUP BY kind;
CREATE MATERIALIZED VIEW lates AS SELECT count(*) AS n FROM late;
CREATE MATERIALIZED VIEW named AS SELECT name FROM people;
"""
HOOKS = """
def up(op):
    op.rename_table("people", "persons")
    op.rename_column("persons", "name", "full_name")
    op.execute("DELETE FROM persons WHERE id = 1")
    op.backfill("late", since="2026-06-01", column="at")


def down(op):
    pass
"""


def test_streaming_tables_keep_their_rows_and_what_only_a_hook_knows_is_left_out(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project = deployed_project(tmp_path, {"all.sql": STREAMS})
    commands.execute(project, "INSERT INTO people VALUES (1, 'Alice'), (2, 'Bob')")
    commands.execute(
        project,
        "INSERT INTO events VALUES (1, 'a', DATE '2026-05-01'), (2, 'b', DATE '2026-07-01'), "
        "(3, 'b', DATE '2026-07-02')",
    )
    commands.run(project)
    after = STREAMS.replace(
        "people (id BIGINT PRIMARY KEY, name", "persons (id BIGINT PRIMARY KEY, full_name"
    )
    after = after.replace("SELECT name FROM people", "SELECT full_name AS name FROM persons")
    after = after.replace(
        "SELECT id, kind, at FROM", "SELECT id, upper(kind) AS kind, at, 2 * id AS twice FROM"
    )
    after = after.replace("SELECT id, at FROM", "SELECT 10 * id AS id, at FROM")
    write_pipeline(tmp_path, {"all.sql": after})
    file = commands.revision(project, "second", rev_id="r2").file
    assert file is not None
    text = file.text.split("\n\ndef up(op)")[0] + HOOKS
    (tmp_path / file.path).write_text(text, encoding="utf-8")
    project = commands.open_project(tmp_path)

    # when
    plan = commands.make_plan(project)
    preview = commands.preview(project, plan)

    # then
    assert plan.blockers == ()
    assert preview is not None
    by = {difference.relation: difference for difference in preview.differences}
    assert (by["seen"].before, by["seen"].after, by["seen"].new_columns) == (3, 3, ("twice",))
    assert counts(preview)["seen"] == counts(preview)["kinds"] == (0, 0, 0)
    assert by["late"].unknown == "what its rows are shows when it is deployed"
    assert by["lates"].unknown == "it reads `late`, which is not previewed"
    assert (by["persons"].before, by["persons"].after) == (2, 2)
    assert by["persons"].is_empty is True, "a renamed column is the same column"
    assert counts(preview)["named"] == (0, 0, 0)
    (note,) = preview.notes
    assert note.startswith("hooks are not run for a preview: what step ")
