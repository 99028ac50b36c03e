"""extend date range

Revision ID: 8f3c2a91d0be
Revises: 4f1c2d9a7b60
Create Date: 2026-11-21T13:00:15+00:00

~ view avg_grade: `class_date <= DATE '2025-12-15'` became `'2026-06-10'`
+ materialized view avg_grade_all_courses
~ materialized view avg_grade_enriched: reads `avg_grade`, which changed
"""

revision = "8f3c2a91d0be"
down_revision = "4f1c2d9a7b60"
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
WHERE class_date >= DATE '2025-09-01' AND class_date <= DATE '2026-06-10'
GROUP BY student_id, class;

-- The same, with the student's name.
CREATE MATERIALIZED VIEW avg_grade_enriched AS
SELECT
  name AS student_name,
  class,
  class_avg
FROM avg_grade
JOIN students ON avg_grade.student_id = students.id;

-- The average over all classes of a student.
CREATE MATERIALIZED VIEW avg_grade_all_courses AS
SELECT
  student_id,
  avg(class_avg) AS avg
FROM avg_grade
GROUP BY student_id;
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
