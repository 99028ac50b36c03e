"""The steps of tables: renamed, created, altered, emptied, attached, put back. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlmig.ledger.cut import RelationState
from sqlmig.planning.collected import removed_at
from sqlmig.planning.draft import Draft
from sqlmig.planning.layout import plan_layout, release_layout
from sqlmig.planning.raw import EMPTIED
from sqlmig.planning.stages import Effect, Stage
from sqlmig.planning.steps import (
    AlterTable,
    Attach,
    CreateTable,
    EmptyTable,
    RenameTable,
    RestoreTable,
    RunFunction,
    Volume,
)
from sqlmig.planning.table_change import TableChange, table_change
from sqlmig.planning.table_steps import ConvertTable
from sqlmig.planning.undo import WayBack, find_way_back
from sqlmig.planning.volume import rewriting
from sqlmig.program.canonical import fingerprint
from sqlmig.program.model import RelationKind, Table
from sqlmig.wording import counted

_TABLE = RelationKind.TABLE.value


def plan_tables(draft: Draft, number: int, stage: Stage) -> None:
    """Add the steps that take the tables through one stage, and then its effects.

    Args:
        number: the stage's place among the plan's stages.
    """
    _rename(draft, stage)
    origin = {after: before for before, after in stage.tables.items()}
    for name, table in sorted(stage.after.tables.items()):
        state = draft.states.get(name)
        if state is not None and state.kind != _TABLE:
            state = None
        if not _take_up(draft, number, stage, table):
            if state is None:
                _create(draft, number, table)
            else:
                old = stage.before.tables.get(origin.get(name, name))
                _bring(draft, number, stage, table, old, state)
        plan_layout(draft, table, number)
    for action, cause in stage.effects:
        draft.add(replace(action, stage=number), cause)
        _expect_moved(draft, stage, action)


def _expect_moved(draft: Draft, stage: Stage, action: Effect) -> None:
    """Whatever a hook may write to is expected to move: every table that its text mentions."""
    for name in stage.after.tables:
        if isinstance(action, RunFunction) or name in action.sql.lower():
            moved = draft.states[name].with_rows(-1, None, None)
            draft.states[name] = replace(moved, content=f"moved:{name}")


def _rename(draft: Draft, stage: Stage) -> None:
    pending = {b: a for b, a in stage.tables.items() if b in draft.states}
    first = {after: before for before, after in draft.renames.items()}
    draft.renames.update(
        {first.get(b, b): a for b, a in pending.items() if b in first or b not in draft.renames}
    )
    states = {after: draft.states[before] for before, after in pending.items()}
    fresh = {a: draft.fresh[b] for b, a in pending.items() if b in draft.fresh}
    returned = {a for b, a in pending.items() if b in draft.returned}
    recast = {a: draft.recast[b] for b, a in pending.items() if b in draft.recast}
    added = {a: draft.added[b] for b, a in pending.items() if b in draft.added}
    for name in (*pending, *pending.values()):
        draft.states.pop(name, None)
        draft.fresh.pop(name, None)
        draft.returned.discard(name)
        draft.recast.pop(name, None)
        draft.added.pop(name, None)
    draft.states.update(states)
    draft.fresh.update(fresh)
    draft.returned.update(returned)
    draft.recast.update(recast)
    draft.added.update(added)
    for before, after, final in _one_by_one(pending):
        draft.add(RenameTable(before, after), stage.causes.get(final, ""))


def _one_by_one(renames: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Renames (before, after, name at the end), in an order in which `after` is always free."""
    pending = dict(sorted(renames.items()))
    while pending:
        free = next((b for b, a in pending.items() if a not in pending), None)
        if free is not None:
            yield free, pending[free], pending.pop(free)
            continue
        name = next(iter(pending))
        final = pending.pop(name)
        waiting = f"{name}__renamed"
        yield name, waiting, final
        pending[waiting] = final


def _take_up(draft: Draft, number: int, stage: Stage, table: Table) -> bool:
    """Attach the table that the stage's revision had, if it is detached, and put it back."""
    name, mark = table.name, fingerprint(table)
    kept = draft.kept(stage.revision, name)
    if kept is None or kept.kind != _TABLE:
        return False
    way = find_way_back(kept, _earlier_content(draft, stage, name), mark)
    if way is not None and removed_at(draft.deployment, way.state) is not None:
        draft.warn_of_removed(stage.revision, name, "does not go back to what it was")
        way = None
    if way is None and kept.fingerprint != mark:
        draft.warnings.append(
            f"`{name}` begins empty: folder `{kept.folder}` keeps its rows under another definition"
        )
        return False
    draft.states[name] = kept
    draft.fresh.pop(name, None)
    draft.returned.add(name)
    draft.add(
        Attach(name, kept.folder),
        "it is as it was when this revision was deployed last",
        writes=draft.volume(name, kept),
    )
    if way is not None:
        _put_back(draft, number, table, way, kept)
    return True


def _earlier_content(draft: Draft, stage: Stage, name: str) -> str:
    earlier = draft.deployment.relation_history.get((stage.revision or "base", name))
    return earlier.content if earlier else ""


def _create(draft: Draft, number: int, table: Table) -> None:
    draft.warn_of_removed(draft.request.revision, table.name, "begins empty")
    folder = draft.new_folder(table.name)
    draft.states[table.name] = RelationState(
        folder,
        _TABLE,
        0,
        f"new:{table.name}",
        fingerprint(table),
        rows=0,
        bytes=0,
        layout=table.layout,
    )
    draft.fresh[table.name] = "its table is created"
    draft.add(
        CreateTable(table.name, folder, number),
        draft.cause("table", table.name) or "it is not in the warehouse",
        writes=Volume(table.name, 0, 0),
    )


def _bring(
    draft: Draft,
    number: int,
    stage: Stage,
    table: Table,
    old: Table | None,
    state: RelationState,
) -> None:
    """A table that is there gets its new definition, or goes back to what it was."""
    name, mark = table.name, fingerprint(table)
    renamed = stage.columns.get(name, {})
    change = table_change(old, table, renamed) if old is not None else None
    if _restore(draft, number, stage, table, state, change):
        return
    if state.fingerprint == mark and (old is None or fingerprint(old) == mark) and not renamed:
        return
    cause = draft.cause("table", name) or "its definition changed"
    after = replace(
        state,
        content=f"new:{name}",
        fingerprint=mark,
        altered_from=None,
        is_emptied=False,
        taken_back=None,
    )
    emptied = draft.request.emptied.get(name)
    if change is None or (emptied is not None and change.demands):
        reason = emptied or "it is not known how it was defined"
        _empty(draft, number, state, after, name, f"{cause}: {reason}", reason)
        return
    if old is not None and release_layout(draft, old, table, renamed, number):
        state = draft.states[name]
        after = replace(after, layout=())
    draft.states[name] = after
    dropped = [o for o in change.operations if o.startswith("drop column")]
    if dropped:
        draft.warnings.append(f"`{name}`: {', '.join(dropped)}: its values are lost")
    volume = draft.volume(name, state)
    columns = tuple(sorted(renamed.items()))
    draft.add(
        ConvertTable(
            name, change.operations, columns, bool(change.cast), change.has_new_key, number
        )
        if change.demands
        else AlterTable(name, change.operations, columns, number),
        cause,
        reads=(volume,) if change.demands and state.rows != 0 else (),
        writes=volume,
        cost=_cost(change, state),
    )
    draft.added[name] = draft.added.get(name, frozenset()) | change.added
    key = {k.lower() for k in table.primary_key} if change.has_other_key else set()
    draft.recast[name] = draft.recast.get(name, frozenset()) | change.cast | key


def _empty(
    draft: Draft,
    number: int,
    state: RelationState,
    after: RelationState,
    name: str,
    cause: str,
    reason: str,
) -> None:
    draft.states[name] = replace(after, rows=0, bytes=0, layout=())
    draft.fresh[name] = EMPTIED
    draft.returned.discard(name)
    rows = "all rows" if state.rows is None else counted(state.rows, "row")
    draft.add(
        EmptyTable(name, number),
        cause,
        writes=draft.volume(name, state),
        destructive=f"{rows} of `{name}`: {reason}",
    )


def _cost(change: TableChange, state: RelationState) -> str:
    """What a change writes, for people."""
    return rewriting(state.rows, state.bytes) if change.is_rewritten else "metadata only"


def _restore(
    draft: Draft,
    number: int,
    stage: Stage,
    table: Table,
    state: RelationState,
    change: TableChange | None,
) -> bool:
    """Put the table back to how the stage's revision left it, where that is possible."""
    content = _earlier_content(draft, stage, table.name)
    way = find_way_back(state, content, fingerprint(table)) if content != state.content else None
    if way is not None and removed_at(draft.deployment, way.state) is not None:
        draft.warn_of_removed(stage.revision, table.name, "does not go back to what it was")
        way = None
    if way is None:
        return False
    otherwise = None if way.loses_rows else change
    renamed = stage.columns.get(table.name, {})
    _put_back(draft, number, table, way, state, otherwise=otherwise, renamed=renamed)
    return True


def _put_back(
    draft: Draft,
    number: int,
    table: Table,
    way: WayBack,
    state: RelationState,
    *,
    otherwise: TableChange | None = None,
    renamed: Mapping[str, str] = {},
) -> None:
    """Restore a table; `otherwise` is how it gets there if its rows will have moved."""
    name = table.name
    draft.states[name] = way.state
    draft.fresh.pop(name, None)
    draft.returned.add(name)
    loses = way.loses_rows and state.rows != 0
    draft.add(
        RestoreTable(
            name,
            state.folder,
            way.state.version,
            way.state.content,
            otherwise is not None,
            tuple(sorted(renamed.items())) if otherwise is not None else (),
            number,
            is_converted=otherwise is not None and bool(otherwise.demands),
            has_new_key=otherwise is not None and otherwise.has_new_key,
        ),
        draft.cause("table", name) or "it goes back to how this revision left it",
        writes=draft.volume(name, way.state),
        destructive=f"the rows written to `{name}` since it was emptied" if loses else None,
    )
