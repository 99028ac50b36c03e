"""The steps by which stored relations are partitioned as their statements say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlmig.ledger.cut import RelationState
from sqlmig.planning.draft import Draft
from sqlmig.planning.stages import Stage
from sqlmig.planning.table_steps import LayOut
from sqlmig.planning.volume import rewriting
from sqlmig.program.model import Table, View


def plan_layout(draft: Draft, relation: Table | View, number: int = -1) -> None:
    """Partition a relation as its statement says, if it will not be by then."""
    state, wanted = draft.states[relation.name], relation.layout
    if state.layout != wanted:
        _lay_out(draft, relation.name, state, wanted, number)


def laid_out(draft: Draft, stages: Sequence[Stage]) -> frozenset[str]:
    """The deployed tables that the way through the stages lays out anew, by their deployed name."""
    found = set()
    for name in draft.request.deployed.tables:
        state, now = draft.states.get(name), name
        for stage in stages:
            now = stage.tables.get(now, now)
            table = stage.after.tables.get(now)
            if state is None or table is None:
                break
            if table.layout != state.layout:
                found.add(name)
    return frozenset(found)


def release_layout(
    draft: Draft, before: Table, after: Table, renamed: Mapping[str, str], number: int
) -> bool:
    """Undo the partitioning if a change touches its columns, which Delta can't alter; whether so.

    Args:
        renamed: column before -> column after.
    """
    state = draft.states[after.name]
    old = {column.name.lower(): column.type for column in before.columns}
    new = {column.name.lower(): column.type for column in after.columns}
    taken = set(renamed.values())
    # a table may still lie by a column that an earlier revision had
    stays = {n for n in old if n not in renamed and n not in taken and new.get(n) == old[n]}
    if stays.issuperset(state.layout):
        return False
    _lay_out(draft, after.name, state, (), number)
    return True


def _lay_out(
    draft: Draft, name: str, state: RelationState, columns: tuple[str, ...], number: int
) -> None:
    volume = draft.volume(name, state)
    draft.states[name] = replace(state, layout=columns)
    what = draft.change("table", name) or draft.change("view", name)
    draft.add(
        LayOut(name, columns, number),
        "; ".join(what.reasons) if what else "it lies as an earlier revision had it",
        reads=(volume,) if state.rows != 0 else (),
        writes=volume,
        cost=rewriting(state.rows, state.bytes),
    )
