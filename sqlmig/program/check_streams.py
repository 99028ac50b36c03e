"""What the query of a streaming table may not do with its streams.

It knows tokens and no schema. A streaming table's query is run over the rows that came, piece by
piece, so it has to be one whose rows over two pieces are the rows over both together: filters,
projections, `explode`, functions of one row, joins with what is no stream, UNION ALL. Whatever
could make it another one is named here, in doubt too. A query that has a WATERMARK gathers rows in
windows, and is for `windows` to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from sqlmig.program.lexer import NUMBER, WORD, Token, match_parentheses, tokenize
from sqlmig.program.model import View
from sqlmig.program.streams import streamed
from sqlmig.program.vocabulary import AGGREGATES

VIEW_HINT = "make it a MATERIALIZED VIEW, or put that part into one"
WATERMARK_HINT = (
    "for windows of time write FROM STREAM t WATERMARK ts DELAY OF INTERVAL 10 MINUTES ... "
    "GROUP BY window(ts, '1 hour')"
)
_WORDS = {
    "DISTINCT": "DISTINCT",
    "EXCEPT": "EXCEPT",
    "GROUP": "GROUP BY",
    "HAVING": "HAVING",
    "INTERSECT": "INTERSECT",
    "LIMIT": "LIMIT",
    "MATCH_RECOGNIZE": "MATCH_RECOGNIZE",
    "MINUS": "MINUS",
    "OFFSET": "OFFSET",
    "ORDER": "ORDER BY",
    "OVER": "a window function",
    "PIVOT": "PIVOT",
    "QUALIFY": "QUALIFY",
    "RECURSIVE": "WITH RECURSIVE",
    "SORT": "SORT BY",
    "WATERMARK": "WATERMARK",
}
_WINDOWS = frozenset(("SESSION_WINDOW", "WINDOW"))
_GATHERS = AGGREGATES | {"grouping", "grouping_id"}
_AGGREGATE = re.compile(r"_AGG(_|$)")
_BEFORE_BRANCH = frozenset({"FROM", "JOIN", "ALL", "AS", "("})
_KEEPS_LEFT = frozenset({"LEFT", "SEMI", "ANTI", "OUTER"})


class Problem(NamedTuple):
    """Why a query can't be run row by row.

    Args:
        message: what it has, in words that follow "`name` ".
        offset: where, in the query's text.
        hint: what to do.
    """

    message: str
    offset: int
    hint: str


def problems(view: View) -> tuple[Problem, ...]:
    """What keeps the query from being run on one piece of its stream after another.

    Returns:
        Nothing where every row that the query gives comes from one row of one stream, and none
        from anything else alone.
    """
    tokens = tokenize(view.query)
    if not view.streams:
        return (
            Problem(
                "reads no stream",
                0,
                "write FROM STREAM and the name of a table, or CREATE MATERIALIZED VIEW",
            ),
        )
    return first_of_each([*stateful(tokens), *misplaced(tokens)])


def first_of_each(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """The problems, each message once."""
    first: dict[str, Problem] = {}
    for problem in problems:
        first.setdefault(problem.message, problem)
    return tuple(first.values())


def is_aggregate(word: str) -> bool:
    """Whether a function of this name gathers rows."""
    return word.lower() in _GATHERS or _AGGREGATE.search(word.upper()) is not None


def stateful(tokens: Sequence[Token], allowed: Set[int] = frozenset()) -> Iterator[Problem]:
    """What makes rows of the result depend on several rows of the stream.

    Args:
        allowed: indexes of tokens that don't, where they stand.
    """
    has_windows = any(
        token.word in _WINDOWS and after.text == "(" for token, after in pairwise(tokens)
    )
    for i, token in enumerate(tokens):
        if i in allowed:
            continue
        before = tokens[i - 1].word if i else ""
        after = tokens[i + 1] if i + 1 < len(tokens) else None
        if before == "." or token.kind != WORD:
            continue
        word, is_call = token.word, after is not None and after.text == "("
        if word in _WORDS and _counts(word, before, after):
            message, hint = f"has {_WORDS[word]} over a stream", VIEW_HINT
            if word == "WATERMARK":
                message, hint = "has a WATERMARK that can't be read", WATERMARK_HINT
            elif word == "GROUP" and has_windows and not allowed:
                hint = WATERMARK_HINT
            yield Problem(message, token.start, hint)
        elif is_call and is_aggregate(word):
            yield Problem(f"aggregates: it calls {word.lower()}()", token.start, VIEW_HINT)
        elif word == "AGGREGATE" and before == "|>":
            yield Problem("aggregates", token.start, VIEW_HINT)
        elif word == "UNION" and (after is None or after.word != "ALL"):
            yield Problem("has UNION, which drops equal rows", token.start, "write UNION ALL")
        elif word in ("RIGHT", "FULL") and after is not None and after.word in ("JOIN", "OUTER"):
            yield Problem(
                f"has a {word} JOIN", token.start, "let the stream stand left, and write LEFT JOIN"
            )


def _counts(word: str, before: str, after: Token | None) -> bool:
    """Whether the word is the clause, and no column's name or part of something harmless."""
    following = after.word if after is not None else ""
    match word:
        case "DISTINCT":
            return before not in ("IS", "NOT")
        case "EXCEPT":
            return before != "*"
        case "ORDER" | "SORT":
            return following == "BY"
        case "OFFSET":
            return after is not None and after.kind == NUMBER
        case "OVER":
            return following == "(" or before == ")"
        case "MINUS":
            return following in ("SELECT", "ALL", "DISTINCT", "TABLE", "VALUES", "FROM", "(")
        case "PIVOT" | "MATCH_RECOGNIZE":
            return following == "("
        case "WATERMARK":
            return after is not None and after.is_name and following not in ("AS", "FROM", "WHERE")
        case _:
            return True


def misplaced(tokens: Sequence[Token]) -> Iterator[Problem]:
    """Streams that are joined with each other, or stand where rows of another relation pass."""
    words = [token.word for token in tokens]
    closing = match_parentheses(words)
    opening: dict[int, int] = {}
    for start, end in closing.items():
        for i in range(start + 1, end):
            if start > opening.get(i, -1):
                opening[i] = start
    pending = [each.mark for each in streamed(tokens)]
    unions = [i for i, word in enumerate(words) if word == "UNION"]
    seen: set[int] = set()
    branches: dict[tuple[int, int], int] = {}
    while pending:
        i = pending.pop(0)
        if i in seen:
            continue
        seen.add(i)
        where = opening.get(i, -1)
        if i > 1 and words[i - 1] == "JOIN" and words[i - 2] in _KEEPS_LEFT:
            yield Problem(
                f"has a stream to the right of {words[i - 2]} JOIN",
                tokens[i].start,
                "let the stream stand left of it",
            )
        branch = (where, sum(1 for n in unions if n < i and opening.get(n, -1) == where))
        if branch in branches:
            yield Problem(
                "joins two streams",
                tokens[i].start,
                "read one of them without STREAM, or make it a MATERIALIZED VIEW",
            )
        branches[branch] = i
        if where < 0:
            continue
        before = words[where - 1] if where else "("
        if before not in _BEFORE_BRANCH:
            yield Problem(
                "reads a stream in an expression",
                tokens[i].start,
                "read it in FROM, or without STREAM",
            )
        elif before == "AS":
            pending += _uses(tokens, where)
        else:
            pending.append(where)
    for where in sorted({-1, *(where for where, _ in branches)}):
        own = [n for n in unions if opening.get(n, -1) == where]
        if any((where, number) not in branches for number in range(len(own) + 1)):
            yield Problem(
                "gives rows that come from no stream",
                tokens[max(where, 0)].start,
                "let each part of a UNION ALL read a stream",
            )


def _uses(tokens: Sequence[Token], parenthesis: int) -> Iterator[int]:
    """Where the CTE whose query stands in this parenthesis is read."""
    at = parenthesis - 2
    if tokens[at].text == ")":  # its columns are named
        while at > 0 and tokens[at].text != "(":
            at -= 1
        at -= 1
    name = tokens[at].folded
    for i, token in enumerate(tokens):
        if i > parenthesis and token.is_name and token.folded == name:
            before = tokens[i - 1].word
            is_qualifier = i + 1 < len(tokens) and tokens[i + 1].text == "."
            if before in ("FROM", "JOIN", ",") and not is_qualifier:
                yield i
