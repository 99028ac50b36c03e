"""INSERT, UPDATE, DELETE and MERGE, read by their tokens, without Spark."""

from __future__ import annotations

import pytest

from sqlmig.errors import EngineError
from sqlmig.program.model import Column
from sqlmig.program.parse import parse_program
from sqlmig.spark.dml import read_statement, target_table
from sqlmig.spark.rewriting import rewritten, with_defaults

PROGRAM = parse_program(
    {
        "p.sql": "CREATE TABLE grades (id INT, grade INT DEFAULT 5);"
        "CREATE VIEW good AS SELECT * FROM grades WHERE grade > 2;"
        "CREATE MATERIALIZED VIEW best AS SELECT max(grade) AS m FROM good"
    }
)
GRADES = PROGRAM.tables["grades"]


@pytest.mark.parametrize(
    ("sql", "columns", "query"),
    [
        ("INSERT INTO grades VALUES (1, 2);", (), "VALUES (1, 2)"),
        ("insert into table `Grades` (ID) values (1)", ("ID",), "values (1)"),
        ("INSERT INTO grades (SELECT 1, 2)", (), "(SELECT 1, 2)"),
        ("INSERT INTO grades BY NAME SELECT 1 AS id", (), "SELECT 1 AS id"),
        (
            "WITH x AS (SELECT 1 AS id) INSERT INTO grades (id) SELECT id FROM x",
            ("id",),
            "WITH x AS (SELECT 1 AS id) SELECT id FROM x",
        ),
    ],
)
def test_an_insert_is_its_table_its_columns_and_its_query(
    sql: str, columns: tuple[str, ...], query: str
) -> None:
    # when
    statement = read_statement(sql)

    # then
    assert statement.target == "grades"
    assert statement.columns == columns
    assert statement.query == query


@pytest.mark.parametrize(
    ("sql", "rewrite"),
    [
        ("UPDATE grades SET grade = grades.id", "UPDATE T AS grades SET grade = grades.id"),
        ("UPDATE grades g SET grade = DEFAULT", "UPDATE T g SET grade = (5)"),
        ("DELETE FROM `grades` WHERE id = 1;", "DELETE FROM T AS `grades` WHERE id = 1"),
        ("DELETE FROM grades", "DELETE FROM T AS grades"),
        (
            "MERGE INTO grades AS t USING good s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "MERGE INTO T AS t USING good s ON t.id = s.id WHEN MATCHED THEN DELETE",
        ),
        (
            "MERGE INTO grades t USING good s ON t.id = s.id WHEN NOT MATCHED AND f(s.id, 1) > 2 "
            "THEN INSERT (id) VALUES (g(s.id, 1)) WHEN NOT MATCHED THEN INSERT (id, grade) "
            "VALUES (1, DEFAULT)",
            "MERGE INTO T t USING good s ON t.id = s.id WHEN NOT MATCHED AND f(s.id, 1) > 2 "
            "THEN INSERT (id, `grade`) VALUES (g(s.id, 1), (5)) WHEN NOT MATCHED THEN INSERT "
            "(id, grade) VALUES (1, (5))",
        ),
        (
            "DELETE FROM grades -- of 'grades'\nWHERE id = 1",
            "DELETE FROM T AS grades -- of 'grades'\nWHERE id = 1",
        ),
    ],
)
def test_only_the_targets_name_is_replaced(sql: str, rewrite: str) -> None:
    assert rewritten(read_statement(sql), GRADES, "T") == rewrite


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        ("SELECT 1", "`SELECT` can't be executed", "sqlmig query"),
        ("INSERT OVERWRITE grades VALUES (1)", "INSERT OVERWRITE is not taken", "DELETE"),
        ("INSERT INTO a.grades VALUES (1)", "`a.…` is no table", "plain names"),
        ("DELETE FROM grades; DELETE FROM grades", "more than one statement", "at a time"),
        ("INSERT INTO grades", "has no rows", "VALUES"),
        ("INSERT INTO grades VALUES ('a", "a string is not closed", "close it"),
        ("", "there is no statement", "INSERT"),
        ("MERGE WITH SCHEMA EVOLUTION INTO grades USING x ON 1 = 1", "is not taken", "revision"),
    ],
)
def test_what_is_not_taken_is_said_with_what_to_do(sql: str, message: str, hint: str) -> None:
    with pytest.raises(EngineError) as caught:
        read_statement(sql)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("grade", "there is no table `grade`", "did you mean `grades`?"),
        ("best", "`best` is a materialized view: its query fills it", "write to `grades`"),
        ("good", "`good` is a view: its query fills it", "write to `grades`"),
    ],
)
def test_only_input_tables_are_written(name: str, message: str, hint: str) -> None:
    with pytest.raises(EngineError) as caught:
        target_table(PROGRAM, read_statement(f"DELETE FROM {name}"))
    assert message in caught.value.message
    assert caught.value.hint == hint


def test_default_in_values_is_the_columns_own() -> None:
    # given
    columns = [Column("a", "int", default="1 + 1"), Column("b", "string")]

    # when
    query = with_defaults("VALUES (DEFAULT, 'DEFAULT'), (f(1, 2), default)", columns)

    # then
    assert query == "VALUES ((1 + 1), 'DEFAULT'), (f(1, 2), (NULL))"
