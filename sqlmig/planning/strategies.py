"""What a plan does to each relation that changes, told for people: the kind of its query and of its
change, which strategies there are, which one is taken, why the others are not, and what it keeps.

It reads a plan that is made, and decides nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlmig.planning.promises import promises
from sqlmig.planning.relation_plan import RelationPlan, Strategy
from sqlmig.planning.renames import chained
from sqlmig.planning.steps import (
    AlterTable,
    Attach,
    Bootstrap,
    CreateTable,
    Detach,
    EmptyTable,
    Plan,
    RenameTable,
    Restore,
    RestoreTable,
    Step,
)
from sqlmig.planning.stream_steps import BackfillStream, EvolveStream, RestoreStream
from sqlmig.planning.table_steps import ConvertTable, LayOut, RebuildTable
from sqlmig.planning.windows import has_windows, obstacle
from sqlmig.program.accumulation import Refusal, find_refusal
from sqlmig.program.change_kinds import ChangeKind, change_kinds
from sqlmig.program.diff import Change
from sqlmig.program.model import Program, RelationKind, View
from sqlmig.program.query_kinds import query_kinds
from sqlmig.program.windows import start_columns

_LAY_OUT = "lay out"
_STEPS: Mapping[type[Any], str] = {
    AlterTable: "alter",
    Attach: "restore",
    BackfillStream: "backfill",
    Bootstrap: "rebuild",
    ConvertTable: "cast",
    CreateTable: "create",
    Detach: "detach",
    EmptyTable: "empty",
    EvolveStream: "in place",
    LayOut: _LAY_OUT,
    RebuildTable: "rebuild",
    Restore: "restore",
    RestoreStream: "restore",
    RestoreTable: "restore",
}
STRATEGIES: Mapping[str, tuple[str, ...]] = {
    RelationKind.TABLE.value: ("restore", "alter", "cast", "empty"),
    RelationKind.VIEW.value: ("define",),
    RelationKind.MATERIALIZED_VIEW.value: ("restore", "rebuild", "in place", "backfill"),
    RelationKind.STREAMING_TABLE.value: ("restore", "in place", "rebuild", "backfill"),
}
"""Kind of a relation that changes -> its strategies, the one that costs least first."""


def explain_relations(before: Program, after: Program, plan: Plan) -> tuple[RelationPlan, ...]:
    """What a plan does to each table, view and streaming table that changes, sorted by name.

    Args:
        before: the program that is deployed.
        after: the program of the plan's target.
        plan: the plan.
    """
    steps: dict[str, list[Step]] = {}
    for step in plan.steps:
        if type(step.action) in _STEPS:
            steps.setdefault(getattr(step.action, "relation", ""), []).append(step)
    return tuple(
        _explain(before, after, plan, change, steps.get(change.name, []))
        for change in plan.diff.changes
        if change.what in ("table", "view") and _is_shown(plan, change)
    )


def _is_shown(plan: Plan, change: Change) -> bool:
    """False for the half of a table that became a view that is told by the other half."""
    return plan.diff.change(change.name) == change


def _explain(
    before: Program, after: Program, plan: Plan, change: Change, steps: Sequence[Step]
) -> RelationPlan:
    program = before if change.how == "removed" else after
    relation = program.relations[change.name]
    kind = relation.kind.value
    is_view = isinstance(relation, View)
    query = tuple(k.value for k in query_kinds(program, change.name)) if is_view else ()
    changes = tuple(k.value for k in _changes(before, after, plan, change))
    taken = _taken(change, kind, steps)
    why_not = {**_WHY_NOT.get(kind, {}), **_why_not_with_windows(before, after, change)}
    strategies = tuple(_strategies(change, kind, taken, steps, why_not))
    if kind == RelationKind.MATERIALIZED_VIEW.value and change.how in ("modified", "affected"):
        refusal = find_refusal(before, after, change.name, _renamed(plan))
        strategies = tuple(_in_place(strategy, refusal) for strategy in strategies)
    if plan.blockers:
        strategies = tuple(replace(strategy, is_taken=False) for strategy in strategies)
        return RelationPlan(change.name, kind, change.how, query, changes, strategies, ())
    return RelationPlan(
        change.name,
        kind,
        change.how,
        query,
        changes,
        strategies,
        promises(kind, taken, is_volatile="nondeterministic" in query),
    )


def _renamed(plan: Plan) -> Mapping[str, str]:
    """Table -> its name after the plan, for those that get another one."""
    actions = (step.action for step in plan.steps)
    return chained((a.before, a.after) for a in actions if isinstance(a, RenameTable))


def _in_place(strategy: Strategy, refusal: Refusal | None) -> Strategy:
    """What is said of going on in place where the view's query does not allow it."""
    if strategy.name != "in place" or strategy.is_taken or refusal is None:
        return strategy
    return replace(strategy, is_possible=False, reason=f"it {refusal.reason}")


def _changes(before: Program, after: Program, plan: Plan, change: Change) -> tuple[ChangeKind, ...]:
    found = change_kinds(before, after, change)
    names = (f"`{change.name}`", f"`{change.name}.")
    if any(name in blocker.message for name in names for blocker in plan.blockers):
        return (*found, ChangeKind.UNSUPPORTED)
    return found


def _taken(change: Change, kind: str, steps: Sequence[Step]) -> str:
    """The strategy that the steps of a relation come to; the last one counts."""
    if change.how == "removed":
        return "detach"
    if kind == RelationKind.VIEW.value:
        return "define"
    names = [_STEPS[type(step.action)] for step in steps]
    wanted = [name for name in names if name != "detach"]
    if wanted:
        return [name for name in wanted if name != _LAY_OUT or set(wanted) == {_LAY_OUT}][-1]
    return "in place" if kind == RelationKind.STREAMING_TABLE.value else "alter"


def _strategies(
    change: Change,
    kind: str,
    taken: str,
    steps: Sequence[Step],
    why_not: Mapping[str, tuple[bool, str]],
) -> Iterator[Strategy]:
    reason = next((s.cause for s in reversed(steps) if _STEPS[type(s.action)] == taken), "")
    if change.how == "removed":
        yield Strategy("detach", True, True, "no statement creates it any more; its rows are kept")
        return
    if kind == RelationKind.VIEW.value:
        yield Strategy("define", True, True, "nothing of it is stored: it is computed where read")
        return
    known = STRATEGIES[kind]
    if taken not in known:
        yield Strategy(taken, True, True, reason or "it is not there yet")
        return
    if change.how == "added" and kind != RelationKind.TABLE.value:
        known = tuple(name for name in known if name in ("restore", "rebuild"))
    for name in known:
        if name == taken:
            yield Strategy(name, True, True, reason or "nothing but its definition changes")
        else:
            is_possible, why = why_not[name]
            yield Strategy(name, is_possible, False, why)


def _why_not_with_windows(
    before: Program, after: Program, change: Change
) -> Mapping[str, tuple[bool, str]]:
    """What else is to be said of the strategies of a streaming table with windows."""
    view = after.views.get(change.name)
    if view is None or not view.is_streaming or not has_windows(before, after, change.name):
        return {}
    why = obstacle(before, after, change.name)
    if why is not None:
        return {"in place": (False, why), "backfill": (False, why)}
    found = {
        "in place": (True, "op.in_place keeps the windows that have been emitted"),
        "backfill": (True, "op.backfill makes the windows from a time on anew"),
    }
    if not start_columns(after, view):
        found["backfill"] = (False, "no column of it is the start of a window")
    return found


_WHY_NOT: Mapping[str, Mapping[str, tuple[bool, str]]] = {
    RelationKind.TABLE.value: {
        "restore": (False, "this revision has not left it with just these rows before"),
        "alter": (False, "its rows have to be looked at, or written anew"),
        "cast": (False, "its rows need no other values"),
        "empty": (True, "its rows can be kept"),
    },
    RelationKind.MATERIALIZED_VIEW.value: {
        "restore": (False, "this query was not computed over these rows before"),
        "rebuild": (True, "op.rebuild computes it anew, from all rows"),
        "in place": (True, "op.in_place keeps what it has, and takes in only rows that come"),
        "backfill": (False, "it always equals its query, over all rows"),
    },
    RelationKind.STREAMING_TABLE.value: {
        "restore": (False, "rows have passed since, or it was never at this revision"),
        "in place": (True, "op.in_place keeps the rows that are there"),
        "rebuild": (True, "op.rebuild makes every row anew"),
        "backfill": (True, "op.backfill makes the rows from a time on anew"),
    },
}
