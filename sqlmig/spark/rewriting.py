"""Fits a statement to its table: the target's place for its name, sqlmig's defaults filled in.

It edits text by the places of tokens, and leaves every other character as the user wrote it.
"""

from __future__ import annotations

from sqlmig.program.lexer import LexError, Token, tokenize
from sqlmig.program.model import Column, Table
from sqlmig.spark.dml import Statement
from sqlmig.spark.names import quoted


def with_defaults(query: str, columns: list[Column]) -> str:
    """`query` with each `DEFAULT` in its VALUES replaced by the column's own default."""
    try:
        tokens = tokenize(query)
    except LexError:
        return query
    if not tokens or tokens[0].word != "VALUES":
        return query
    edits: list[tuple[int, int, str]] = []
    depth = position = 0
    for index, token in enumerate(tokens[1:], 1):
        if token.text in ("(", "[", "{"):
            depth += 1
            if depth == 1:
                position = 0
        elif token.text in (")", "]", "}"):
            depth -= 1
        elif token.text == "," and depth == 1:
            position += 1
        elif token.word == "DEFAULT" and depth <= 1 and position < len(columns):
            around = tokens[index - 1].text in ("(", ",", "VALUES")
            follows = tokens[index + 1].text if index + 1 < len(tokens) else ","
            if around and follows in (")", ","):
                text = f"({columns[position].default or 'NULL'})"
                edits.append((token.start, token.end, text))
    return _edited(query, edits)


def rewritten(statement: Statement, table: Table, target: str) -> str:
    """An UPDATE, DELETE or MERGE with its target's name replaced by `target`.

    The table's own name stays as an alias when the statement gives none, and `column = DEFAULT`
    becomes the column's default.
    """
    start, end = statement.span
    name = statement.text[start:end]
    edits = [(start, end, target if statement.has_alias else f"{target} AS {name}")]
    columns = {column.name.lower(): column for column in table.columns}
    tokens = statement.tokens
    for before, sign, token in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if sign.text == "=" and token.word == "DEFAULT" and before.is_name:
            column = columns.get(before.folded)
            if column is not None:
                edits.append((token.start, token.end, f"({column.default or 'NULL'})"))
    if statement.kind == "MERGE":
        edits += _merge_defaults(tokens, columns)
    return _edited(statement.text, edits)


def _merge_defaults(
    tokens: tuple[Token, ...], columns: dict[str, Column]
) -> list[tuple[int, int, str]]:
    """In each `INSERT (a, b) VALUES (x, y)` of a MERGE: what is left out, and DEFAULT, filled."""
    edits: list[tuple[int, int, str]] = []
    for index, token in enumerate(tokens):
        if token.word != "INSERT":
            continue
        names = _list_at(tokens, index + 1)
        behind = index + 1 + sum(map(len, names)) + len(names) + 1  # commas and parentheses
        values = _list_at(tokens, behind + 1)
        if not names or len(names) != len(values):
            continue  # INSERT *, or a mistake that Spark will tell
        given = [name[-1].folded for name in names]
        for name, value in zip(given, values, strict=True):
            if len(value) == 1 and value[0].word == "DEFAULT" and name in columns:
                default = f"({columns[name].default or 'NULL'})"
                edits.append((value[0].start, value[0].end, default))
        missing = [c for n, c in columns.items() if n not in given and c.default is not None]
        if missing:
            names_end, values_end = names[-1][-1].end, values[-1][-1].end
            more = "".join(f", {quoted(c.name)}" for c in missing)
            edits.append((names_end, names_end, more))
            edits.append((values_end, values_end, "".join(f", ({c.default})" for c in missing)))
    return edits


def _list_at(tokens: tuple[Token, ...], start: int) -> list[list[Token]]:
    """The elements of the list in parentheses at `start`; [] where there is none."""
    if start >= len(tokens) or tokens[start].text != "(":
        return []
    elements: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[start:]:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
        if depth == 0:
            return elements if all(elements) else []
        if depth == 1 and token.text == ",":
            elements.append([])
        elif token is not tokens[start]:
            elements[-1].append(token)
    return []


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text
