"""The delivery: each sink is sent what its relation has become since it was sent last.

It decides what is due and keeps the order that makes a repetition send the same rows; how rows are
compared and written is the engine's business. It knows no Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass

from sqlmig.errors import SqlmigError
from sqlmig.execution import events
from sqlmig.execution.engine import Engine
from sqlmig.execution.journal import Journal
from sqlmig.execution.values import Mark
from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.records import Kind, Status
from sqlmig.ledger.sink_state import Batch, SinkState, unfinished_batch
from sqlmig.program.model import Program, Sink

_FIRST_STEP = 20_000
"""Where the numbers of the marks of sinks begin, behind those of sources and views."""


@dataclass(frozen=True)
class Delivery:
    """What a delivery did.

    Args:
        cut: the cut with the sinks' new states.
        sent: sink -> change rows sent.
        failures: sink -> what went wrong.
        hints: of these -> what to do about it, where that is known.
    """

    cut: Cut
    sent: Mapping[str, int]
    failures: Mapping[str, str]
    hints: Mapping[str, str]


def deliver(
    engine: Engine,
    journal: Journal,
    program: Program,
    cut: Cut,
    run: str,
    check: Callable[[Deployment], None],
    observer: events.Observer = events.ignore,
    skip: Set[str] = frozenset(),
) -> Delivery:
    """Send every sink what it is due.

    A batch is in the ledger before its first row goes out. One that a process began and did not end
    is sent again first, the same rows, and then what came since.

    Args:
        cut: the relations as they are to be sent. run: names this tick.
        check: raises when this process may not act any more; asked before each batch.
        skip: sinks that are left alone this time.

    Returns:
        The new cut, to be recorded; a sink that failed is in `failures`, the others went on.

    Raises:
        SqlmigError: this process was fenced off, or the ledger can't be written.
    """
    return _Round(engine, journal, program, run, check, observer).deliver(cut, skip)


def is_due(state: SinkState, relation: RelationState | None, sending: Mapping[str, Batch]) -> bool:
    """Whether the sink has to send: its relation has other contents, or a batch did not end."""
    if unfinished_batch(state, sending) is not None or state.owed or state.sends_all:
        return True
    return relation is not None and (state.sent is None or state.sent.content != relation.content)


def has_due(program: Program, deployment: Deployment) -> bool:
    """Whether a tick would send anything, as far as the ledger knows."""
    cut = deployment.cut
    return any(
        is_due(cut.sinks[name], cut.relations.get(sink.relation), deployment.sending)
        for name, sink in program.sinks.items()
        if name in cut.sinks
    )


class _Round:
    """One delivery under way."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        program: Program,
        run: str,
        check: Callable[[Deployment], None],
        observer: events.Observer,
    ) -> None:
        self._engine = engine
        self._journal = journal
        self._program = program
        self._run = run
        self._check = check
        self._observer = observer
        self._sent: dict[str, int] = {}
        self._failures: dict[str, str] = {}
        self._hints: dict[str, str] = {}
        self._refusal: SqlmigError | None = None

    def deliver(self, cut: Cut, skip: Set[str]) -> Delivery:
        """Send all that is due."""
        for number, (name, sink) in enumerate(sorted(self._program.sinks.items())):
            if name in skip:
                continue
            try:
                cut = self._deliver(cut, name, sink, _FIRST_STEP + number)
            except _Failed as failure:
                cut = failure.cut
                self._fail(name, failure.message, failure.hint)
        return Delivery(cut, self._sent, self._failures, self._hints)

    def _deliver(self, cut: Cut, name: str, sink: Sink, step: int) -> Cut:
        state = cut.sinks.get(name)
        if state is None:
            raise _Failed(cut, "it has no state in the ledger", "`sqlmig upgrade` starts it")
        begun = unfinished_batch(state, self._journal.deployment.sending)
        if begun is not None:
            cut = self._send(cut, sink, begun, step)
        while cut.sinks[name].owed:
            owed = cut.sinks[name].owed[0]
            batch = Batch(self._number(cut, sink), owed.before, owed.after, None, owed.is_whole)
            cut = self._send(cut, sink, batch, step)
        state = cut.sinks[name]
        relation = cut.relations.get(sink.relation)
        if relation is None or not is_due(state, relation, {}):
            return cut
        number = self._number(cut, sink)
        batch = Batch(number, state.sent, relation.contents, None, state.sends_all)
        return self._send(cut, sink, batch, step)

    def _number(self, cut: Cut, sink: Sink) -> int:
        with self._failing(cut):
            return 1 + self._last_number(cut, sink, cut.sinks[sink.connector])

    def _last_number(self, cut: Cut, sink: Sink, state: SinkState) -> int:
        """The last batch number that any sink used, or that lies at this one's place.

        Not this sink's alone: another one may write to that place, before it or in between.
        """
        states = (*cut.sinks.values(), *cut.detached_sinks.values())
        begun = self._journal.deployment.sending.values()
        found = self._engine.last_batch(self._program, sink) if state.batch == 0 else 0
        return max(found, *(s.batch for s in states), *(b.number for b in begun))

    def _send(self, cut: Cut, sink: Sink, batch: Batch, step: int) -> Cut:
        """Send a batch, which is recorded before its first row goes out if it isn't yet."""
        name, state = sink.connector, cut.sinks[sink.connector]
        deployment = self._journal.deployment
        mark = Mark(deployment.pipeline or "", self._run, step, deployment.revision)
        began = time.monotonic()
        self._journal.still_owner(self._check)

        def begin() -> None:
            self._begin(state, batch)

        with self._failing(cut):
            rows = self._engine.send(self._program, sink, state, batch, mark, begin)
        if not rows and batch.at is None:
            return cut.with_sink(name, state.settled(batch))
        begun = self._journal.deployment.sending[state.offsets]
        self._sent[name] = self._sent.get(name, 0) + rows
        self._observer(events.Sending(name, rows, time.monotonic() - began))
        return cut.with_sink(name, state.after(begun, rows))

    def _begin(self, state: SinkState, batch: Batch) -> None:
        """Record that the batch's rows go out from now on, unless that is recorded."""
        try:
            if batch.at is not None:
                self._journal.still_owner(self._check)
                return
            self._journal.append(
                Kind.SEND,
                Status.STARTED,
                check=self._check,
                revision=self._journal.deployment.revision,
                details={"batches": {state.offsets: batch.to_dict()}},
            )
        except SqlmigError as error:
            self._refusal = error
            raise

    @contextmanager
    def _failing(self, cut: Cut) -> Iterator[None]:
        """Let what the engine raises be the failure of one sink; a refusal of the ledger ends all.

        The ledger refuses when this process was fenced off.
        """
        try:
            yield
        except SqlmigError as error:
            if error is self._refusal:
                raise
            raise _Failed(cut, error.message, error.hint) from error

    def _fail(self, name: str, message: str, hint: str | None) -> None:
        self._failures[name] = message
        if hint is not None:
            self._hints[name] = hint
        self._observer(events.TickFailure(name, message, hint))


class _Failed(Exception):
    """One sink failed; the others go on from `cut`."""

    def __init__(self, cut: Cut, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.cut = cut
        self.message = message
        self.hint = hint
