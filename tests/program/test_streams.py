"""What the query of a streaming table may do with its streams."""

from __future__ import annotations

import pytest

from sqlmig.program.check_streams import problems
from sqlmig.program.diff import diff_programs
from sqlmig.program.model import View
from sqlmig.program.parse import parse_program
from sqlmig.program.streams import without_stream

TABLES = """
CREATE TABLE t (id INT, a INT, at TIMESTAMP, xs ARRAY<INT>);
CREATE TABLE u (id INT, b INT, offset INT);
"""


def streaming(query: str) -> View:
    """A streaming table with this query."""
    program = parse_program({"a.sql": f"{TABLES} CREATE STREAMING TABLE s AS {query};"})
    return program.views["s"]


@pytest.mark.parametrize(
    ("query", "streams"),
    [
        ("SELECT * FROM STREAM t WHERE a > 0", ("t",)),
        ("SELECT x.a FROM stream(T) AS x", ("t",)),
        ("SELECT t.a, u.b FROM STREAM t LEFT JOIN u ON t.id = u.id", ("t",)),
        ("SELECT t.a FROM u JOIN STREAM t ON t.id = u.id LEFT SEMI JOIN u v ON v.b = 1", ("t",)),
        ("SELECT a FROM STREAM t UNION ALL SELECT b FROM STREAM u", ("t", "u")),
        ("(SELECT a FROM STREAM t) UNION ALL (SELECT b FROM STREAM u)", ("t", "u")),
        ("SELECT * FROM (SELECT a FROM STREAM t UNION ALL SELECT b FROM STREAM u)", ("t", "u")),
        ("WITH c (x) AS (SELECT a FROM STREAM t) SELECT x FROM c WHERE x > 1", ("t",)),
        ("SELECT id, x FROM STREAM t LATERAL VIEW explode(xs) y AS x", ("t",)),
        ("SELECT id, aggregate(xs, 0, (y, x) -> y + x) AS n FROM STREAM t", ("t",)),
        ("SELECT * EXCEPT (a) FROM STREAM t WHERE a IS DISTINCT FROM 3", ("t",)),
        ("SELECT id, offset FROM STREAM u WHERE id IN (SELECT id FROM t)", ("u",)),
    ],
)
def test_a_query_that_takes_row_by_row_is_a_stream(query: str, streams: tuple[str, ...]) -> None:
    view = streaming(query)
    assert view.streams == streams
    assert problems(view) == ()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT a FROM t", "reads no stream"),
        ("SELECT count(*) AS n FROM STREAM t", "aggregates: it calls count()"),
        (
            "SELECT kll_sketch_agg_bigint(a) AS k FROM STREAM t",
            "aggregates: it calls kll_sketch_agg_bigint()",
        ),
        ("SELECT a FROM STREAM t GROUP BY a", "has GROUP BY over a stream"),
        ("SELECT DISTINCT a FROM STREAM t", "has DISTINCT over a stream"),
        ("SELECT a FROM STREAM t LIMIT 3", "has LIMIT over a stream"),
        ("SELECT a FROM STREAM t ORDER BY a", "has ORDER BY over a stream"),
        (
            "SELECT lag(a) OVER w FROM STREAM t WINDOW w AS ()",
            "has a window function over a stream",
        ),
        (
            "SELECT a FROM STREAM t UNION SELECT b FROM STREAM u",
            "has UNION, which drops equal rows",
        ),
        ("SELECT a FROM STREAM t EXCEPT SELECT b FROM u", "has EXCEPT over a stream"),
        ("SELECT a FROM STREAM t UNION ALL SELECT b FROM u", "gives rows that come from no stream"),
        ("SELECT 1 AS one FROM STREAM t FULL OUTER JOIN u ON true", "has a FULL JOIN"),
        (
            "SELECT t.a FROM u LEFT OUTER JOIN STREAM t ON t.id = u.id",
            "has a stream to the right of OUTER JOIN",
        ),
        ("SELECT t.a FROM STREAM t JOIN STREAM u ON t.id = u.id", "joins two streams"),
        (
            "SELECT t.a FROM STREAM t, (SELECT * FROM STREAM u) AS v",
            "reads a stream in an expression",
        ),
        (
            "WITH c AS (SELECT * FROM STREAM t) SELECT c.a FROM c JOIN c d ON c.id = d.id",
            "joins two streams",
        ),
        (
            "SELECT id FROM u WHERE id IN (SELECT id FROM STREAM t)",
            "reads a stream in an expression",
        ),
        ("FROM STREAM t |> AGGREGATE max(a) AS m", "aggregates"),
        (
            "SELECT * FROM STREAM t WATERMARK at DELAY OF '10 MINUTES'",
            "has a WATERMARK that can't be read",
        ),
    ],
)
def test_a_query_that_needs_other_rows_is_none(query: str, message: str) -> None:
    found = problems(streaming(query))
    assert message in [problem.message for problem in found]
    assert all(problem.hint for problem in found)


def test_stream_is_taken_out_of_the_text_and_nothing_moves() -> None:
    query = "SELECT stream.a -- STREAM t\nFROM STREAM t stream JOIN STREAM(u) ON 'STREAM t' = a"
    expected = "SELECT stream.a -- STREAM t\nFROM        t stream JOIN       (u) ON 'STREAM t' = a"
    assert without_stream(query) == expected.replace("(u)", " u ")
    assert len(without_stream(query)) == len(query)


def test_to_read_a_table_as_a_stream_is_another_query() -> None:
    before = parse_program({"a.sql": TABLES + "CREATE STREAMING TABLE s AS SELECT a FROM t;"})
    after = parse_program({"a.sql": TABLES + "CREATE STREAMING TABLE s AS SELECT a FROM STREAM t;"})
    assert diff_programs(before, after).names("view", "modified") == ("s",)
    assert after.followed("s") == {"t"}
    assert before.followed("s") == frozenset()
