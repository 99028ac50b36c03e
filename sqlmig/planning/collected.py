"""What `sqlmig gc` removed, as plans meet it: what can't be had back, and since when. Pure."""

from __future__ import annotations

from datetime import datetime

from sqlmig.ledger.cut import RelationState
from sqlmig.ledger.deployment import Collected, Deployment
from sqlmig.planning.sink_steps import ContinueSink
from sqlmig.planning.steps import Attach, ContinueSource, Plan, RestoreTable


def removed_at(deployment: Deployment, state: RelationState | None) -> datetime | None:
    """When the rows of a former state were removed; None while they can be read."""
    if state is None:
        return None
    gone = deployment.collected
    return gone.folders.get(state.folder) or gone.versions.get(state.place)


def in_words(what: str, at: datetime) -> str:
    """`sqlmig gc` removed its rows on 2026-06-10 (12:00:00 UTC)`."""
    return f"`sqlmig gc` removed {what} on {at:%Y-%m-%d (%H:%M:%S UTC)}"


def removed_from(plan: Plan, deployment: Deployment) -> str | None:
    """Why a plan can't be carried out any more: a step needs what was removed since.

    Steps that restore a view are none of these: they compute it where they can't.
    """
    gone = deployment.collected
    for step in plan.steps:
        found = _removed(step.action, gone)
        if found is not None:
            return in_words(*found)
    return None


def _removed(action: object, gone: Collected) -> tuple[str, datetime] | None:
    match action:
        case Attach(relation, folder) if folder in gone.folders:
            return f"the rows of `{relation}`", gone.folders[folder]
        case RestoreTable() if f"{action.folder}@{action.version}" in gone.versions:
            place = f"{action.folder}@{action.version}"
            return f"the former rows of `{action.relation}`", gone.versions[place]
        case ContinueSource(name, folder, number) if f"{folder}/{number}" in gone.connectors:
            return f"the offsets of `{name}`", gone.connectors[f"{folder}/{number}"]
        case ContinueSink(name, folder, number) if f"{folder}/{number}" in gone.sinks:
            return f"what `{name}` had sent", gone.sinks[f"{folder}/{number}"]
        case _:
            return None
