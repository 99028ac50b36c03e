"""Text to Program: what is read, and every mistake with its place and its hint."""

from __future__ import annotations

import pytest

from sqlmig.errors import ProgramErrors
from sqlmig.program.model import Column, RelationKind, Sink, Source, Table, View
from sqlmig.program.parse import parse_program
from tests.program.pipelines import TABLES, mistakes, program


def test_a_table_is_read_with_types_in_one_spelling() -> None:
    # when
    table = program(
        "CREATE TABLE T (`Id` INTEGER, b DEC COMMENT 'it''s', c array < struct<A: long> > NOT NULL,"
        " d string DEFAULT concat('a', 'b'), PRIMARY KEY (ID)) COMMENT 'all'"
    ).relations["t"]

    # then
    assert table == Table(
        "t",
        (
            Column("Id", "int", nullable=False),
            Column("b", "decimal(10,0)", comment="it's"),
            Column("c", "array<struct<A:bigint>>", nullable=False),
            Column("d", "string", default="concat('a', 'b')"),
        ),
        ("Id",),
        "all",
    )


def test_a_view_keeps_its_text_and_its_place() -> None:
    # when
    view = parse_program(
        {"a.sql": "CREATE MATERIALIZED VIEW V (a) COMMENT 'x' AS\n  SELECT 1 -- one\n , 2; -- end"}
        | {"b.sql": ";;\n-- nothing\n"}
        | {
            "a.sql": "CREATE MATERIALIZED VIEW V (a) COMMENT 'x' AS\n  SELECT 1 -- one\n  + 2 ; "
            "-- end"
        }
    ).relations["v"]

    # then
    assert isinstance(view, View)
    assert view.kind is RelationKind.MATERIALIZED_VIEW
    assert view.query == "SELECT 1 -- one\n  + 2"
    assert (view.columns, view.output, view.comment) == (("a",), ("a",), "x")
    assert (str(view.location), str(view.query_location)) == ("a.sql:1:1", "a.sql:2:3")


def test_connectors_keep_their_options_as_written() -> None:
    # when
    read = program(
        "CREATE SOURCE landing INTO students USING kafka OPTIONS ("
        " kafka.bootstrap.servers = '${broker}', 'subscribe' 'a', maxOffsetsPerTrigger 10,"
        " kafka.password '${env:PASSWORD}')",
        "CREATE SINK out FROM grades USING delta",
    )

    # then
    assert read.sources == {
        "students.landing": Source(
            "landing",
            "students",
            "kafka",
            (
                ("kafka.bootstrap.servers", "${broker}"),
                ("kafka.password", "${env:PASSWORD}"),
                ("maxOffsetsPerTrigger", "10"),
                ("subscribe", "a"),
            ),
        )
    }
    assert read.sinks == {"grades.out": Sink("out", "grades", "delta", ())}


MISTAKES = {
    "unknown name": (
        "CREATE TABLE grades (a int);\nCREATE VIEW v AS\n  SELECT a FROM grade",
        ("3:17", "`v` reads `grade`, which no statement creates", "did you mean `grades`?"),
    ),
    "unknown name in a subquery": (
        "CREATE TABLE t (a int); CREATE VIEW v AS SELECT (SELECT max(b) FROM STREAM zzz) AS m "
        "FROM t",
        ("1:76", "`v` reads `zzz`, which no statement creates",
         "create `zzz` with CREATE TABLE or CREATE VIEW"),
    ),
    "created twice": (
        "CREATE TABLE t (a int);\nCREATE VIEW T AS SELECT 1 AS a",
        ("2:13", "`T` is created twice (as `t`; letter case doesn't count)",
         "the first is at pipeline/all.sql:1:14; rename or delete one"),
    ),
    "cycle": (
        "CREATE VIEW a AS SELECT * FROM c; CREATE VIEW b AS SELECT * FROM a;"
        " CREATE VIEW c AS SELECT * FROM b",
        ("1:13", "views read each other in a circle: `a` -> `c` -> `b` -> `a`",
         "take one of these reads out"),
    ),
    "itself": (
        "CREATE VIEW a AS SELECT * FROM a",
        ("1:13", "`a` reads itself", "read a table, or another view"),
    ),
    "source into a view": (
        "CREATE VIEW v AS SELECT 1 AS a; CREATE SOURCE s INTO v USING json",
        ("1:54", "source `s` feeds `v`, which is a view",
         "a source feeds a table: write INTO and the name of a CREATE TABLE"),
    ),
    "source into nothing": (
        "CREATE TABLE grades (a int); CREATE SOURCE s INTO grade USING json",
        ("1:51", "source `s` feeds `grade`, which no statement creates", "did you mean `grades`?"),
    ),
    "sink from nothing": (
        "CREATE TABLE grades (a int); CREATE SINK s FROM grad USING json",
        ("1:49", "sink `s` reads `grad`, which no statement creates", "did you mean `grades`?"),
    ),
    "connector twice": (
        "CREATE TABLE t (a int); CREATE SOURCE s INTO t USING json; CREATE SINK S FROM t USING "
        "json",
        ("1:72", "sink `S` of `t` is created twice",
         "the first is at pipeline/all.sql:1:39; rename or delete one"),
    ),
    "key column": (
        "CREATE TABLE t (idx int, PRIMARY KEY (id))",
        ("1:39", "primary key column `id` is not a column of `t`", "did you mean `idx`?"),
    ),
    "column twice": (
        "CREATE TABLE t (a int, A string)",
        ("1:24", "column `A` of `t` comes twice", "rename or delete one"),
    ),
    "two keys": (
        "CREATE TABLE t (a int, PRIMARY KEY (a), PRIMARY KEY (a))",
        ("1:41", "a second primary key", "list all key columns in one PRIMARY KEY (...)"),
    ),
    "unknown type": (
        "CREATE TABLE t (a strng)",
        ("1:19", "`strng` is not a type of Spark", "did you mean `string`?"),
    ),
    "unknown column of a named input": (
        "CREATE TABLE t (grade int); CREATE VIEW v AS SELECT x.grad FROM t x",
        ("1:53", "`v` reads column `grad` of `t`, which has no such column", "did you mean "
                                                                             "`grade`?"),
    ),
    "unknown column": (
        "CREATE TABLE t (grade int, b int); CREATE VIEW v AS SELECT zzz FROM t",
        ("1:60", "`v` reads column `zzz`, which `t` doesn't have", "columns are `b`, `grade`"),
    ),
    "unknown column of two": (
        "CREATE TABLE t (a int); CREATE TABLE u (b int);"
        " CREATE VIEW v AS SELECT c FROM t JOIN u ON a = b",
        ("1:73", "`v` reads column `c`, which none of `t`, `u` has", "columns are `a`, `b`"),
    ),
    "ambiguous column": (
        "CREATE TABLE t (id int); CREATE TABLE u (id int);"
        " CREATE VIEW v AS SELECT id FROM t JOIN u ON t.id = u.id",
        ("1:75", "`v` reads column `id`, which is ambiguous: `t` and `u` have it",
         "write `t.id` or `u.id`"),
    ),
    "column of a removed one": (
        "CREATE TABLE t (a int); CREATE VIEW v AS SELECT a AS b FROM t;"
        " CREATE VIEW w AS SELECT a FROM v",
        ("1:88", "`w` reads column `a`, which `v` doesn't have", "columns are `b`"),
    ),
    "column list": (
        "CREATE VIEW v (a, b) AS SELECT 1 AS x",
        ("1:16", "`v` names 2 columns, and its query gives 1",
         "give every column of the query a name, or leave the list out"),
    ),
    "create table as": (
        "CREATE TABLE t AS SELECT 1",
        ("1:16", "CREATE TABLE ... AS is not supported: a table holds input",
         "write `CREATE MATERIALIZED VIEW t AS SELECT ...`"),
    ),
    "insert": (
        "INSERT INTO t VALUES (1)",
        ("1:1", "INSERT is not part of a program",
         'load rows with `sqlmig exec "INSERT INTO ..."`, or declare a CREATE SOURCE'),
    ),
    "drop": (
        "DROP TABLE t",
        ("1:1", "DROP is not part of a program",
         "delete the CREATE statement; sqlmig finds out what that removes"),
    ),
    "or replace": (
        "CREATE OR REPLACE VIEW v AS SELECT 1",
        ("1:8", "CREATE OR REPLACE is not supported",
         "write CREATE without OR REPLACE; sqlmig finds out what changed"),
    ),
    "if not exists": (
        "CREATE TABLE IF NOT EXISTS t (a int)",
        ("1:14", "IF NOT EXISTS is not supported", "leave it out; sqlmig knows what exists"),
    ),
    "using": (
        "CREATE TABLE t (a int) USING parquet",
        ("1:24", "USING is not supported: sqlmig keeps every table in Delta", "leave `USING` out"),
    ),
    "head": (
        "CREATE VIEW v SELECT 1",
        ("1:15", "expected `AS` and a query, found `SELECT`", "write `CREATE VIEW v AS SELECT "
                                                              "...`"),
    ),
    "open string": (
        "CREATE VIEW v AS SELECT 'a",
        ("1:25", "a string is not closed", "close it with `'`"),
    ),
    "open comment": (
        "CREATE TABLE t (a int); /* a /* b */",
        ("1:25", "a comment is not closed", "close it with `*/`"),
    ),
    "secret": (
        "CREATE VIEW v AS SELECT '${env:KEY}' AS k",
        ("1:26", "a secret `${env:...}` can only stand in the OPTIONS of a connector",
         "use a variable `${name}` of the target in sqlmig.yml"),
    ),
    "option twice": (
        "CREATE TABLE t (a int); CREATE SINK k FROM t USING json OPTIONS (path 'a', PATH 'b')",
        ("1:76", "option `PATH` is given twice", None),
    ),
    "catalog": (
        "CREATE TABLE main.t (a int)",
        ("1:14", "the table's name has a catalog or schema",
         "write the bare name: catalog and schema belong to the target in sqlmig.yml"),
    ),
    "hidden name": (
        "CREATE VIEW v AS SELECT * FROM IDENTIFIER('t')",
        ("1:32", "`v` uses IDENTIFIER(...), which hides what it reads", "write the name itself"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_place_and_a_hint(
    sql: str, expected: tuple[str, str, str | None]
) -> None:
    assert mistakes(sql) == [expected]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_files() -> None:
    # when
    with pytest.raises(ProgramErrors) as caught:
        parse_program(
            {
                "b.sql": "CREATE VIEW w AS SELECT * FROM nothing",
                "a.sql": "CREATE TABLE t (a intt);\nDROP TABLE x;\nCREATE VIEW v AS SELECT z "
                "FROM t",
            }
        )

    # then
    assert str(caught.value) == (
        "a.sql:1:19: `intt` is not a type of Spark\n"
        "a.sql:2:1: DROP is not part of a program\n"
        "b.sql:1:32: `w` reads `nothing`, which no statement creates"
    )
    assert "hint: did you mean `int`?" in caught.value.render()


CERTAIN = {
    "an alias of the SELECT list": "SELECT id + 1 AS x, x + 1 AS y FROM students ORDER BY y",
    "a lambda's parameter": "SELECT transform(tags, t -> upper(t)) AS x FROM rooms",
    "a column of a table function": "SELECT id2 FROM my_function(1) JOIN students ON id2 = id",
    "a column of an external table": "SELECT x FROM main.other.t JOIN students ON x = id",
    "a path": "SELECT x FROM delta.`/data/t`",
    "a correlated column": "SELECT 1 FROM students WHERE EXISTS (SELECT 1 FROM grades WHERE "
                           "student_id = id)",
    "USING": "SELECT id FROM students JOIN rooms USING (id)",
    "NATURAL": "SELECT id FROM students NATURAL JOIN rooms",
    "a semi join": "SELECT id FROM students LEFT SEMI JOIN rooms ON students.id = rooms.id",
    "a window of time": "SELECT window(class_date, '5 minutes').start AS s FROM grades GROUP BY "
                        "window(class_date, '5 minutes')",
    "a unit of time": "SELECT dateadd(MONTH, 1, class_date) AS d, extract(YEAR FROM class_date) "
                      "AS y FROM grades",
    "PIVOT": "SELECT * FROM grades PIVOT (max(grade) FOR class IN ('a' AS x, 'b' AS y)) WHERE x "
             "> y",
    "a lateral view": "SELECT id, tag FROM rooms LATERAL VIEW explode(tags) t AS tag",
    "a lateral view without names": "SELECT id, col FROM rooms LATERAL VIEW explode(tags) t",
    "a named argument": "SELECT mask(name, lowerChar => 'q') AS x FROM students",
    "a hidden column": "SELECT _metadata.file_path AS p FROM students",
    "grouping by an output's name": "SELECT upper(name) AS n FROM students GROUP BY n HAVING n > "
                                    "'a'",
    "an order by the output of two inputs": "SELECT s.id FROM students s JOIN rooms r ON s.id = "
                                            "r.id ORDER BY id",
    "a recursive CTE": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n "
                       "< 3) SELECT n FROM r",
    "a CTE with names": "WITH c (a, b) AS (SELECT id, name FROM students) SELECT a, b FROM c",
    "a clock without parentheses": "SELECT current_date AS d, user AS u FROM students",
    "FROM first": "FROM students SELECT id",
    "VALUES": "SELECT a FROM VALUES (1, 2) AS t(a, b)",
    "a struct's field": "SELECT door.a, door.b AS c FROM rooms",
    "a query that can't be read": "FROM students |> AGGREGATE count(*) AS n GROUP BY name",
}  # fmt: skip


@pytest.mark.parametrize("query", CERTAIN.values(), ids=CERTAIN)
def test_no_mistake_is_told_where_spark_might_know_better(query: str) -> None:
    assert program(f"CREATE VIEW v AS {query}").views["v"].query == query


def test_a_statement_with_a_mistake_does_not_blame_its_readers() -> None:
    assert mistakes("CREATE TABLE t (a intt); CREATE VIEW v AS SELECT b FROM t") == [
        ("1:19", "`intt` is not a type of Spark", "did you mean `int`?")
    ]


def test_a_mention_that_would_close_a_cycle_is_no_read() -> None:
    # when
    read = program(
        "CREATE VIEW a AS FROM students |> SELECT id AS b",
        "CREATE VIEW b AS SELECT b FROM a",
    )

    # then
    assert read.reads("a") == {"students"}
    assert read.order.index("a") < read.order.index("b")


def test_the_order_of_files_and_statements_does_not_matter() -> None:
    # given
    one = "CREATE VIEW v AS SELECT id FROM students"
    two = "CREATE VIEW w AS SELECT id FROM v"

    # when
    first = parse_program({"a.sql": TABLES, "b.sql": f"{one};{two}"})
    second = parse_program({"z.sql": TABLES, "b.sql": f"{two};{one};"})

    # then
    assert first.relations == second.relations
    assert list(first.relations) == sorted(first.relations)
