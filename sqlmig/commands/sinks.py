"""What `status` says of sinks, as the ledger has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlmig.execution.delivery import is_due
from sqlmig.ledger.deployment import Deployment


def sink_states(deployment: Deployment) -> Mapping[str, Mapping[str, Any]]:
    """Sink -> its state as JSON: what it was sent, when, and whether it is behind."""
    cut = deployment.cut
    return {
        name: {
            "generation": state.generation,
            "rows": state.rows,
            "batch": state.batch,
            "sent_at": state.sent_at,
            "is_behind": is_due(state, cut.relations.get(name.split(".")[0]), deployment.sending),
        }
        for name, state in sorted(cut.sinks.items())
    }
