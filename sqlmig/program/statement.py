"""Reads the statement of `sqlmig exec`: INSERT INTO a table. It knows the statement, and not the
table."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmig.errors import Location, ProgramError
from sqlmig.program.cursor import Cursor, FormError
from sqlmig.program.lexer import LexError, line_and_column, tokenize

_USAGE = "write `INSERT INTO t [(columns)] VALUES (...)`, or SELECT instead of VALUES"
_INSTEAD = {
    "SELECT": "`sqlmig query` reads",
    "WITH": "`sqlmig query` reads",
    "CREATE": "write it into pipeline/ and make a revision with `sqlmig revision`",
    "DROP": "delete it from pipeline/ and make a revision with `sqlmig revision`",
    "ALTER": "edit it in pipeline/ and make a revision with `sqlmig revision`",
}


@dataclass(frozen=True)
class Insert:
    """An INSERT.

    Args:
        table: the table's name, lower case.
        columns: the columns in the order of the query's, as written; None for all of the table's.
        query: the rows: the exact text from VALUES or SELECT to the last token.
    """

    table: str
    columns: tuple[str, ...] | None
    query: str


def parse_insert(sql: str, path: str = "SQL") -> Insert:
    """Reads one `INSERT INTO t [(columns)] VALUES ...` or `... SELECT ...`.

    Args:
        sql: the text; one semicolon may follow.
        path: what an error's location calls the text.

    Raises:
        ProgramError: it is another statement, or there is a mistake in it.
    """
    try:
        return _read(Cursor(tokenize(sql), sql))
    except (FormError, LexError) as error:
        location = Location(path, *line_and_column(sql, error.offset))
        raise ProgramError(error.message, location=location, hint=error.hint) from None


def _read(cursor: Cursor) -> Insert:
    first = cursor.peek()
    if first is None:
        raise FormError("there is no statement", 0, _USAGE)
    if not cursor.take("INSERT"):
        hint = _INSTEAD.get(first.word, _USAGE)
        raise FormError(f"{first.text.upper()} can't be run: expected INSERT", first.start, hint)
    if cursor.sees("OVERWRITE"):
        hint = "INSERT INTO adds rows; a keyed table replaces those with the same key"
        raise FormError("INSERT OVERWRITE is not supported", cursor.offset, hint)
    cursor.take("INTO")
    cursor.take("TABLE")
    table = cursor.name("a table's name")
    if cursor.sees("."):
        hint = "write the bare name: catalog and schema belong to the target in sqlmig.yml"
        raise FormError("the table's name has a catalog or schema", table.start, hint)
    columns = _columns(cursor) if cursor.sees("(") and not _begins_query(cursor, 1) else None
    if not _begins_query(cursor, 0):
        raise cursor.unexpected("VALUES or a query", _USAGE)
    start, last = cursor.offset, len(cursor.tokens) - 1
    for i in range(cursor.position, len(cursor.tokens)):
        if cursor.tokens[i].text == ";":
            if i != last:
                after = cursor.tokens[i + 1]
                raise FormError("there is a second statement", after.start, "run one at a time")
            last = i - 1
    return Insert(table.folded, columns, cursor.text[start : cursor.tokens[last].end])


def _begins_query(cursor: Cursor, ahead: int) -> bool:
    """True when the token `ahead` begins a query; parentheses around it may come before."""
    token = cursor.peek(ahead)
    while token is not None and token.text == "(":
        ahead += 1
        token = cursor.peek(ahead)
    return token is not None and token.word in ("VALUES", "SELECT", "WITH", "FROM", "TABLE")


def _columns(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    names: list[str] = []
    seen: set[str] = set()
    while True:
        token = cursor.name("a column's name")
        if token.folded in seen:
            raise FormError(f"column `{token.name}` comes twice", token.start, "leave one out")
        seen.add(token.folded)
        names.append(token.name)
        if cursor.take(")"):
            return tuple(names)
        cursor.expect(",")
