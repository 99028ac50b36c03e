"""The effects of a plan's steps on streaming tables: rows taken in, in place, backfilled, put back.

Each can be made again. Where an earlier process had begun, the table itself says how far it got:
rows and position are one commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from sqlmig.errors import EngineError, NoSpaceError
from sqlmig.execution.engine import Engine, Warehouse
from sqlmig.execution.observing import observed_state
from sqlmig.execution.parting import find_part
from sqlmig.execution.putting_back import put_back, put_back_if_kept
from sqlmig.execution.streams import advanced, find_advance, take_in, whole, windows_so_far
from sqlmig.execution.values import Mark, Period, Span, Written
from sqlmig.ledger.cut import RelationState
from sqlmig.planning.stream_steps import AdvanceStream, BackfillStream, EvolveStream, RestoreStream
from sqlmig.planning.undo import altered, find_way_back
from sqlmig.program.canonical import materialization_fingerprint
from sqlmig.program.intervals import read_time, time_text
from sqlmig.program.model import Program, View
from sqlmig.program.windows import Windowing, read_windows

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

    def begin(self, program: Program, view: View, folder: str) -> tuple[RelationState, int | None]:
        """Make the table of every row that its streams have, anew if it is there."""
        name = view.name
        inputs = self._inputs(program, name)
        watermark, span = windows_so_far(self._engine, view, inputs)
        empty = RelationState(
            folder,
            view.kind.value,
            -1,
            "",
            materialization_fingerprint(program, name),
            {stream: self._states[stream].content for stream in view.streams},
            passed=whole(self._warehouse, view, self._states),
            watermark=watermark,
        )
        mark = self._mark.leaving(empty)
        # made again, the engine looks what is left to do
        written = self._engine.materialize(program, view, inputs, folder, mark, span)
        state = _at(empty, written, f"{folder}@{written.version}")
        was = self._states.get(name)
        if was is not None and was.folder == folder:
            state = altered(state, was)
        return state, written.written if written.written is not None else written.rows

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
            state = observed_state(self._warehouse, self._states[name])
            return self._advance(program, name, state, self._states)
        except NoSpaceError:
            raise
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
        windowing = read_windows(view)
        if windowing is not None:
            return self._backfill_windows(program, view, action, windowing, now)
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

    def _backfill_windows(
        self,
        program: Program,
        view: View,
        action: BackfillStream,
        windowing: Windowing,
        now: RelationState,
    ) -> tuple[RelationState, int]:
        """Make the windows from a time on anew, up to the last that is over.

        What came and has not passed passes here. Every window that is over then was emitted before
        or begins at `since` or later, or is emitted now: so the earlier of `since` and the end of
        the last window that had been emitted is where this begins. A row is late if it lies before
        that, for nothing there is computed.
        """
        name = action.relation
        was = self._states[name]
        since, over = read_time(action.since), windowing.over(now.watermark)
        if since is None:
            raise EngineError(f"`{action.since}` is no time")
        if over is None:  # there is no window yet that could be made anew
            state, rows = self._advance(program, name, now, self._states)
            return altered(state, was), rows
        begin = min(windowing.begin(since), over)
        advance = find_advance(self._warehouse, view, now, self._states)
        inputs = self._inputs(program, name)
        measured = self._engine.measure(view, inputs, advance.arrivals, windowing.column, begin)
        watermark = windowing.moved(now.watermark, measured.latest)
        state = replace(
            now,
            inputs=advance.inputs,
            passed=advance.passed,
            watermark=watermark,
            late=now.late + measured.late,
        )
        written = self._engine.backfill(
            program,
            view,
            inputs,
            Period(action.column, f"{time_text(begin)}+00:00"),
            now.folder,
            self._mark.leaving(state),
            Span(windowing.column, begin, windowing.over(watermark)),
        )
        after = _at(state, written, f"{now.folder}@{written.version}")
        return altered(after, was), written.written or 0

    def restore(
        self, program: Program, action: RestoreStream
    ) -> tuple[RelationState, int | None, str | None]:
        """Put the table back; and a note where it went on in place instead, or was made anew."""
        name = action.relation
        was = self._states[name]
        wanted = materialization_fingerprint(program, name)
        way = find_way_back(was, None, wanted)
        why = "rows have passed"
        if way is not None:
            state = way.state
            mark = self._mark.leaving(state)
            back = put_back_if_kept(
                self._warehouse, self._engine, state.folder, state.version, mark
            )
            if isinstance(back, Written):
                return replace(state, version=back.version), 0, None
            why = back.message
        if action.is_rebuilt:
            return *self.begin(program, program.views[name], was.folder), f"made anew: {why}"
        evolve = EvolveStream(name, was.folder, is_historical=True)
        return *self.evolve(program, evolve), f"in place: {why}"

    def _evolved(self, program: Program, name: str, is_historical: bool) -> RelationState:
        was = self._states[name]
        now = observed_state(self._warehouse, was)
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
        state = observed_state(self._warehouse, self._states[name])
        states = {**self._states, name: state}
        view, run = program.views[name], self._mark.run
        part = find_part(self._warehouse, view, states, at, action.parted, run)
        if part.back_to is not None:
            mark = replace(self._mark, fingerprint=state.fingerprint, passed=part.passed)
            written = put_back(self._warehouse, self._engine, state.folder, part.back_to, mark)
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
        mark = replace(self._mark, fingerprint=state.fingerprint)
        inputs = {n: s for n, s in states.items() if n in program.stored_reads(name)}
        taken = take_in(self._engine, program, view, inputs, advance, state, mark)
        return taken.state, (taken.written.written or 0) if taken.written else 0

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
