"""Which queries over a stream gather rows window by window, and which windows those are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.program.intervals import interval_text, read_interval, read_time, time_text
from sqlmig.program.model import Program, View
from sqlmig.program.parse import parse_program
from sqlmig.program.query import read_query
from sqlmig.program.streams import without_stream
from sqlmig.program.windows import (
    Windowing,
    differs_in_delay_alone,
    read_windows,
    start_columns,
    window_problems,
)

TABLES = """
CREATE TABLE t (id INT, a INT, ts TIMESTAMP, at TIMESTAMP);
CREATE TABLE u (id INT, b INT);
CREATE TABLE odd (id INT, window STRUCT<start: INT>);
"""
MINUTE = 60_000_000
MARK = "WATERMARK ts DELAY OF INTERVAL 10 MINUTES"


def streaming(query: str, columns: str = "") -> tuple[Program, View]:
    """A streaming table with this query, `!` for the watermark."""
    text = query.replace("!", MARK)
    sql = f"{TABLES} CREATE STREAMING TABLE s {columns} AS {text};"
    program = parse_program({"a.sql": sql})
    return program, program.views["s"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) AS n FROM STREAM t ! GROUP BY window(ts, '10 minutes')", (10, 10, 0)),
        (
            "SELECT x.a, window.start, sum(DISTINCT x.id) AS n FROM STREAM t "
            "WATERMARK ts DELAY OF INTERVAL '1' HOUR 30 MINUTES AS x LEFT JOIN u ON x.id = u.id "
            "WHERE x.a > 0 GROUP BY x.a, window(x.ts, '1 hour', '1 hour', '15 minutes') "
            "HAVING count(*) > 1",
            (90, 60, 15),
        ),
        (
            "SELECT round(avg(a) FILTER (WHERE a > 1), 2) AS n FROM STREAM(t) AS x ! "
            'GROUP BY WINDOW(ts, "1 day"), a + (1)',
            (10, 1440, 0),
        ),
        (
            "WITH v AS (SELECT id FROM u WHERE b = 1) SELECT max(a) AS n FROM v JOIN STREAM t ! "
            "USING (id) GROUP BY window(t.ts, 'interval 90 seconds', '1 minute 30 seconds')",
            (10, 1.5, 0),
        ),
    ],
)
def test_windows_of_one_length_are_read(query: str, expected: tuple[float, float, float]) -> None:
    _, view = streaming(query)
    windowing = read_windows(view)
    assert window_problems(view) == ()
    assert windowing is not None
    assert (windowing.stream, windowing.column) == ("t", "ts")
    minutes = (windowing.delay, windowing.length, windowing.start)
    assert minutes == tuple(n * MINUTE for n in expected)
    assert read_query(view.query).is_read
    assert "WATERMARK" not in without_stream(view.query)
    assert view.streams == ("t",)


W = "window(ts, '10 minutes')"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT a FROM STREAM t !", "has a WATERMARK and no windows: rows pass one by one"),
        ("SELECT a, count(*) AS n FROM STREAM t ! GROUP BY a", "groups by no window of time"),
        (f"SELECT {W} AS w, max(a) AS n FROM STREAM t ! GROUP BY 1", "groups by no window of time"),
        (
            f"SELECT {W} AS w, max(a) AS n FROM STREAM t ! GROUP BY ALL",
            "groups by ALL, which may leave the window out",
        ),
        (
            f"SELECT max(a) AS n FROM STREAM t ! GROUP BY ROLLUP (a, {W})",
            "groups by ROLLUP, which may leave the window out",
        ),
        (
            f"SELECT max(a) AS n FROM STREAM t ! GROUP BY a, {W} WITH CUBE",
            "groups by WITH, which may leave the window out",
        ),
        (
            f"SELECT max(a) AS n FROM STREAM t ! GROUP BY {W}, a GROUPING SETS ((a), ({W}))",
            "groups by GROUPING, which may leave the window out",
        ),
        (
            "SELECT max(a) AS n FROM STREAM t ! GROUP BY window(at, '10 minutes')",
            "groups by windows of `at`, and its WATERMARK is of `ts`",
        ),
        (
            "SELECT max(a) AS n FROM STREAM t ! AS x GROUP BY window(t.ts, '10 minutes')",
            "groups by windows of `t.ts`, and its WATERMARK is of `ts`",
        ),
        (
            "SELECT max(a) AS n FROM STREAM t ! GROUP BY window(ts, '10 minutes', '5 minutes')",
            "groups by sliding windows, and a row is in one window",
        ),
        (
            "SELECT max(a) AS n FROM STREAM t ! GROUP BY window(ts, '1 month')",
            "groups by windows whose length can't be read",
        ),
        (
            "SELECT max(a) AS n FROM STREAM t ! GROUP BY window(ts, concat('10', ' minutes'))",
            "groups by windows whose length can't be read",
        ),
        (
            f"SELECT max(a) AS n FROM STREAM t WATERMARK ts DELAY OF INTERVAL 1 MONTH GROUP BY {W}",
            "has a WATERMARK whose delay has no fixed length",
        ),
        (
            f"SELECT max(a) AS n FROM STREAM t WATERMARK ts DELAY OF INTERVAL -1 DAY GROUP BY {W}",
            "has a WATERMARK whose delay has no fixed length",
        ),
        (
            "SELECT max(a) AS n FROM STREAM t ! GROUP BY session_window(ts, '10 minutes')",
            "groups by no window of time",
        ),
        (
            f"SELECT window(at, '1 day') AS w, max(a) AS n FROM STREAM t ! GROUP BY {W}",
            "has windows of two kinds",
        ),
        (f"SELECT DISTINCT a FROM STREAM t ! GROUP BY a, {W}", "has DISTINCT over a stream"),
        (
            f"SELECT max(a) AS n FROM STREAM t ! GROUP BY {W} ORDER BY n",
            "has ORDER BY over a stream",
        ),
        (
            f"SELECT sum(max(a)) OVER () AS n FROM STREAM t ! GROUP BY {W}",
            "has a window function over a stream",
        ),
        (
            f"SELECT max(a) AS n FROM STREAM t ! WHERE a > (SELECT max(b) FROM u) GROUP BY {W}",
            "aggregates: it calls max()",
        ),
        (
            f"SELECT max(a) AS n FROM u FULL JOIN STREAM t ! ON true GROUP BY {W}",
            "has a FULL JOIN",
        ),
        (
            f"SELECT max(a) AS n FROM STREAM t ! GROUP BY {W} UNION ALL SELECT b FROM u",
            "gives rows that come from no stream",
        ),
        (
            f"SELECT max(a) AS n FROM STREAM t ! JOIN STREAM u ON true GROUP BY {W}",
            "has a WATERMARK and several streams",
        ),
        (
            f"SELECT max(n) AS n FROM (SELECT count(*) AS n FROM STREAM t ! GROUP BY {W})",
            "gathers the rows of a stream that is not in its outermost FROM",
        ),
        (
            "FROM STREAM t ! |> AGGREGATE max(a) AS m GROUP BY " + W,
            "gathers the rows of a stream that is not in its outermost FROM",
        ),
    ],
)
def test_what_could_let_rows_of_two_windows_meet_is_refused(query: str, message: str) -> None:
    _, view = streaming(query)
    found = window_problems(view)
    assert message in [problem.message for problem in found]
    assert all(problem.hint for problem in found)
    assert read_windows(view) is None


@pytest.mark.parametrize(
    ("query", "columns", "expected"),
    [
        (
            f"SELECT window.start, window.end, max(a) AS n FROM STREAM t ! GROUP BY {W}",
            "",
            {"start"},
        ),
        (f"SELECT max(a) AS n, {W}.start AS w, a b FROM STREAM t ! GROUP BY {W}, a", "", {"w"}),
        (f"SELECT max(a), window.start w FROM STREAM t ! GROUP BY {W}", "(n, Began)", {"began"}),
        (f"SELECT window.end AS w, max(ts) AS start FROM STREAM t ! GROUP BY {W}", "", set()),
        (
            "SELECT window.start AS w, max(t.id) AS n FROM STREAM t ! JOIN odd USING (id) "
            f"GROUP BY {W}, window",
            "",
            set(),
        ),
        ("SELECT ts AS w FROM STREAM t", "", set()),
    ],
)
def test_the_columns_that_hold_a_windows_start_are_known(
    query: str, columns: str, expected: set[str]
) -> None:
    assert start_columns(*streaming(query, columns)) == expected


def test_another_delay_alone_is_told_from_any_other_change() -> None:
    query = f"SELECT max(a) AS n FROM STREAM t ! WHERE a > 1 GROUP BY {W}"
    _, before = streaming(query)
    _, later = streaming(query.replace("!", MARK.replace("10 MINUTES", "'2' HOURS")))
    _, other = streaming(query.replace("> 1", "> 2"))
    assert differs_in_delay_alone(before, later)
    assert not differs_in_delay_alone(before, other)
    assert not differs_in_delay_alone(before, streaming("SELECT a FROM STREAM t")[1])


@given(
    st.integers(-(10**15), 10**15),
    st.integers(-(10**15), 10**15),
    st.integers(1, 10**12),
    st.integers(-(10**12), 10**12),
)
def test_a_window_is_over_just_when_it_ends_at_the_watermark_or_before(
    at: int, watermark: int, length: int, start: int
) -> None:
    windowing = Windowing("t", "ts", 0, length, start)
    begin = windowing.begin(at)
    over = windowing.over(watermark)
    assert over is not None
    assert begin <= at < begin + length
    assert (begin - start) % length == 0
    assert (begin + length <= watermark) == (at < over)
    assert windowing.moved(watermark, at) == max(watermark, at)
    assert windowing.moved(None, None) is windowing.over(None) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 minutes", 600),
        ("INTERVAL 1 Hour 30 minutes", 5400),
        ("-1 day", -86400),
        ("1.5 seconds 3 milliseconds", 1.503),
        ("2 weeks", 1_209_600),
        ("1 month", None),
        ("1.5 hours", None),
        ("10", None),
        ("minutes", None),
        ("", None),
        ("10 minutesx", None),
    ],
)
def test_lengths_of_time_are_read_as_spark_writes_them(text: str, seconds: float | None) -> None:
    assert read_interval(text) == (None if seconds is None else round(seconds * 1_000_000))


@pytest.mark.parametrize(
    "text", ["1 hour", "90 minutes", "14 days", "25 hours", "1,001 milliseconds"]
)
def test_a_length_of_time_is_told_in_its_largest_unit(text: str) -> None:
    length = read_interval(text.replace(",", ""))
    assert length is not None
    assert interval_text(length) == text


def test_points_in_time_are_read_in_utc_and_told_within_the_years_that_there_are() -> None:
    assert read_time("2026-06-10") == read_time("2026-06-10T02:00+02:00")
    at = read_time(" 2026-06-10 00:00:00.5Z ")
    assert at is not None
    assert time_text(at) == "2026-06-10 00:00:00.500000"
    assert time_text(-(10**18)) == "0001-01-01 00:00:00"
    assert time_text(10**18) == "9999-12-31 23:59:59.999999"
    assert read_time("yesterday") is None
