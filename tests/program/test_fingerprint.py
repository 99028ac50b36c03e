"""Pairs of queries: which differences count, and which don't."""

from __future__ import annotations

import pytest

from sqlmig.program.canonical import fingerprint, materialization_fingerprint
from sqlmig.program.diff import diff_programs
from tests.program.pipelines import TABLES, diff_of_queries, program, with_view

UNCHANGED = {
    "white space": ("SELECT id, name FROM students", "SELECT\n  id ,\tname\nFROM   students"),
    "a line comment": ("SELECT id FROM students", "SELECT id -- the key\nFROM students"),
    "a nested comment": ("SELECT id FROM students", "SELECT id /* a /* b */ c */ FROM students"),
    "a comment carried over": ("SELECT id FROM students", "SELECT id -- a \\\n b\nFROM students"),
    "case of keywords": ("SELECT id FROM students", "select id from students"),
    "case of names": ("SELECT id FROM students", "SELECT ID FROM Students"),
    "case of functions": ("SELECT MAX(id) AS m FROM students", "SELECT max(id) AS M FROM students"),
    "quoting": ("SELECT id FROM students", "SELECT `id` FROM `students`"),
    "an alias added": (
        "SELECT students.id FROM students WHERE students.name > 'a'",
        "SELECT s.id FROM students s WHERE s.name > 'a'",
    ),
    "AS left out": ("SELECT s.id FROM students AS s", "SELECT s.id FROM students s"),
    "an unused alias": ("SELECT id FROM students", "SELECT id FROM students AS x"),
    "aliases of a join": (
        "SELECT s.name, g.grade FROM students s JOIN grades g ON s.id = g.student_id",
        "SELECT a.name, b.grade FROM students AS a JOIN grades AS b ON a.id = b.student_id",
    ),
    "aliases swapped": (
        "SELECT a.name FROM students a JOIN grades b ON a.id = b.student_id",
        "SELECT b.name FROM students b JOIN grades a ON b.id = a.student_id",
    ),
    "aliases of a self join": (
        "SELECT a.id FROM students a JOIN students b ON a.id < b.id",
        "SELECT x.id FROM students x JOIN students y ON x.id < y.id",
    ),
    "an alias in a nested query": (
        "SELECT q.id FROM (SELECT s.id FROM students s) q",
        "SELECT z.id FROM (SELECT t.id FROM students t) AS z",
    ),
    "an alias in a correlated query": (
        "SELECT s.id FROM students s WHERE EXISTS (SELECT 1 FROM grades g WHERE g.student_id = "
        "s.id)",
        "SELECT a.id FROM students a WHERE EXISTS (SELECT 1 FROM grades b WHERE b.student_id = "
        "a.id)",
    ),
    "one alias for two inputs of different blocks": (
        "SELECT s.id FROM students s WHERE s.id IN (SELECT s.student_id FROM grades s)",
        "SELECT s.id FROM students s WHERE s.id IN (SELECT g.student_id FROM grades g)",
    ),
    "the alias of a CTE": (
        "WITH c AS (SELECT id FROM students) SELECT c.id FROM c",
        "WITH c AS (SELECT id FROM students) SELECT x.id FROM c x",
    ),
    "the alias of a lateral view": (
        "SELECT r.id, t.tag FROM rooms r LATERAL VIEW explode(r.tags) t AS tag",
        "SELECT q.id, u.tag FROM rooms q LATERAL VIEW explode(q.tags) u AS tag",
    ),
    "the alias in a window": (
        "SELECT g.grade, rank() OVER (PARTITION BY g.class ORDER BY g.grade) r FROM grades g",
        "SELECT q.grade, rank() OVER (PARTITION BY q.class ORDER BY q.grade) r FROM grades q",
    ),
    "aliases in a union": (
        "SELECT s.id FROM students s UNION ALL SELECT g.student_id FROM grades g",
        "SELECT a.id FROM students a UNION ALL SELECT a.student_id FROM grades a",
    ),
    "the alias of a star": ("SELECT s.* FROM students s", "SELECT students.* FROM students"),
    "the alias of a struct's field": (
        "SELECT r.door.a FROM rooms r",
        "SELECT q.door.a FROM rooms AS q",
    ),
    "an alias that is also a column of a plain type": (
        "SELECT class.grade FROM grades class",
        "SELECT g.grade FROM grades g",
    ),
}

CHANGED = {
    "a number": ("SELECT id + 1 AS a FROM students", "SELECT id + 2 AS a FROM students"),
    "the type of a number": (
        "SELECT id + 1 AS a FROM students",
        "SELECT id + 1L AS a FROM students",
    ),
    "a string": (
        "SELECT id FROM students WHERE name = 'a'",
        "SELECT id FROM students WHERE name = 'b'",
    ),
    "the case of a string": (
        "SELECT id FROM students WHERE name = 'a'",
        "SELECT id FROM students WHERE name = 'A'",
    ),
    "white space in a string": (
        "SELECT id FROM students WHERE name = 'a b'",
        "SELECT id FROM students WHERE name = 'a  b'",
    ),
    "a comment mark in a string": (
        "SELECT id FROM students WHERE name = 'a -- b'",
        "SELECT id FROM students WHERE name = 'a'",
    ),
    "a doubled quote and two strings": (
        "SELECT 'a''b' AS x FROM students",
        "SELECT 'a' 'b' AS x FROM students",
    ),
    "a raw string": (r"SELECT r'a\n' AS x FROM students", r"SELECT 'a\n' AS x FROM students"),
    "a hint": ("SELECT id FROM students", "SELECT /*+ COALESCE(1) */ id FROM students"),
    "the argument of a hint": (
        "SELECT /*+ COALESCE(1) */ id FROM students",
        "SELECT /*+ COALESCE(2) */ id FROM students",
    ),
    "an output's name": ("SELECT id AS a FROM students", "SELECT id AS b FROM students"),
    "the name of an alias that a hint names": (
        "SELECT /*+ BROADCAST(a) */ a.id FROM students a JOIN grades b ON a.id = b.student_id",
        "SELECT /*+ BROADCAST(a) */ b.id FROM students b JOIN grades a ON b.id = a.student_id",
    ),
    "which input is named": (
        "SELECT a.id FROM students a LEFT JOIN students b ON a.id < b.id",
        "SELECT b.id FROM students a LEFT JOIN students b ON a.id < b.id",
    ),
    "which of two equal aliases is meant": (
        "SELECT 1 FROM students s WHERE EXISTS (SELECT 1 FROM grades g WHERE s.id = g.student_id)",
        "SELECT 1 FROM students g WHERE EXISTS (SELECT 1 FROM grades g WHERE g.student_id = "
        "g.student_id)",
    ),
    "a join's kind": (
        "SELECT s.id FROM students s JOIN grades g ON s.id = g.student_id",
        "SELECT s.id FROM students s LEFT JOIN grades g ON s.id = g.student_id",
    ),
    "the order of inputs": ("SELECT * FROM students, rooms", "SELECT * FROM rooms, students"),
    "ALL left out": (
        "SELECT id FROM students UNION ALL SELECT id FROM rooms",
        "SELECT id FROM students UNION SELECT id FROM rooms",
    ),
    "a quoted keyword": (
        "SELECT current_date AS a FROM students",
        "SELECT `current_date` AS a FROM students",
    ),
    "a quoted name with a dot": (
        "SELECT r.door.a FROM rooms r",
        "SELECT `r.door`.a FROM rooms r",
    ),
    "a CTE in front of a table": (
        "WITH c AS (SELECT id FROM students) SELECT id FROM students",
        "WITH students AS (SELECT id FROM students) SELECT id FROM students",
    ),
    "a subtraction and a comment": (
        "SELECT id - -1 AS a FROM students",
        "SELECT id --1 AS a\n AS a FROM students",
    ),
    "an alias that may be a struct's name": (
        "SELECT door.a FROM rooms JOIN (SELECT id AS a FROM students) door ON true",
        "SELECT door.a FROM rooms JOIN (SELECT id AS a FROM students) other ON true",
    ),
    "the name of an input that is also a struct": (
        "SELECT door.id FROM rooms door",
        "SELECT r.id FROM rooms r",
    ),
}


@pytest.mark.parametrize(("before", "after"), UNCHANGED.values(), ids=UNCHANGED)
def test_a_query_is_unchanged_by(before: str, after: str) -> None:
    # when
    diff = diff_of_queries(before, after)

    # then
    assert diff.changes == ()


@pytest.mark.parametrize(("before", "after"), CHANGED.values(), ids=CHANGED)
def test_a_query_is_modified_by(before: str, after: str) -> None:
    # when
    diff = diff_of_queries(before, after)

    # then
    assert diff.names("view", "modified") == ("v",)
    assert diff.changes[0].reasons


DATA = (
    "to_json(struct({name})) AS j",
    "to_xml(struct({name})) AS j",
    "typeof(struct({name})) AS j",
    "my_function({name}) AS j",
)


@pytest.mark.parametrize("item", DATA)
def test_letter_case_counts_where_names_become_data(item: str) -> None:
    # given
    before = f"SELECT {item.format(name='Name')} FROM students"
    after = f"SELECT {item.format(name='name')} FROM students"

    # then
    assert diff_of_queries(before, after).names("view", "modified") == ("v",)
    assert diff_of_queries(before, before.replace("SELECT", "select")).is_empty


def test_letter_case_counts_upstream_of_such_a_query() -> None:
    # given
    reader = "CREATE VIEW w AS SELECT to_json(struct(*)) AS j FROM v"

    # when
    diff = diff_programs(
        program("CREATE VIEW v AS SELECT id AS Foo FROM students", reader),
        program("CREATE VIEW v AS SELECT id AS foo FROM students", reader),
    )

    # then
    assert diff.names("view", "modified") == ("v",)
    assert diff.names("view", "affected") == ("w",)
    assert diff.changes[0].reasons == (
        "letter case of names changed, and a query of the program turns names into data",
    )


def test_the_letter_case_of_a_tables_column_counts_there_too() -> None:
    # given
    view = "CREATE VIEW v AS SELECT to_json(struct(*)) AS j FROM students"

    # when
    diff = diff_programs(program(view), program(view, tables=TABLES.replace("name", "Name")))

    # then
    assert diff.names("view", "modified") == ("v",)


def test_unpivot_makes_letter_case_count() -> None:
    # given
    query = "SELECT * FROM students UNPIVOT (v FOR k IN ({}))"

    # then
    assert not diff_of_queries(query.format("id"), query.format("ID")).is_empty


def test_a_new_query_that_turns_names_into_data_modifies_nothing_else() -> None:
    # given
    view = "CREATE VIEW v AS SELECT s.id AS Foo FROM students s"

    # when
    diff = diff_programs(
        program(view), program(view, "CREATE VIEW w AS SELECT my_function(id) AS x FROM students")
    )

    # then
    assert [(change.name, change.how) for change in diff.changes] == [("w", "added")]


STARS = {
    "of a table": ("SELECT * FROM students",),
    "with an alias": ("SELECT s.* FROM students s",),
    "with an exception": ("SELECT * EXCEPT (id) FROM students",),
    "in a nested query": ("SELECT id FROM (SELECT * FROM students) q",),
    "in a function": ("SELECT hash(*) AS h FROM students",),
    "in a natural join": ("SELECT grade FROM students NATURAL JOIN grades",),
    "of a query that can't be read": ("SELECT * FROM students |> WHERE id > 1",),
}


@pytest.mark.parametrize("query", [q for (q,) in STARS.values()], ids=STARS)
def test_a_column_added_to_the_table_shows_in_a_star(query: str) -> None:
    # given
    more = TABLES.replace("name string", "name string, email string")

    # when
    before, after = with_view(query), with_view(query, tables=more)

    # then
    assert before.views["v"].canonical != after.views["v"].canonical
    assert diff_programs(before, after).names("view", "modified") == ("v",)


def test_a_column_added_shows_in_a_star_over_a_star_with_its_name() -> None:
    # given
    views = "CREATE VIEW a AS SELECT * FROM students; CREATE VIEW b AS SELECT * FROM a"
    more = TABLES.replace("name string", "name string, email string")

    # when
    diff = diff_programs(program(views), program(views, tables=more))

    # then
    assert {c.name: c.reasons for c in diff.changes} == {
        "students": ("column `email string` added",),
        "a": ("`*` now gives column `email`",),
        "b": ("`*` now gives column `email`",),
    }


def test_a_counting_star_stands_for_no_columns() -> None:
    # given
    more = TABLES.replace("name string", "name string, email string")
    query = "SELECT count(*) AS n FROM students"

    # when
    diff = diff_programs(with_view(query), with_view(query, tables=more))

    # then
    assert diff.names("view", "affected") == ("v",)
    assert diff.change("v") is not None
    assert diff.changes[1].reasons == ("reads `students`, which changed",)


def test_a_star_over_columns_that_only_spark_knows_holds_what_is_upstream() -> None:
    # given
    def views(number: int) -> str:
        return (
            f"CREATE VIEW a AS SELECT posexplode(sequence(1, {number})) FROM students;"
            "CREATE VIEW b AS SELECT * FROM a"
        )

    # then
    assert program(views(1)).views["b"].canonical != program(views(2)).views["b"].canonical


def test_a_views_kind_and_column_list_are_part_of_its_fingerprint() -> None:
    # given
    query = "AS SELECT id FROM students"
    heads = (
        f"CREATE VIEW v {query}",
        f"CREATE MATERIALIZED VIEW v {query}",
        f"CREATE VIEW v (a) {query}",
    )

    # then
    marks = {fingerprint(program(head).relations["v"]) for head in heads}
    assert len(marks) == 3
    assert all(len(mark) == 16 for mark in marks)


def test_a_materialization_holds_its_logical_views_and_not_how_stored_ones_come_about() -> None:
    # given
    def mark(logical: str, stored: str) -> str:
        return materialization_fingerprint(
            program(
                f"CREATE VIEW l AS SELECT id FROM students WHERE id > {logical}",
                f"CREATE MATERIALIZED VIEW s AS SELECT id FROM students WHERE id > {stored}",
                "CREATE MATERIALIZED VIEW v AS SELECT l.id FROM l JOIN s ON l.id = s.id",
            ),
            "v",
        )

    # then
    assert mark("1", "1") == mark("1", "2")
    assert mark("1", "1") != mark("2", "1")


def test_comments_of_a_view_do_not_count_and_those_of_a_table_do() -> None:
    # when
    views = diff_programs(
        program("CREATE VIEW v AS SELECT id FROM students"),
        program("CREATE VIEW v COMMENT 'all' AS SELECT id FROM students"),
    )
    tables = diff_programs(
        program(),
        program(tables=TABLES.replace("PRIMARY KEY (id))", "PRIMARY KEY (id)) COMMENT 'x'")),
    )

    # then
    assert views.is_empty
    assert tables.changes[0].reasons == ("comment changed",)
