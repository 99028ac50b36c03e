"""RETAIN RAW in a CREATE SOURCE: how it is written, and what it makes of a source."""

from __future__ import annotations

import pytest

from sqlmig.errors import ProgramErrors
from sqlmig.planning.source_options import check_source, reads_the_same
from sqlmig.program.canonical import fingerprint
from sqlmig.program.diff import diff_programs
from sqlmig.program.model import Source
from sqlmig.program.parse import parse_program

T = "CREATE TABLE t (a INT);"
S = "CREATE SOURCE s INTO t USING json OPTIONS (path 'in'{options})"


def source(clause: str, options: str = "") -> Source:
    """The source with this behind its OPTIONS."""
    text = f"{T}{S.format(options=options)} {clause};"
    return parse_program({"pipeline/p.sql": text}).sources["t.s"]


@pytest.mark.parametrize(
    ("clause", "kept", "seconds"),
    [
        ("", None, None),
        ("RETAIN RAW", "", None),
        ("retain raw for 1 day", "1 days", 86400.0),
        ("RETAIN RAW FOR 36 HOURS", "36 hours", 129600.0),
        ("RETAIN RAW FOR 2 WEEKS", "2 weeks", 1209600.0),
    ],
)
def test_raw_records_are_kept_for_ever_or_for_a_time(
    clause: str, kept: str | None, seconds: float | None
) -> None:
    found = source(clause)
    assert (found.retain_raw, found.raw_seconds) == (kept, seconds)
    assert (fingerprint(found) == fingerprint(source(""))) == (kept is None)
    assert reads_the_same(source(""), found), "its offsets stay right"


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("RETAIN", "expected `RAW`, but the statement ends"),
        ("RETAIN RAW FOR", "expected a whole number, but the statement ends"),
        ("RETAIN RAW FOR 1.5 DAYS", "expected a whole number, found `1.5`"),
        ("RETAIN RAW FOR 3 MONTHS", "expected HOURS, DAYS or WEEKS, found `MONTHS`"),
        ("RETAIN RAW FOR 0 DAYS", "raw records are kept for no time"),
        ("RETAIN RAW FOR 1 DAY LONG", "expected the end of the statement, found `LONG`"),
    ],
)
def test_a_retention_that_is_none_is_an_error(clause: str, message: str) -> None:
    with pytest.raises(ProgramErrors) as caught:
        source(clause)
    assert [error.message for error in caught.value.errors] == [message]


def test_a_sink_has_no_raw_records() -> None:
    text = f"{T}CREATE SINK k FROM t USING json OPTIONS (path 'out') RETAIN RAW;"
    with pytest.raises(ProgramErrors) as caught:
        parse_program({"pipeline/p.sql": text})
    (error,) = caught.value.errors
    assert (error.message, error.hint) == (
        "a sink has no raw records",
        "RETAIN RAW is for sources",
    )


def test_the_difference_says_for_how_long() -> None:
    def reasons(before: str, after: str) -> tuple[str, ...]:
        one, other = (
            parse_program({"pipeline/p.sql": f"{T}{S.format(options='')} {clause};"})
            for clause in (before, after)
        )
        (change,) = diff_programs(one, other).changes
        return change.reasons

    assert reasons("", "RETAIN RAW") == ("its raw records are kept for ever",)
    assert reasons("RETAIN RAW", "RETAIN RAW FOR 7 DAYS") == (
        "its raw records are kept for 7 days",
    )
    assert reasons("RETAIN RAW", "") == ("its raw records are kept no longer",)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "USING parquet OPTIONS (path 'in') RETAIN RAW",
            ["RETAIN RAW is not for parquet: its records are no lines of text"],
        ),
        (
            "USING csv OPTIONS (path 'in', header true) RETAIN RAW",
            ["RETAIN RAW and `header` don't go together: each line is a record"],
        ),
        (
            "USING json OPTIONS (path 'in', multiLine true, encoding 'UTF-16') RETAIN RAW",
            [
                "RETAIN RAW and `multiline` don't go together: a record is one line",
                "RETAIN RAW and `encoding` don't go together: lines are read as they are, in UTF-8",
            ],
        ),
        ("USING csv OPTIONS (path 'in', sep ';') RETAIN RAW FOR 1 DAY", []),
    ],
)
def test_what_can_not_be_kept_stands_in_the_plans_way(text: str, messages: list[str]) -> None:
    program = parse_program({"pipeline/p.sql": f"{T}CREATE SOURCE s INTO t {text};"})
    found = check_source(program.sources["t.s"], program.tables["t"])
    assert [b.message for b in found] == [f"source `t.s`: {message}" for message in messages]
    assert all(blocker.hint for blocker in found)
