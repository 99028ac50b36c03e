"""averages per class

Revision ID: 4f1c2d9a7b60
Revises: <base>
Create Date: 2026-11-21T13:00:13+00:00

+ view avg_grade
+ materialized view avg_grade_enriched
+ table grades
+ source grades.grade_files
+ table students
+ source students.student_files
"""

revision = "4f1c2d9a7b60"
down_revision = None
branch_labels = None
depends_on = None

program = {
    "pipeline/marts.sql": """\
-- Average grade per student and class over a range of dates.
CREATE VIEW avg_grade AS
SELECT
  student_id,
  class,
  AVG(grade) AS class_avg
FROM grades
WHERE class_date >= DATE '2025-09-01' AND class_date <= DATE '2025-12-15'
GROUP BY student_id, class;

-- The same, with the student's name.
CREATE MATERIALIZED VIEW avg_grade_enriched AS
SELECT
  name AS student_name,
  class,
  class_avg
FROM avg_grade
JOIN students ON avg_grade.student_id = students.id;
""",
    "pipeline/tables.sql": """\
-- Input tables, and the files that feed them. Each file is read once.

CREATE TABLE students (
  id BIGINT,
  name STRING
);

CREATE TABLE grades (
  student_id BIGINT,
  class STRING,
  grade DECIMAL(5, 2),
  class_date DATE
);

CREATE SOURCE student_files INTO students USING json OPTIONS (path '${landing}/students');

CREATE SOURCE grade_files INTO grades USING csv OPTIONS (path '${landing}/grades', header 'true');
""",
}


def up(op):
    pass


def down(op):
    pass
