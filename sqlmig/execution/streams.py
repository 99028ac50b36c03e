"""How far a streaming table is behind its streams, and its state after it took in what came.

It knows no Spark: what came is told by the streams' logs, so where nothing did, none is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlmig.execution.engine import Arrived, Warehouse, Written
from sqlmig.ledger.records import RelationState
from sqlmig.program.model import View


@dataclass(frozen=True)
class Advance:
    """What a streaming table has to take in.

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
    """What the table in `state` has to take in of the streams in `states`.

    Raises:
        EngineError: a stream's log doesn't tell any more what came.
    """
    arrivals: dict[str, Arrived] = {}
    passed = dict(state.passed)
    for name in view.streams:
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
    return Advance(arrivals, {name: states[name].content for name in view.streams}, passed)


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


def advanced(state: RelationState, advance: Advance, written: Written | None) -> RelationState:
    """The table after it took in what came.

    Args:
        written: None where nothing came, and nothing was committed.
    """
    if written is None:
        return replace(state, inputs=advance.inputs, passed=advance.passed)
    moved = state.with_rows(written.version, written.rows, written.bytes)
    if written.written == 0:  # no row gave one: the contents are the same
        moved = replace(moved, content=state.content)
    return replace(moved, inputs=advance.inputs, passed=advance.passed)
