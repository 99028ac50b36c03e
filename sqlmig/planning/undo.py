"""The way back of a table or streaming table: an earlier state that can be restored. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlmig.ledger.cut import RelationState

_DEPTH = 8
"""How many alterations of a table in a row can be taken back without moving rows."""


@dataclass(frozen=True)
class WayBack:
    """A state that a table can be put back to.

    Args:
        state: the table after it, but for the version of the commit that puts it back.
        loses_rows: the table was emptied on the way from there; rows written since then are lost.
    """

    state: RelationState
    loses_rows: bool = False


def find_way_back(now: RelationState, content: str | None, fingerprint: str) -> WayBack | None:
    """The way to the state with these contents and this definition.

    Args:
        now: the table as it is.
        content: content id that is wanted; None for any.
        fingerprint: of the definition that is wanted.

    Returns:
        None where there is no such state, or rows have moved in between. Of the versions that hold
        the same it names the newest: the older the version, the sooner it is not kept any more.
    """
    way = _find(now, content, fingerprint)
    return replace(way, state=_at_newest(way.state, _newest(now))) if way is not None else None


def _find(now: RelationState, content: str | None, fingerprint: str) -> WayBack | None:
    def is_wanted(state: RelationState) -> bool:
        return content in (None, state.content) and state.fingerprint == fingerprint

    loses_rows = False
    at: RelationState | None = now
    while at is not None and at.altered_from is not None:
        loses_rows = loses_rows or at.is_emptied
        at = at.altered_from
        if is_wanted(at):
            return WayBack(replace(at, taken_back=_capped(now)), loses_rows)
    later = now.taken_back
    while later is not None:
        at = later
        while at is not None and (at.content, at.fingerprint) != (now.content, now.fingerprint):
            if is_wanted(at):
                return WayBack(at if at is later else replace(at, taken_back=later))
            at = at.altered_from
        later = later.taken_back
    return None


_Held = tuple[str, str | None, tuple[str, ...]]
"""What a version holds: content id, fingerprint, layout."""


def _held(state: RelationState) -> _Held:
    return state.content, state.fingerprint, state.layout


def _newest(now: RelationState) -> dict[_Held, int]:
    """What the states behind `now` and before it hold -> the newest version of them that does."""
    found: dict[_Held, int] = {}
    pending: list[RelationState | None] = [now]
    while pending:
        at = pending.pop()
        if at is not None:
            found[_held(at)] = max(at.version, found.get(_held(at), at.version))
            pending += [at.altered_from, at.taken_back]
    return found


def _at_newest(state: RelationState, newest: Mapping[_Held, int]) -> RelationState:
    past, later = state.altered_from, state.taken_back
    return replace(
        state,
        version=newest.get(_held(state), state.version),
        altered_from=_at_newest(past, newest) if past is not None else None,
        taken_back=_at_newest(later, newest) if later is not None else None,
    )


def altered(after: RelationState, before: RelationState) -> RelationState:
    """`after` with the way back to `before`, of which an alteration made it."""
    return replace(after, altered_from=replace(_capped(before), taken_back=None))


def _capped(state: RelationState, depth: int = _DEPTH) -> RelationState:
    if depth == 0:
        return replace(state, altered_from=None, is_emptied=False, taken_back=None)
    past, later = state.altered_from, state.taken_back
    return replace(
        state,
        altered_from=_capped(past, depth - 1) if past is not None else None,
        taken_back=_capped(later, depth - 1) if later is not None else None,
    )
