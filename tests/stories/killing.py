"""A deployed school, a revision with every kind of step ready above it, and what must come out."""

from __future__ import annotations

from pathlib import Path

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.planning.steps import Plan
from tests.stories.school import contents as school_contents
from tests.stories.school import make_project, write_pipeline

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


def undisturbed(root: Path) -> tuple[dict[str, list[str]], Plan]:
    """What a copy of the project holds after an upgrade that nobody disturbs."""
    project = commands.open_project(root)
    plan = commands.upgrade(project, "head", yes=True).plan
    return contents(project), plan
