"""What the steps of sinks change in the cut. They touch nothing but the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlmig.errors import EngineError
from sqlmig.ledger.deployment import Deployment, PlanInProgress, is_current
from sqlmig.ledger.sink_state import SinkState, unfinished_batch
from sqlmig.planning.sink_steps import (
    ContinueSink,
    CutOverSink,
    DetachSink,
    SinkAction,
    StartSink,
)
from sqlmig.program.model import Program
from sqlmig.program.sink_options import CutoverMode


def sink_change(
    action: SinkAction, step: int, deployment: Deployment, target: Program
) -> Mapping[str, Any]:
    """The partial cut, as JSON, that a step of a sink makes.

    Args:
        step: its number. deployment: its plan is under way. target: the plan's program.

    Raises:
        EngineError: the cutover would lose changes that were never computed.
    """
    plan = deployment.unfinished
    if plan is None:
        raise EngineError("the plan is no longer under way")
    if isinstance(action, DetachSink):
        return {"removed_sinks": [action.connector]}
    state = SinkState(
        action.folder, action.generation, action.fingerprint, f"{plan.run}/{step}", mode=action.mode
    )
    if not isinstance(action, StartSink):
        state = _known(action, deployment, plan) or state
    if isinstance(action, CutOverSink):
        state = _cut_over(action, state, deployment, plan, target)
    return {"sinks": {action.connector: state.to_dict()}}


def _known(
    action: ContinueSink | CutOverSink, deployment: Deployment, plan: PlanInProgress
) -> SinkState | None:
    """The newest state of the sink's generation, with its new definition."""
    known = (
        *plan.cut.sinks.values(),
        *plan.cut.detached_sinks.values(),
        *deployment.sink_history.values(),
    )
    place = (action.folder, action.generation)
    own = [state for state in known if (state.folder, state.generation) == place]
    newest = max(own, key=lambda state: state.batch, default=None)
    if newest is None:
        return None
    return replace(newest, fingerprint=action.fingerprint, mode=action.mode)


def _cut_over(
    action: CutOverSink,
    state: SinkState,
    deployment: Deployment,
    plan: PlanInProgress,
    target: Program,
) -> SinkState:
    match CutoverMode(action.sends):
        case CutoverMode.DIFFERENCE:  # all that a tick has to know is what was sent last
            return state
        case CutoverMode.SNAPSHOT:
            return replace(state, sends_all=True)
        case CutoverMode.CONTINUE:
            former = plan.checkpoint.relations if plan.checkpoint else plan.cut.relations
            if not is_current(former, action.relation):
                raise EngineError(
                    f"sink `{action.connector}` can't continue: `{action.relation}` was not "
                    "computed from the newest rows, whose changes it would never send",
                    hint="`sqlmig run --once` computes it and sends them; then upgrade again",
                )
            before = former[action.relation].contents
            after = plan.cut.relations[target.sinks[action.connector].relation].contents
            begun = unfinished_batch(state, deployment.sending)
            return state.passed_over(before, after, begun)
