"""The effects of a plan's steps on materialized views that go on in place.

Each can be made again. Going in place commits nothing: the view stays as it is, and the ledger says
from where on its rows pass once. What it takes in from then on is one commit with its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlmig.execution.engine import Engine, Warehouse
from sqlmig.execution.observing import observed_state
from sqlmig.execution.outcome import fresh
from sqlmig.execution.putting_back import put_back_if_kept
from sqlmig.execution.staleness import is_stale
from sqlmig.execution.streams import advanced, find_advance, position, take_in
from sqlmig.execution.values import Mark, Written
from sqlmig.ledger.cut import RelationState
from sqlmig.planning.stream_steps import AdvanceStream, EvolveStream, RestoreStream
from sqlmig.planning.undo import altered, find_way_back
from sqlmig.program.canonical import materialization_fingerprint
from sqlmig.program.model import Program

States = Mapping[str, RelationState]


class AccumulationEffects:
    """Makes the effects of steps on materialized views that go on in place, or shall.

    Args:
        mark: of the step, without what it says of the view.
        states: the working cut's relations.
        earlier: the view as it was when the target was deployed last.
    """

    def __init__(
        self,
        engine: Engine,
        warehouse: Warehouse,
        mark: Mark,
        states: States,
        earlier: RelationState | None,
    ) -> None:
        self._engine = engine
        self._warehouse = warehouse
        self._mark = mark
        self._states = states
        self._earlier = earlier

    def advance(self, program: Program, action: AdvanceStream) -> tuple[RelationState, int]:
        """Bring the view up to date by the query of `program`; its state, and rows written.

        Raises:
            EngineError: the query fails.
        """
        name = action.relation
        state = observed_state(self._warehouse, self._states[name])
        if state.takes_in:
            return self._take_in(program, name, state)
        if not is_stale(program.views[name], state, self._contents(program, name)):
            return state, 0
        return self._compute(program, name)

    def evolve(self, program: Program, action: EvolveStream) -> tuple[RelationState, int]:
        """Let the view go on with the query of `program`, and take in what came meanwhile."""
        name = action.relation
        was = self._states[name]
        evolved = replace(
            was,
            fingerprint=materialization_fingerprint(program, name),
            passed=was.passed or position(self._warehouse, was.inputs.values()),
            is_historical=True,
        )
        now = observed_state(self._warehouse, evolved)
        if now.version == was.version:
            now = altered(now, was)
        return self._take_in(program, name, now)

    def restore(
        self, program: Program, action: RestoreStream
    ) -> tuple[RelationState, int, str | None]:
        """Put the view back to how this query left it, rows and position; and a note.

        What came since passes in the next tick. Where the view went on in place meanwhile, what it
        took in stays: it goes on in place. Where its former rows are gone, it is computed.
        """
        name = action.relation
        was = self._states[name]
        fingerprint = materialization_fingerprint(program, name)
        earlier, note = self._earlier, "its former rows are not known any more"
        if was.takes_in:
            way = find_way_back(was, None, fingerprint)
            earlier, note = way.state if way else None, "rows have passed"
        elif earlier is not None and earlier.content != action.content:
            earlier = None
        if earlier is not None:
            folder, version = earlier.folder, earlier.version
            mark = self._mark.leaving(earlier)
            back = put_back_if_kept(self._warehouse, self._engine, folder, version, mark)
            if isinstance(back, Written):
                return replace(earlier, version=back.version), 0, None
            note = back.message
        if was.takes_in:
            evolve = EvolveStream(name, was.folder, is_historical=True)
            return *self.evolve(program, evolve), f"in place: {note}"
        return *self._compute(program, name), f"computed: {note}"

    def _compute(self, program: Program, name: str) -> tuple[RelationState, int]:
        """Compute the view from all that its input has."""
        view, inputs = program.views[name], self._contents(program, name)
        folder = self._states[name].folder
        fingerprint = materialization_fingerprint(program, name)
        mark = replace(self._mark, fingerprint=fingerprint, inputs=inputs)
        states = self._inputs(program, name)
        written = self._engine.materialize(program, view, states, folder, mark)
        state = fresh(folder, view.kind, written, fingerprint, inputs, view.layout)
        return state, written.rows or 0

    def _take_in(
        self, program: Program, name: str, state: RelationState
    ) -> tuple[RelationState, int]:
        view = program.views[name]
        advance = find_advance(self._warehouse, view, state, self._states)
        if not advance.has_rows:
            if advance.inputs == state.inputs and advance.passed == state.passed:
                return state, 0
            return advanced(state, advance, None), 0
        mark = replace(self._mark, fingerprint=state.fingerprint)
        inputs = self._inputs(program, name)
        taken = take_in(self._engine, program, view, inputs, advance, state, mark)
        return taken.state, (taken.written.written or 0) if taken.written else 0

    def _contents(self, program: Program, name: str) -> dict[str, str]:
        return {n: self._states[n].content for n in sorted(program.followed(name))}

    def _inputs(self, program: Program, name: str) -> States:
        return {n: self._states[n] for n in sorted(program.stored_reads(name))}
