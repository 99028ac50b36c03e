"""What `status` says of sinks, as the ledger has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlmig.execution.delivery import is_due
from sqlmig.ledger.cut import RelationState
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.sink_state import SinkState, unfinished_batch


def sink_states(deployment: Deployment) -> Mapping[str, Mapping[str, Any]]:
    """Sink -> its state as JSON.

    `state` is `new` (nothing was sent yet), `current`, `behind`, `cutting over` (changes of before
    a cutover are owed, or a snapshot is), `sending` (a batch was begun, and is not known to have
    ended) or `failing`. `sent` names the contents that readers have. `versions_behind` counts
    Delta versions of the relation since then; null where they lie in another table.
    """
    cut = deployment.cut
    return {
        name: _sink_state(deployment, name, state, cut.relations.get(name.partition(".")[0]))
        for name, state in sorted(cut.sinks.items())
    }


def _sink_state(
    deployment: Deployment, name: str, state: SinkState, relation: RelationState | None
) -> Mapping[str, Any]:
    is_behind = is_due(state, relation, deployment.sending)
    error = deployment.failures.get(name)
    return {
        "state": _word(deployment, state, error, is_behind=is_behind),
        "mode": state.mode,
        "generation": state.generation,
        "rows": state.rows,
        "batch": state.batch,
        "sent_at": state.sent_at,
        "sent": state.sent.to_dict() if state.sent else None,
        "is_behind": is_behind,
        "versions_behind": _versions_behind(state, relation) if is_behind else 0,
        "owed": len(state.owed),
        "is_continued": state.is_continued,
        "error": error,
    }


def _word(deployment: Deployment, state: SinkState, error: str | None, *, is_behind: bool) -> str:
    if error is not None:
        return "failing"
    if unfinished_batch(state, deployment.sending) is not None:
        return "sending"
    if state.owed or state.sends_all:
        return "cutting over"
    if state.sent is None:
        return "new"
    return "behind" if is_behind else "current"


def _versions_behind(state: SinkState, relation: RelationState | None) -> int | None:
    if state.sent is None or relation is None or state.sent.folder != relation.folder:
        return None
    return max(relation.version - state.sent.version, 0)
