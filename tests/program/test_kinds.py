"""Kinds of queries and kinds of changes."""

from __future__ import annotations

import pytest

from sqlmig.program.change_kinds import CHANGE_KINDS, ChangeKind, change_kinds
from sqlmig.program.diff import diff_programs
from sqlmig.program.model import Program
from sqlmig.program.query_kinds import QUERY_KINDS, QueryKind, query_kinds
from tests.program.pipelines import TABLES, program, with_view


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("SELECT name FROM students", "simple"),
        ("SELECT upper(name) AS n, id IS DISTINCT FROM 3 AS other FROM students", "simple"),
        ("SELECT name FROM students UNION ALL SELECT class FROM grades", "joined"),
        ("SELECT name FROM students UNION SELECT class FROM grades", "stateful, joined"),
        ("SELECT explode(tags) AS tag FROM rooms", "simple"),
        ("SELECT count(*) AS n FROM students", "stateful"),
        ("SELECT max(name) AS name FROM students", "stateful"),
        ("SELECT DISTINCT name FROM students", "stateful"),
        ("SELECT name FROM students ORDER BY id LIMIT 3", "stateful"),
        ("SELECT rank() OVER (ORDER BY id) AS r FROM students", "stateful"),
        ("SELECT name, class FROM students JOIN grades ON id = student_id", "joined"),
        ("SELECT name FROM students WHERE id IN (SELECT student_id FROM grades)", "joined"),
        (
            "SELECT name, count(*) AS n FROM grades JOIN students ON id = student_id GROUP BY name",
            "stateful, joined",
        ),
        (
            "SELECT max(n) AS n FROM (SELECT count(*) AS n FROM grades GROUP BY class)",
            "stateful, multistage",
        ),
        (
            "WITH c AS (SELECT count(*) AS n FROM grades GROUP BY class) SELECT max(n) AS n FROM c",
            "stateful, multistage",
        ),
        (
            "SELECT window(class_date, '7 days') AS w, count(*) AS n FROM grades "
            "GROUP BY window(class_date, '7 days')",
            "stateful, windowed",
        ),
        ("SELECT name, rand() AS r FROM students", "nondeterministic"),
        ("SELECT count(*) AS n, now() AS at FROM students", "stateful, nondeterministic"),
    ],
)
def test_a_query_is_of_these_kinds(query: str, kinds: str) -> None:
    assert ", ".join(query_kinds(with_view(query), "v")) == kinds


def test_logical_views_are_part_of_the_query_that_reads_them_and_stored_ones_are_not() -> None:
    # given
    pipeline = program(
        "CREATE VIEW counts AS SELECT class, count(*) AS n FROM grades GROUP BY class",
        "CREATE VIEW names AS SELECT name, class FROM students JOIN grades ON id = student_id",
        "CREATE MATERIALIZED VIEW kept AS SELECT class, n, now() AS at FROM counts",
        "CREATE VIEW plain AS SELECT class FROM counts WHERE n > 1",
        "CREATE VIEW most AS SELECT max(n) AS n FROM kept",
        "CREATE VIEW all_names AS SELECT name FROM names",
        "CREATE VIEW rows_kept AS SELECT n FROM kept",
    )

    # then
    kinds = {name: ", ".join(query_kinds(pipeline, name)) for name in pipeline.views}
    assert kinds == {
        "counts": "stateful",
        "names": "joined",
        "kept": "stateful, nondeterministic",
        "plain": "stateful",
        "most": "stateful, multistage",
        "all_names": "joined",
        "rows_kept": "simple",
    }


BASE = "SELECT id, name FROM students WHERE id > 3"


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        (BASE, BASE.replace("3", "4"), "data selection"),
        (BASE, "SELECT id, name FROM students", "data selection"),
        (BASE, BASE.replace("SELECT", "SELECT DISTINCT"), "data selection"),
        (BASE, BASE + " LIMIT 3", "data selection"),
        (BASE, BASE.replace("name", "upper(name) AS name"), "data selection"),
        (
            BASE,
            BASE.replace("name", "CAST(name AS INT) AS name"),
            "data selection, schema evolution",
        ),
        (BASE, BASE.replace("id, name", "id"), "schema evolution"),
        (BASE, BASE.replace("id, name", "name, id"), "schema evolution"),
        (BASE, BASE.replace("name", "name AS full_name"), "schema evolution"),
        (BASE, "SELECT /*+ COALESCE(1) */ id, name FROM students WHERE id > 3", "scaling"),
        (
            BASE,
            "SELECT /*+ BROADCAST(students) */ id, name FROM students WHERE id > 3",
            "transparent",
        ),
        (
            BASE,
            "SELECT id, name FROM students JOIN grades ON id = student_id WHERE id > 3",
            "source modifying",
        ),
        (
            "SELECT name FROM students JOIN grades ON id = student_id",
            "SELECT name FROM students LEFT JOIN grades ON id = student_id",
            "source modifying",
        ),
        (BASE, "SELECT id, name FROM (SELECT * FROM students) WHERE id > 3", "topology"),
        (
            BASE,
            BASE.replace("> 3", "> 4") + " UNION ALL SELECT id, name FROM students",
            "data selection, topology",
        ),
        (
            BASE,
            "SELECT student_id AS id, class AS name FROM grades",
            "data selection, source modifying",
        ),
    ],
)
def test_a_change_of_a_query_is_of_these_kinds(before: str, after: str, kinds: str) -> None:
    assert _kinds(with_view(before), with_view(after), "v") == kinds


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("a int", "a int, b int", "schema evolution"),
        ("a int", "a bigint", "schema evolution"),
        ("a int, b int", "b int, a int", "schema evolution"),
        ("a int", "a int COMMENT 'x'", "transparent"),
        ("a int DEFAULT 1", "a int DEFAULT 2", "data selection"),
        ("a int, PRIMARY KEY (a)", "a int NOT NULL", "source modifying"),
    ],
)
def test_a_change_of_a_table_is_of_these_kinds(before: str, after: str, kinds: str) -> None:
    tables = [program(tables=f"CREATE TABLE t ({columns});\n") for columns in (before, after)]
    assert _kinds(tables[0], tables[1], "t") == kinds


def test_what_comes_goes_or_is_affected_has_a_kind_too() -> None:
    # given
    source = "CREATE SOURCE s INTO students USING json OPTIONS (path '{}')"
    sink = "CREATE SINK k FROM students USING json OPTIONS (path '{}')"
    before = program(
        "CREATE VIEW a AS SELECT 1 AS x",
        "CREATE VIEW b AS SELECT x FROM a",
        "CREATE VIEW kept AS SELECT name FROM students",
        source.format("x"),
        sink.format("x"),
    )
    after = program(
        "CREATE VIEW a AS SELECT 2 AS x",
        "CREATE VIEW b AS SELECT x FROM a",
        "CREATE VIEW c AS SELECT 2 AS x",
        "CREATE MATERIALIZED VIEW kept AS SELECT name FROM students",
        source.format("y"),
        sink.format("y"),
    )

    # then
    assert _kinds(before, after, "b") == "source modifying"
    assert _kinds(before, after, "c") == "topology"
    assert _kinds(after, before, "c") == "topology"
    assert _kinds(before, after, "kept") == "topology"
    assert _kinds(before, after, "students.s") == "source modifying"
    assert _kinds(before, after, "students.k") == "topology"


def test_columns_that_a_star_gives_are_the_schema() -> None:
    wider = TABLES.replace("name string", "name string, year int")
    query = "SELECT * FROM students"
    kinds = _kinds(with_view(query), with_view(query, tables=wider), "v")
    assert kinds == "schema evolution"


def test_each_kind_is_said_in_words() -> None:
    assert set(QUERY_KINDS) == set(QueryKind)
    assert set(CHANGE_KINDS) == set(ChangeKind)


def _kinds(before: Program, after: Program, name: str) -> str:
    (change,) = [c for c in diff_programs(before, after).changes if c.name == name]
    return ", ".join(change_kinds(before, after, change))
