"""The planner: from what is deployed and what is wanted to the ordered steps between. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from sqlmig.ledger.cut import RelationState
from sqlmig.ledger.deployment import materialization_key
from sqlmig.planning.accumulations import decide_views, plan_accumulation
from sqlmig.planning.connectors import check_sources, plan_sources
from sqlmig.planning.draft import Draft
from sqlmig.planning.layout import laid_out, plan_layout
from sqlmig.planning.parting import check_parting
from sqlmig.planning.raw import plan_fills
from sqlmig.planning.request import Request
from sqlmig.planning.sinks import plan_sinks
from sqlmig.planning.stages import split_stages
from sqlmig.planning.steps import (
    Bootstrap,
    Checkpoint,
    Detach,
    Plan,
    Restore,
    Resume,
    Stop,
    Volume,
    action_to_dict,
)
from sqlmig.planning.stream_checks import check_streams
from sqlmig.planning.streams import (
    Decision,
    asked_strategies,
    decide,
    plan_advances,
    plan_stream,
)
from sqlmig.planning.tables import plan_tables
from sqlmig.program.canonical import materialization_fingerprint
from sqlmig.program.model import RelationKind, View

_OTHERS = (RelationKind.TABLE.value, RelationKind.STREAMING_TABLE.value)
"""Kinds whose folder a materialized view doesn't take over: their rows can't be computed again."""


def make_plan(request: Request) -> Plan:
    """Plan the way from the deployed program to the target.

    Returns:
        The plan. What stands in its way is in `blockers`; such a plan can be shown but not run.
    """
    draft = Draft(request)
    check_streams(draft)
    check_sources(draft)
    stages, blockers = split_stages(
        request.deployed, request.target, request.hops, request.revision
    )
    draft.blockers.extend(blockers)
    draft.add(Stop(), "the change is made while no input is read")
    draft.add(Checkpoint(), "every relation is read as of one point")
    asked = asked_strategies(draft)
    decisions = decide(draft, asked)
    kept = decide_views(draft, asked, decisions)
    plan_advances(draft, {**decisions, **kept}, laid_out(draft, stages))
    for number, stage in enumerate(stages):
        plan_tables(draft, number, stage)
    plan_fills(draft)
    plan_sources(draft)
    for name in draft.target.order:
        view = draft.target.relations[name]
        if isinstance(view, View) and view.is_streaming:
            plan_stream(draft, view, decisions)
        elif isinstance(view, View) and view.is_stored:
            if not plan_accumulation(draft, view, kept):
                _plan_view(draft, view, kept.get(name))
            plan_layout(draft, view)
    check_parting(draft, decisions, kept)
    plan_sinks(draft)
    _detach(draft)
    draft.add(Resume(), "")
    return Plan(
        id=_digest(draft),
        pipeline=request.pipeline,
        direction=request.direction,
        deployed=draft.deployment.revision,
        target=request.revision,
        deployed_seq=draft.deployment.deployed_seq,
        diff=draft.diff,
        steps=tuple(draft.steps),
        blockers=tuple(draft.blockers),
        warnings=tuple(draft.warnings),
        ups=request.ups,
        downs=request.downs,
        stages=tuple(stage.after.files for stage in stages),
    )


def _digest(draft: Draft) -> str:
    request = draft.request
    basis = json.dumps(
        [
            request.pipeline,
            request.direction,
            draft.deployment.revision,
            request.revision,
            draft.deployment.deployed_seq,
            [action_to_dict(step.action) for step in draft.steps],
            sorted(request.target.files.items()),
            [r.text for r in request.ups],
            request.downs,
        ],
        sort_keys=True,
    )
    return hashlib.sha256(basis.encode()).hexdigest()[:12]


def _plan_view(draft: Draft, view: View, rebuild: Decision | None) -> None:
    """Add the steps of a materialized view.

    Args:
        rebuild: the decision to compute it anew although it may not have changed, if there is one.
    """
    name = view.name
    state = draft.states.get(name)
    if state is not None and state.kind in _OTHERS:
        state = None
    change = draft.change("view", name)
    is_same = change is None or change.is_layout
    inputs = sorted(draft.target.stored_reads(name))
    others = [] if state is None or state.takes_in else _others(draft, state, inputs)
    if state is not None and state.fingerprint and is_same and rebuild is None and not others:
        return
    mark = materialization_fingerprint(draft.target, name)
    contents = {read: draft.states[read].content for read in inputs if read in draft.states}
    cause = draft.cause("view", name) or (
        "it is not in the warehouse" if state is None else "something else wrote to it"
    )
    if others and not draft.cause("view", name):
        cause = f"`{others[0]}` gets other rows"
    if rebuild is not None:
        said = draft.cause("view", name)
        cause = f"{said}; computed anew: {rebuild.why}" if said else f"computed anew: {rebuild.why}"
    kept = draft.kept(draft.request.revision, name)
    folders = [s.folder for s in (state, kept) if s is not None]
    published = _published(draft, folders, mark, contents)
    if published is not None and (rebuild is None or rebuild.asked is None):
        draft.states[name] = published
        draft.add(
            Restore(name, published.folder, published.version, published.content),
            cause,
            writes=draft.volume(name, published),
        )
        return
    if state is None:
        state = kept if kept is not None and kept.kind == view.kind.value else None
    draft.warn_of_removed(draft.request.revision, name, "is computed")
    folder = state.folder if state is not None else draft.new_folder(name)
    draft.states[name] = RelationState(
        folder, view.kind.value, -1, f"new:{name}", mark, contents, layout=view.layout
    )
    draft.add(
        Bootstrap(name, folder),
        cause,
        reads=tuple(draft.volume(read, draft.states.get(read)) for read in inputs),
        writes=Volume(name, state.rows, state.bytes) if state else Volume(name, None, None),
    )


def _others(draft: Draft, state: RelationState, inputs: list[str]) -> list[str]:
    """The inputs to which this plan gives other rows than the view was computed from.

    Programs may be equal and rows not: between the two a table was another one for a while.
    What has moved before the plan is left to the tick behind it.
    """
    observed = {known.content for known in draft.observed.values()}
    now = {read: draft.states[read].content for read in inputs if read in draft.states}
    return [r for r, c in now.items() if c not in observed and state.inputs.get(r) != c]


def _published(
    draft: Draft, folders: list[str], mark: str, contents: Mapping[str, str]
) -> RelationState | None:
    """Contents of the view that were published over just these inputs, and are kept."""
    for folder in folders:
        key = materialization_key(folder, mark, contents)
        found = draft.deployment.materializations.get(key)
        if found is not None:
            return found
    return None


def _detach(draft: Draft) -> None:
    for name in sorted(draft.states):
        relation = draft.target.relations.get(name)
        if relation is None:
            what = draft.change("table", name) or draft.change("view", name)
            draft.add(Detach(name), ("; ".join(what.reasons) if what else "") or "it is removed")
        elif not relation.is_stored:
            draft.add(Detach(name), "it becomes a view")
