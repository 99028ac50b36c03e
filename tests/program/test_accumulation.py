"""Which aggregations go on from their results alone: the rule, and that merging is right."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.program.accumulation import (
    Accumulation,
    Refusal,
    find_refusal,
    read_accumulation,
)
from sqlmig.program.model import Program
from sqlmig.program.parse import parse_program

TABLES = (
    "CREATE TABLE t (k STRING, g INT, x INT, y DOUBLE);"
    "CREATE TABLE t2 (k STRING, g INT, x INT, y DOUBLE);"
    "CREATE TABLE keyed (k STRING, x INT, PRIMARY KEY (k));"
    "CREATE FUNCTION twice(n INT) RETURNS INT RETURN n * 2;"
    "CREATE FUNCTION most() RETURNS INT RETURN (SELECT max(x) FROM t2);"
    "CREATE STREAMING TABLE s AS SELECT * FROM STREAM t WHERE x > 0;"
    "CREATE VIEW plain AS SELECT * FROM t;"
    "CREATE MATERIALIZED VIEW stored AS SELECT * FROM t;"
)
STATS = "SELECT k, count(*) AS n, sum(x) AS total FROM t GROUP BY k"


def program(query: str, columns: str = "") -> Program:
    """A program whose view `v` has this query."""
    return parse_program({"p.sql": TABLES + f"CREATE MATERIALIZED VIEW v {columns} AS {query};"})


def read(query: str, columns: str = "") -> Accumulation | Refusal:
    """What is read of it."""
    return read_accumulation(program(query, columns), "v")


@pytest.mark.parametrize(
    ("query", "names", "merges", "keys"),
    [
        (STATS, ("k", "n", "total"), (None, "sum", "sum"), ("k",)),
        (
            "select /*+ REPARTITION(2) */ `K` , MIN(x) low, max(x + 1) AS `High` from S as s "
            "where x > 1 and k is distinct from 'a' group by K",
            ("k", "low", "high"),
            (None, "min", "max"),
            ("k",),
        ),
        (
            "SELECT upper(a.k) AS name, g, count_if(x > 1) AS many FROM t a GROUP BY 1, a.g",
            ("name", "g", "many"),
            (None, None, "sum"),
            ("upper ( k )", "g"),
        ),
        (
            "SELECT count(ALL x) AS n, CASE WHEN x > 1 THEN 'a' END AS size FROM t GROUP BY ALL",
            ("n", "size"),
            ("sum", None),
            ("case when x > 1 then 'a' end",),
        ),
        (
            "SELECT g % 2 AS odd, bool_and(x > 1) AS a, bool_or(x > 1) AS o, bit_or(x) AS b, "
            "sum(twice(x)) AS s FROM t GROUP BY odd",
            ("odd", "a", "o", "b", "s"),
            (None, "bool_and", "bool_or", "bit_or", "sum"),
            ("g % 2",),
        ),
        ("SELECT count(*) AS n, max(y) AS top FROM t", ("n", "top"), ("sum", "max"), ()),
    ],
)
def test_a_query_that_groups_one_input_and_aggregates_is_merged_by_key(
    query: str, names: Sequence[str], merges: Sequence[str | None], keys: Sequence[str]
) -> None:
    found = read(query)
    assert isinstance(found, Accumulation), found
    assert (found.names, found.merges, found.keys) == (names, merges, keys)


def test_names_given_to_the_view_go_before_those_of_its_query() -> None:
    found = read(STATS, "(Product, sales, Total)")
    assert isinstance(found, Accumulation)
    assert found.names == ("product", "sales", "total")
    assert found.input == "t"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT k, x FROM t", "has no aggregate"),
        ("SELECT DISTINCT k, count(*) AS n FROM t GROUP BY k", "has DISTINCT: whether"),
        ("SELECT k, count(DISTINCT x) AS n FROM t GROUP BY k", "has DISTINCT: whether"),
        ("SELECT k, avg(x) AS a FROM t GROUP BY k", "has `a`, an average: of two averages"),
        ("SELECT k, stddev(x) AS a FROM t GROUP BY k", "has `a`, which is not one of bit_and,"),
        ("SELECT k, sum(x) + 1 AS a FROM t GROUP BY k", "has `a`, which is not one of"),
        ("SELECT k, sum(x) / count(x) AS a FROM t GROUP BY k", "has `a`, which is not one of"),
        ("SELECT k, sum(x) FILTER (WHERE g > 1) AS a FROM t GROUP BY k", "has `a`, which is not"),
        ("SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > 1", "has HAVING"),
        ("SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY k", "has ORDER BY"),
        ("SELECT k, count(*) AS n FROM t GROUP BY k LIMIT 5", "has LIMIT"),
        ("SELECT k, count(*) AS n FROM t GROUP BY ROLLUP (k)", "has ROLLUP"),
        ("SELECT k, sum(count(*)) OVER () AS n FROM t GROUP BY k", "has a window function"),
        ("SELECT k, count(*) AS n FROM t JOIN t2 USING (k) GROUP BY k", "has a join"),
        ("SELECT t.k, count(*) AS n FROM t, t2 GROUP BY t.k", "reads more than one table"),
        ("SELECT k, count(*) AS n FROM (SELECT * FROM t) GROUP BY k", "has a nested SELECT"),
        ("WITH a AS (SELECT * FROM t) SELECT k, count(*) AS n FROM a GROUP BY k", "is no single"),
        ("SELECT k, count(*) AS n FROM t WHERE x > most() GROUP BY k", "reads more than one"),
        ("SELECT k, count(*) AS n FROM t WHERE y > rand() GROUP BY k", "can give other rows"),
        ("SELECT k, count(*) AS n FROM keyed GROUP BY k", "reads `keyed`, which has a primary key"),
        ("SELECT k, count(*) AS n FROM plain GROUP BY k", "reads `plain`, a view"),
        ("SELECT k, count(*) AS n FROM stored GROUP BY k", "reads `stored`, a materialized view"),
        ("SELECT k, count(*) AS n FROM t GROUP BY k, g", "groups by `g`, which is no column"),
        ("SELECT k, upper(k) AS u, count(*) AS n FROM t GROUP BY k", "has `u`, neither a grouping"),
        ("SELECT upper(k) AS k, count(*) AS n FROM t GROUP BY k", "groups by `k`, which is no"),
        ("SELECT k, 1 AS one, count(*) AS n FROM t GROUP BY k", "has `one`, neither a grouping"),
        ("SELECT count(*) AS n FROM t GROUP BY 1", "groups by `1`, which is no column"),
        ("SELECT k, count(*) AS n FROM t UNION ALL SELECT k, 1 FROM t", "has UNION"),
        ("SELECT k, count(*) AS n FROM t TABLESAMPLE (5 ROWS) GROUP BY k", "has TABLESAMPLE"),
        ("SELECT window(k, '1 day') AS w, count(*) AS n FROM t GROUP BY 1", "has windows of time"),
        ("SELECT 1 AS one", "reads nothing"),
    ],
)
def test_every_other_query_is_refused_and_told_why(query: str, reason: str) -> None:
    found = read(query)
    assert isinstance(found, Refusal), found
    assert found.reason.startswith(reason), found.reason
    assert found.hint


def test_an_average_is_refused_with_what_to_write_instead() -> None:
    found = read("SELECT k, avg(x) AS a FROM t GROUP BY k")
    assert isinstance(found, Refusal)
    assert found.hint == "write sum(...) and count(...), and divide them in a view over it"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (STATS.replace("FROM t", "FROM t WHERE x > 5"), None),
        (STATS.replace("sum(x)", "sum(x * g)").replace("count(*)", "count(x)"), None),
        (STATS.replace("FROM t", "FROM t AS a").replace("BY k", "BY a.k"), None),
        (STATS.replace("FROM t", "FROM t2"), "reads `t2` instead of `t`"),
        (STATS.replace("sum(x)", "max(x)"), "has another aggregate in `total`"),
        (STATS.replace("AS n", "AS m"), "has other columns: k, m, total instead of k, n, total"),
        (
            STATS.replace("SELECT k", "SELECT upper(k) AS k").replace("BY k", "BY upper(k)"),
            "groups otherwise: upper ( k ) instead of k",
        ),
        (STATS.replace("sum(x)", "avg(x)"), "has `total`, an average: of two"),
    ],
)
def test_two_queries_are_merged_if_they_have_the_same_columns_and_keys(
    query: str, reason: str | None
) -> None:
    refusal = find_refusal(program(STATS), program(query), "v")
    assert refusal is None if reason is None else refusal and refusal.reason.startswith(reason)


def test_what_was_deployed_must_be_mergeable_too_and_a_renamed_input_is_the_same() -> None:
    average = program(STATS.replace("sum(x)", "avg(x)"))
    refusal = find_refusal(average, program(STATS), "v")
    assert refusal is not None
    assert refusal.reason.endswith("that of all rows can't be told, as it is deployed")
    moved = program(STATS.replace("FROM t", "FROM t2"))
    assert find_refusal(program(STATS), moved, "v", {"t": "t2"}) is None
    missing = find_refusal(parse_program({"p.sql": TABLES}), program(STATS), "v")
    assert missing == Refusal("is not deployed yet")


Row = tuple[str | None, int | None, int | None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, "a", "b"]),
        st.one_of(st.none(), st.integers(0, 2)),
        st.one_of(st.none(), st.integers(-3, 3)),
    ),
    max_size=12,
)
QUERY = (
    "SELECT k, g, count(*) AS n, count(x) AS c, sum(x) AS s, min(x) AS low, max(x) AS high "
    "FROM t {}GROUP BY k, g"
)
NEXT = QUERY.replace("sum(x)", "sum(x * 2)").format("WHERE x > 0 ")


def evaluated(query: str, rows: Sequence[Row]) -> list[tuple[object, ...]]:
    """The query over rows, by another engine, in which NULL is a key like any other."""
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (k, g, x)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        return database.execute(query).fetchall()


def merged(
    how: Accumulation, one: Sequence[tuple[object, ...]], two: Sequence[tuple[object, ...]]
) -> list[tuple[object, ...]]:
    """Two results put together by key, with the aggregates that the rule names."""
    pairs = list(zip(how.names, how.merges, strict=True))
    keys = ", ".join(name for name, merge in pairs if merge is None)
    items = ", ".join(f"{merge}({name})" if merge else name for name, merge in pairs)
    with sqlite3.connect(":memory:") as database:
        database.execute(f"CREATE TABLE both ({', '.join(how.names)})")
        marks = ", ".join("?" * len(pairs))
        database.executemany(f"INSERT INTO both VALUES ({marks})", [*one, *two])
        return database.execute(f"SELECT {items} FROM both GROUP BY {keys}").fetchall()


@given(ROWS, ROWS)
def test_merging_the_results_of_two_parts_gives_that_of_all_rows(
    one: list[Row], two: list[Row]
) -> None:
    query = QUERY.format("")
    how = read(query)
    assert isinstance(how, Accumulation)
    found = merged(how, evaluated(query, one), evaluated(query, two))
    assert sorted(found, key=repr) == sorted(evaluated(query, [*one, *two]), key=repr)


@given(ROWS, ROWS, ROWS)
def test_what_was_counted_stays_counted_and_the_order_of_pieces_does_not_matter(
    one: list[Row], two: list[Row], three: list[Row]
) -> None:
    query = QUERY.format("")
    how = read(query)
    assert isinstance(how, Accumulation)
    assert find_refusal(program(query), program(NEXT), "v") is None
    kept = evaluated(query, one)
    by_pieces = merged(how, merged(how, kept, evaluated(NEXT, two)), evaluated(NEXT, three))
    at_once = merged(how, kept, evaluated(NEXT, [*three, *two]))
    assert sorted(by_pieces, key=repr) == sorted(at_once, key=repr)
