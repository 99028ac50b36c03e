"""Which aggregations can be gone on with from their results alone, and how. It knows tokens, and
asks the program for columns; what it is not sure of it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlmig.program.lexer import HINT, NUMBER, LexError, Token, match_parentheses, tokenize
from sqlmig.program.model import Program, Table, View
from sqlmig.program.vocabulary import AGGREGATES

MERGES: Mapping[str, str] = {
    "bit_and": "bit_and",
    "bit_or": "bit_or",
    "bit_xor": "bit_xor",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
    "count": "sum",
    "count_if": "sum",
    "max": "max",
    "min": "min",
    "sum": "sum",
}
"""An aggregate -> the one that makes, of its values over parts, its value over all rows."""

_ANEW = "take op.in_place out, and it is computed anew"
_FORBIDDEN = {
    "CLUSTER": "CLUSTER BY",
    "CUBE": "CUBE",
    "DISTRIBUTE": "DISTRIBUTE BY",
    "EXCEPT": "EXCEPT",
    "GROUPING": "GROUPING SETS",
    "HAVING": "HAVING",
    "INTERSECT": "INTERSECT",
    "JOIN": "a join",
    "LATERAL": "LATERAL",
    "LIMIT": "LIMIT",
    "MINUS": "MINUS",
    "OFFSET": "OFFSET",
    "ORDER": "ORDER BY",
    "OVER": "a window function",
    "PIVOT": "PIVOT",
    "QUALIFY": "QUALIFY",
    "ROLLUP": "ROLLUP",
    "SELECT": "a nested SELECT",
    "SESSION_WINDOW": "windows of time",
    "SORT": "SORT BY",
    "STREAM": "STREAM",
    "TABLESAMPLE": "TABLESAMPLE",
    "UNION": "UNION",
    "UNPIVOT": "UNPIVOT",
    "WINDOW": "windows of time",
    "WITH": "WITH",
    "|>": "a pipe",
}
_GATHERS = re.compile(r"_AGG(_|$)")


@dataclass(frozen=True)
class Accumulation:
    """A query whose result can be gone on with: its input, and how each column is merged.

    Rule `mergeable-aggregates`. The query is one `SELECT keys, aggregates FROM input WHERE ...
    GROUP BY keys`, without anything else, over rows that are only added, and gives the same
    whenever it runs. Let Q(R) be its result over a multiset R of rows, and let two results be
    merged by putting their rows together, grouping them by the key columns, NULL like any other
    value, and applying `MERGES`. Then merging Q(A) and Q(B) gives Q(A and B together), for:

    1. `WHERE` and the expressions see one row each, so each row of A and of B passes, and has the
       same key and the same arguments, whether it is alone or among others.
    2. The key columns are the grouping expressions, all of them and nothing else. So a group of
       Q(A and B) is that of Q(A) together with that of Q(B), if both have one with its key, and
       there is at most one of each.
    3. Each aggregate is a sum over the group's rows, in a commutative monoid: of numbers under
       addition (`count`, `count_if`: of 0 and 1), of values under min, max, and, or, xor. A group
       without a value but NULL gives NULL, which merging leaves out as the aggregate does;
       a count gives 0. The sum over a group is that of the sums over its two parts.

    Sums of `DOUBLE` and `FLOAT` depend on the order of additions here as they do in any query. A
    sum that overflows is an error, unless Spark's `spark.sql.ansi.enabled` is off.

    For different queries over A and B with equal columns, merging then gives what each row counts
    for under the query that it passed under.

    Args:
        input: the relation that it reads.
        names: of the columns, in lower case; the expression where there is no name.
        merges: how each column is merged; None for a key column.
        keys: the grouping expression of each key column, as canonical text.
    """

    input: str
    names: tuple[str, ...]
    merges: tuple[str | None, ...]
    keys: tuple[str, ...]


class Refusal(NamedTuple):
    """Why a view can't go on in place: in words that follow "`name` ", and what to do."""

    reason: str
    hint: str = _ANEW


class _Refused(Exception):
    def __init__(self, reason: str, hint: str = _ANEW) -> None:
        super().__init__(reason)
        self.refusal = Refusal(reason, hint)


def read_accumulation(program: Program, name: str) -> Accumulation | Refusal:
    """How the result of a materialized view's query can be gone on with, or why it can't."""
    view = program.relations.get(name)
    if not isinstance(view, View):
        return Refusal("is no materialized view")
    try:
        return _read(program, view)
    except _Refused as refused:
        return refused.refusal
    except LexError as error:
        return Refusal(f"can't be read: {error.message}")


def find_refusal(
    before: Program, after: Program, name: str, renamed: Mapping[str, str] = {}
) -> Refusal | None:
    """Why the rows that the query of `before` gave can't be gone on with by that of `after`.

    Args:
        renamed: table of `before` -> its name in `after`, for those that have another one.

    Returns:
        None where they can: both are accumulations, of the same rows, with the same columns.
    """
    if name not in before.relations:
        return Refusal("is not deployed yet")
    old, new = read_accumulation(before, name), read_accumulation(after, name)
    if isinstance(new, Refusal):
        return new
    if isinstance(old, Refusal):
        return Refusal(f"{old.reason}, as it is deployed", old.hint)
    if renamed.get(old.input, old.input) != new.input:
        return Refusal(f"reads `{new.input}` instead of `{old.input}`")
    if old.names != new.names:
        return Refusal("has other columns: " + _difference(old.names, new.names))
    if old.keys != new.keys:
        return Refusal("groups otherwise: " + _difference(old.keys, new.keys))
    for column, was, now in zip(old.names, old.merges, new.merges, strict=True):
        if was != now:
            return Refusal(f"has another aggregate in `{column}`")
    return None


def _difference(old: Sequence[str], new: Sequence[str]) -> str:
    return f"{', '.join(new) or 'none'} instead of {', '.join(old) or 'none'}"


def _read(program: Program, view: View) -> Accumulation:
    tokens = [token for token in tokenize(view.query) if token.kind != HINT]
    words = [token.word for token in tokens]
    if not words or words[0] != "SELECT":
        raise _Refused("is no single SELECT")
    _check_words(tokens)
    closing = match_parentheses(words)
    end = len(tokens)
    from_ = _find(words, closing, "FROM", 1)
    if from_ == end:
        raise _Refused("reads nothing")
    group = _find(words, closing, "GROUP", from_)
    where = min(_find(words, closing, "WHERE", from_), group)
    name, alias = _input(tokens[from_ + 1 : where])
    relation = _check_input(program, view, name)
    columns = _columns(relation)
    strip = frozenset({name, alias}) - (columns or frozenset()) if columns else frozenset()

    items = [_Item(piece, strip) for piece in _pieces(tokens[1:from_])]
    merges = [_merge(item) for item in items]
    keys = {i: item.text for i, item in enumerate(items) if merges[i] is None}
    if len(keys) == len(items):
        raise _Refused("has no aggregate", "a STREAMING TABLE goes on from now on, row by row")
    grouped = _grouped(tokens[group:], items, keys, columns, strip)
    for i in keys:
        if i not in grouped:
            raise _Refused(f"has `{items[i].name}`, neither a grouping column nor an aggregate")
    return Accumulation(
        name,
        tuple(c.lower() for c in view.columns) or tuple(item.name for item in items),
        tuple(merges),
        tuple(keys.values()),
    )


def _check_words(tokens: Sequence[Token]) -> None:
    for i, token in enumerate(tokens):
        before = tokens[i - 1].word if i else ""
        if i == 0 or before == ".":
            continue
        if token.word == "DISTINCT" and before not in ("IS", "NOT"):
            raise _Refused("has DISTINCT: whether a value is new, its result does not tell")
        if token.word in _FORBIDDEN:
            raise _Refused(f"has {_FORBIDDEN[token.word]}")


def _find(words: Sequence[str], closing: Mapping[int, int], word: str, start: int) -> int:
    """Where the word stands outside of parentheses; the number of words where it doesn't."""
    i = start
    while i < len(words):
        if words[i] == word:
            return i
        i = closing[i] + 1 if words[i] == "(" else i + 1
    return len(words)


def _input(tokens: Sequence[Token]) -> tuple[str, str]:
    """The relation behind FROM, and the name that its columns are qualified with."""
    plain = [token for token in tokens if token.word != "AS"]
    is_plain = all(token.is_name for token in plain) and len(tokens) - len(plain) < len(plain)
    if not is_plain or len(plain) not in (1, 2):
        raise _Refused("reads more than one table by its name")
    return plain[0].folded, plain[-1].folded


def _check_input(program: Program, view: View, name: str) -> Table | View:
    relation = program.relations.get(name)
    if relation is None or view.reads != {name}:
        raise _Refused("reads more than one table by its name")
    if view.volatile:
        raise _Refused("can give other rows over the same input")
    if isinstance(relation, Table):
        if relation.primary_key:
            raise _Refused(
                f"reads `{name}`, which has a primary key: its rows change",
                "only rows that are added can be taken in; " + _ANEW,
            )
    elif not relation.is_streaming:
        raise _Refused(
            f"reads `{name}`, a {relation.kind.value}",
            "only a table without a primary key or a streaming table tells which rows came; "
            + _ANEW,
        )
    return relation


def _columns(relation: Table | View) -> frozenset[str] | None:
    """The names of an input's columns; None where only Spark knows them."""
    if isinstance(relation, Table):
        return frozenset(column.name.lower() for column in relation.columns)
    names = relation.columns or relation.output
    return frozenset(name.lower() for name in names) if names else None


def _pieces(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """What stands between the commas outside of parentheses."""
    depth, start = 0, 0
    for i, token in enumerate(tokens):
        depth += (token.text in "([") - (token.text in ")]")
        if token.text == "," and depth == 0:
            yield tokens[start:i]
            start = i + 1
    yield tokens[start:]


class _Item:
    """One item of the SELECT list: its expression, and the name that it gives."""

    def __init__(self, tokens: Sequence[Token], strip: frozenset[str]) -> None:
        self.tokens, self.alias = _without_alias(tokens)
        self.text = _text(self.tokens, strip)
        self.name = self.alias or (self.tokens[-1].folded if _is_column(self.tokens) else self.text)

    @property
    def call(self) -> str | None:
        """The function that the whole expression is a call of."""
        words = [token.word for token in self.tokens]
        is_call = len(words) > 2 and self.tokens[0].is_name and words[1] == "("
        if is_call and match_parentheses(words).get(1) == len(words) - 1:
            return self.tokens[0].folded
        return None


def _without_alias(tokens: Sequence[Token]) -> tuple[Sequence[Token], str | None]:
    if len(tokens) > 2 and tokens[-2].word == "AS" and tokens[-1].is_name:
        return tokens[:-2], tokens[-1].folded
    if len(tokens) > 1 and tokens[-1].is_name and tokens[-1].word != "END":
        is_second = len(tokens) == 2 and tokens[0].is_name and tokens[0].word != "NOT"
        if tokens[-2].text == ")" or is_second:
            return tokens[:-1], tokens[-1].folded
    return tokens, None


def _is_column(tokens: Sequence[Token]) -> bool:
    return len(tokens) % 2 == 1 and all(
        token.text == "." if i % 2 else token.is_name for i, token in enumerate(tokens)
    )


def _text(tokens: Sequence[Token], strip: frozenset[str]) -> str:
    """The expression, in which a name says no more than it has to."""
    parts: list[str] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        is_first = i == 0 or tokens[i - 1].text != "."
        is_qualified = i + 1 < len(tokens) and tokens[i + 1].text == "."
        if token.is_name and is_first and is_qualified and token.folded in strip:
            i += 2
            continue
        parts.append(token.folded if token.is_name else token.text)
        i += 1
    return " ".join(parts)


def _merge(item: _Item) -> str | None:
    """How an item is merged; None for one without an aggregate."""
    if not item.tokens or item.tokens[-1].text == "*":
        raise _Refused("has `*` for its columns", "name them")
    called = [
        token.folded
        for token, after in zip(item.tokens, item.tokens[1:], strict=False)
        if after.text == "(" and token.is_name
    ]
    gathering = [f for f in called if f in AGGREGATES or _GATHERS.search(f.upper())]
    if not gathering:
        return None
    if item.call in ("avg", "mean"):
        raise _Refused(
            f"has `{item.name}`, an average: of two averages, that of all rows can't be told",
            "write sum(...) and count(...), and divide them in a view over it",
        )
    call = item.call
    if call is None or call not in MERGES or len(gathering) > 1:
        raise _Refused(
            f"has `{item.name}`, which is not one of {', '.join(sorted(MERGES))} alone",
            "write each aggregate as a column of its own, and reckon with them in a view over it",
        )
    return MERGES[call]


def _grouped(
    tokens: Sequence[Token],
    items: Sequence[_Item],
    keys: Mapping[int, str],
    columns: frozenset[str] | None,
    strip: frozenset[str],
) -> set[int]:
    """The items that the query groups by.

    A name means a column of the input before it means an item's alias, as in Spark.
    """
    if not tokens:
        return set()
    if len(tokens) < 3 or tokens[1].word != "BY":
        raise _Refused("groups in a way that is not known")
    if len(tokens) == 3 and tokens[2].word == "ALL":
        return set(keys)
    found: set[int] = set()
    for piece in _pieces(tokens[2:]):
        text = _text(piece, strip)
        by_text = [i for i, key in keys.items() if key == text]
        by_alias = [
            i
            for i in keys
            if len(piece) == 1
            and items[i].alias == piece[0].folded
            and columns is not None
            and items[i].alias not in columns
        ]
        if len(piece) == 1 and piece[0].kind == NUMBER and text.isdigit():
            by_text = [int(text) - 1] if int(text) - 1 in keys else []
        matching = by_text or by_alias
        if not matching:
            raise _Refused(f"groups by `{text}`, which is no column of its result")
        found.update(matching)
    return found
