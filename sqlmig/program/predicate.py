"""The fields that a predicate names. It knows tokens; what they mean, it leaves to Spark."""

from __future__ import annotations

from collections.abc import Iterable

from sqlmig.program.lexer import STRING, Token, tokenize

# Words that mean no field in an expression; all others may be names of columns, in Spark too.
_WORDS = frozenset(
    """
    ALL AND ANY AS BETWEEN CASE CAST COLLATE CURRENT_DATE CURRENT_TIMESTAMP CURRENT_USER DISTINCT
    DIV ELSE END ESCAPE EXISTS FALSE FROM ILIKE IN INTERVAL IS LIKE LOCALTIMESTAMP NOT NULL OR
    REGEXP RLIKE SOME THEN TRUE USING WHEN
    """.split()
)
_BEFORE_A_LITERAL = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X"))

Path = tuple[str, ...]


def named_fields(predicate: str) -> tuple[Path, ...]:
    """The fields that a predicate names, each once, in the order of their first mention.

    A field of a structure is a path: `payload.op` gives `("payload", "op")`.

    Raises:
        LexError: a string or a quoted name doesn't end.
    """
    tokens = tokenize(predicate)
    found: dict[Path, Path] = {}
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if not _may_be_field(tokens, position):
            position += 1
            continue
        path = [token.name]
        while (
            position + 2 < len(tokens)
            and tokens[position + 1].text == "."
            and tokens[position + 2].is_name
        ):
            position += 2
            path.append(tokens[position].name)
        position += 1
        is_call = position < len(tokens) and tokens[position].text in ("(", "->")
        if not is_call:
            found.setdefault(tuple(name.lower() for name in path), tuple(path))
    return tuple(found.values())


def _may_be_field(tokens: list[Token], position: int) -> bool:
    token = tokens[position]
    before = tokens[position - 1] if position else None
    after = tokens[position + 1] if position + 1 < len(tokens) else None
    if not token.is_name or (before is not None and before.text == "::"):
        return False
    if before is not None and before.word == "AS":  # the type of a CAST
        return False
    if after is not None and after.kind == STRING and token.word in _BEFORE_A_LITERAL:
        return False
    return token.word not in _WORDS


def fields_beyond(predicate: str, columns: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(name, type) of the fields that a predicate names and a table has not.

    A plain field is read as a string, one with a path as a structure of strings: what it is
    compared with, Spark casts it to.

    Args:
        columns: the names of the table's columns.

    Raises:
        LexError: a string or a quoted name doesn't end.
    """
    known = {name.lower() for name in columns}
    trees: dict[str, tuple[str, list[Path]]] = {}
    for path in named_fields(predicate):
        if path[0].lower() not in known:
            trees.setdefault(path[0].lower(), (path[0], []))[1].append(path[1:])
    return tuple((name, _type(paths)) for name, paths in trees.values())


def _type(paths: list[Path]) -> str:
    inner: dict[str, tuple[str, list[Path]]] = {}
    for path in paths:
        if path:
            inner.setdefault(path[0].lower(), (path[0], []))[1].append(path[1:])
    if not inner:
        return "string"
    fields = ", ".join(
        f"`{name.replace('`', '``')}`: {_type(rest)}" for name, rest in inner.values()
    )
    return f"struct<{fields}>"
