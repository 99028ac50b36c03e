"""The relations of a cut as they are in the warehouse now. It changes nothing."""

from __future__ import annotations

from dataclasses import replace

from sqlmig.errors import EngineError
from sqlmig.execution.engine import Warehouse
from sqlmig.ledger.cut import Cut
from sqlmig.planning.request import observe


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
