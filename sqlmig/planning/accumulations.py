"""The steps of materialized views that go on in place: kept, gone on with, put back. Pure.

A materialized view always equals its query, so a change computes it anew. Where a hook asks for
op.in_place, it keeps what it has and takes in only the rows that come from then on, as a streaming
table does; what it can be asked of says `program.accumulation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlmig.ledger.cut import RelationState
from sqlmig.planning import directives
from sqlmig.planning.collected import removed_at
from sqlmig.planning.draft import Draft
from sqlmig.planning.repetition import find_repetition
from sqlmig.planning.stages import renamed_tables
from sqlmig.planning.steps import Attach, Blocker
from sqlmig.planning.stream_steps import EvolveStream, RestoreStream
from sqlmig.planning.streams import Asked, Decision
from sqlmig.planning.undo import find_way_back
from sqlmig.program.accumulation import Refusal, find_refusal
from sqlmig.program.canonical import fingerprint, materialization_fingerprint
from sqlmig.program.model import RelationKind, View

_KIND = RelationKind.MATERIALIZED_VIEW.value
_GOES_ON = "it goes on where it stopped"


def decide_views(
    draft: Draft, asked: Mapping[str, Asked], streams: Mapping[str, Decision]
) -> dict[str, Decision]:
    """What becomes of the materialized views that a hook names, or that went on in place before.

    Args:
        asked: what hooks ask for.
        streams: what becomes of the streaming tables.

    Returns:
        View -> `in place`, `restore` (to how the target left it, when it went on in place there) or
        `rebuild`. All others are computed where they changed.
    """
    decisions: dict[str, Decision] = {}
    for name in draft.target.order:
        view, state = draft.target.relations[name], draft.states.get(name)
        if view.kind.value != _KIND or state is None or state.kind != _KIND:
            continue
        assert isinstance(view, View)
        decision = _asked_for(draft, view, asked.get(name)) or _kept(draft, view, state, streams)
        if decision is not None:
            decisions[name] = decision
    return decisions


def _asked_for(draft: Draft, view: View, asked: Asked | None) -> Decision | None:
    if asked is None:
        return None
    why = f"asked by {asked.where}"
    if isinstance(asked.directive, directives.Rebuild):
        return Decision("rebuild", why, asked.directive)
    if fingerprint(asked.view) != fingerprint(view):  # a later revision on the way changed it
        return Decision("rebuild", f"a revision after {asked.where} changes it", asked.directive)
    refusal = _refusal(draft, view.name)
    if refusal is not None:
        draft.blockers.append(
            Blocker(
                f"{asked.where}: `{view.name}` can't go on in place: it {refusal.reason}",
                view.query_location or view.location,
                refusal.hint,
            )
        )
        return None
    return Decision("in place", why, asked.directive)


def _kept(
    draft: Draft, view: View, state: RelationState, streams: Mapping[str, Decision]
) -> Decision | None:
    """What becomes of a view that no hook names."""
    name, change = view.name, draft.change("view", view.name)
    anew = sorted(r for r in view.reads if r in streams and streams[r].strategy != "in place")
    if state.takes_in and anew:
        return Decision("rebuild", f"its input `{anew[0]}` is made anew")
    if change is None:
        return None
    earlier = _at_target(draft, name)
    if not state.takes_in:
        return Decision("restore", "as this revision left it") if earlier is not None else None
    if change.how == "modified" and earlier is None:
        return Decision("rebuild", "op.in_place is not asked for again")
    refusal = _refusal(draft, name)
    if refusal is not None:
        return Decision("rebuild", f"it {refusal.reason}")
    return Decision("in place", _GOES_ON)


def _at_target(draft: Draft, name: str) -> RelationState | None:
    """The view as a downgrade's target left it, if it went on in place there."""
    if draft.request.direction != "downgrade":
        return None
    earlier = draft.deployment.relation_history.get((draft.request.revision or "base", name))
    if earlier is None or earlier.kind != _KIND or not earlier.takes_in:
        return None
    state = draft.states[name]
    if earlier.folder != state.folder or removed_at(draft.deployment, earlier) is not None:
        draft.warnings.append(
            f"`{name}` is computed: what it took in when this revision was deployed is gone"
        )
        return None
    return earlier


def _refusal(draft: Draft, name: str) -> Refusal | None:
    renamed = renamed_tables(draft.request.hops)
    return find_refusal(draft.request.deployed, draft.target, name, renamed)


def plan_accumulation(draft: Draft, view: View, decisions: dict[str, Decision]) -> bool:
    """Add the steps of a materialized view that goes on in place.

    Args:
        decisions: those of views; its own may still become another one.

    Returns:
        False where it is none, or is to be computed as any other.
    """
    name = view.name
    decision, state = decisions.get(name), draft.states.get(name)
    mark = materialization_fingerprint(draft.target, name)
    if state is None or state.kind != _KIND:
        return _attach(draft, name, mark)
    if decision is None or decision.strategy == "rebuild":
        return False
    if decision.strategy == "restore":
        _restore(draft, name, draft.deployment.relation_history[_key(draft, name)])
        return True
    again = find_repetition(draft, view.reads, state)
    if decision.asked is None and again is not None:
        if not again.is_rebuilt:
            draft.warnings.append(f"`{name}` is computed: `{again.table}` begins empty")
        decisions[name] = Decision("rebuild", again.why)
        return False
    changed = state.takes_in and state.fingerprint != mark
    way = find_way_back(state, None, mark) if changed else None
    if way is not None and way.state.takes_in:
        _restore(draft, name, way.state)
        return True
    _go_on(draft, view, state, decision)
    return True


def _key(draft: Draft, name: str) -> tuple[str, str]:
    return (draft.request.revision or "base", name)


def _attach(draft: Draft, name: str, mark: str) -> bool:
    kept = draft.kept(draft.request.revision, name)
    if kept is None or kept.kind != _KIND or not kept.takes_in or kept.fingerprint != mark:
        return False
    draft.states[name] = kept
    draft.add(
        Attach(name, kept.folder),
        "it goes on where it stopped when this revision was deployed last (historical)",
        writes=draft.volume(name, kept),
    )
    return True


def _restore(draft: Draft, name: str, state: RelationState) -> None:
    cause = draft.cause("view", name)
    why = "as this revision left it; what came since is taken in (historical)"
    draft.states[name] = state
    draft.add(
        RestoreStream(name, state.folder, state.version, state.content),
        f"{cause}; {why}" if cause else why,
        writes=draft.volume(name, state),
    )


def _go_on(draft: Draft, view: View, state: RelationState, decision: Decision) -> None:
    name = view.name
    mark = materialization_fingerprint(draft.target, name)
    contents = {r: draft.states[r].content for r in view.reads if r in draft.states}
    draft.states[name] = replace(state, fingerprint=mark, inputs=contents, is_historical=True)
    cause = draft.cause("view", name)
    why = f"{cause}; in place: {decision.why}" if cause else f"in place: {decision.why}"
    if name in draft.deployment.failures:
        why += ", with the rows that the query deployed so far failed on"
    draft.add(
        EvolveStream(name, state.folder, is_historical=True),
        f"{why}; what it has stays, only rows that come are taken in (historical)",
        writes=draft.volume(name, state),
    )
