"""The relations of a cut as they are in the warehouse now. It changes nothing."""

from __future__ import annotations

from dataclasses import replace

from sqlmig.errors import EngineError
from sqlmig.execution.engine import Warehouse
from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.planning.request import Observed, observe


def seen(warehouse: Warehouse, state: RelationState) -> Observed:
    """The table of a relation as it is now.

    Raises:
        EngineError: it is gone.
    """
    now = warehouse.observe({"": state}).get(state.folder)
    if now is None:
        raise EngineError(f"the Delta table in folder `{state.folder}` is gone")
    return now


def observed_state(warehouse: Warehouse, state: RelationState) -> RelationState:
    """`state` with what happened to its table since, as by an earlier process in the same step.

    Raises:
        EngineError: the table is gone.
    """
    return observe(state, seen(warehouse, state))


def observed_cut(warehouse: Warehouse, cut: Cut) -> Cut:
    """`cut` with every relation as it is now."""
    observed = warehouse.observe(cut.relations)
    missing = sorted(n for n, s in cut.relations.items() if s.folder not in observed)
    if missing:
        raise EngineError(
            f"the Delta table of `{missing[0]}` is not in the warehouse",
            hint="restore its folder, or `sqlmig stamp` a revision that does not have it",
        )
    return replace(
        cut,
        relations={n: observe(s, observed[s.folder]) for n, s in cut.relations.items()},
    )
