"""Where a query says STREAM: which relations it reads so, and the query without the word.

It knows tokens. Spark reads `FROM STREAM t` and `FROM STREAM(t)`; what a streaming table may do
with a stream is in `check_streams`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlmig.program.lexer import WORD, Token, tokenize

_BEFORE_RELATION = frozenset(("FROM", "JOIN", ",", "("))
_AFTER_ALIAS = frozenset(
    "AS JOIN INNER LEFT RIGHT FULL CROSS SEMI ANTI NATURAL ON USING WHERE GROUP HAVING ORDER SORT "
    "CLUSTER DISTRIBUTE LIMIT OFFSET UNION EXCEPT MINUS INTERSECT LATERAL WINDOW TABLESAMPLE PIVOT "
    "UNPIVOT QUALIFY".split()
)


def stream_tokens(tokens: Sequence[Token]) -> set[int]:
    """Indexes of the tokens that mark a relation as a stream: STREAM, and the parentheses of
    STREAM(t)."""
    found: set[int] = set()
    for i, token in enumerate(tokens):
        if token.kind != WORD or token.word != "STREAM" or i == 0 or i + 1 == len(tokens):
            continue
        if tokens[i - 1].word not in _BEFORE_RELATION:
            continue
        following = tokens[i + 1]
        if following.is_name and following.word not in _AFTER_ALIAS:
            found.add(i)
        elif following.text == "(":
            end = i + 2
            while end < len(tokens) and (tokens[end].is_name or tokens[end].text == "."):
                end += 1
            if end > i + 2 and end < len(tokens) and tokens[end].text == ")":
                found |= {i, i + 1, end}
    return found


def stream_positions(tokens: Sequence[Token]) -> frozenset[int]:
    """Indexes of the names of relations that stand behind STREAM."""
    if all(token.word != "STREAM" for token in tokens):
        return frozenset()
    return frozenset(_named(tokens))


def stream_names(tokens: Sequence[Token]) -> tuple[str, ...]:
    """The relations that stand behind STREAM, folded, sorted."""
    return tuple(sorted({tokens[i].folded for i in stream_positions(tokens)}))


def without_stream(text: str) -> str:
    """The query with every STREAM blank, and as long as before: Spark reads the rows that came as
    an ordinary relation."""
    tokens = tokenize(text)
    characters = list(text)
    for i in stream_tokens(tokens):
        for at in range(tokens[i].start, tokens[i].end):
            characters[at] = " "
    return "".join(characters)


def _named(tokens: Sequence[Token]) -> Iterator[int]:
    """Indexes of the names behind STREAM."""
    for i in sorted(stream_tokens(tokens)):
        if tokens[i].word == "STREAM":
            yield i + 1 if tokens[i + 1].is_name else i + 2
