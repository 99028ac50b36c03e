"""The tick: sources in, stale views computed again, the cut recorded. It knows no Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from sqlmig.errors import DeployedMovedError, EngineError, SqlmigError
from sqlmig.execution import events
from sqlmig.execution.effects import observed_cut
from sqlmig.execution.engine import Engine, Mark, Warehouse
from sqlmig.execution.executor import check_idle
from sqlmig.execution.journal import Journal, at_work, with_token
from sqlmig.ledger.fold import Deployment
from sqlmig.ledger.records import Cut, Kind, RelationState, Status
from sqlmig.program.canonical import materialization_fingerprint
from sqlmig.program.model import Program, RelationKind, View


@dataclass(frozen=True)
class TickResult:
    """What a tick did.

    Args:
        ingested: connector -> (rows, bad records kept aside).
        refreshed: relation -> rows that it has now.
        failures: connector or relation -> what went wrong.
    """

    ingested: Mapping[str, tuple[int, int]]
    refreshed: Mapping[str, int | None]
    failures: Mapping[str, str]


class Ticker:
    """Runs ticks of the deployed program."""

    def __init__(
        self,
        engine: Engine,
        warehouse: Warehouse,
        journal: Journal,
        program: Program,
        observer: events.Observer = events.ignore,
    ) -> None:
        self._engine = engine
        self._warehouse = warehouse
        self._journal = journal
        self._program = program
        self._observer = observer
        self._failures: dict[str, str] = {}
        self._ingested: dict[str, tuple[int, int]] = {}
        self._refreshed: dict[str, int | None] = {}

    def tick(self, *, with_sources: bool = True) -> TickResult:
        """Run one tick.

        Args:
            with_sources: read sources; else only compute what is stale.

        Returns:
            What it did; a source or view that failed is in `failures`, the others went on.

        Raises:
            UnfinishedPlanError: a plan or another tick is under way.
            DeployedMovedError: another program is deployed by now.
        """
        journal = self._journal
        journal.owner = with_token(journal.owner)
        began = journal.append(
            Kind.TICK,
            Status.STARTED,
            check=self._check_deployed,
            revision=journal.deployment.revision,
            details={"owner": journal.owner.to_dict()},
        )
        with at_work(journal.owner):
            run = f"tick-{began.seq}-{journal.owner.token[:8]}"
            return self._tick(run, with_sources=with_sources)

    def _tick(self, run: str, *, with_sources: bool) -> TickResult:
        journal = self._journal
        try:
            before = journal.deployment.cut
            cut = observed_cut(self._warehouse, before)
            if with_sources:
                cut = self._ingest(cut, run)
            cut = self._refresh(cut, run)
        except BaseException as error:
            with _suppressed_conflict():
                journal.append(
                    Kind.TICK,
                    Status.FAILED,
                    check=self._check_ticking,
                    error=str(error) or type(error).__name__,
                )
            raise
        journal.append(
            Kind.TICK,
            Status.DONE,
            check=self._check_ticking,
            revision=journal.deployment.revision,
            cut=_difference(before, cut),
            error="; ".join(f"{n}: {m}" for n, m in sorted(self._failures.items())) or None,
            details={
                "ingested": {n: list(v) for n, v in sorted(self._ingested.items())},
                "refreshed": dict(sorted(self._refreshed.items())),
            },
        )
        return TickResult(self._ingested, self._refreshed, self._failures)

    def _check_deployed(self, deployment: Deployment) -> None:
        check_idle(deployment)
        if dict(deployment.program) != dict(self._program.files):
            raise DeployedMovedError(
                f"revision {deployment.revision or 'base'} was deployed since this process began",
                hint="run the command again: it ticks what is deployed now",
            )

    def _check_ticking(self, deployment: Deployment) -> None:
        ticking = deployment.ticking
        if ticking is None or ticking.token != self._journal.owner.token:
            raise EngineError(
                "the tick was fenced off: another process works on the pipeline",
                hint="`sqlmig status` shows what runs; run the tick again after it",
            )

    def _ingest(self, cut: Cut, run: str) -> Cut:
        revision = self._journal.deployment.revision
        for number, (name, source) in enumerate(sorted(self._program.sources.items())):
            connector = cut.connectors.get(name)
            table = cut.relations.get(source.table)
            if connector is None or table is None:
                self._fail(name, "it has no state in the ledger; `sqlmig upgrade` starts it")
                continue
            began = time.monotonic()
            self._journal.still_owner(self._check_ticking)
            mark = Mark(self._journal.deployment.pipeline or "", run, number, revision)
            try:
                result = self._engine.ingest(self._program, source, connector, table, mark)
            except SqlmigError as error:
                self._fail(name, error.message)
                cut = observed_cut(self._warehouse, cut)
                continue
            if result.rows or result.rejected:
                self._ingested[name] = (result.rows, result.rejected)
                cut = cut.with_connector(
                    name,
                    replace(
                        connector,
                        rows=connector.rows + result.rows,
                        rejected=connector.rejected + result.rejected,
                    ),
                )
                self._observer(
                    events.Ingestion(name, result.rows, result.rejected, time.monotonic() - began)
                )
            now = result.table
            cut = cut.with_relation(source.table, table.with_rows(now.version, now.rows, now.bytes))
        return cut

    def _refresh(self, cut: Cut, run: str) -> Cut:
        pipeline = self._journal.deployment.pipeline or ""
        revision = self._journal.deployment.revision
        broken: set[str] = set()
        for number, view in enumerate(stale_order(self._program)):
            reads = sorted(self._program.stored_reads(view.name))
            if broken & set(reads):
                broken.add(view.name)
                continue
            state = cut.relations.get(view.name)
            inputs = {n: cut.relations[n].content for n in reads if n in cut.relations}
            if state is None or len(inputs) != len(reads) or not is_stale(view, state, inputs):
                continue
            began = time.monotonic()
            fingerprint = materialization_fingerprint(self._program, view.name)
            mark = Mark(pipeline, run, 10_000 + number, revision, fingerprint, inputs)
            states = {n: cut.relations[n] for n in reads}
            self._journal.still_owner(self._check_ticking)
            try:
                written = self._engine.materialize(self._program, view, states, state.folder, mark)
            except SqlmigError as error:
                self._fail(view.name, error.message)
                broken.add(view.name)
                continue
            self._refreshed[view.name] = written.rows
            self._observer(events.Refresh(view.name, written.rows, time.monotonic() - began))
            fresh = RelationState(
                state.folder,
                state.kind,
                written.version,
                f"{state.folder}@{written.version}",
                fingerprint,
                inputs,
                written.rows,
                written.bytes,
            )
            cut = cut.with_relation(view.name, fresh)
        return cut

    def _fail(self, name: str, message: str) -> None:
        self._failures[name] = message
        self._observer(events.TickFailure(name, message))


def stale_order(program: Program) -> Iterator[View]:
    """The materialized views, inputs before readers."""
    for name in program.order:
        view = program.relations[name]
        if isinstance(view, View) and view.kind is RelationKind.MATERIALIZED_VIEW:
            yield view


def is_stale(view: View, state: RelationState, inputs: Mapping[str, str]) -> bool:
    """Whether the contents may differ from the query over `inputs` (input -> content id).

    Contents without a fingerprint are not sqlmig's. Else equal content ids mean equal inputs, and
    the same query over equal inputs gives the same rows, unless it is volatile.
    """
    return view.volatile or not state.fingerprint or dict(state.inputs) != dict(inputs)


def has_stale(program: Program, cut: Cut) -> bool:
    """Whether a tick without sources would compute anything, as far as the ledger knows."""
    moved: set[str] = set()
    for view in stale_order(program):
        state = cut.relations.get(view.name)
        reads = program.stored_reads(view.name)
        inputs = {n: cut.relations[n].content for n in reads if n in cut.relations}
        if state is None:
            continue
        is_read = len(inputs) == len(reads)
        if moved & reads or not state.fingerprint or (is_read and dict(state.inputs) != inputs):
            moved.add(view.name)
    return bool(moved)


def _difference(before: Cut, after: Cut) -> dict[str, Any] | None:
    changed = Cut(
        relations={n: s for n, s in after.relations.items() if before.relations.get(n) != s},
        connectors={n: s for n, s in after.connectors.items() if before.connectors.get(n) != s},
    )
    return changed.to_dict() or None


@contextmanager
def _suppressed_conflict() -> Iterator[None]:
    with suppress(SqlmigError):
        yield
