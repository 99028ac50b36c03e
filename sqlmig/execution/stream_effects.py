"""The effects of a plan's steps on streaming tables: rows taken in, in place, backfilled, put back.

Each can be made again. Where an earlier process had begun, the table itself says how far it got:
rows and position are one commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from sqlmig.errors import EngineError
from sqlmig.execution.engine import Engine, Mark, Period, Warehouse, Written
from sqlmig.execution.parting import find_part
from sqlmig.execution.streams import advanced, find_advance, whole
from sqlmig.ledger.records import RelationState
from sqlmig.planning.request import observe
from sqlmig.planning.stream_steps import (
    AdvanceStream,
    BackfillStream,
    EvolveStream,
    RestoreStream,
)
from sqlmig.planning.undo import altered, find_way_back
from sqlmig.program.canonical import materialization_fingerprint
from sqlmig.program.model import Program

_HINT = (
    "these rows came under the query deployed so far; if it can't take them, let `sqlmig run "
    "--once` fail on them, and then they pass under the new one"
)

States = Mapping[str, RelationState]


class StreamEffects:
    """Makes the effects of steps on streaming tables.

    Args:
        mark: of the step, without what it says of the table.
        states: the working cut's relations.
    """

    def __init__(self, engine: Engine, warehouse: Warehouse, mark: Mark, states: States) -> None:
        self._engine = engine
        self._warehouse = warehouse
        self._mark = mark
        self._states = states

    def advance(self, program: Program, action: AdvanceStream) -> tuple[RelationState, int]:
        """Let the table take in what came, by the query of `program`; its state and rows written.

        Where nothing came, Spark is not needed. Where the action says until when, only what came
        before is taken in; what has passed since is taken out first, and comes again.

        Raises:
            EngineError: the query fails on them; the hint says how to let the new one have them.
        """
        name = action.relation
        try:
            if action.until:
                return self._advance_until(program, action)
            return self._advance(program, name, self._now(name), self._states)
        except EngineError as error:
            hint = error.hint if action.until else _HINT
            raise EngineError(error.message, location=error.location, hint=hint) from error

    def evolve(self, program: Program, action: EvolveStream) -> tuple[RelationState, int]:
        """Let the table go on with the query of `program`, and take in what came meanwhile."""
        name = action.relation
        state = self._evolved(program, name, action.is_historical)
        return self._advance(program, name, state, self._states)

    def backfill(self, program: Program, action: BackfillStream) -> tuple[RelationState, int]:
        """Make the rows of a period anew, by the query of `program`."""
        name = action.relation
        view = program.views[name]
        was = self._states[name]
        now = self._evolved(program, name, is_historical=True)
        passed = {**now.passed, **whole(self._warehouse, view, self._states)}
        inputs = {stream: self._states[stream].content for stream in view.streams}
        written = self._engine.backfill(
            program,
            view,
            self._inputs(program, name),
            Period(action.column, action.since),
            now.folder,
            replace(self._mark, fingerprint=now.fingerprint, inputs=inputs, passed=passed),
        )
        state = _at(now, written, f"{now.folder}@{written.version}")
        state = replace(state, inputs=inputs, passed=passed)
        return altered(state, was), written.written or 0

    def restore(
        self, program: Program, action: RestoreStream
    ) -> tuple[RelationState, int, str | None]:
        """Put the table back, or let it go on in place where rows have passed; and a note."""
        name = action.relation
        was = self._states[name]
        wanted = materialization_fingerprint(program, name)
        way = find_way_back(was, None, wanted)
        note = "in place: rows have passed"
        if way is not None:
            state = way.state
            mark = replace(self._mark, fingerprint=wanted, inputs=state.inputs, passed=state.passed)
            try:
                written = self._warehouse.restore(state.folder, state.version, mark)
                if written is None:
                    written = self._engine.restore(state.folder, state.version, mark)
                return replace(state, version=written.version), 0, None
            except EngineError as error:  # its old files were vacuumed
                note = f"in place: {error.message}"
        evolve = EvolveStream(name, was.folder, is_historical=True)
        return *self.evolve(program, evolve), note

    def _evolved(self, program: Program, name: str, is_historical: bool) -> RelationState:
        was, now = self._states[name], self._now(name)
        view = program.views[name]
        fingerprint = materialization_fingerprint(program, name)
        written = self._engine.evolve(
            program, view, was.folder, replace(self._mark, fingerprint=fingerprint)
        )
        same = written.version == was.version
        state = _at(now, written, was.content if same else f"{was.folder}@{written.version}")
        state = replace(state, fingerprint=fingerprint, is_historical=is_historical)
        return altered(state, was) if now.passed == was.passed else state

    def _advance_until(self, program: Program, action: AdvanceStream) -> tuple[RelationState, int]:
        name, at = action.relation, datetime.fromisoformat(action.until)
        state = self._now(name)
        states = {**self._states, name: state}
        view, run = program.views[name], self._mark.run
        part = find_part(self._warehouse, view, states, at, action.parted, run)
        if part.back_to is not None:
            mark = replace(self._mark, fingerprint=state.fingerprint, passed=part.passed)
            written = self._warehouse.restore(state.folder, part.back_to, mark)
            if written is None:
                written = self._engine.restore(state.folder, part.back_to, mark)
            state = state.with_rows(written.version, written.rows, written.bytes)
        if part.passed != state.passed:
            state = replace(state, inputs={}, passed=part.passed)
        return self._advance(program, name, state, {**self._states, **part.streams})

    def _advance(
        self, program: Program, name: str, state: RelationState, states: States
    ) -> tuple[RelationState, int]:
        view = program.views[name]
        advance = find_advance(self._warehouse, view, state, states)
        if not advance.has_rows:
            return advanced(state, advance, None), 0
        mark = replace(
            self._mark,
            fingerprint=state.fingerprint,
            inputs=advance.inputs,
            passed=advance.passed,
        )
        inputs = {n: s for n, s in states.items() if n in program.stored_reads(name)}
        written = self._engine.advance(program, view, inputs, advance.arrivals, state.folder, mark)
        return advanced(state, advance, written), written.written or 0

    def _now(self, name: str) -> RelationState:
        """The table's state with what an earlier process did in this step."""
        state = self._states[name]
        now = self._warehouse.observe({name: state}).get(state.folder)
        if now is None:
            raise EngineError(f"the Delta table in folder `{state.folder}` is gone")
        return observe(state, now)

    def _inputs(self, program: Program, name: str) -> States:
        wanted = program.stored_reads(name)
        return {n: s for n, s in self._states.items() if n in wanted}


def _at(state: RelationState, written: Written, content: str) -> RelationState:
    """The state at the version that was written; its way back is for the caller to tell."""
    return replace(
        state,
        version=written.version,
        content=content,
        rows=written.rows,
        bytes=written.bytes,
        altered_from=None,
        is_emptied=False,
        taken_back=None,
    )
