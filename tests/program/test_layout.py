"""PARTITIONED BY: read, checked and compared."""

from __future__ import annotations

import pytest

from sqlmig.errors import ProgramErrors
from sqlmig.program.canonical import fingerprint
from sqlmig.program.diff import ProgramDiff, diff_programs
from sqlmig.program.parse import parse_program

T = "CREATE TABLE t (Day DATE, a INT) {} COMMENT 'c';"
V = "CREATE MATERIALIZED VIEW v {} AS SELECT Day, a FROM t;"


def test_columns_are_read_before_or_behind_the_comment() -> None:
    before = parse_program({"p.sql": T.format("PARTITIONED BY (day)")}).tables["t"]
    behind = parse_program({"p.sql": T.format("").replace(";", " PARTITIONED BY (DAY);")})
    assert before == behind.tables["t"]
    assert (before.partitioned_by, before.layout, before.comment) == (("Day",), ("day",), "c")
    view = parse_program({"p.sql": T.format("") + V.format("(x, y) PARTITIONED BY (y)")}).views["v"]
    assert view.layout == ("y",)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (T.format("PARTITIONED BY (dai)"), "partition column `dai` is not a column of `t`"),
        (T.format("PARTITIONED BY (a, A)"), "partition column `A` of `t` comes twice"),
        (T.format("PARTITIONED BY (a, day)"), "`t` is partitioned by all its columns"),
        (
            T.format("") + V.format("PARTITIONED BY (b)"),
            "partition column `b` is not a column of `v`",
        ),
        (
            T.format("CLUSTER BY (a)"),
            "CLUSTER BY is not supported: such a table can only be put back by Spark",
        ),
        (
            T.format("") + V.format("PARTITIONED BY (a)").replace("MATERIALIZED ", ""),
            "a view can't be partitioned here",
        ),
    ],
)
def test_mistakes_are_told_with_their_place(sql: str, message: str) -> None:
    with pytest.raises(ProgramErrors) as caught:
        parse_program({"p.sql": sql})
    assert [error.message for error in caught.value.errors] == [message]
    assert caught.value.errors[0].location is not None


def test_another_layout_is_a_change_that_affects_no_reader() -> None:
    plain = parse_program({"p.sql": T.format("") + V.format("")})
    laid_out = parse_program({"p.sql": T.format("PARTITIONED BY (day)") + V.format("")})
    diff = diff_programs(plain, laid_out)
    assert [(c.name, c.how, c.reasons, c.is_layout) for c in diff.changes] == [
        ("t", "modified", ("partitioned by (Day)",), True)
    ]
    assert ProgramDiff.from_dict(diff.to_dict()) == diff
    assert fingerprint(plain.tables["t"]) == fingerprint(laid_out.tables["t"])
    (back,) = diff_programs(laid_out, plain).changes
    assert back.reasons == ("no longer partitioned by (Day)",)


def test_a_reader_of_hidden_columns_is_affected() -> None:
    reader = "CREATE VIEW w AS SELECT _metadata.file_path AS f FROM t;"
    plain = parse_program({"p.sql": T.format("") + reader})
    laid_out = parse_program({"p.sql": T.format("PARTITIONED BY (day)") + reader})
    assert diff_programs(plain, laid_out).names("view", "affected") == ("w",)
