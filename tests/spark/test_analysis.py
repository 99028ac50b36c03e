"""Spark's analysis before anything is stopped: everything wrong at once, at its place."""

from __future__ import annotations

from sqlmig.program.type_shape import Field, shape_of
from tests.spark.pipelines import Pipeline

SQL = """CREATE TABLE grades (student_id INT, grade DECIMAL(5,2), class_date DATE);
CREATE VIEW good AS
SELECT student_id,
       grade
FROM grades WHERE grade > 2;
CREATE MATERIALIZED VIEW fine AS SELECT student_id, avg(grade) AS a FROM good GROUP BY student_id;
"""


def test_a_program_without_mistakes_has_no_blockers_and_reads_no_table(pipeline: Pipeline) -> None:
    # given: no table exists yet
    program = pipeline.use(SQL)

    # when
    blockers = pipeline.engine.analyze(program, ["fine"])

    # then
    assert list(blockers) == []


def test_the_columns_of_a_view_are_told_as_a_table_would_declare_them(pipeline: Pipeline) -> None:
    # given
    program = pipeline.use(
        SQL
        + """CREATE MATERIALIZED VIEW nested AS SELECT student_id AS Id, double(grade) AS g,
  named_struct('a b', class_date, 'c', array(map('x', 1))) AS s FROM grades;
CREATE MATERIALIZED VIEW wrong AS SELECT date_ad(class_date, 1) AS x FROM grades;
"""
    )

    # when
    found = pipeline.engine.columns(program, ["fine", "nested", "wrong"])

    # then
    assert found == {
        "fine": [Field("student_id", "int"), Field("a", "decimal(9,6)")],
        "nested": [
            Field("Id", "int"),
            Field("g", "double"),
            Field("s", "struct<`a b`:date,c:array<map<string,int>>>"),
        ],
    }
    nested = found["nested"][2].type
    assert [field.name for field in shape_of(nested).fields] == ["a b", "c"]


def test_every_mistake_is_told_at_its_place_and_none_twice(pipeline: Pipeline) -> None:
    # given
    program = pipeline.use(
        SQL
        + """CREATE MATERIALIZED VIEW wrong AS
  SELECT student_id,
         date_ad(class_date, 1) AS next
  FROM grades;
CREATE MATERIALIZED VIEW noise AS SELECT next FROM wrong;
CREATE MATERIALIZED VIEW loose AS SELECT student_id, sum(grade) AS s FROM grades;
CREATE MATERIALIZED VIEW empty AS SELECT NULL AS nothing,
  class_date - class_date AS days FROM grades;
CREATE TABLE defaulted (id INT DEFAULT one + 1);
"""
    )

    # when
    blockers = pipeline.engine.analyze(program, list(program.relations))

    # then
    told = {(str(b.location), b.message.split(":")[0]) for b in blockers}
    assert told == {
        ("pipeline/school.sql:9:10", "`wrong`"),
        ("pipeline/school.sql:12:35", "`loose`"),
        ("pipeline/school.sql:13:35", "`empty.nothing` has no type"),
        (
            "pipeline/school.sql:13:35",
            "`empty.days` is of type interval day, which Delta can't store",
        ),
        ("pipeline/school.sql:15:1", "`defaulted.id`"),
    }, "`noise` only reads a broken view"
    assert all("\n" not in b.message and "SQLSTATE" not in b.message for b in blockers)
    hints = {b.message.split(":")[0]: b.hint for b in blockers}
    assert hints["`empty.nothing` has no type"] == "write CAST(NULL AS string), or the type meant"
