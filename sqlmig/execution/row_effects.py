"""The effects of steps that write a table's own rows: laid out, filled, made again."""

from __future__ import annotations

from dataclasses import replace

from sqlmig.execution.engine import Engine
from sqlmig.execution.outcome import Outcome, relation_changed
from sqlmig.execution.values import Mark, RawSource
from sqlmig.ledger.cut import RelationState
from sqlmig.planning.table_steps import FillColumns, LayOut, RebuildTable
from sqlmig.program.model import Program


def row_change(
    engine: Engine,
    program: Program,
    was: RelationState,
    action: LayOut | FillColumns | RebuildTable,
    mark: Mark,
) -> Outcome:
    """Make the effect of one of these steps on a table in the state `was`."""
    match action:
        case LayOut():
            return _lay_out(engine, was, action, mark)
        case FillColumns():
            return _fill(engine, program, was, action, mark)
        case RebuildTable():
            return _rebuild(engine, program, was, action, mark)


def _lay_out(engine: Engine, was: RelationState, action: LayOut, mark: Mark) -> Outcome:
    """Its rows lie in other files; its contents stay."""
    written = engine.lay_out(action.relation, was.folder, action.columns, mark)
    state = replace(was, version=written.version, bytes=written.bytes, layout=action.columns)
    return relation_changed(action.relation, state, written.rows)


def _fill(
    engine: Engine, program: Program, was: RelationState, action: FillColumns, mark: Mark
) -> Outcome:
    """New columns have values; the way back is that of the change that added them."""
    sources = [RawSource(*source) for source in action.sources]
    name = action.relation
    written = engine.fill_columns(program, name, was.folder, action.columns, sources, mark)
    if written.version == was.version:
        return relation_changed(name, was, 0, "no row is what a raw record gave")
    state = replace(
        was,
        version=written.version,
        content=f"{was.folder}@{written.version}",
        rows=written.rows,
        bytes=written.bytes,
    )
    return relation_changed(name, state, written.written)


def _rebuild(
    engine: Engine, program: Program, was: RelationState, action: RebuildTable, mark: Mark
) -> Outcome:
    """An emptied table has rows again; nothing is lost if it is put back to before."""
    sources = [RawSource(*source) for source in action.sources]
    name = action.relation
    made = engine.rebuild_table(program, name, was.folder, sources, mark)
    state = replace(
        was,
        version=made.table.version,
        content=f"{was.folder}@{made.table.version}",
        rows=made.table.rows,
        bytes=made.table.bytes,
        is_emptied=False,
    )
    bad = f"{made.rejected} bad records kept aside" if made.rejected else None
    return relation_changed(name, state, made.rows, bad)
