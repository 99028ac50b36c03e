"""Projects that the stories use, driven through `sqlmig.commands` as by a user's script."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlmig import commands
from sqlmig.cli.output import to_json
from sqlmig.commands import Project
from tests.java import SHORT_LIVED, SMALL, submit_options

# The environment of a process that lives seconds: with Spark as it is, and for a handful of rows.
WHOLE_SPARK = {**os.environ, "JAVA_TOOL_OPTIONS": SHORT_LIVED}
QUICK_JAVA = {**WHOLE_SPARK, "SPARK_SUBMIT_OPTS": submit_options(SMALL)}

CONFIG = """\
pipeline: {name}
targets:
  local:
    spark: {{master: "local[*]"}}
    warehouse: warehouse
    bootstrap_policy: {policy}
"""

TABLES = """\
CREATE TABLE students (id BIGINT, name STRING);
CREATE TABLE grades (student_id BIGINT, class STRING, grade DECIMAL(5, 2), class_date DATE);
"""

FIRST = """\
CREATE VIEW avg_grade AS
SELECT student_id, class, AVG(grade) AS class_avg
FROM grades
WHERE class_date >= DATE '2025-09-01' AND class_date <= DATE '2025-12-15'
GROUP BY student_id, class;

CREATE MATERIALIZED VIEW avg_grade_enriched AS
SELECT name AS student_name, class, class_avg
FROM avg_grade JOIN students ON avg_grade.student_id = students.id;
"""

SECOND = (
    FIRST.replace("2025-12-15", "2026-06-10")
    + """
CREATE MATERIALIZED VIEW avg_grade_all_courses AS
SELECT student_id, avg(class_avg) AS avg FROM avg_grade GROUP BY student_id;
"""
)

STUDENTS = "INSERT INTO students VALUES (1, 'Alice'), (2, 'Bob')"
GRADES = """\
INSERT INTO grades VALUES
(1, 'algebra', 97, DATE '2025-09-15'), (1, 'physics', 89, DATE '2025-11-15'),
(2, 'algebra', 85, DATE '2025-10-22'), (2, 'physics', 93, DATE '2025-12-05'),
(1, 'algebra', 95, DATE '2026-01-15'), (1, 'physics', 87, DATE '2026-03-15'),
(2, 'algebra', 98, DATE '2026-04-22'), (2, 'physics', 91, DATE '2026-05-05')"""


def make_project(
    root: Path, files: Mapping[str, str], *, name: str = "school", policy: str = "allow"
) -> Project:
    """A project in `root` whose pipeline/ holds `files` (name -> SQL)."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "sqlmig.yml").write_text(CONFIG.format(name=name, policy=policy), encoding="utf-8")
    (root / "revisions").mkdir(exist_ok=True)
    write_pipeline(root, files)
    return commands.open_project(root)


def deployed_project(root: Path, files: Mapping[str, str]) -> Project:
    """A project whose pipeline/ is frozen as revision `r1` and deployed."""
    project = make_project(root, files)
    commands.revision(project, "first", rev_id="r1")
    commands.upgrade(project, "head")
    return project


def with_hook(project: Project, name: str, line: str, *, empty: bool = False) -> Project:
    """The project with a new revision of what is in pipeline/, whose `up` does one thing."""
    new = commands.revision(project, name, rev_id=name, empty=empty)
    assert new.file is not None
    path = project.root / new.file.path
    text = path.read_text(encoding="utf-8")
    before, after = "def up(op):\n", f"def up(op):\n    {line}\n"
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), encoding="utf-8")
    return commands.open_project(project.root)


def write_pipeline(root: Path, files: Mapping[str, str]) -> None:
    """Put `files` (name -> SQL) into pipeline/, and nothing else."""
    folder = root / "pipeline"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.sql"):
        old.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def rows(project: Project, sql: str) -> list[dict[str, Any]]:
    """The rows of a query as a script gets them: through JSON, decimals as numbers."""
    answer = commands.query(project, sql)
    found: list[dict[str, Any]] = json.loads(to_json([dict(row) for row in answer.rows]))
    return found


def contents(project: Project, names: Iterable[str]) -> dict[str, list[str]]:
    """The rows of relations as bags, by one query: each costs a second."""
    wanted = sorted(names)
    if not wanted:
        return {}
    sql = " UNION ALL ".join(
        f"SELECT '{name}' AS relation, "
        f"to_json(struct(*), map('ignoreNullFields', 'false')) AS row FROM {name}"
        for name in wanted
    )
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in wanted}
    for row in commands.query(project, sql).rows:
        found[row["relation"]].append(json.loads(row["row"]))
    return {name: as_bag(rows) for name, rows in found.items()}


def as_bag(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows without their order, repeated ones kept."""
    return sorted(json.dumps(_plain(row), sort_keys=True) for row in found)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: float(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        else value
        for name, value in row.items()
    }
