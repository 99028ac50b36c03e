"""Small pipelines for the tests of the program, and the shortest way to compare two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sqlmig.errors import ProgramError, ProgramErrors
from sqlmig.program.diff import ProgramDiff, diff_programs
from sqlmig.program.model import Program
from sqlmig.program.parse import parse_program

TABLES = """
CREATE TABLE students (id int, name string, PRIMARY KEY (id));
CREATE TABLE grades (student_id int, class string, grade decimal(5,2), class_date date);
CREATE TABLE rooms (id int, door struct<a:int,b:string>, tags array<string>, extra map<string,int>);
"""


def program(*statements: str, tables: str = TABLES) -> Program:
    """The program of the tables above and these statements."""
    return parse_program({"pipeline/all.sql": tables + ";\n".join(statements)})


def with_view(query: str, *, tables: str = TABLES) -> Program:
    """The program of the tables above and one view `v`."""
    return program(f"CREATE VIEW v AS {query}", tables=tables)


def diff_of_queries(before: str, after: str) -> ProgramDiff:
    """What changes when the query of `v` does."""
    return diff_programs(with_view(before), with_view(after))


def mistakes(sql: str) -> list[tuple[str, str, str | None]]:
    """The mistakes in one file: where, what, hint."""
    with pytest.raises(ProgramErrors) as caught:
        parse_program({"pipeline/all.sql": sql})
    return [_mistake(error) for error in caught.value.errors]


def _mistake(error: ProgramError) -> tuple[str, str, str | None]:
    where = str(error.location).removeprefix("pipeline/all.sql:")
    return where, error.message, error.hint


def sql_of(neutral: Mapping[str, Any]) -> str:
    """The neutral form of a program as SQL."""
    statements = []
    for table in neutral["tables"]:
        columns = [f"{name} {type_}" for name, type_ in table["cols"]]
        if table.get("pk"):
            columns.append(f"PRIMARY KEY ({', '.join(table['pk'])})")
        statements.append(f"CREATE TABLE {table['name']} ({', '.join(columns)})")
    for view in neutral["views"]:
        query, kind = view["sql"], "MATERIALIZED VIEW"
        if view.get("streaming"):
            kind = "STREAMING TABLE"
            for word in ("FROM", "JOIN"):
                query = query.replace(f"{word} ", f"{word} STREAM ")
        statements.append(f"CREATE {kind} {view['name']} AS {query}")
    return ";\n".join(statements)
