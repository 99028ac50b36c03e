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
