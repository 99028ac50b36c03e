"""A school's pipeline: 2 tables, 12 models; revision 2 extends a range of dates, adds a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """A view, stored or not, and its query."""

    name: str
    query: str
    is_stored: bool = True


TABLES = """\
CREATE TABLE students (id BIGINT, name STRING, school INT, born DATE);
CREATE TABLE grades (student_id BIGINT, class STRING, grade DECIMAL(5, 2), class_date DATE);
"""
FIRST_END, SECOND_END = "2025-12-15", "2026-06-10"
ADDED = Model(
    "avg_grade_all_courses",
    "SELECT student_id, avg(class_avg) AS avg FROM avg_grade GROUP BY student_id",
)
INVALIDATED = ("avg_grade", "avg_grade_enriched", "class_ranking", "honours", ADDED.name)
"""What revision 2 changes or adds; the other eight models stay as they are."""


def students_query(count: int) -> str:
    """The rows of `students`."""
    return (
        "SELECT id, concat('student ', id) AS name, CAST(id % 120 AS INT) AS school, "
        f"date_add(DATE '2008-01-01', CAST(id % 2500 AS INT)) AS born FROM range({count})"
    )


def grades_query(count: int, students: int) -> str:
    """The rows of `grades`: even over students, 40 classes and the school year, without rand()."""
    return (
        f"SELECT id * 7919 % {students} AS student_id, "
        "concat('class ', lpad(CAST(abs(hash(id, 1)) % 40 AS STRING), 2, '0')) AS class, "
        "CAST(40 + abs(hash(id, 2)) % 6000 / 100.0 AS DECIMAL(5, 2)) AS grade, "
        f"date_add(DATE '2025-09-01', abs(hash(id, 3)) % 283) AS class_date FROM range({count})"
    )


def models(end: str) -> tuple[Model, ...]:
    """The twelve models, inputs before readers; `end` is the last day that `avg_grade` takes in."""
    return (
        Model(
            "avg_grade",
            "SELECT student_id, class, AVG(grade) AS class_avg, count(*) AS grades FROM grades "
            f"WHERE class_date >= DATE '2025-09-01' AND class_date <= DATE '{end}' "
            "GROUP BY student_id, class",
        ),
        Model(
            "avg_grade_enriched",
            "SELECT s.name AS student_name, s.school, a.class, a.class_avg "
            "FROM avg_grade a JOIN students s ON a.student_id = s.id",
        ),
        Model(
            "class_ranking",
            "SELECT class, student_id, class_avg, "
            "rank() OVER (PARTITION BY class ORDER BY class_avg DESC) AS place FROM avg_grade",
        ),
        Model(
            "honours",
            "SELECT student_name, class, class_avg FROM avg_grade_enriched WHERE class_avg >= 72",
        ),
        Model("passed", "SELECT * FROM grades WHERE grade >= 50", is_stored=False),
        Model(
            "monthly",
            "SELECT class, month(class_date) AS month, avg(grade) AS average, count(*) AS grades "
            "FROM grades GROUP BY class, month(class_date)",
        ),
        Model(
            "best_grades",
            "SELECT student_id, class, grade, place FROM (SELECT student_id, class, grade, "
            "row_number() OVER (PARTITION BY student_id ORDER BY grade DESC, class, class_date) "
            "AS place FROM grades) WHERE place <= 3",
        ),
        Model(
            "busy_days",
            "SELECT class_date, count(DISTINCT student_id) AS students FROM grades "
            "GROUP BY class_date",
        ),
        Model(
            "passed_classes",
            "SELECT student_id, count(DISTINCT class) AS classes FROM passed GROUP BY student_id",
        ),
        Model("lessons", "SELECT DISTINCT class, class_date FROM grades"),
        Model(
            "school_classes",
            "SELECT s.school, g.class, avg(g.grade) AS average, max(g.grade) AS best "
            "FROM passed g JOIN students s ON g.student_id = s.id GROUP BY s.school, g.class",
        ),
        Model(
            "class_sizes",
            "SELECT class, count(DISTINCT class_date) AS lessons FROM lessons GROUP BY class",
        ),
    )


def statements(chosen: tuple[Model, ...]) -> str:
    """The models as a pipeline's SQL."""
    return "\n".join(
        f"CREATE {'MATERIALIZED VIEW' if model.is_stored else 'VIEW'} {model.name} AS\n"
        f"{model.query};\n"
        for model in chosen
    )
