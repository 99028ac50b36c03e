"""What kind of query defines a relation: stateful, windowed, joined and so on. It knows queries,
and no change.

The kinds are those by which ksqlDB sorts queries that are to be changed while they run. They tell a
reader why a strategy is possible, and decide nothing about rows: a query that can't be read counts
as everything that can't be excluded.
"""

from __future__ import annotations

from enum import Enum
from itertools import pairwise

from sqlmig.program.lexer import QUOTED, Token
from sqlmig.program.model import Program, View
from sqlmig.program.query import Query, read_query
from sqlmig.program.vocabulary import AGGREGATES


class QueryKind(str, Enum):
    """One kind of query; a query can be of several, and of SIMPLE alone."""

    STATEFUL = "stateful"
    WINDOWED = "windowed"
    JOINED = "joined"
    MULTISTAGE = "multistage"
    NONDETERMINISTIC = "nondeterministic"
    SIMPLE = "simple"


QUERY_KINDS = {
    QueryKind.STATEFUL: "a row of its result can depend on many rows of an input",
    QueryKind.WINDOWED: "it groups rows by windows of time",
    QueryKind.JOINED: "it reads more than one relation",
    QueryKind.MULTISTAGE: "it gathers rows that have been gathered before",
    QueryKind.NONDETERMINISTIC: "over the same rows it can give others",
    QueryKind.SIMPLE: "each row of its result comes from one row of one input",
}
"""What each kind means, in words."""

# A word outside of quotes that gathers rows. DISTINCT and UNION depend on what stands beside them.
_GATHERING = frozenset(
    "CLUSTER EXCEPT GROUP HAVING INTERSECT LIMIT MINUS OFFSET ORDER OVER PIVOT QUALIFY SORT".split()
)
_WINDOWS = frozenset(("session_window", "window"))


def query_kinds(program: Program, name: str) -> tuple[QueryKind, ...]:
    """The kinds of the query of a view, in the order of `QueryKind`.

    Logical views below it are part of its query; stored relations end it.

    Args:
        program: the program.
        name: a view, materialized view or streaming table of it.
    """
    views = [program.views[view] for view in (name, *sorted(program.logical_reads(name)))]
    queries = [read_query(view.query) for view in views]
    found: set[QueryKind] = set()
    gathering = sum(_gatherings(query) for query in queries)
    inputs = sum(_inputs(program, view, query) for view, query in zip(views, queries, strict=True))
    if gathering:
        found.add(QueryKind.STATEFUL)
    if gathering > 1 or (gathering and _reads_gathered(program, views)):
        found.add(QueryKind.MULTISTAGE)
    if any(_has_windows(query) for query in queries):
        found |= {QueryKind.WINDOWED, QueryKind.STATEFUL}
    if inputs > 1:
        found.add(QueryKind.JOINED)
    if any(view.volatile for view in views):
        found.add(QueryKind.NONDETERMINISTIC)
    return tuple(kind for kind in QueryKind if kind in (found or {QueryKind.SIMPLE}))


def _reads_gathered(program: Program, views: list[View]) -> bool:
    """True when a stored view below was itself gathered."""
    below = {read for view in views for read in view.reads} - {view.name for view in views}
    return any(
        QueryKind.STATEFUL in query_kinds(program, name)
        for name in sorted(below)
        if isinstance(program.relations[name], View)
    )


def _inputs(program: Program, view: View, query: Query) -> int:
    """Inputs that are no logical views; those are counted by what they read themselves."""
    named = [name for name, _ in query.relations] if query.is_read else sorted(view.reads)
    return sum(
        1 for name in named if name in program.relations and program.relations[name].is_stored
    )


def _has_windows(query: Query) -> bool:
    return not query.functions.isdisjoint(_WINDOWS)


def _gatherings(query: Query) -> int:
    """How many SELECTs of a query gather rows, as far as can be told; each nested one counts."""
    if not query.is_read:
        return 1
    depths = {depth for depth, following in _gathering_places(query.tokens) if following}
    return len(depths)


def _gathering_places(tokens: tuple[Token, ...]) -> list[tuple[int, bool]]:
    """The nested SELECT of each token, by number, and whether the token gathers rows."""
    places = []
    selects = [0]
    last = 0
    pairs = [*pairwise(tokens), (tokens[-1], None)] if tokens else []
    before: Token | None = None
    for token, after in pairs:
        if token.text == "(":
            opens = after is not None and after.word in ("SELECT", "WITH")
            last += opens
            selects.append(last if opens else selects[-1])
        elif token.text == ")" and len(selects) > 1:
            selects.pop()
        else:
            places.append((selects[-1], _gathers(before, token, after)))
        before = token
    return places


def _gathers(before: Token | None, token: Token, after: Token | None) -> bool:
    if not token.is_name or (before is not None and before.text == "."):
        return False
    if after is not None and after.text == "(" and token.folded in AGGREGATES:
        return True
    if token.kind == QUOTED:
        return False
    match token.word:
        case "DISTINCT":
            return before is None or before.word not in ("IS", "NOT")
        case "UNION":
            return after is None or after.word != "ALL"
        case word:
            return word in _GATHERING
