"""The steps of sinks: started, continued, cut over, detached; and what is wrong with them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlmig.ledger.sink_state import SinkState
from sqlmig.planning.collected import in_words
from sqlmig.planning.connectors import next_generation
from sqlmig.planning.cutover import check_continues, cut_over_relations, read_cutovers, sends
from sqlmig.planning.draft import Draft
from sqlmig.planning.sink_steps import ContinueSink, CutOverSink, DetachSink, StartSink
from sqlmig.planning.steps import Blocker, Volume
from sqlmig.program.canonical import sink_fingerprint
from sqlmig.program.model import Sink
from sqlmig.program.sink_options import CutoverMode, SinkOptions, read_sink_options


def plan_sinks(draft: Draft) -> None:
    """Add the steps of all sinks. One whose definition did not change goes on.

    So does one whose relation was renamed, or that reads another relation from now on under the
    same name. Where its relation is another one, or made anew, it is cut over.
    """
    _SinkPlanner(draft).plan()


@dataclass(frozen=True)
class _Wanted:
    """A sink of the target."""

    name: str
    sink: Sink
    options: SinkOptions
    fingerprint: str

    def under(self, relation: str) -> str:
        """Its fingerprint if it read another relation."""
        return sink_fingerprint(replace(self.sink, relation=relation), self.options.key)


class _SinkPlanner:
    """The planning of the sinks of one draft, behind the steps of tables and views."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._rebuilt = cut_over_relations(draft)
        self._given, blockers = read_cutovers(draft.request.hops)
        draft.blockers.extend(blockers)
        self._used: set[str] = set()
        self._carried: dict[str, str] = {}
        """Deployed sink -> the sink that goes on as it."""

    def plan(self) -> None:
        """Add the steps."""
        draft = self._draft
        for name, sink in sorted(draft.target.sinks.items()):
            self._plan_sink(name, sink)
        for name in sorted(draft.deployment.cut.sinks):
            if name not in draft.target.sinks:
                goes_on = f"goes on as `{self._carried[name]}`" if name in self._carried else ""
                draft.add(DetachSink(name), goes_on or draft.cause("sink", name) or "it is removed")
        for name, (mode, where) in sorted(self._given.items()):
            if name not in self._used:
                draft.warnings.append(
                    f"{where}: op.cutover of `{name}` to `{mode.value}` has no effect: "
                    "this plan does not cut that sink over"
                )

    def _plan_sink(self, name: str, sink: Sink) -> None:
        draft = self._draft
        options = read_sink_options(draft.target, sink)
        for mistake in options.mistakes:
            message = f"sink `{name}`: {mistake.message}"
            draft.blockers.append(Blocker(message, sink.location, mistake.hint))
        wanted = _Wanted(name, sink, options, sink_fingerprint(sink, options.key))
        states = draft.deployment.cut.sinks
        origin = self._origin(wanted)
        if origin is not None:
            if origin != name:
                self._carried[origin] = name
            self._go_on(wanted, origin, states[origin])
            return
        earlier = draft.deployment.sink_history.get((draft.request.revision or "base", name))
        gone = draft.deployment.collected.sinks
        if earlier is not None and earlier.offsets in gone:
            self._start(wanted, in_words("what it had sent", gone[earlier.offsets]))
            return
        if earlier is not None and earlier.fingerprint == wanted.fingerprint:
            self._continue(wanted, earlier, "it goes on from what it sent last")
            return
        why = "it was never started" if name not in states else "its relation's key changed"
        self._start(wanted, draft.cause("sink", name) or why)

    def _origin(self, wanted: _Wanted) -> str | None:
        """The deployed sink that goes on as this one, if one does.

        That of its name; else that of its relation's former name; else the only one that was called
        so on another relation, which is in the target no more, and is defined alike.
        """
        draft, name = self._draft, wanted.name
        states = draft.deployment.cut.sinks
        if name in states and states[name].fingerprint == wanted.fingerprint:
            return name
        relation = wanted.sink.relation
        for before in (b for b, after in draft.renames.items() if after == relation):
            former = f"{before}.{wanted.sink.name}"
            if former in states and states[former].fingerprint == wanted.under(before):
                return former
        if name in states:
            return None
        found = [
            former
            for former, state in sorted(states.items())
            if former not in draft.target.sinks
            and former not in self._carried
            and former.partition(".")[2] == wanted.sink.name
            and state.fingerprint == wanted.under(former.partition(".")[0])
        ]
        return found[0] if len(found) == 1 else None

    def _go_on(self, wanted: _Wanted, origin: str, state: SinkState) -> None:
        draft = self._draft
        before, after = origin.partition(".")[0], wanted.sink.relation
        is_renamed = draft.renames.get(before) == after
        is_moved = before != after and not is_renamed
        if not is_moved and after not in self._rebuilt:
            if origin != wanted.name:
                self._continue(wanted, state, "its relation was renamed")
            elif state.mode != wanted.options.cutover.value:
                self._continue(wanted, state, draft.cause("sink", origin))
            return
        mode = wanted.options.cutover
        if wanted.name in self._given:
            mode = self._given[wanted.name][0]
            self._used.add(wanted.name)
        if mode is CutoverMode.CONTINUE:
            check_continues(draft, wanted.sink, before)
        moved = f"moved from `{before}` to `{after}`"
        cause = moved if is_moved else f"`{after}` {self._rebuilt[after]}"
        planned = draft.states.get(after)
        rows, words = sends(mode, state, planned, draft.observed.get(before))
        draft.add(
            CutOverSink(
                wanted.name,
                state.folder,
                state.generation,
                wanted.fingerprint,
                wanted.options.cutover.value,
                before,
                mode.value,
            ),
            f"{cause}; {words}",
            writes=Volume(wanted.name, rows, None),
        )

    def _start(self, wanted: _Wanted, cause: str) -> None:
        deployment, name = self._draft.deployment, wanted.name
        generation = next_generation(
            name,
            deployment.cut.sinks,
            deployment.cut.detached_sinks,
            deployment.sink_history,
        )
        mode = wanted.options.cutover.value
        self._draft.add(StartSink(name, name, generation, wanted.fingerprint, mode), cause)

    def _continue(self, wanted: _Wanted, state: SinkState, cause: str) -> None:
        mode = wanted.options.cutover.value
        mark = wanted.fingerprint
        self._draft.add(
            ContinueSink(wanted.name, state.folder, state.generation, mark, mode), cause
        )
