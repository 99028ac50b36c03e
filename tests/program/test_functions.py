"""Functions in SQL: what is read, what is refused, and what a change of one means for its
callers."""

from __future__ import annotations

import pytest

from sqlmig.program.canonical import materialization_fingerprint
from sqlmig.program.combine import combine
from sqlmig.program.diff import ProgramDiff, diff_programs
from sqlmig.program.model import Language, Program
from sqlmig.program.parse import parse_program
from sqlmig.program.variables import substitute
from tests.program.pipelines import TABLES, mistakes, program

BASE = (
    "CREATE FUNCTION plus(n INT, step INT DEFAULT 1) RETURNS INT COMMENT 'adds' RETURN n + step",
    "CREATE FUNCTION twice(n INT) RETURNS INT RETURN plus(n, n)",
    "CREATE VIEW four AS SELECT twice(id) AS n FROM students",
    "CREATE MATERIALIZED VIEW all_four AS SELECT n FROM four",
    "CREATE VIEW apart AS SELECT id FROM students",
)


def changed(before: str, after: str) -> ProgramDiff:
    """What changes when a part of the statements above does."""
    other = [statement.replace(before, after) for statement in BASE]
    assert tuple(other) != BASE
    return diff_programs(program(*BASE), program(*other))


def lines(diff: ProgramDiff) -> list[str]:
    """The changes, one a line."""
    return [f"{c.how} {c.what} {c.name}: {'; '.join(c.reasons)}" for c in diff.changes]


def test_a_function_is_read_with_all_that_it_needs() -> None:
    # when
    read = program(
        *BASE,
        "CREATE FUNCTION door(room INT) RETURNS TABLE (Number INT, code STRING) READS SQL DATA "
        "RETURN SELECT r.id, r.door.b FROM rooms AS r WHERE r.id = door.room",
        "CREATE FUNCTION chance() RETURNS DOUBLE NOT DETERMINISTIC LANGUAGE SQL RETURN 4",
        "CREATE FUNCTION luck() RETURNS DOUBLE RETURN chance() + (SELECT count(*) FROM grades)",
        "CREATE FUNCTION dice() RETURN rand()",
        "CREATE VIEW doors AS SELECT * FROM `DOOR`(1)",
        "CREATE VIEW lucky AS SELECT system.session.luck() AS l",
    )

    # then
    assert list(read.functions) == ["chance", "dice", "door", "plus", "luck", "twice"]
    plus, door = read.functions["plus"], read.functions["door"]
    assert plus.language is Language.SQL
    assert plus.signature == "(n int, step int default 1) returns int"
    assert plus.text.startswith("plus(n INT, step INT DEFAULT 1)")
    assert (plus.shown, plus.calls, plus.reads) == ("n + step", frozenset(), frozenset())
    assert str(plus.location) == "pipeline/all.sql:5:17"
    assert door.signature == "(room int) returns table(`number` int, `code` string)"
    assert read.functions["chance"].signature == "() returns double not deterministic"
    assert read.functions["twice"].calls == {"plus"}
    assert read.called(["twice"]) == ("plus", "twice")
    assert [name for name, f in read.functions.items() if f.volatile] == ["chance", "dice", "luck"]
    assert read.views["doors"].reads == {"rooms"}, "a view reads what its functions read"
    assert read.views["lucky"].reads == {"grades"}
    assert read.views["lucky"].volatile
    assert [call.name for call in read.views["four"].calls] == ["twice"]
    assert not read.views["apart"].calls


def test_a_changed_body_reaches_its_callers_through_functions_and_views() -> None:
    # when
    diff = changed("n + step", "n - step")

    # then
    assert lines(diff) == [
        "affected view all_four: reads `four`, which changed",
        "modified view four: calls `twice`, which calls `plus`, whose body changed",
        "modified function plus: `n + step` became `n - step`",
        "affected function twice: `twice` calls `plus`, whose body changed",
    ]
    assert diff.to_json()["program_diff"]["modified_views"] == ["all_four", "four"]
    assert "plus" not in str(diff.to_json()), "a function is no table and no view"
    assert ProgramDiff.from_dict(diff.to_dict()) == diff


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("DEFAULT 1", "DEFAULT 2", "signature"),
        ("step INT DEFAULT", "step BIGINT DEFAULT", "signature"),
        ("step", "stride", "signature and body"),
        ("RETURNS INT COMMENT", "RETURNS BIGINT COMMENT", "signature"),
        ("RETURNS INT COMMENT", "RETURNS INT NOT DETERMINISTIC COMMENT", "signature"),
        ("n + step", "n + step + 0", "body"),
        ("n + step", "n + step /*+ hint */", "body"),
    ],
)
def test_what_counts_of_a_function_is_named(before: str, after: str, why: str) -> None:
    diff = changed(before, after)
    change = diff.change("four")
    assert change is not None
    assert change.reasons == (f"calls `twice`, which calls `plus`, whose {why} changed",)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("COMMENT 'adds'", ""),
        ("COMMENT 'adds'", "DETERMINISTIC LANGUAGE SQL COMMENT 'other'"),
        ("n + step", "N /* plus */ + `step`"),
        ("plus(n, n)", "PLUS ( n ,\n n )"),
        ("twice(id)", "`Twice`(id)"),
        ("step INT", "Step INTEGER COMMENT 'how far'"),
    ],
)
def test_comments_layout_and_letter_case_of_a_function_do_not_count(
    before: str, after: str
) -> None:
    assert lines(changed(before, after)) == []


def test_letter_case_counts_where_names_become_data() -> None:
    # given
    def texts(name: str) -> Program:
        return program(
            f"CREATE FUNCTION text(n INT) RETURNS STRING RETURN to_json(struct(n AS {name}))",
            "CREATE VIEW v AS SELECT text(id) AS t FROM students",
        )

    # then
    assert not diff_programs(texts("a"), texts("a")).changes
    assert lines(diff_programs(texts("a"), texts("A"))) == [
        "modified function text: letter case of names changed, and a query of the program turns "
        "names into data",
        "modified view v: calls `text`, whose body changed",
    ]


def test_a_function_that_comes_or_goes_is_no_view_and_says_so_to_its_callers() -> None:
    # given: Spark may have a function of that name by other means
    without = program("CREATE VIEW v AS SELECT plus(id, 1) AS n FROM students")
    with_one = program(BASE[0], "CREATE VIEW v AS SELECT plus(id, 1) AS n FROM students")

    # then
    assert lines(diff_programs(without, with_one)) == [
        "added function plus: ",
        "modified view v: calls `plus`, which was added",
    ]
    assert lines(diff_programs(with_one, without)) == [
        "removed function plus: ",
        "modified view v: calls `plus`, which was removed",
    ]
    assert lines(diff_programs(program(), program(BASE[0]))) == ["added function plus: "]
    assert lines(changed("twice(id)", "plus(id)")) == [
        "affected view all_four: reads `four`, which changed",
        "modified view four: `twice` became `plus`",
    ]


def test_contents_are_kept_under_what_their_functions_compute() -> None:
    # given
    before = program(*BASE)
    other = program(*(s.replace("n + step", "n - step") for s in BASE))

    # then
    marks = [materialization_fingerprint(p, "all_four") for p in (before, other, program(*BASE))]
    assert marks[0] == marks[2] != marks[1]


def test_a_view_without_functions_has_the_fingerprint_that_it_always_had() -> None:
    without, with_unused = program(BASE[-1]), program(BASE[0], BASE[-1])
    marks = [materialization_fingerprint(p, "apart") for p in (without, with_unused)]
    assert marks == ["9006e69cc242f2ba"] * 2


def test_a_query_that_can_not_be_read_calls_whatever_it_mentions() -> None:
    # given
    read = program(
        BASE[0],
        "CREATE VIEW v AS FROM students |> SELECT id AS plus",
        "CREATE VIEW w AS SELECT id AS plus FROM students",
        "CREATE FUNCTION odd(n INT) RETURNS TABLE (n INT) RETURN FROM grades |> SELECT plus",
        "CREATE VIEW x AS SELECT * FROM odd(1)",
    )

    # then
    assert [call.name for call in read.views["v"].calls] == ["plus"]
    assert not read.views["w"].calls
    assert read.functions["odd"].calls == {"plus"}
    assert read.views["x"].reads == {"grades"}


@pytest.mark.parametrize(
    ("sql", "where", "message", "hint"),
    [
        (
            "CREATE FUNCTION abs(n INT) RETURNS INT RETURN n",
            "1:17",
            "`abs` is a name of Spark's own: a call would never reach this function",
            "give it another name",
        ),
        (
            "CREATE FUNCTION a(n INT) RETURN b(n); CREATE FUNCTION b(n INT) RETURN a(n)",
            "1:17",
            "functions call each other in a circle: `a` -> `b` -> `a`",
            "take one of these calls out",
        ),
        (
            "CREATE FUNCTION a(n INT) RETURN A(n - 1)",
            "1:17",
            "`a` calls itself",
            "write it without: Spark can't do it",
        ),
        (
            "CREATE TABLE t (n INT); CREATE FUNCTION T(n INT) RETURN n",
            "1:41",
            "`T` is created twice (as `t`; letter case doesn't count)",
            "the first is at pipeline/all.sql:1:14; rename or delete one",
        ),
        (
            "CREATE TABLE grades (n INT); CREATE FUNCTION f() RETURN (SELECT max(n) FROM grade)",
            "1:77",
            "`f` reads `grade`, which no statement creates",
            "did you mean `grades`?",
        ),
        (
            "CREATE VIEW v AS SELECT f() AS n; CREATE FUNCTION f() RETURN (SELECT max(n) FROM v)",
            "1:13",
            "`v` reads itself",
            "read a table, or another view",
        ),
        (
            "CREATE FUNCTION f(n INT) AS 'com.example.F'",
            "1:26",
            "CREATE FUNCTION ... AS a class is not supported",
            "write what it gives in SQL behind RETURN, or in Python in pipeline/functions/",
        ),
        (
            "CREATE FUNCTION f(n INT) RETURNS INT LANGUAGE PYTHON AS $$return n$$",
            "1:38",
            "only functions in SQL can be written here",
            "write it in Python in pipeline/functions/*.py, with `@function`",
        ),
        (
            "CREATE TEMPORARY FUNCTION f(n INT) RETURN n",
            "1:8",
            "CREATE TEMPORARY is not supported",
            "write CREATE FUNCTION: sqlmig defines it wherever it is called",
        ),
        (
            "CREATE FUNCTION s.f(n INT) RETURN n",
            "1:17",
            "the function's name has a catalog or schema",
            "write the bare name: catalog and schema belong to the target in sqlmig.yml",
        ),
        (
            "CREATE FUNCTION f(n INT, N INT) RETURN n",
            "1:26",
            "`N` comes twice",
            "rename one",
        ),
        (
            "CREATE FUNCTION f(n INT NOT NULL) RETURN n",
            "1:25",
            "expected `,` or `)`, found `NOT`",
            "write `CREATE FUNCTION f(a INT) RETURNS INT RETURN a + 1`",
        ),
        (
            "CREATE FUNCTION f(n INT) RETURNS INT n + 1",
            "1:38",
            "expected `RETURN`, found `n`",
            "write `CREATE FUNCTION f(a INT) RETURNS INT RETURN a + 1`",
        ),
        (
            "CREATE FUNCTION f(n INT) RETURNS INT RETURN",
            "1:44",
            "expected an expression or a query after RETURN, but the statement ends",
            "write `CREATE FUNCTION f(a INT) RETURNS INT RETURN a + 1`",
        ),
        (
            "CREATE FUNCTION f(n INT) RETURN n; CREATE TABLE t (a INT DEFAULT f(1))",
            "1:52",
            "the default of column `a` calls `f`, a function of the program",
            "write what it computes: a default is kept with the table",
        ),
        (
            "CREATE FUNCTION f(n INT) RETURN n; CREATE TABLE t (a INT PRIMARY KEY); "
            "CREATE SOURCE s INTO t USING json OPTIONS (path 'x', DELETE_WHEN 'F (a) = 1')",
            "1:72",
            "source `s` calls `f`, a function of the program, in `DELETE_WHEN`",
            "write what it computes",
        ),
        (
            "CREATE FUNCTION f(t STRING) RETURN (SELECT max(n) FROM IDENTIFIER(t))",
            "1:56",
            "`f` uses IDENTIFIER(...), which hides what it reads",
            "write the name itself",
        ),
        (
            "CREATE FUNCTION f() RETURN '${env:KEY}'",
            "1:29",
            "a secret `${env:...}` can only stand in the OPTIONS of a connector",
            "use a variable `${name}` of the target in sqlmig.yml",
        ),
    ],
)
def test_a_mistake_is_told_at_its_place(sql: str, where: str, message: str, hint: str) -> None:
    assert mistakes(sql) == [(where, message, hint)]


def test_a_changed_variable_makes_what_uses_it_modified_and_is_seen_in_the_reason() -> None:
    # given
    sql = TABLES + (
        "CREATE FUNCTION passed(n INT) RETURN n >= ${least};"
        "CREATE VIEW v AS SELECT passed(id) AS p FROM students;"
        "CREATE VIEW w AS SELECT id FROM students WHERE id > ${least};"
        "CREATE VIEW x AS SELECT id FROM students"
    )
    before, after = (
        parse_program(substitute({"a.sql": sql}, {"least": least})) for least in ("50", "60")
    )

    # then
    assert lines(diff_programs(before, after)) == [
        "modified function passed: `n >= 50` became `60`",
        "modified view v: calls `passed`, whose body changed",
        "modified view w: `id > 50` became `60`",
    ]


def test_functions_are_merged_one_by_one() -> None:
    # given
    base = program(*BASE)
    ours = program(*(s.replace("n + step", "n + step + 1") for s in BASE))
    theirs = program(*(s.replace("plus(n, n)", "plus(n)") for s in BASE))
    clash = program(*(s.replace("n + step", "n - step") for s in BASE))

    # when
    files, conflicts = combine(base, ours, theirs)
    _, clashes = combine(base, ours, clash)

    # then
    assert not conflicts
    both = parse_program(files).functions
    assert (both["plus"].shown, both["twice"].shown) == ("n + step + 1", "plus(n)")
    assert [(c.what, c.name) for c in clashes] == [("function", "plus")]
