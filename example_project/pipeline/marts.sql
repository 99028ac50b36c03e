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
