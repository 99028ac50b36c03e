"""Where a query says STREAM: which relations it reads so, and the query without the word.

It knows tokens. Spark reads `FROM STREAM t`, `FROM STREAM(t)` and, behind either, `WATERMARK ts
DELAY OF INTERVAL 10 MINUTES`; what a streaming table may do with a stream is in `check_streams` and
`windows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlmig.program.lexer import NUMBER, STRING, WORD, Token, tokenize

_BEFORE_RELATION = frozenset(("FROM", "JOIN", ",", "("))
_AFTER_ALIAS = frozenset(
    "AS JOIN INNER LEFT RIGHT FULL CROSS SEMI ANTI NATURAL ON USING WHERE GROUP HAVING ORDER SORT "
    "CLUSTER DISTRIBUTE LIMIT OFFSET UNION EXCEPT MINUS INTERSECT LATERAL WINDOW TABLESAMPLE PIVOT "
    "UNPIVOT QUALIFY".split()
)
_CLAUSE = ("DELAY", "OF", "INTERVAL")
_UNITS = frozenset(
    f"{unit}{end}"
    for unit in "NANOSECOND MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH YEAR".split()
    for end in ("", "S")
)


class Watermark(NamedTuple):
    """A WATERMARK clause, by the indexes of its tokens.

    Args:
        first, end: of the whole clause; `end` is behind it.
        column: of the column's name.
        delay: of the first token of the delay, behind INTERVAL.
    """

    first: int
    end: int
    column: int
    delay: int


class Streamed(NamedTuple):
    """A relation that is read as a stream, by the indexes of its tokens.

    Args:
        mark: of STREAM. name: of the relation's name.
        parentheses: of those of STREAM(t).
        alias: of its alias, or None.
    """

    mark: int
    name: int
    parentheses: tuple[int, ...]
    alias: int | None
    watermark: Watermark | None


def streamed(tokens: Sequence[Token]) -> tuple[Streamed, ...]:
    """The relations that stand behind STREAM, in the order of the text."""
    found = []
    for i, token in enumerate(tokens):
        if token.kind != WORD or token.word != "STREAM" or i == 0 or i + 1 == len(tokens):
            continue
        if tokens[i - 1].word not in _BEFORE_RELATION:
            continue
        following = tokens[i + 1]
        if following.is_name and following.word not in _AFTER_ALIAS:
            found.append(_streamed(tokens, i, i + 1, (), _name_end(tokens, i + 1)))
        elif following.text == "(":
            end = _name_end(tokens, i + 2)
            if end > i + 2 and end < len(tokens) and tokens[end].text == ")":
                found.append(_streamed(tokens, i, i + 2, (i + 1, end), end + 1))
    return tuple(found)


def _name_end(tokens: Sequence[Token], at: int) -> int:
    """The index behind a name, qualified or not; `at` where there is none."""
    end = at
    while end < len(tokens) and tokens[end].is_name:
        end += 1
        if end >= len(tokens) or tokens[end].text != ".":
            break
        end += 1
    return end


def _streamed(
    tokens: Sequence[Token], mark: int, name: int, parentheses: tuple[int, ...], at: int
) -> Streamed:
    watermark = _watermark(tokens, at)
    at = watermark.end if watermark else at
    is_explicit = at < len(tokens) and tokens[at].word == "AS"
    at += is_explicit
    alias = None
    if at < len(tokens) and tokens[at].is_name and tokens[at].word not in _AFTER_ALIAS:
        alias = at
        watermark = watermark or _watermark(tokens, at + 1)
    return Streamed(mark, name, parentheses, alias, watermark)


def _watermark(tokens: Sequence[Token], at: int) -> Watermark | None:
    """The clause that begins at a token; None where that is none, or its delay can't be read."""
    words = [token.word for token in tokens[at : at + 5]]
    if len(words) < 5 or words[0] != "WATERMARK" or (*words[2:],) != _CLAUSE:
        return None
    if not tokens[at + 1].is_name:
        return None
    end = at + 5
    while True:
        value = end + (end < len(tokens) and tokens[end].text in ("+", "-"))
        if value + 1 >= len(tokens) or tokens[value].kind not in (NUMBER, STRING):
            break
        if tokens[value + 1].word not in _UNITS:
            break
        end = value + 2
    if end == at + 5 or (end < len(tokens) and tokens[end].word == "TO"):
        return None
    return Watermark(at, end, at + 1, at + 5)


def stream_tokens(tokens: Sequence[Token]) -> set[int]:
    """Indexes of the tokens that mark a relation as a stream: STREAM, the parentheses of STREAM(t),
    and the whole of its WATERMARK."""
    found: set[int] = set()
    for each in streamed(tokens):
        found |= {each.mark, *each.parentheses}
        if each.watermark is not None:
            found.update(range(each.watermark.first, each.watermark.end))
    return found


def stream_positions(tokens: Sequence[Token]) -> frozenset[int]:
    """Indexes of the names of relations that stand behind STREAM."""
    if all(token.word != "STREAM" for token in tokens):
        return frozenset()
    return frozenset(each.name for each in streamed(tokens))


def stream_names(tokens: Sequence[Token]) -> tuple[str, ...]:
    """The relations that stand behind STREAM, folded, sorted."""
    return tuple(sorted({tokens[i].folded for i in stream_positions(tokens)}))


def without_stream(text: str) -> str:
    """The query with every STREAM and WATERMARK blank, and as long as before: Spark reads the rows
    that came as an ordinary relation."""
    tokens = tokenize(text)
    characters = list(text)
    for i in stream_tokens(tokens):
        for at in range(tokens[i].start, tokens[i].end):
            characters[at] = " "
    return "".join(characters)
