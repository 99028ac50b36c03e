"""The windows of a streaming table that gathers rows: which they are, when one is over, and why its
rows can be computed once and for all. It knows tokens, and no schema but what a program declares.

Rule `whole-windows`. Let the query be `SELECT ... FROM STREAM t WATERMARK ts ... [joins] [WHERE
...] GROUP BY window(ts, length), ... [HAVING ...]`, as `read_windows` accepts it. Then for any two
window starts a < b, the query over the rows of `t` with a <= ts < b gives exactly those rows of the
query over all of `t` whose window starts at a or later and before b.

Proof. Each row that reaches the grouping comes from one row of `t`: `t` stands in the outermost
FROM itself, once, and never right of an outer or semi join. Its window is a function of that row's
`ts` alone: the window [s, s + length) that holds it, where s lies on the grid. a and b lie on the
grid, so a <= ts < b just when a <= s < b. So the restriction keeps or drops whole windows. The
window is one of the grouping expressions of the only grouping there is (no ROLLUP, CUBE, GROUPING
SETS), so no group has rows of two windows, and a group is kept with all of its rows or dropped with
all of them. HAVING and the SELECT list see one group; nothing else gathers rows (no DISTINCT, ORDER
BY, LIMIT, OVER, set operation). Rows whose `ts` is NULL are in no window: Spark drops them there.

Therefore the state of such a table is one number: the watermark. All windows that end at it or
before it have been emitted, from all rows that there were then; all others come later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from sqlmig.program.check_streams import (
    VIEW_HINT,
    WATERMARK_HINT,
    Problem,
    first_of_each,
    is_aggregate,
    misplaced,
    stateful,
)
from sqlmig.program.intervals import interval_of, read_interval
from sqlmig.program.lexer import STRING, Token, match_parentheses, string_value, tokenize
from sqlmig.program.model import Program, Table, View
from sqlmig.program.streams import Streamed, streamed

_QUERY = frozenset(("SELECT", "WITH", "FROM", "VALUES", "TABLE"))
_GROUP_ENDS = frozenset(
    "HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET QUALIFY UNION EXCEPT MINUS INTERSECT".split()
)
_SEVERAL_GROUPINGS = frozenset(("ALL", "CUBE", "GROUPING", "ROLLUP", "SETS", "WITH"))
_FORM = "write GROUP BY window({0}, '10 minutes')"


@dataclass(frozen=True)
class Windowing:
    """The windows of a streaming table: all of one length, each begins where another ends.

    Times are in microseconds since 1970 (UTC), lengths in microseconds.

    Args:
        stream: the relation whose rows are gathered, lower case.
        column: its column that tells a row's time, lower case.
        delay: how far the watermark stays behind the latest row.
        length: of each window.
        start: where one of them begins.
    """

    stream: str
    column: str
    delay: int
    length: int
    start: int = 0

    @property
    def grid(self) -> tuple[str, str, int, int]:
        """All but the delay: which windows there are, and of what rows."""
        return (self.stream, self.column, self.length, self.start % self.length)

    def begin(self, at: int) -> int:
        """The start of the window that holds a time."""
        return at - (at - self.start) % self.length

    def over(self, watermark: int | None) -> int | None:
        """The end of the last window that is over at a watermark; None where none is."""
        return None if watermark is None else self.begin(watermark)

    def moved(self, watermark: int | None, latest: int | None) -> int | None:
        """The watermark after rows have passed; it never goes back.

        Args:
            latest: the greatest time among them; None where none has one.
        """
        if latest is None:
            return watermark
        reached = latest - self.delay
        return reached if watermark is None else max(watermark, reached)


def read_windows(view: View) -> Windowing | None:
    """The windows of a streaming table; None where it has none, or they can't be deployed."""
    if not view.is_streaming or not has_watermark(view):
        return None
    return _read(view.query)[0]


def has_watermark(view: View) -> bool:
    """Whether a stream of the query has a WATERMARK, so that this module judges it."""
    return "watermark" in view.query.lower() and any(
        each.watermark is not None for each in streamed(tokenize(view.query))
    )


def window_problems(view: View) -> tuple[Problem, ...]:
    """What keeps a query with a WATERMARK from being computed window by window."""
    return _read(view.query)[1]


def start_columns(program: Program, view: View) -> frozenset[str]:
    """The output columns, folded, that certainly hold the start of a row's window."""
    windowing = read_windows(view)
    if windowing is None:
        return frozenset()
    tokens = tuple(tokenize(view.query))
    items = _select_list(tokens)
    can_be_short = not _may_be_a_column(program, view, tokens)
    found = set()
    for number, item in enumerate(items):
        expression, name = _named(tokens, item)
        words = [token.word for token in expression]
        is_short = can_be_short and [w.upper() for w in words] == ["WINDOW", ".", "START"]
        is_long = words[:2] == ["WINDOW", "("] and [w.upper() for w in words[-3:]] == [
            ")",
            ".",
            "START",
        ]
        if (is_long and words.count("WINDOW") == 1 and words.count(")") == 1) or is_short:
            if not view.columns:
                found.add(name)
            elif len(items) == len(view.columns):
                found.add(view.columns[number].lower())
    return frozenset(found)


def differs_in_delay_alone(before: View, after: View) -> bool:
    """Whether two queries with windows are the same, token by token, but for the delay."""
    if read_windows(before) is None or read_windows(after) is None:
        return False
    return _without_delay(before.query) == _without_delay(after.query)


def _without_delay(query: str) -> list[str]:
    tokens = tokenize(query)
    (each,) = streamed(tokens)
    assert each.watermark is not None
    delay = range(each.watermark.delay, each.watermark.end)
    return [token.text for i, token in enumerate(tokens) if i not in delay]


@lru_cache(maxsize=4096)
def _read(query: str) -> tuple[Windowing | None, tuple[Problem, ...]]:
    tokens = tuple(tokenize(query))
    streams = streamed(tokens)
    marked = next(each for each in streams if each.watermark is not None)
    assert marked.watermark is not None
    if len(streams) > 1:
        problem = Problem(
            "has a WATERMARK and several streams",
            tokens[marked.watermark.first].start,
            "gather the rows of one stream; read the others without STREAM",
        )
        return None, (problem,)
    words = [token.word for token in tokens]
    depths = _depths(words)
    found: list[Problem] = []
    if depths[marked.mark] or words.count("|>"):
        place = tokens[marked.mark].start
        found.append(
            Problem(
                "gathers the rows of a stream that is not in its outermost FROM",
                place,
                "write SELECT ... FROM STREAM ... GROUP BY window(...), with no query around it",
            )
        )
        return None, tuple(found)
    delay = interval_of(tokens[marked.watermark.delay : marked.watermark.end])
    if delay is None or delay < 0:
        place = tokens[marked.watermark.delay].start
        hint = "write a number of weeks, days, hours, minutes or seconds, from 0 on"
        found.append(Problem("has a WATERMARK whose delay has no fixed length", place, hint))
    grid = _grid(tokens, depths, marked, found)
    allowed = _allowed(tokens, words, depths) | {marked.watermark.first}
    found += [*stateful(tokens, allowed), *misplaced(tokens)]
    found += _other_windows(tokens, words, grid)
    if found or grid is None or delay is None:
        return None, first_of_each(found)
    column = tokens[marked.watermark.column].folded
    length, start = grid.length, grid.start
    return Windowing(tokens[marked.name].folded, column, delay, length, start), ()


@dataclass(frozen=True)
class _Grid:
    length: int
    start: int
    call: str


def _grid(
    tokens: Sequence[Token], depths: Sequence[int], marked: Streamed, found: list[Problem]
) -> _Grid | None:
    """The windows by which the outermost SELECT groups; None, and why, where it does not."""
    assert marked.watermark is not None
    column = tokens[marked.watermark.column]
    hint = _FORM.format(column.text)
    words = [token.word for token in tokens]
    groups = [i for i, w in enumerate(words) if w == "GROUP" and not depths[i] and i > marked.mark]
    if not groups:
        found.append(
            Problem(
                "has a WATERMARK and no windows: rows pass one by one",
                tokens[marked.watermark.first].start,
                f"{hint}, or take WATERMARK out",
            )
        )
        return None
    begin = groups[0] + 2
    end = next(
        (i for i in range(begin, len(words)) if not depths[i] and words[i] in _GROUP_ENDS),
        len(words),
    )
    for i in range(begin, end):
        if words[i] in _SEVERAL_GROUPINGS and (i == begin or not depths[i]):
            message = f"groups by {words[i]}, which may leave the window out"
            found.append(Problem(message, tokens[i].start, f"{hint} and name what else groups"))
            return None
    for first, last in _split(words, depths, begin, end, 0):
        if words[first : first + 2] == ["WINDOW", "("] and words[last - 1] == ")":
            return _window(tokens, depths, marked, first, last, found)
    found.append(Problem("groups by no window of time", tokens[groups[0]].start, hint))
    return None


def _window(
    tokens: Sequence[Token],
    depths: Sequence[int],
    marked: Streamed,
    first: int,
    last: int,
    found: list[Problem],
) -> _Grid | None:
    assert marked.watermark is not None
    words = [token.word for token in tokens]
    column = tokens[marked.watermark.column]
    place, hint = tokens[first].start, _FORM.format(column.text)
    arguments = _split(words, depths, first + 2, last - 1, depths[first + 2])
    begin, end = arguments[0]
    names = [token.folded for token in tokens[begin:end]]
    qualifier = tokens[marked.name if marked.alias is None else marked.alias].folded
    if names not in ([column.folded], [qualifier, ".", column.folded]):
        what = "".join(token.text for token in tokens[begin:end])
        message = f"groups by windows of `{what}`, and its WATERMARK is of `{column.name}`"
        found.append(Problem(message, place, hint))
        return None
    lengths = []
    for begin, end in arguments[1:]:
        is_text = end == begin + 1 and tokens[begin].kind == STRING
        lengths.append(read_interval(string_value(tokens[begin].text)) if is_text else None)
    if None in lengths or not 1 <= len(lengths) <= 3 or (lengths[0] or 0) <= 0:
        found.append(Problem("groups by windows whose length can't be read", place, hint))
        return None
    length, slide, start = [*lengths, *[lengths[0], 0][len(lengths) - 1 :]]
    if slide != length:
        message = "groups by sliding windows, and a row is in one window"
        found.append(Problem(message, place, f"{hint}, or {VIEW_HINT}"))
        return None
    call = " ".join(token.text.lower() for token in tokens[first:last])
    return _Grid(length or 0, start or 0, call)


def _other_windows(
    tokens: Sequence[Token], words: Sequence[str], grid: _Grid | None
) -> Iterator[Problem]:
    closing = match_parentheses(words)
    for i in range(len(words) - 1):
        if words[i + 1] != "(" or (i and words[i - 1] == "."):
            continue
        if words[i] == "SESSION_WINDOW":
            yield Problem("has session windows", tokens[i].start, WATERMARK_HINT)
        elif words[i] == "WINDOW" and grid is not None:
            call = " ".join(token.text.lower() for token in tokens[i : closing[i + 1] + 1])
            if call != grid.call:
                message = "has windows of two kinds"
                yield Problem(message, tokens[i].start, "write the same window(...) everywhere")


def _allowed(tokens: Sequence[Token], words: Sequence[str], depths: Sequence[int]) -> set[int]:
    """The tokens that gather the rows of one window: the grouping of the outermost SELECT, and the
    aggregates in it."""
    closing = match_parentheses(words)
    inner = {
        i
        for start, end in closing.items()
        if start + 1 < len(words) and words[start + 1] in _QUERY
        for i in range(start, end)
    }
    found = set()
    for i, token in enumerate(tokens):
        if i in inner:
            continue
        is_call = i + 1 < len(words) and words[i + 1] == "("
        if words[i] in ("GROUP", "HAVING") and not depths[i]:
            found.add(i)
        elif is_call and is_aggregate(token.word):
            found.add(i)
            if i + 2 < len(words) and words[i + 2] == "DISTINCT":
                found.add(i + 2)
    return found


def _depths(words: Sequence[str]) -> list[int]:
    """How many parentheses are open at each token; those of a parenthesis itself are within."""
    depths, depth = [], 0
    for word in words:
        depth += word == "("
        depths.append(depth)
        depth -= word == ")"
    return depths


def _split(
    words: Sequence[str], depths: Sequence[int], begin: int, end: int, depth: int
) -> list[tuple[int, int]]:
    """The stretches between the commas at a depth."""
    commas = [i for i in range(begin, end) if words[i] == "," and depths[i] == depth]
    return list(zip([begin, *(i + 1 for i in commas)], [*commas, end], strict=True))


def _select_list(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """The items of the outermost SELECT; none where FROM stands before it."""
    words = [token.word for token in tokens]
    depths = _depths(words)
    outer = [i for i, word in enumerate(words) if not depths[i] and word in ("SELECT", "FROM")]
    if len(outer) < 2 or words[outer[0]] != "SELECT":
        return []
    begin = outer[0] + 1
    while begin < outer[1] and (tokens[begin].kind == "hint" or words[begin] == "ALL"):
        begin += 1
    return _split(words, depths, begin, outer[1], 0)


def _named(tokens: Sequence[Token], item: tuple[int, int]) -> tuple[Sequence[Token], str]:
    """The expression of an item of a SELECT list, and the name that it gives."""
    begin, end = item
    name = tokens[end - 1].folded
    if end - begin >= 2 and tokens[end - 2].word == "AS":
        return tokens[begin : end - 2], name
    if end - begin >= 2 and tokens[end - 2].text != "." and tokens[end - 1].is_name:
        return tokens[begin : end - 1], name
    return tokens[begin:end], name


def _may_be_a_column(program: Program, view: View, tokens: Sequence[Token]) -> bool:
    """Whether `window.start` may be a field of something that is called `window`."""
    for token, after in pairwise(tokens):
        if token.folded == "window" and token.is_name and after.text not in ("(", "."):
            return True
    for name in view.reads:
        known = _columns(program, name)
        if known is None or "window" in known:
            return True
    return False


def _columns(program: Program, name: str) -> Mapping[str, None] | None:
    relation = program.relations[name]
    if isinstance(relation, Table):
        return dict.fromkeys(column.name.lower() for column in relation.columns)
    names = relation.columns or relation.output
    return None if names is None else dict.fromkeys(column.lower() for column in names)
