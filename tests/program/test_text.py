"""Tokens, types, variables, and the INSERT of `sqlmig exec`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.errors import ProgramError, ProgramErrors
from sqlmig.program.column_type import read_type
from sqlmig.program.cursor import Cursor, FormError
from sqlmig.program.lexer import LexError, line_and_column, split_statements, string_value, tokenize
from sqlmig.program.statement import Insert, parse_insert
from sqlmig.program.variables import substitute


@given(st.text(alphabet="ab_1 .'\"`-/*+\\\nrRxX$;(<=>é", max_size=40))
def test_tokens_hold_every_character_but_space_and_comments(text: str) -> None:
    try:
        tokens = tokenize(text)
    except LexError:
        return
    position = 0
    for token in tokens:
        gap = text[position : token.start]
        assert gap.strip() == "" or "--" in gap or "/*" in gap
        assert text[token.start : token.end] == token.text != ""
        position = token.end
    again = tokenize(" ".join(token.text for token in tokens))
    assert [t.text for t in again] == [t.text for t in tokens]


@given(st.text(alphabet="a '\"`-/*\\\n;r", max_size=40))
def test_statements_are_split_where_their_tokens_are(text: str) -> None:
    try:
        ends = [token.start for token in tokenize(text) if token.text == ";"]
    except LexError:
        return
    assert [end for _, end in split_statements(text)][:-1] == ends


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"),
        ("'it''s'", "it's"),
        (r"'a\'b\n\t\\'", "a'b\n\t\\"),
        (r"r'a\n'", r"a\n"),
        ('"a""b"', 'a"b'),
        (r"'\u00e9\101'", "éA"),
        ("$$a'b$$", "a'b"),
        (r"'50\%'", r"50\%"),
    ],
)
def test_a_string_says(text: str, value: str) -> None:
    (token,) = tokenize(text)
    assert string_value(token.text) == value


def test_places_are_counted_from_one() -> None:
    assert [line_and_column("a\nbc\n", i) for i in (0, 2, 3)] == [(1, 1), (2, 1), (2, 2)]


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("INTEGER", "int"),
        ("long", "bigint"),
        ("Real", "float"),
        ("numeric", "decimal(10,0)"),
        ("DEC ( 5 )", "decimal(5,0)"),
        ("decimal(5, 2)", "decimal(5,2)"),
        ("VARCHAR(10)", "varchar(10)"),
        ("character(3)", "char(3)"),
        ("timestamp_ltz", "timestamp"),
        ("map<string, array<array<Short>>>", "map<string,array<array<smallint>>>"),
        ("struct<A: int, `b c` string NOT NULL>", "struct<A:int,`b c`:string not null>"),
        ("struct<>", "struct<>"),
        ("interval day to second", "interval day to second"),
        ("string collate unicode", "string collate UNICODE"),
    ],
)
def test_a_type_has_one_spelling(written: str, canonical: str) -> None:
    cursor = Cursor(tokenize(written), written)
    assert read_type(cursor) == canonical
    assert cursor.at_end


@pytest.mark.parametrize(
    "written", ["", "array", "array<int", "map<int>", "varchar", "decimal(x", "5"]
)
def test_half_a_type_is_a_mistake(written: str) -> None:
    with pytest.raises(FormError):
        read_type(Cursor(tokenize(written), written))


def test_variables_are_put_in_and_secrets_left() -> None:
    # when
    files = substitute(
        {"a.sql": "SELECT '${where}/x', ${n} -- ${nothing}\n, '${env:KEY}'"},
        {"where": "s3", "n": "1"},
    )

    # then
    assert files == {"a.sql": "SELECT 's3/x', 1 -- ${nothing}\n, '${env:KEY}'"}


def test_every_undefined_variable_is_told() -> None:
    # when
    with pytest.raises(ProgramErrors) as caught:
        substitute({"a.sql": "x\n '${landin}' ${q}"}, {"landing": "s3"})

    # then
    assert [(str(e), e.hint) for e in caught.value.errors] == [
        ("a.sql:2:3: variable `landin` is not defined", "did you mean `${landing}`?"),
        (
            "a.sql:2:14: variable `q` is not defined",
            "define `q` under the target's `vars` in sqlmig.yml",
        ),
    ]


@pytest.mark.parametrize(
    ("sql", "insert"),
    [
        ("INSERT INTO T VALUES (1, 'a;b');", Insert("t", None, "VALUES (1, 'a;b')")),
        ("insert into t (a, `b c`) select 1, 2 -- x", Insert("t", ("a", "b c"), "select 1, 2")),
        ("INSERT INTO TABLE t (SELECT 1)", Insert("t", None, "(SELECT 1)")),
        (
            "INSERT INTO t WITH c AS (SELECT 1) FROM c",
            Insert("t", None, "WITH c AS (SELECT 1) FROM c"),
        ),
    ],
)
def test_an_insert_is_read(sql: str, insert: Insert) -> None:
    assert parse_insert(sql) == insert


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        ("SELECT 1", "SQL:1:1: SELECT can't be run: expected INSERT", "`sqlmig query` reads"),
        (
            "DROP TABLE t",
            "SQL:1:1: DROP can't be run: expected INSERT",
            "delete it from pipeline/ and make a revision with `sqlmig revision`",
        ),
        (
            "INSERT OVERWRITE t VALUES (1)",
            "SQL:1:8: INSERT OVERWRITE is not supported",
            "INSERT INTO adds rows; a keyed table replaces those with the same key",
        ),
        (
            "INSERT INTO t (a, A) VALUES (1, 2)",
            "SQL:1:19: column `A` comes twice",
            "leave one out",
        ),
        (
            "INSERT INTO t VALUES (1); SELECT 2",
            "SQL:1:27: there is a second statement",
            "run one at a time",
        ),
        (
            "INSERT INTO t",
            "SQL:1:14: expected VALUES or a query, but the statement ends",
            "write `INSERT INTO t [(columns)] VALUES (...)`, or SELECT instead of VALUES",
        ),
        ("INSERT INTO t VALUES ('a", "SQL:1:23: a string is not closed", "close it with `'`"),
    ],
)
def test_another_statement_is_refused_with_a_hint(sql: str, message: str, hint: str) -> None:
    with pytest.raises(ProgramError) as caught:
        parse_insert(sql)
    assert (str(caught.value), caught.value.hint) == (message, hint)
