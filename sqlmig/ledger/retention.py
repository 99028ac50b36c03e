"""Retention: what of the stored versions, folders and offsets the ledger can still need. Pure.

It knows the ledger's fold, at three points: now, where the kept cuts begin, and where the ways back
begin. It knows no files, and no Delta.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.ledger.deployment import Deployment, PlanInProgress
from sqlmig.ledger.positions import Versions
from sqlmig.ledger.records import Kind, Record
from sqlmig.ledger.sink_state import Batch, SinkState

Version = tuple[str, int]
"""A folder and a Delta version of its table."""
_BRINGS_BACK = frozenset({Kind.PLAN, Kind.STEP, Kind.STAMP})
"""Kinds of records that can make current again what was not: only plans go back."""


@dataclass(frozen=True)
class Kept:
    """What of one table is kept.

    Args:
        since: every version from this one on; None where only `versions` and the newest are needed.
        versions: earlier ones that a way back needs.
        expired: earlier ones that the ledger knows, and that nothing within the retention needs.
    """

    since: int | None
    versions: frozenset[int] = frozenset()
    expired: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Retention:
    """What is kept of each table, and what is let go of.

    Args:
        tables: folder -> what of it is kept, for every folder that stays.
        folders: detached relations' folders that may be removed, sorted.
        connectors: `folder/generation` of sources whose offsets may be removed, sorted.
        rejected: folders of sources whose bad records may be removed, sorted.
        sinks: `folder/generation` of detached sinks that may be forgotten, sorted.
    """

    tables: Mapping[str, Kept] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    connectors: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()


def decide(
    now: Deployment,
    then: Deployment,
    past: Deployment | None = None,
    records: Iterable[Record] = (),
) -> Retention:
    """What is kept, and what is not.

    Args:
        now: the fold of all records.
        then: the fold up to the first record that is young enough for `query --at`.
        past: the fold up to the first record that is young enough for a way back; None lets no
            way back go.
        records: those of plans, steps and stamps since the older of the two.

    Returns:
        The decision. These hold of it:

        1. *A kept cut can be read.* A cut that `query --at` finds is the `consistent` of a fold
           after `then`. A fold's cut names for each folder a version that is not less than the
           one that an earlier fold's did: tables only get new versions, and a folder that was
           detached comes back at the version it had. So each version in it is at least the least
           of: that of `then.cut` and `then.consistent`, and those with which plans brought a
           folder in since. That is `since`, and all versions from it on are kept; those that
           plans made (some of them by a RESTORE) are named besides.
        2. *A way back within the retention is kept.* What a plan restores or attaches is a state
           that the fold remembers (`_remembered`). It is let go only if `past` remembered it and it
           was not current in `past`, nor is now, and no plan, step or stamp named it since.
           Nothing else makes a former state current, so it was current last before `past`: the
           revision that it belongs to was left before the retention begins.
        3. *A folder or generation that is removed is no part of either*: the same rule, for all
           states in it, and nothing attached, no batch and no plan under way names it.
        4. *What a streaming table has yet to take in can be read.* It reads commits of its streams
           that are not in its position. Those of each state that is kept are kept, from the first
           one on; one that is current and has taken in all will read later commits only.
    """
    later = [record for record in records if record.kind in _BRINGS_BACK]
    brought = set(_named(r for r in later if r.seq > then.seq))
    needed = {*_current(now), *_current(then), *brought}
    expired: set[Version] = set()
    folders: set[str] = set()
    connectors: set[str] = set()
    if past is not None:
        touched = [record for record in later if record.seq > past.seq]
        needed |= {*_current(past), *_named(touched)}
        expired = (_remembered(past) & _remembered(now)) - needed
        used = {folder for folder, _ in needed} | _planned(now, "folder")
        folders = (now.cut.detached.keys() & past.cut.detached.keys()) - used
        connectors = _free_connectors(now, past, then, touched)
    expired = {(folder, version) for folder, version in expired if folder not in folders}
    kept = (_remembered(now) - expired) | brought
    stays = {folder for folder, _ in kept} - folders - set(now.collected.folders)
    behind = (s for s in _states(now) if (s.folder, s.version) in kept)
    least = _least(
        (
            *_versions(then.cut),
            *_versions(then.consistent),
            *brought,
            *_unsent(now),
            *_not_passed(now, behind),
        )
    )
    return Retention(
        {
            folder: Kept(
                least.get(folder),
                frozenset(v for f, v in kept if f == folder),
                frozenset(v for f, v in expired if f == folder),
            )
            for folder in sorted(stays)
        },
        tuple(sorted(folders)),
        tuple(sorted(connectors)),
        _free_rejected(now, connectors),
        _lost_sinks(now, {(f, v) for f, v in _remembered(now) if f in folders} | expired),
    )


def _lost_sinks(now: Deployment, lost: set[Version]) -> tuple[str, ...]:
    """Detached sinks that can't go on from what they sent last."""

    def versions(sink: SinkState) -> Iterator[Version]:
        yield from _sent([sink])
        if sink.offsets in now.sending:
            yield from _in_batches([now.sending[sink.offsets]])

    sinks = now.cut.detached_sinks.values()
    return tuple(sorted(s.offsets for s in sinks if not lost.isdisjoint(versions(s))))


def _remembered(deployment: Deployment) -> set[Version]:
    """Every version that a plan against this fold could restore, attach, or send from."""
    found = {version for state in _states(deployment) for version in _chain(state)}
    sinks = (
        *deployment.cut.sinks.values(),
        *deployment.cut.detached_sinks.values(),
        *deployment.sink_history.values(),
    )
    found |= {*_sent(sinks), *_in_batches(deployment.sending.values()), *_current(deployment)}
    gone = deployment.collected
    return {
        (folder, version)
        for folder, version in found
        if folder not in gone.folders and f"{folder}@{version}" not in gone.versions
    }


def _states(deployment: Deployment) -> Iterator[RelationState]:
    """Every state of a relation that the fold remembers, without those behind them."""
    yield from deployment.cut.relations.values()
    yield from deployment.cut.detached.values()
    yield from deployment.consistent.relations.values()
    yield from deployment.materializations.values()
    yield from deployment.relation_history.values()


def _not_passed(now: Deployment, states: Iterable[RelationState]) -> Iterator[Version]:
    """Of each stream of a streaming table, the version behind which it may have rows to take in."""
    contents = {state.folder: state.content for state in now.cut.relations.values()}
    current = {state.folder: state for state in now.cut.relations.values()}
    for state in states:
        taken_in = set(state.inputs.values())
        for folder, passed in state.passed.items():
            is_current = current.get(state.folder) == state
            if not (is_current and contents.get(folder) in taken_in):
                yield folder, max(0, Versions.from_text(passed).first_missing - 1)


def _current(deployment: Deployment) -> set[Version]:
    """The versions that are read or sent now, or that a plan under way goes back to."""
    found = {
        *_versions(deployment.cut),
        *_versions(deployment.consistent),
        *_sent(deployment.cut.sinks.values()),
        *_in_batches(
            deployment.sending[sink.offsets]
            for sink in deployment.cut.sinks.values()
            if sink.offsets in deployment.sending
        ),
    }
    plan: PlanInProgress | None
    for plan in (deployment.unfinished, deployment.awaiting):
        if plan is not None:
            found |= {*_versions(plan.cut), *_versions(plan.checkpoint or Cut())}
    return found


def _versions(cut: Cut) -> Iterator[Version]:
    return ((state.folder, state.version) for state in cut.relations.values())


def _sent(sinks: Iterable[SinkState]) -> Iterator[Version]:
    return ((pinned.folder, pinned.version) for sink in sinks for pinned in sink.pinned)


def _in_batches(batches: Iterable[Batch]) -> Iterator[Version]:
    for batch in batches:
        for pinned in (batch.before, batch.after):
            if pinned is not None:
                yield pinned.folder, pinned.version


def _unsent(now: Deployment) -> Iterator[Version]:
    """From where on a sink may still read the change feed."""
    yield from _sent(now.cut.sinks.values())
    attached = {sink.offsets: sink.batch for sink in now.cut.sinks.values()}
    yield from _in_batches(
        batch
        for offsets, batch in now.sending.items()
        if offsets in attached and batch.number > attached[offsets]
    )


def _chain(state: RelationState) -> Iterator[Version]:
    """A state, and those that its table can be taken back or forth to."""
    pending: list[RelationState | None] = [state]
    while pending:
        at = pending.pop()
        if at is not None:
            yield at.folder, at.version
            pending += [at.altered_from, at.taken_back]


def _named(records: Iterable[Record]) -> Iterator[Version]:
    for record in records:
        for state in (record.cut or {}).get("relations", {}).values():
            yield state["folder"], state["version"]


def _planned(now: Deployment, key: str) -> set[str]:
    """What the steps of a plan that waits or is under way name."""
    plans = [plan for plan in (now.unfinished, now.awaiting) if plan is not None]
    return {step[key] for plan in plans for step in plan.plan.get("steps", ()) if key in step}


def _least(versions: Iterable[Version]) -> dict[str, int]:
    found: dict[str, int] = {}
    for folder, version in versions:
        found[folder] = min(version, found.get(folder, version))
    return found


def _free_connectors(
    now: Deployment, past: Deployment, then: Deployment, touched: Iterable[Record]
) -> set[str]:
    used = {
        state.offsets
        for deployment in (now, past, then)
        for state in deployment.cut.connectors.values()
    }
    for record in touched:
        for state in (record.cut or {}).get("connectors", {}).values():
            used.add(f"{state['folder']}/{state['generation']}")
    for plan in (now.unfinished, now.awaiting):
        if plan is not None:
            used |= {state.offsets for state in plan.cut.connectors.values()}
            used |= {
                f"{step['folder']}/{step['generation']}"
                for step in plan.plan.get("steps", ())
                if "generation" in step
            }
    return (now.cut.detached_connectors.keys() & past.cut.detached_connectors.keys()) - used


def _free_rejected(now: Deployment, connectors: set[str]) -> tuple[str, ...]:
    """Folders of bad records of which no generation is left."""
    cut = now.cut
    left = {s.folder for s in cut.connectors.values()} | {
        s.folder for offsets, s in cut.detached_connectors.items() if offsets not in connectors
    }
    gone = {cut.detached_connectors[offsets].folder for offsets in connectors}
    return tuple(sorted(gone - left))
