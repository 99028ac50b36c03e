"""The difference of two programs: its kinds, its reasons, its forms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sqlmig.program.diff import Change, ProgramDiff, diff_programs
from sqlmig.program.model import EMPTY_PROGRAM
from sqlmig.program.parse import parse_program
from tests.program.pipelines import TABLES, diff_of_queries, program, sql_of

CHANGES: list[Mapping[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "changes.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change["id"])
def test_a_change_gives_the_expected_diff(change: Mapping[str, Any]) -> None:
    # given
    programs = [parse_program({"all.sql": sql_of(r["program"])}) for r in change["revisions"]]

    for key, expected in change["expect"]["diff"].items():
        # when
        diff = diff_programs(programs[int(key) - 1], programs[int(key)])

        # then
        assert diff.to_json()["program_diff"] == expected
        assert ProgramDiff.from_dict(json.loads(json.dumps(diff.to_dict()))) == diff


SCHOOL = """
CREATE TABLE students (id int, name string);
CREATE TABLE grades (student_id int, class string, grade decimal(5,2), class_date date);
CREATE VIEW avg_grade AS
  SELECT student_id, class, AVG(grade) AS class_avg FROM grades
  WHERE class_date >= '2025-09-01' AND class_date <= '2025-12-15' GROUP BY student_id, class;
CREATE MATERIALIZED VIEW avg_grade_enriched AS
  SELECT s.name AS student_name, a.class, a.class_avg
  FROM avg_grade a JOIN students s ON s.id = a.student_id;
"""
MORE = """
CREATE MATERIALIZED VIEW avg_grade_all_courses AS
  SELECT student_id, avg(class_avg) AS avg FROM avg_grade GROUP BY student_id;
"""


def test_extending_the_date_range_is_told_in_words_and_as_json() -> None:
    # given
    before = parse_program({"all.sql": SCHOOL})
    after = parse_program({"all.sql": SCHOOL.replace("2025-12-15", "2026-06-10") + MORE})

    # when
    diff = diff_programs(before, after)

    # then
    assert diff.changes == (
        Change(
            "avg_grade", "view", "modified", ("`class_date <= '2025-12-15'` became `'2026-06-10'`",)
        ),
        Change("avg_grade_all_courses", "view", "added"),
        Change("avg_grade_enriched", "view", "affected", ("reads `avg_grade`, which changed",)),
    )
    assert diff.to_json() == {
        "added_input_connectors": [],
        "added_output_connectors": [],
        "modified_input_connectors": [],
        "modified_output_connectors": [],
        "program_diff": {
            "added_tables": [],
            "added_views": ["avg_grade_all_courses"],
            "modified_tables": [],
            "modified_views": ["avg_grade", "avg_grade_enriched"],
            "removed_tables": [],
            "removed_views": [],
        },
        "program_diff_error": None,
        "removed_input_connectors": [],
        "removed_output_connectors": [],
    }


REASONS = {
    "a literal": ("id FROM students WHERE id > 1",
        "id FROM students WHERE id > 2", "`id > 1` became `2`"),
    "an operator": ("id + 1 AS a FROM students", "id - 1 AS a FROM students",
                    "`id + 1 AS a` became `id - 1 AS a`"),
    "a clause added": ("id FROM students", "id FROM students WHERE id > 0", "`WHERE id > 0` added"),
    "a clause removed": ("id FROM students WHERE id > 0", "id FROM students", "`WHERE id > 0` "
                                                                              "removed"),
    "a condition added": ("id FROM students WHERE id > 0", "id FROM students WHERE id > 0 AND "
                                                           "name = 'a'",
                          "`AND name = 'a'` added"),
    "a column added in the middle": ("id, name FROM students", "id, 2 AS b, name FROM students",
                                     "`2 AS b` added"),
    "the last column removed": ("id, name FROM students", "id FROM students", "`name` removed"),
    "another input": ("id FROM students", "id FROM rooms", "`students` became `rooms`"),
    "a function": ("max(id) AS m FROM students", "min(id) AS m FROM students", "`max` became "
                                                                               "`min`"),
    "a comment in between": ("id /* a */ + 1 AS a FROM students", "id /* b */ + 2 AS a FROM "
                                                                  "students",
                             "`id + 1 AS a` became `id + 2 AS a`"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "reason"), REASONS.values(), ids=REASONS)
def test_the_reason_of_a_modified_query_names(before: str, after: str, reason: str) -> None:
    # when
    diff = diff_of_queries(f"SELECT {before}", f"SELECT {after}")

    # then
    assert diff.changes[0].reasons == (reason,)


def test_many_changes_are_counted_and_long_ones_are_cut() -> None:
    # when
    many = diff_of_queries(
        "SELECT 1 AS a, 2 AS b, 3 AS c, 4 AS d, 5 AS e FROM students",
        "SELECT 6 AS a, 7 AS b, 8 AS c, 9 AS d, 0 AS e FROM students",
    )
    long = diff_of_queries(
        "SELECT id FROM students", f"SELECT id FROM students WHERE name = '{'x' * 200}'"
    )

    # then
    assert many.changes[0].reasons[-1] == "2 more changes"
    assert len(many.changes[0].reasons) == 4
    assert len(long.changes[0].reasons[0]) < 100


TABLE_CHANGES = {
    "column `email string` added": ("name string", "name string, email string"),
    "column `name` dropped": ("id int, name string", "id int"),
    "column `id` became `bigint` (was `int`)": ("id int", "id bigint"),
    "primary key changed from (id) to (id, name)": ("PRIMARY KEY (id)", "PRIMARY KEY (id, name)"),
    "primary key (id) dropped": (", PRIMARY KEY (id)", ""),
    "order of columns changed to (name, id)": ("id int, name string", "name string, id int"),
    "default of column `name` became `'x'`": ("name string", "name string DEFAULT 'x'"),
    "column `name` is no longer null": ("name string", "name string NOT NULL"),
    "comment of column `name` changed": ("name string", "name string COMMENT 'full'"),
}


@pytest.mark.parametrize(("old", "new"), TABLE_CHANGES.values(), ids=TABLE_CHANGES)
def test_the_reason_of_a_modified_table_is(
    old: str, new: str, request: pytest.FixtureRequest
) -> None:
    # given
    students = "CREATE TABLE students (id int, name string, PRIMARY KEY (id));"

    # when
    before = parse_program({"a.sql": students})
    after = parse_program({"a.sql": students.replace(old, new)})
    (change,) = diff_programs(before, after).changes

    # then
    assert (change.what, change.how) == ("table", "modified")
    assert request.node.callspec.id in change.reasons


def test_everything_downstream_is_affected_and_names_its_nearest_changed_input() -> None:
    # given
    views = (
        "CREATE VIEW a AS SELECT id FROM students",
        "CREATE VIEW b AS SELECT id FROM a",
        "CREATE VIEW c AS SELECT b.id FROM b JOIN students s ON s.id = b.id",
        "CREATE VIEW other AS SELECT id FROM rooms",
    )

    # when
    diff = diff_programs(
        program(*views), program(*views, tables=TABLES.replace("name string", "name varchar(9)"))
    )

    # then
    assert {c.name: c.reasons for c in diff.changes if c.how == "affected"} == {
        "a": ("reads `students`, which changed",),
        "b": ("reads `a`, which changed",),
        "c": ("reads `b`, which changed", "reads `students`, which changed"),
    }


def test_a_table_that_becomes_a_view_is_removed_and_added() -> None:
    # given
    reader = "CREATE VIEW reader AS SELECT x FROM a"

    # when
    diff = diff_programs(
        program("CREATE TABLE a (x int)", reader), program("CREATE VIEW a AS SELECT 1 AS x", reader)
    )

    # then
    assert [(c.name, c.what, c.how) for c in diff.changes] == [
        ("a", "table", "removed"),
        ("a", "view", "added"),
        ("reader", "view", "affected"),
    ]
    assert diff.change("reader") == Change(
        "reader", "view", "affected", ("reads `a`, which was added",)
    )


def test_a_view_that_becomes_materialized_is_modified() -> None:
    # when
    diff = diff_programs(
        program("CREATE VIEW v AS SELECT id FROM students"),
        program("CREATE MATERIALIZED VIEW v AS SELECT id FROM students"),
    )

    # then
    assert diff.changes == (
        Change("v", "view", "modified", ("became a materialized view (was a view)",)),
    )


def test_connectors_change_by_themselves_and_never_show_a_value() -> None:
    # given
    def connectors(source: str, sink: str) -> tuple[str, ...]:
        return (
            "CREATE VIEW v AS SELECT id FROM students",
            f"CREATE SOURCE landing INTO {source}",
            f"CREATE SINK out FROM {sink}",
        )

    # when
    modified = diff_programs(
        program(*connectors("students USING json OPTIONS (path 'secret1', a 1)", "v USING json")),
        program(*connectors("students USING csv OPTIONS (path 'secret2', b 1)", "v USING csv")),
    )
    moved = diff_programs(
        program(*connectors("students USING json", "v USING json")),
        program(*connectors("grades USING json", "students USING json")),
    )

    # then
    assert modified.changes == (
        Change(
            "students.landing",
            "source",
            "modified",
            (
                "format changed from `json` to `csv`",
                "option `a` removed",
                "option `b` added",
                "option `path` changed",
            ),
        ),
        Change("v.out", "sink", "modified", ("format changed from `json` to `csv`",)),
    )
    assert [(c.name, c.how) for c in moved.changes] == [
        ("grades.landing", "added"),
        ("students.landing", "removed"),
        ("students.out", "added"),
        ("v.out", "removed"),
    ]
    assert moved.to_json()["added_input_connectors"] == ["grades.landing"]
    assert moved.to_json()["removed_output_connectors"] == ["v.out"]


def test_a_name_that_a_query_which_cannot_be_read_mentions_affects_it() -> None:
    # given
    view = "CREATE VIEW v AS SELECT id FROM students |> EXTEND id AS later"

    # when
    diff = diff_programs(program(view), program(view, "CREATE TABLE later (x int)"))

    # then
    assert diff.change("v") == Change("v", "view", "affected", ("reads `later`, which was added",))


def test_from_nothing_everything_is_added() -> None:
    # when
    diff = diff_programs(EMPTY_PROGRAM, program("CREATE VIEW v AS SELECT id FROM students"))

    # then
    assert diff.names("table", "added") == ("grades", "rooms", "students")
    assert diff.names("view", "added") == ("v",)
    assert diff_programs(EMPTY_PROGRAM, EMPTY_PROGRAM).is_empty


def test_a_relation_is_called_what_it_is_and_still_counts_as_a_view() -> None:
    stored = "CREATE MATERIALIZED VIEW m AS SELECT a FROM t; CREATE VIEW l AS SELECT a FROM m;"
    before = program("CREATE TABLE t (a INT);" + stored)
    after = program(
        "CREATE TABLE t (a INT, b INT);"
        + stored.replace("SELECT a FROM t", "SELECT a + 1 AS a FROM t")
        + "CREATE STREAMING TABLE s AS SELECT a FROM STREAM t;"
    )
    diff = diff_programs(before, after)
    titles = {"l": "view", "m": "materialized view", "s": "streaming table", "t": "table"}
    assert {c.name: c.title for c in diff.changes} == titles
    again = ProgramDiff.from_dict(json.loads(json.dumps(diff.to_dict())))
    assert {c.name: c.title for c in again.changes} == titles
    assert diff.names("view", "added", "modified", "affected") == ("l", "m", "s")
    removed = diff_programs(after, before).change("s")
    assert removed is not None
    assert (removed.what, removed.how, removed.title) == ("view", "removed", "streaming table")
    # one that a ledger has of earlier days does not say
    bare = {"changes": [{"name": "s", "what": "view", "how": "added", "reasons": []}]}
    assert ProgramDiff.from_dict(bare).changes[0].title == "view"
