"""Spark SQL as sqlglot can read it. It knows both lexers and sqlglot's parser; it draws no
conclusions.

sqlglot's Spark dialect takes `STREAM t` for a table with an alias, refuses `GROUP BY window(...)`,
and lexes some strings and comments in other ways than Spark does. So it is given a text of the same
length, made from Spark's own tokens: comments and hints are blank, strings hold harmless letters,
STREAM is blank, and `window` has a name that sqlglot doesn't know. Every name keeps its offset.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from sqlmig.program.lexer import HINT, STRING, VARIABLE, WORD, Token
from sqlmig.program.streams import stream_tokens

_SPARK = Spark()
_UNSAFE = re.compile(r"[^A-Za-z0-9 :.,_+-]")


def parse_query(text: str, tokens: Sequence[Token]) -> exp.Expr | None:
    """The syntax tree of one query, whose identifiers know their offsets in `text`; None when it
    can't be read."""
    if any(token.text == "|>" for token in tokens):
        return None
    masked = mask(text, tokens)
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # what it can't read is no news
    try:
        trees = _SPARK.parse(masked)
    except (SqlglotError, ValueError, RecursionError, AttributeError, TypeError, LookupError):
        return None
    if len(trees) != 1 or not isinstance(
        trees[0], (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
    ):
        return None
    return trees[0]


def mask(text: str, tokens: Sequence[Token]) -> str:
    """The text that sqlglot is given; as long as `text`."""
    parts: list[str] = []
    position = 0
    for token in _without_stream(tokens):
        parts.append(" " * (token.start - position))
        parts.append(token.text)
        position = token.end
    parts.append(" " * (len(text) - position))
    return "".join(parts)


def _without_stream(tokens: Sequence[Token]) -> list[Token]:
    stream = stream_tokens(tokens)
    return [
        _plain(t, tokens[i + 1] if i + 1 < len(tokens) else None)
        for i, t in enumerate(tokens)
        if i not in stream
    ]


def _plain(token: Token, following: Token | None) -> Token:
    if token.kind == WORD:
        if following is not None and following.text == "(" and token.word == "WINDOW":
            return token._replace(text="wind0w")
        return token
    length = len(token.text)
    if token.kind == HINT:
        return token._replace(text=" " * length)
    if token.kind == VARIABLE:
        return token._replace(text="_" * length)
    if token.kind == STRING:
        raw = token.text[0] in "rR"
        body = token.text[2:-1] if raw else token.text[1:-1]
        return token._replace(text=" " * raw + "'" + _UNSAFE.sub("_", body) + "'")
    return token
