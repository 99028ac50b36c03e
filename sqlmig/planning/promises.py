"""What a strategy promises those who read a relation while it is changed.

The promises are the five kinds of environments that ksqlDB names: whether its rows are right for
all of history, whether what reads it follows, whether a row can be missed or counted twice, whether
one point parts old from new, and whether it can be read all the time. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmig.program.model import RelationKind


@dataclass(frozen=True)
class Promise:
    """One promise, whether it is kept, and why."""

    name: str
    is_kept: bool
    reason: str


PROMISES: Mapping[str, str] = {
    "backfill": "its rows are right for all of the history that is kept, not only from now on",
    "cascading": "what reads it follows in the same plan",
    "exactly once": "no row of its inputs is missed or counted twice",
    "ordered": "one point parts what the old definition made from what the new one makes",
    "live": "it can be read all the time",
}
"""What each promise says."""

_CASCADING = (True, "every view that reads it is part of the plan")
_ONCE = (True, "no input is read between stop and resume, and none is read again")
_ORDERED = (True, "the checkpoint is that point")
_LIVE = (True, "readers see the old rows until the one commit that brings the new ones")
_STREAM = RelationKind.STREAMING_TABLE.value
_VIEW = RelationKind.MATERIALIZED_VIEW.value
_TABLE = RelationKind.TABLE.value

_BACKFILL: Mapping[tuple[str, str], tuple[bool, str]] = {
    (_STREAM, "in place"): (False, "rows that came before the change stay as they are"),
    (_VIEW, "in place"): (False, "what came before the change stays counted as it was"),
    (_STREAM, "backfill"): (False, "rows from before the time that was asked for stay as they are"),
    (_STREAM, "rebuild"): (True, "made anew from every row that its stream has"),
    (_STREAM, "restore"): (False, "it is put back, with what was historical in it"),
    (_TABLE, "alter"): (True, "its rows are kept"),
    (_TABLE, "lay out"): (True, "its rows stay what they are"),
    (_TABLE, "rebuild"): (True, "made anew from every raw record of its sources"),
    (_TABLE, "cast"): (True, "its rows are kept, and cast"),
    (_TABLE, "restore"): (True, "its rows are put back"),
    (_TABLE, "create"): (False, "it begins empty; its sources bring what they still have"),
    (_TABLE, "empty"): (False, "its rows are dropped; its sources bring what they still have"),
}


def promises(kind: str, strategy: str, *, is_volatile: bool) -> tuple[Promise, ...]:
    """What a strategy keeps for a relation, in the order of `PROMISES`.

    Args:
        kind: of the relation, as the SQL statement says it.
        strategy: the one that is taken.
        is_volatile: its query can give other rows over the same input.
    """
    kept: dict[str, tuple[bool, str]] = {
        "backfill": _BACKFILL.get((kind, strategy), (True, "it equals its query over all rows")),
        "cascading": _CASCADING,
        "exactly once": _ONCE,
        "ordered": _ORDERED,
        "live": _LIVE,
    }
    if strategy == "detach":
        kept["backfill"] = (False, "it is taken off")
        kept["live"] = (False, "it can't be read any more; its rows are kept for a downgrade")
    if strategy == "empty":
        kept["exactly once"] = (False, "its sources begin again, and can bring rows once more")
        kept["live"] = (False, "it is empty until its sources have been read")
    if strategy == "create":
        kept["live"] = (True, "it can be read once the plan is applied")
    if is_volatile and kept["backfill"][0]:
        kept["backfill"] = (False, "its query gives other rows whenever it is computed")
    return tuple(Promise(name, *kept[name]) for name in PROMISES)
