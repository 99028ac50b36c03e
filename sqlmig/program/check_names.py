"""Checks the names of a program: every name read is created, nothing reads itself, connectors
fit."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmig.program.declared import Declared, Mistakes
from sqlmig.program.functions import called_by, reaches, refuse_identifier
from sqlmig.program.model import Function

Reads = dict[str, frozenset[str]]


def find_reads(declared: Declared, functions: Mapping[str, Function], mistakes: Mistakes) -> Reads:
    """The relations that each view reads directly, or by the functions that it calls; notes every
    name that no statement creates.

    A query that could not be read depends on every name it mentions, but for mentions that would
    close a cycle: those can't be reads, or Spark will say so.
    """
    reads: dict[str, set[str]] = {name: set() for name in declared.views}
    uncertain: list[tuple[str, str]] = []
    for name, (view, place) in declared.views.items():
        query = declared.queries.get(name)
        if query is None:
            continue
        for relation, token in query.relations:
            if declared.has(relation):
                reads[name].add(relation)
            elif relation not in declared.broken:
                at = view.query_at + query.tokens[token].start
                mistakes.add(
                    f"`{view.name.text}` reads `{query.tokens[token].name}`, "
                    "which no statement creates",
                    place.at(at),
                    declared.hint(relation),
                )
        if "identifier" in query.functions:
            refuse_identifier(view.name.text, query, place, view.query_at, mistakes)
        mentioned = query.suspects if query.is_read else query.mentioned
        uncertain += [(name, other) for other, _ in mentioned if declared.has(other)]
        for function in called_by(query, functions):
            if function.is_read:
                reads[name] |= function.reads
            else:
                uncertain += [(name, other) for other in function.reads]
    for name, other in sorted(set(uncertain)):
        if other not in reads[name] and not reaches(reads, other, name):
            reads[name].add(other)
    return {name: frozenset(inputs) for name, inputs in reads.items()}


def order_views(declared: Declared, reads: Reads, mistakes: Mistakes) -> list[str]:
    """The views, inputs before readers; those on a cycle, or behind one, are left out, and the
    cycle is noted."""
    order: list[str] = []
    waiting = {name: {read for read in inputs if read in reads} for name, inputs in reads.items()}
    readers: dict[str, list[str]] = {name: [] for name in reads}
    for name, inputs in waiting.items():
        for read in inputs:
            readers[read].append(name)
    ready = sorted((name for name, inputs in waiting.items() if not inputs), reverse=True)
    while ready:
        name = ready.pop()
        order.append(name)
        for reader in readers[name]:
            waiting[reader].discard(name)
            if not waiting[reader]:
                ready.append(reader)
    left = set(reads) - set(order)
    while left:
        cycle = _cycle(min(left), {name: waiting[name] & left for name in left})
        if not cycle:
            break
        view, place = declared.views[cycle[0]]
        path = " -> ".join(f"`{name}`" for name in (*cycle, cycle[0]))
        if len(cycle) == 1:
            message = f"`{view.name.text}` reads itself"
            hint = "read a table, or another view"
        else:
            message, hint = (
                f"views read each other in a circle: {path}",
                "take one of these reads out",
            )
        mistakes.add(message, place.at(view.name.at), hint)
        left -= set(cycle)
    return order


def _cycle(start: str, reads: dict[str, set[str]]) -> list[str]:
    """A cycle that can be reached from `start`, beginning with its first name; [] when there is
    none."""
    done: set[str] = set()
    for first in sorted(reads):
        path: list[str] = []
        current: str | None = first
        while current is not None and current not in done:
            if current in path:
                cycle = path[path.index(current) :]
                least = cycle.index(min(cycle))
                return cycle[least:] + cycle[:least]
            path.append(current)
            current = min(
                (read for read in reads[current] if read in reads and read not in done),
                default=None,
            )
        done.update(path)
    return []


def check_connectors(declared: Declared, mistakes: Mistakes) -> None:
    """Notes connectors on unknown relations, sources into what is no table, and names that come
    twice."""
    seen: dict[str, str] = {}
    for form, place in declared.connectors:
        what = "source" if form.is_source else "sink"
        relation = form.relation.folded
        at = place.at(form.relation.at)
        if relation in declared.broken:
            pass
        elif not declared.has(relation):
            verb = "feeds" if form.is_source else "reads"
            mistakes.add(
                f"{what} `{form.name.text}` {verb} `{form.relation.text}`, "
                "which no statement creates",
                at,
                declared.hint(relation),
            )
        elif form.is_source and relation not in declared.tables:
            view, _ = declared.views[relation]
            mistakes.add(
                f"source `{form.name.text}` feeds `{form.relation.text}`, "
                f"which is a {view.kind.value}",
                at,
                "a source feeds a table: write INTO and the name of a CREATE TABLE",
            )
        connector = f"{relation}.{form.name.folded}"
        if connector in seen:
            mistakes.add(
                f"{what} `{form.name.text}` of `{form.relation.text}` is created twice",
                place.at(form.name.at),
                f"the first is at {seen[connector]}; rename or delete one",
            )
        else:
            seen[connector] = str(place.at(form.name.at))
