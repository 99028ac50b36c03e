"""How far a relation that takes rows in is behind its streams, and its state after it did.

Its streams are what it follows: for a streaming table those that its query calls so, for a
materialized view that goes on in place what it reads.
It knows no Spark: what came is told by the streams' logs, so where nothing did, none is started.
One with windows emits those that are over by then (rule `whole-windows` in `program.windows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlmig.execution.engine import Engine, Warehouse
from sqlmig.execution.values import Arrived, Mark, Span, Written
from sqlmig.ledger.cut import RelationState
from sqlmig.program.model import Program, View
from sqlmig.program.windows import read_windows


@dataclass(frozen=True)
class Advance:
    """What a relation has to take in.

    Args:
        arrivals: stream -> its rows that have not passed.
        inputs: stream -> content id whose rows have all passed then.
        passed: the table's position then.
    """

    arrivals: Mapping[str, Arrived]
    inputs: Mapping[str, str]
    passed: Mapping[str, str]

    @property
    def has_rows(self) -> bool:
        """Some stream brings rows, so that Spark is needed."""
        return any(not arrivals.is_empty for arrivals in self.arrivals.values())


def find_advance(
    warehouse: Warehouse, view: View, state: RelationState, states: Mapping[str, RelationState]
) -> Advance:
    """What the relation in `state` has to take in of its streams in `states`.

    Raises:
        EngineError: a stream's log doesn't tell any more what came.
    """
    arrivals: dict[str, Arrived] = {}
    passed = dict(state.passed)
    streams = view.streams or tuple(sorted(view.reads))
    for name in streams:
        stream = states[name]
        before = state.passed.get(stream.folder)
        if before is not None and state.inputs.get(name) == stream.content:
            arrivals[name] = Arrived((), before)
            continue
        came = warehouse.arrivals(stream.folder, stream.version, before)
        if came.versions is None and stream.rows == 0:
            came = replace(came, versions=())
        arrivals[name] = came
        passed[stream.folder] = came.passed
    return Advance(arrivals, {name: states[name].content for name in streams}, passed)


def whole(
    warehouse: Warehouse, view: View, states: Mapping[str, RelationState]
) -> Mapping[str, str]:
    """The position of a table that was made of every row of its streams."""
    return {
        states[name].folder: warehouse.arrivals(
            states[name].folder, states[name].version, None
        ).passed
        for name in view.streams
    }


def position(warehouse: Warehouse, contents: Iterable[str]) -> Mapping[str, str]:
    """The position of a view that was computed from these contents.

    A content id names the commit that first held the contents, so it tells which rows were in them,
    however often the table has been put back to them since.

    Args:
        contents: content ids of what it reads.
    """
    found = {}
    for content in contents:
        folder, _, version = content.rpartition("@")
        found[folder] = warehouse.arrivals(folder, int(version), None).passed
    return found


def advanced(state: RelationState, advance: Advance, written: Written | None) -> RelationState:
    """The relation after it took in what came.

    Args:
        written: None where nothing came, and nothing was committed.
    """
    if written is None:
        return replace(state, inputs=advance.inputs, passed=advance.passed)
    moved = state.with_rows(written.version, written.rows, written.bytes)
    if written.written == 0:  # no row gave one: the contents are the same
        moved = replace(moved, content=state.content)
    return replace(moved, inputs=advance.inputs, passed=advance.passed)


@dataclass(frozen=True)
class Taken:
    """A relation after it took in what came.

    Args:
        written: None where nothing was committed: no window was over.
        late: rows that were in no window any more.
    """

    state: RelationState
    written: Written | None
    late: int = 0


def take_in(
    engine: Engine,
    program: Program,
    view: View,
    inputs: Mapping[str, RelationState],
    advance: Advance,
    state: RelationState,
    mark: Mark,
) -> Taken:
    """Let a relation take in rows that came, in one commit, or none where that adds nothing.

    Args:
        inputs: the states of all that its query reads.
        state: of the relation, before it.
        mark: of the commit, without the position.

    Raises:
        EngineError: the query fails; nothing was written.
    """
    windowing = read_windows(view) if view.is_streaming else None
    span = None
    late = 0
    if windowing is not None:
        over = windowing.over(state.watermark)
        measured = engine.measure(view, inputs, advance.arrivals, windowing.column, over)
        late = measured.late
        watermark = windowing.moved(state.watermark, measured.latest)
        state = replace(state, watermark=watermark, late=state.late + late)
        span = Span(windowing.column, over, windowing.over(watermark))
        if span.is_empty:
            return Taken(advanced(state, advance, None), None, late)
    mark = replace(
        mark,
        inputs=advance.inputs,
        passed=advance.passed,
        watermark=state.watermark,
        late=state.late,
    )
    arrivals, folder = advance.arrivals, state.folder
    if view.is_streaming:
        written = engine.advance(program, view, inputs, arrivals, folder, mark, span)
    else:
        written = engine.accumulate(program, view, inputs, arrivals, state, mark)
    return Taken(advanced(state, advance, written), written, late)


def windows_so_far(
    engine: Engine, view: View, inputs: Mapping[str, RelationState]
) -> tuple[int | None, Span | None]:
    """The watermark over all rows of the stream, and the windows that are over by then.

    Returns:
        None twice for a table without windows.
    """
    windowing = read_windows(view)
    if windowing is None:
        return None, None
    everything = {name: Arrived(None, "") for name in view.streams}
    measured = engine.measure(view, inputs, everything, windowing.column, None)
    watermark = windowing.moved(None, measured.latest)
    return watermark, Span(windowing.column, None, windowing.over(watermark))
