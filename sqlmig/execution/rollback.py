"""Takes tables back to a checkpoint, and refuses what a dead process may still write to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlmig.execution.engine import Engine, Warehouse
from sqlmig.execution.journal import Journal
from sqlmig.execution.putting_back import put_back
from sqlmig.execution.values import Mark
from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.planning.steps import Plan


def fence_touched(warehouse: Warehouse, journal: Journal, plan: Plan, cut: Cut, run: str) -> None:
    """Fence off the tables that a plan may have written to: its Spark can outlive its process.

    They get new versions by that, so `restore_cut` puts each of them back.
    """
    for state in _touched(plan, cut):
        journal.still_owner()
        mark = Mark(plan.pipeline, run, -1, plan.deployed, state.fingerprint, state.inputs)
        warehouse.fence(state.folder, mark)


def restore_cut(
    engine: Engine, warehouse: Warehouse, journal: Journal, plan: Plan, cut: Cut, run: str
) -> Cut:
    """Put every table that moved on back to its version in `cut`; the cut with the new versions.

    Args:
        run: names the attempt that is taken back; the commits carry it.
    """
    touched = {state.folder: state for state in _touched(plan, cut)}
    observed = warehouse.observe(touched)

    def back(state: RelationState) -> RelationState:
        now = observed.get(state.folder)
        if now is None or now.version == state.version:
            return state
        journal.still_owner()
        mark = Mark(plan.pipeline, run, -1, plan.deployed).leaving(state)
        written = put_back(warehouse, engine, state.folder, state.version, mark)
        return replace(state, version=written.version)

    return replace(
        cut,
        relations={name: back(state) for name, state in cut.relations.items()},
        detached={folder: back(state) for folder, state in cut.detached.items()},
    )


def _touched(plan: Plan, cut: Cut) -> Iterator[RelationState]:
    """What the plan may write to: every attached relation, and what its steps attach again."""
    folders = {getattr(step.action, "folder", None) for step in plan.steps}
    yield from cut.relations.values()
    yield from (state for folder, state in sorted(cut.detached.items()) if folder in folders)
