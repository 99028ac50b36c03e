"""Cutovers of sinks: which relations are made anew, what is sent, what hooks ask for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from sqlmig.ledger.cut import RelationState
from sqlmig.ledger.deployment import is_current
from sqlmig.ledger.sink_state import SinkState
from sqlmig.planning.directives import Cutover
from sqlmig.planning.draft import Draft
from sqlmig.planning.stages import Hop
from sqlmig.planning.steps import (
    Action,
    AlterTable,
    Attach,
    Blocker,
    Bootstrap,
    CreateTable,
    EmptyTable,
    RenameTable,
    Restore,
    RestoreTable,
)
from sqlmig.program.model import Sink
from sqlmig.program.sink_options import CutoverMode

Given = Mapping[str, tuple[CutoverMode, str]]
"""Sink -> the mode that a hook asked for, and which hook that was."""


def read_cutovers(hops: Sequence[Hop]) -> tuple[Given, tuple[Blocker, ...]]:
    """What the hooks on the way ask for; of two for one sink, the later counts."""
    given: dict[str, tuple[CutoverMode, str]] = {}
    blockers: list[Blocker] = []
    for hop in hops:
        where = f"{hop.hook}() of {hop.revision.revision}"
        for directive in hop.directives:
            if not isinstance(directive, Cutover):
                continue
            if directive.sink not in hop.after.sinks:
                close = get_close_matches(directive.sink, hop.after.sinks, n=1)
                known = ", ".join(sorted(hop.after.sinks)) or "none"
                blockers.append(
                    Blocker(
                        f"{where}: op.cutover: the program that is gone to has no sink "
                        f"`{directive.sink}`",
                        hint=f"did you mean `{close[0]}`?" if close else f"its sinks: {known}",
                    )
                )
                continue
            given[directive.sink] = (CutoverMode(directive.mode), where)
    return given, tuple(blockers)


def cut_over_relations(draft: Draft) -> Mapping[str, str]:
    """Stored relations of the target that the plan makes anew -> how, in words.

    What a hook's statement writes is a change of the rows as any other, and no cutover.
    """
    found: dict[str, str] = {}
    for step in draft.steps:
        if isinstance(step.action, RenameTable) and step.action.before in found:
            found[step.action.after] = found.pop(step.action.before)
        made = _made_anew(step.action)
        if made is not None:
            how = (
                ", ".join(step.action.operations)
                if isinstance(step.action, AlterTable)
                else step.cause
            )
            found[made[0]] = f"{made[1]}: {how}" if how else made[1]
    for name, state in draft.states.items():
        was = draft.observed.get(name)
        if name not in found and was is not None and was.folder != state.folder:
            found[name] = "is another table"
    return found


def _made_anew(action: Action) -> tuple[str, str] | None:
    match action:
        case Bootstrap(relation):
            return relation, "is computed"
        case Restore(relation) | RestoreTable(relation) | Attach(relation):
            return relation, "is put back"
        case AlterTable(relation):
            return relation, "is altered"
        case EmptyTable(relation) | CreateTable(relation):
            return relation, "begins empty"
        case _:
            return None


def check_continues(draft: Draft, sink: Sink, before: str) -> None:
    """Let it stand in the plan's way that a sink would pass over what was never computed.

    Where a runner ticks, the last tick before the upgrade computes it.
    """
    if draft.deployment.runner is not None or is_current(draft.observed, before):
        return
    draft.blockers.append(
        Blocker(
            f"sink `{sink.connector}` can't continue: `{before}` was not computed from the newest "
            "rows, whose changes it would never send",
            sink.location,
            "`sqlmig run --once` computes it and sends them; then upgrade",
        )
    )


def sends(
    mode: CutoverMode,
    state: SinkState,
    planned: RelationState | None,
    before: RelationState | None,
) -> tuple[int | None, str]:
    """How many rows a cutover sends, None where that is not known yet, and the same in words.

    Args:
        state: the sink. planned: its relation after the plan. before: what it read, as it is now.
    """
    match mode:
        case CutoverMode.DIFFERENCE:
            is_equal = state.sent and planned and state.sent.content == planned.content
            if is_equal and not state.owed and not state.sends_all:
                return 0, "its readers have these rows"
            return None, "sends the rows that differ"
        case CutoverMode.SNAPSHOT:
            rows = planned.rows if planned else None
            number = "all rows" if rows is None else f"all {rows:,} rows"
            return rows, f"sends {number}, and what is gone"
        case CutoverMode.CONTINUE:
            is_even = state.sent and before and state.sent.content == before.content
            if is_even and not state.owed and not state.sends_all:
                return 0, "sends only what changes from here on"
            return None, "sends what was due before, and then only what changes from here on"
