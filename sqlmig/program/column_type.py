"""Spark's column types, in one spelling each: that of Spark's `simpleString`. It reads types, and
nothing else."""

from __future__ import annotations

from difflib import get_close_matches

from sqlmig.program.cursor import Cursor, FormError
from sqlmig.program.lexer import NUMBER, QUOTED, STRING

_SPELLINGS = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "character": "char",
    "timestamp_ltz": "timestamp",
}
_SIMPLE = frozenset(
    "boolean tinyint smallint int bigint float double date timestamp timestamp_ntz string binary "
    "void variant".split()
)
_WITH_ARGUMENTS = frozenset("decimal char varchar time geometry geography".split())
_NESTED = frozenset(("array", "map", "struct"))
_KNOWN = sorted(_SIMPLE | _WITH_ARGUMENTS | _NESTED | set(_SPELLINGS) | {"interval"})


def read_type(cursor: Cursor) -> str:
    """Reads one type at the cursor.

    Returns:
        The canonical text: lower case, no spaces, one name per type, decimal with both its numbers.
        Names of struct fields keep their letter case; NOT NULL and COMMENT of a field are kept.

    Raises:
        FormError: there is no type, or Spark has none of that name.
    """
    token = cursor.peek()
    name = cursor.word("a type").lower()
    name = _SPELLINGS.get(name, name)
    if name in _SIMPLE:
        if name == "string" and cursor.take("COLLATE"):
            return f"string collate {cursor.word('a collation').upper()}"
        return name
    if name in _WITH_ARGUMENTS:
        return name + _arguments(cursor, name)
    if name in _NESTED:
        return _nested(cursor, name)
    if name == "interval":
        return _interval(cursor)
    close = get_close_matches(name, _KNOWN, n=1)
    assert token is not None
    raise FormError(
        f"`{name}` is not a type of Spark",
        token.start,
        f"did you mean `{close[0]}`?"
        if close
        else "types are int, bigint, string, decimal(10,2), array<int>, ...",
    )


def _arguments(cursor: Cursor, name: str) -> str:
    values: list[str] = []
    if cursor.take("("):
        while not cursor.take(")"):
            token = cursor.next("`)`")
            if token.kind == NUMBER or token.is_name:
                values.append(token.text.lower())
            elif token.text != ",":
                raise FormError(f"expected a number or `)`, found `{token.text}`", token.start)
    if name == "decimal":
        values += ["10", "0"][len(values) :]
    if name in ("char", "varchar") and not values:
        raise FormError(
            f"`{name}` needs a length", cursor.offset, f"write `{name}(100)`, or `string`"
        )
    return f"({','.join(values)})" if values else ""


def _nested(cursor: Cursor, name: str) -> str:
    if name == "struct" and cursor.take("<>"):
        return "struct<>"
    cursor.open_angle()
    parts: list[str] = []
    while not cursor.close_angle():
        if parts:
            cursor.expect(",")
        parts.append(_field(cursor) if name == "struct" else read_type(cursor))
    wanted = {"array": 1, "map": 2}.get(name, len(parts))
    if len(parts) != wanted:
        raise FormError(
            f"`{name}` takes {wanted} type{'s' if wanted > 1 else ''}, not {len(parts)}",
            cursor.offset,
        )
    return f"{name}<{','.join(parts)}>"


def _field(cursor: Cursor) -> str:
    token = cursor.name("a field's name")
    plain = token.kind != QUOTED or (token.name.isidentifier() and token.name.isascii())
    name = token.name if plain else token.text
    cursor.take(":")
    text = f"{name}:{read_type(cursor)}"
    if cursor.take("NOT"):
        cursor.expect("NULL")
        text += " not null"
    if cursor.take("COMMENT"):
        text += f" comment {cursor.of_kind(STRING, 'a string').text}"
    return text


def _interval(cursor: Cursor) -> str:
    units = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
    first = cursor.take(*units)
    if not first:
        return "interval"
    text = f"interval {first.lower()}"
    if cursor.take("TO"):
        last = cursor.take(*units)
        if not last:
            raise FormError(
                "expected a unit of time after TO", cursor.offset, "write `interval day to second`"
            )
        text += f" to {last.lower()}"
    return text
