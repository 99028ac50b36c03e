"""The steps of sources: checked, started, continued, detached. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlmig.ledger.cut import ConnectorState
from sqlmig.ledger.sink_state import SinkState
from sqlmig.planning.collected import in_words
from sqlmig.planning.draft import Draft
from sqlmig.planning.raw import plan_rebuild
from sqlmig.planning.source_options import check_source, deletion_columns, reads_the_same
from sqlmig.planning.steps import ContinueSource, DetachSource, StartSource
from sqlmig.program.canonical import fingerprint
from sqlmig.program.model import Source


def check_sources(draft: Draft) -> None:
    """Let what is wrong with the options of a source stand in the plan's way.

    A source that ran as it is runs again as it did: going back is not stopped by a stricter check.
    """
    deployment = draft.deployment
    ran = {
        state.fingerprint
        for states in (deployment.cut.connectors, deployment.connector_history)
        for state in states.values()
    }
    for _, source in sorted(draft.target.sources.items()):
        if fingerprint(source) not in ran:
            draft.blockers.extend(check_source(source, draft.target.tables[source.table]))


def plan_sources(draft: Draft) -> None:
    """Add the steps of all sources, once it is known what becomes of their tables."""
    carried: set[str] = set()
    for table in sorted(draft.fresh):
        plan_rebuild(draft, table)
    for name, source in sorted(draft.target.sources.items()):
        _plan_source(draft, name, source, carried)
    for name in sorted(draft.deployment.cut.connectors):
        if name not in draft.target.sources:
            cause = "goes on under its table's new name" if name in carried else None
            draft.add(DetachSource(name), cause or draft.cause("source", name) or "it is removed")


def _plan_source(draft: Draft, name: str, source: Source, carried: set[str]) -> None:
    states = draft.deployment.cut.connectors
    mark = fingerprint(source)
    cause = draft.cause("source", name)
    earlier = draft.deployment.connector_history.get((draft.request.revision or "base", name))
    table_before = next((b for b, a in draft.renames.items() if a == source.table), None)
    if source.table in draft.rebuilt:
        if states[name].fingerprint != mark:
            how = "it goes on: only how it is read has changed"
            _continue(draft, name, replace(states[name], fingerprint=mark), how)
        return
    if source.table in draft.fresh:
        why = draft.fresh[source.table]
        _start(draft, name, mark, (cause or why) if name not in states else why)
        return
    if draft.recast.get(source.table, frozenset()) & deletion_columns(
        source, draft.target.tables[source.table]
    ):
        _start(draft, name, mark, "its table has another key: what it deleted is not known by it")
        return
    if table_before is not None:
        old = states.get(f"{table_before}.{source.name}")
        if old is not None and old.fingerprint == fingerprint(replace(source, table=table_before)):
            carried.add(f"{table_before}.{source.name}")
            _continue(draft, name, replace(old, fingerprint=mark), "its table was renamed")
            return
    elif (
        name in states
        and draft.change("source", name) is None
        and source.table not in draft.returned
    ):
        return
    was = draft.request.deployed.sources.get(name) if table_before is None else None
    can_go_on = name in states and source.table not in draft.returned
    if can_go_on and was is not None and reads_the_same(was, source):
        how = "it goes on: only how it is read has changed"
        _continue(draft, name, replace(states[name], fingerprint=mark), how)
        return
    gone = draft.deployment.collected.connectors
    if earlier is not None and earlier.offsets in gone:
        cause = in_words("its offsets", gone[earlier.offsets])
    elif earlier is not None and earlier.fingerprint == mark:
        now = states.get(name)
        if now is None or (now.offsets, now.fingerprint) != (earlier.offsets, mark):
            _continue(draft, name, earlier, "it goes on where this revision left it")
        return
    _start(draft, name, mark, cause or "it was never started")


def next_generation(
    folder: str, *known: Mapping[Any, ConnectorState] | Mapping[Any, SinkState]
) -> int:
    """The first generation of a connector's folder that none of the `known` states has had."""
    used = [s.generation for states in known for s in states.values() if s.folder == folder]
    return 1 + max(used, default=0)


def _start(draft: Draft, name: str, mark: str, cause: str) -> None:
    deployment = draft.deployment
    generation = next_generation(
        name,
        deployment.cut.connectors,
        deployment.cut.detached_connectors,
        deployment.connector_history,
    )
    draft.add(StartSource(name, name, generation, mark), cause)


def _continue(draft: Draft, name: str, state: ConnectorState, cause: str) -> None:
    draft.add(ContinueSource(name, state.folder, state.generation, state.fingerprint), cause)
