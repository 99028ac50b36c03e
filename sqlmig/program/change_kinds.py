"""What kind of change a relation or connector goes through. It knows two programs, and plans
nothing.

The kinds are those by which ksqlDB sorts upgrades of running queries. They describe a change that
the program diff has found; whether there is one is decided there, by fingerprints alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from sqlmig.program.diff import Change
from sqlmig.program.lexer import HINT, Token
from sqlmig.program.model import Program, Table, View
from sqlmig.program.query import read_query
from sqlmig.program.windows import differs_in_delay_alone


class ChangeKind(str, Enum):
    """One kind of change; a change can be of several."""

    TRANSPARENT = "transparent"
    DATA_SELECTION = "data selection"
    SCHEMA_EVOLUTION = "schema evolution"
    SOURCE_MODIFYING = "source modifying"
    TOPOLOGY = "topology"
    SCALING = "scaling"
    UNSUPPORTED = "unsupported"


CHANGE_KINDS = {
    ChangeKind.TRANSPARENT: "how it is computed changes, or what is said of it; not what comes out",
    ChangeKind.DATA_SELECTION: "which rows come out changes, or which values they have",
    ChangeKind.SCHEMA_EVOLUTION: "its columns change: their names, types, order or number",
    ChangeKind.SOURCE_MODIFYING: "what it reads changes, or how that is joined",
    ChangeKind.TOPOLOGY: "the steps between its inputs and its rows change",
    ChangeKind.SCALING: "how its rows are laid out or spread changes",
    ChangeKind.UNSUPPORTED: "the plan is blocked by it",
}
"""What each kind means, in words."""

_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT", "OFFSET")
_SELECTING = frozenset(("WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT", "OFFSET"))
_SETS = frozenset(("UNION", "EXCEPT", "INTERSECT", "MINUS"))
_SCALING_HINT = re.compile(
    r"/\*\+\s*(?:(?:coalesce|repartition|repartition_by_range|rebalance)\b[^)]*\)?\s*,?\s*)+\*/",
    re.IGNORECASE,
)
_JOIN_WORDS = frozenset("ON USING JOIN LEFT RIGHT FULL INNER OUTER CROSS SEMI ANTI NATURAL".split())


def change_kinds(before: Program, after: Program, change: Change) -> tuple[ChangeKind, ...]:
    """The kinds of a change, in the order of `ChangeKind`; at least one.

    Args:
        before: the program that is left.
        after: the program that is gone to.
        change: one of the changes between them.
    """
    found = _kinds(before, after, change)
    return tuple(kind for kind in ChangeKind if kind in found)


def _kinds(before: Program, after: Program, change: Change) -> set[ChangeKind]:
    if change.how in ("added", "removed"):
        return {ChangeKind.TOPOLOGY}
    if change.how == "affected":
        return {ChangeKind.SOURCE_MODIFYING}
    if change.what == "source":
        return {ChangeKind.SOURCE_MODIFYING}
    if change.what == "sink":
        return {ChangeKind.TOPOLOGY}
    old, new = before.relations.get(change.name), after.relations.get(change.name)
    if isinstance(old, Table) and isinstance(new, Table):
        return _table_kinds(old, new)
    if isinstance(old, View) and isinstance(new, View):
        return _view_kinds(old, new)
    return {ChangeKind.TOPOLOGY}


def _table_kinds(old: Table, new: Table) -> set[ChangeKind]:
    found = set()
    columns = [
        [(c.name.lower(), c.type, c.nullable) for c in table.columns] for table in (old, new)
    ]
    if columns[0] != columns[1]:
        found.add(ChangeKind.SCHEMA_EVOLUTION)
    if _folded(old.primary_key) != _folded(new.primary_key):
        found.add(ChangeKind.SOURCE_MODIFYING)
    defaults = [{c.name.lower(): c.default for c in table.columns} for table in (old, new)]
    shared = defaults[0].keys() & defaults[1].keys()
    if any(defaults[0][name] != defaults[1][name] for name in shared):
        found.add(ChangeKind.DATA_SELECTION)
    if old.layout != new.layout:
        found.add(ChangeKind.SCALING)
    return found or {ChangeKind.TRANSPARENT}


def _folded(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _view_kinds(old: View, new: View) -> set[ChangeKind]:
    found = set()
    if old.kind is not new.kind:
        found.add(ChangeKind.TOPOLOGY)
    if _output(old) != _output(new):
        found.add(ChangeKind.SCHEMA_EVOLUTION)
    if old.reads != new.reads:
        found.add(ChangeKind.SOURCE_MODIFYING)
    if old.canonical != new.canonical:
        found |= _query_kinds_of_change(old, new)
    if old.layout != new.layout:
        found.add(ChangeKind.SCALING)
    return found or {ChangeKind.TRANSPARENT}


def _output(view: View) -> tuple[str, ...] | None:
    return _folded(view.columns) or view.output


def _query_kinds_of_change(old: View, new: View) -> set[ChangeKind]:
    if differs_in_delay_alone(old, new):  # which rows are late
        return {ChangeKind.DATA_SELECTION}
    queries = [read_query(view.query).tokens for view in (old, new)]
    hints = [[t.text for t in tokens if t.kind == HINT] for tokens in queries]
    clauses = [_clauses(tokens) for tokens in queries]
    if clauses[0] == clauses[1]:
        if hints[0] == hints[1]:  # what a star or a name stands for has changed
            return {ChangeKind.SCHEMA_EVOLUTION} if "*" in new.query else set()
        changed = set(hints[0]) ^ set(hints[1])
        is_layout = all(_SCALING_HINT.fullmatch(hint) for hint in changed)
        return {ChangeKind.SCALING if is_layout else ChangeKind.TRANSPARENT}
    found = set()
    for name in clauses[0].keys() | clauses[1].keys():
        was, now = clauses[0].get(name), clauses[1].get(name)
        if was == now:
            continue
        found.add(_clause_kind(name, was or (), now or ()))
    # A column that is computed anew has other values; one that came or went is told by the output.
    if ChangeKind.SCHEMA_EVOLUTION in found and _output(old) == _output(new) is not None:
        casts = [sum(w in ("CAST", "::", "TRY_CAST") for w in c.get("SELECT", ())) for c in clauses]
        found.add(ChangeKind.DATA_SELECTION)
        if casts == [0, 0]:
            found.discard(ChangeKind.SCHEMA_EVOLUTION)
    return found


def _clause_kind(name: str, was: tuple[str, ...], now: tuple[str, ...]) -> ChangeKind:
    if name == "SELECT":
        without = [tuple(w for w in words if w != "DISTINCT") for words in (was, now)]
        is_distinct = without[0] == without[1]
        return ChangeKind.DATA_SELECTION if is_distinct else ChangeKind.SCHEMA_EVOLUTION
    if name in _SELECTING:
        return ChangeKind.DATA_SELECTION
    if name == "FROM":
        nested = [words.count("SELECT") for words in (was, now)]
        joins = any(not _JOIN_WORDS.isdisjoint(words) for words in (was, now))
        is_topology = nested[0] != nested[1] or (nested[0] > 0 and not joins)
        return ChangeKind.TOPOLOGY if is_topology else ChangeKind.SOURCE_MODIFYING
    return ChangeKind.TOPOLOGY  # WITH, and what a set operation puts together


def _clauses(tokens: tuple[Token, ...]) -> Mapping[str, tuple[str, ...]]:
    """The words of each clause of the outer SELECT, in upper case where unquoted; no hints."""
    found: dict[str, list[str]] = {}
    clause, depth, in_sets = "", 0, False
    for token in tokens:
        word = token.word
        if token.kind == HINT:
            continue
        depth += (word == "(") - (word == ")")
        if depth == 0 and word in _SETS:
            in_sets = True
        if depth == 0 and not in_sets and word in _CLAUSES:
            clause = word
        found.setdefault("SETS" if in_sets else clause or "WITH", []).append(word)
    return {name: tuple(words) for name, words in found.items()}
