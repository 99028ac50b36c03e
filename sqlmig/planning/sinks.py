"""The steps of sinks: started, continued, detached; and what is wrong with them. Pure."""

from __future__ import annotations

from dataclasses import replace

from sqlmig.ledger.sink_state import SinkState
from sqlmig.planning.collected import in_words
from sqlmig.planning.connectors import next_generation
from sqlmig.planning.draft import Draft
from sqlmig.planning.sink_steps import ContinueSink, DetachSink, StartSink
from sqlmig.planning.steps import Blocker
from sqlmig.program.canonical import sink_fingerprint
from sqlmig.program.model import Sink
from sqlmig.program.sink_options import read_sink_options


def plan_sinks(draft: Draft) -> None:
    """Add the steps of all sinks. One whose definition did not change just goes on.

    What its relation became in between is no matter here: the next tick sends what differs.
    """
    carried: set[str] = set()
    for name, sink in sorted(draft.target.sinks.items()):
        _plan_sink(draft, name, sink, carried)
    for name in sorted(draft.deployment.cut.sinks):
        if name not in draft.target.sinks:
            cause = "goes on under its relation's new name" if name in carried else None
            draft.add(DetachSink(name), cause or draft.cause("sink", name) or "it is removed")


def _plan_sink(draft: Draft, name: str, sink: Sink, carried: set[str]) -> None:
    options = read_sink_options(draft.target, sink)
    for mistake in options.mistakes:
        message = f"sink `{name}`: {mistake.message}"
        draft.blockers.append(Blocker(message, sink.location, mistake.hint))
    mark = sink_fingerprint(sink, options.key)
    states = draft.deployment.cut.sinks
    now = states.get(name)
    if now is not None and now.fingerprint == mark:
        return
    before = next((b for b, a in draft.renames.items() if a == sink.relation), None)
    old = states.get(f"{before}.{sink.name}") if before is not None else None
    if old is not None and before is not None:
        former = sink_fingerprint(replace(sink, relation=before), options.key)
        if old.fingerprint == former:
            carried.add(f"{before}.{sink.name}")
            _continue(draft, name, replace(old, fingerprint=mark), "its relation was renamed")
            return
    earlier = draft.deployment.sink_history.get((draft.request.revision or "base", name))
    gone = draft.deployment.collected.sinks
    if earlier is not None and earlier.offsets in gone:
        why = in_words("what it had sent", gone[earlier.offsets])
        _start(draft, name, mark, why)
        return
    if earlier is not None and earlier.fingerprint == mark:
        _continue(draft, name, earlier, "it goes on from what it sent last")
        return
    why = "it was never started" if now is None else "its relation's key changed"
    _start(draft, name, mark, draft.cause("sink", name) or why)


def _start(draft: Draft, name: str, mark: str, cause: str) -> None:
    deployment = draft.deployment
    generation = next_generation(
        name,
        deployment.cut.sinks,
        deployment.cut.detached_sinks,
        deployment.sink_history,
    )
    draft.add(StartSink(name, name, generation, mark), cause)


def _continue(draft: Draft, name: str, state: SinkState, cause: str) -> None:
    draft.add(ContinueSink(name, state.folder, state.generation, state.fingerprint), cause)
