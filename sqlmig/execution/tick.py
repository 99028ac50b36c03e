"""The tick: sources in, stale views computed again, sinks out, the cut recorded. No Spark here."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sqlmig.errors import DeployedMovedError, SqlmigError, UnfinishedPlanError
from sqlmig.execution import events
from sqlmig.execution.delivery import deliver
from sqlmig.execution.engine import Engine, Warehouse
from sqlmig.execution.journal import Journal
from sqlmig.execution.lease import Lease
from sqlmig.execution.observing import observed_cut
from sqlmig.execution.outcome import fresh
from sqlmig.execution.staleness import is_stale, stale_order
from sqlmig.execution.streams import Advance, Taken, advanced, find_advance, take_in
from sqlmig.execution.values import Mark, Written
from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.records import Kind, Status
from sqlmig.program.canonical import materialization_fingerprint
from sqlmig.program.model import Program, RelationKind, View


@dataclass(frozen=True)
class TickResult:
    """What a tick did.

    Args:
        ingested: connector -> (rows, bad records kept aside).
        refreshed: relation -> rows that it has now.
        failures: connector or relation -> what went wrong.
        is_recorded: the ledger has a record of it: something changed, or failed in a new way.
        sent: sink -> change rows that it was sent.
        hints: of what failed -> what to do about it, where that is known.
        late: streaming table -> rows that came when their window had been emitted.
    """

    ingested: Mapping[str, tuple[int, int]]
    refreshed: Mapping[str, int | None]
    failures: Mapping[str, str]
    is_recorded: bool = True
    sent: Mapping[str, int] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)


class Ticker:
    """Makes the ticks of one deployed program, under a lease that somebody else holds.

    Args:
        program: what the ledger says is deployed.
        lease: looked at before each commit.
        workers: how many views are computed at a time.
    """

    def __init__(
        self,
        engine: Engine,
        warehouse: Warehouse,
        journal: Journal,
        program: Program,
        lease: Lease,
        observer: events.Observer = events.ignore,
        workers: int = 1,
    ) -> None:
        self._engine = engine
        self._warehouse = warehouse
        self._journal = journal
        self._program = program
        self._lease = lease
        self._observer = observer
        self._workers = workers
        self._failures: dict[str, str] = {}
        self._hints: dict[str, str] = {}
        self._ingested: dict[str, tuple[int, int]] = {}
        self._refreshed: dict[str, int | None] = {}
        self._late: dict[str, int] = {}
        self._sent: Mapping[str, int] = {}

    def tick(
        self,
        *,
        with_sources: bool = True,
        skip: Set[str] = frozenset(),
        is_always_recorded: bool = False,
        **details: Any,
    ) -> TickResult:
        """Make one tick.

        Args:
            with_sources: read sources and send to sinks; else only compute what is stale.
            skip: sources, views and sinks that failed lately and are left alone this time.
            is_always_recorded: record a tick that changed nothing, too.
            details: put into the record.

        Returns:
            What it did; a source, view or sink that failed is in `failures`, the others went on.

        Raises:
            UnfinishedPlanError: the lease was lost to another process.
            DeployedMovedError: another program is deployed by now.
        """
        self._failures, self._hints, self._sent = {}, {}, {}
        self._ingested, self._refreshed, self._late = {}, {}, {}
        self._lease.check()
        journal = self._journal
        check_program(journal.deployment, self._program)
        # a tick is never gone on with, so its name is its own, even if it could record nothing
        run = f"tick-{journal.deployment.seq}-{journal.owner.token[:8]}-{uuid.uuid4().hex[:8]}"
        try:
            before = journal.deployment.cut
            cut = observed_cut(self._warehouse, before)
            if with_sources:
                cut = self._ingest(cut, run, skip)
            cut = self._refresh(cut, run, skip)
            if with_sources:
                cut = self._deliver(cut, run, skip)
        except BaseException as error:
            with suppress(SqlmigError):
                journal.append(
                    Kind.TICK,
                    Status.FAILED,
                    check=self._check,
                    error=str(error) or type(error).__name__,
                    details={"token": journal.owner.token, **details},
                )
            raise
        known = journal.deployment.failures
        failures = {n: m for n, m in known.items() if n in skip} | self._failures
        hints = {n: h for n, h in journal.deployment.hints.items() if n in skip} | self._hints
        change = _difference(before, cut)
        is_recorded = bool(is_always_recorded or change or failures != known)
        if is_recorded:
            journal.append(
                Kind.TICK,
                Status.DONE,
                check=self._check,
                revision=journal.deployment.revision,
                cut=change,
                error="; ".join(f"{n}: {m}" for n, m in sorted(failures.items())) or None,
                details={
                    "token": journal.owner.token,
                    "ingested": {n: list(v) for n, v in sorted(self._ingested.items())},
                    "refreshed": dict(sorted(self._refreshed.items())),
                    "sent": dict(sorted(self._sent.items())),
                    "late": dict(sorted(self._late.items())),
                    "failures": dict(sorted(failures.items())),
                    "hints": dict(sorted(hints.items())),
                    **details,
                },
            )
        return TickResult(
            self._ingested,
            self._refreshed,
            self._failures,
            is_recorded,
            self._sent,
            self._hints,
            self._late,
        )

    def _check(self, deployment: Deployment) -> None:
        check_ticking(self._journal, deployment)

    def _ingest(self, cut: Cut, run: str, skip: Set[str]) -> Cut:
        revision = self._journal.deployment.revision
        for number, (name, source) in enumerate(sorted(self._program.sources.items())):
            connector = cut.connectors.get(name)
            table = cut.relations.get(source.table)
            if name in skip:
                continue
            if connector is None or table is None:
                self._fail(name, "it has no state in the ledger", "`sqlmig upgrade` starts it")
                continue
            if self._engine.is_quiet(source, connector):
                continue
            began = time.monotonic()
            self._lease.check()
            self._check(self._journal.deployment)
            mark = Mark(self._journal.deployment.pipeline or "", run, number, revision)
            try:
                result = self._engine.ingest(self._program, source, connector, table, mark)
            except SqlmigError as error:
                self._fail(name, str(error), error.hint)
                cut = observed_cut(self._warehouse, cut)
                continue
            if result.rows or result.rejected:
                self._ingested[name] = (result.rows, result.rejected)
                state = replace(
                    connector,
                    rows=connector.rows + result.rows,
                    rejected=connector.rejected + result.rejected,
                    behind=result.behind,
                    batch=connector.batch if result.batch is None else result.batch,
                )
                cut = cut.with_connector(name, state)
                self._observer(
                    events.Ingestion(name, result.rows, result.rejected, time.monotonic() - began)
                )
            now = result.table
            cut = cut.with_relation(source.table, table.with_rows(now.version, now.rows, now.bytes))
        return cut

    def _refresh(self, cut: Cut, run: str, skip: Set[str]) -> Cut:
        """Compute what is stale, inputs before readers, independent views at the same time."""
        pending = dict(enumerate(stale_order(self._program)))
        under_way: dict[Future[tuple[Written | Taken, float]], _Job] = {}
        broken: set[str] = set()
        with ThreadPoolExecutor(self._workers, "sqlmig refresh") as pool:
            while pending or under_way:
                waiting = {v.name for v in pending.values()} | {j.name for j in under_way.values()}
                for number, view in list(pending.items()):
                    reads = self._program.stored_reads(view.name)
                    if reads & waiting or len(under_way) >= self._workers:
                        continue
                    del pending[number]
                    waiting.discard(view.name)
                    if view.name in skip or broken & reads:
                        broken.add(view.name)
                        continue
                    job = self._job(number, view, cut, run)
                    if job is not None and job.state.takes_in:
                        try:
                            job, cut = self._advance_job(job, cut)
                        except SqlmigError as error:
                            self._fail(view.name, error.message, error.hint)
                            broken.add(view.name)
                            continue
                    if job is not None:
                        self._lease.check()
                        self._check(self._journal.deployment)
                        waiting.add(view.name)
                        under_way[pool.submit(self._materialize, job)] = job
                for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                    cut = self._collect(done, under_way.pop(done), cut, broken)
        return cut

    def _job(self, number: int, view: View, cut: Cut, run: str) -> _Job | None:
        reads = sorted(self._program.stored_reads(view.name))
        state = cut.relations.get(view.name)
        followed = self._program.followed(view.name)
        inputs = {n: cut.relations[n].content for n in sorted(followed) if n in cut.relations}
        if state is None or any(n not in cut.relations for n in reads):
            return None
        if not is_stale(view, state, inputs):
            return None
        deployment = self._journal.deployment
        fingerprint = materialization_fingerprint(self._program, view.name)
        pipeline, revision = deployment.pipeline or "", deployment.revision
        mark = Mark(pipeline, run, 10_000 + number, revision, fingerprint, inputs)
        return _Job(view, state, {n: cut.relations[n] for n in reads}, mark)

    def _advance_job(self, job: _Job, cut: Cut) -> tuple[_Job | None, Cut]:
        """The job with what came into its streams; none, and the new cut, where nothing did."""
        advance = find_advance(self._warehouse, job.view, job.state, job.inputs)
        if not advance.has_rows:
            return None, cut.with_relation(job.name, advanced(job.state, advance, None))
        return replace(job, advance=advance), cut

    def _materialize(self, job: _Job) -> tuple[Written | Taken, float]:
        began = time.monotonic()
        engine, program, state = self._engine, self._program, job.state
        made: Written | Taken
        if job.advance is not None:
            made = take_in(engine, program, job.view, job.inputs, job.advance, state, job.mark)
        else:
            made = engine.materialize(program, job.view, job.inputs, state.folder, job.mark)
        return made, time.monotonic() - began

    def _collect(
        self, done: Future[tuple[Written | Taken, float]], job: _Job, cut: Cut, broken: set[str]
    ) -> Cut:
        try:
            made, seconds = done.result()
        except SqlmigError as error:
            self._fail(job.name, error.message, error.hint)
            broken.add(job.name)
            return cut
        written = made.written if isinstance(made, Taken) else made
        if written is not None:
            self._refreshed[job.name] = written.rows
            self._observer(events.Refresh(job.name, written.rows, seconds))
        if isinstance(made, Taken):
            if made.late:
                self._late[job.name] = made.late
                self._observer(events.LateRows(job.name, made.late))
            return cut.with_relation(job.name, made.state)
        kind = RelationKind(job.state.kind)
        fingerprint = job.mark.fingerprint or ""
        layout = job.view.layout
        state = fresh(job.state.folder, kind, made, fingerprint, job.mark.inputs, layout)
        return cut.with_relation(job.name, state)

    def _deliver(self, cut: Cut, run: str, skip: Set[str]) -> Cut:
        if not self._program.sinks:
            return cut

        def check(deployment: Deployment) -> None:
            self._lease.check()  # this may read newer records than `deployment` has
            self._check(self._journal.deployment)

        done = deliver(
            self._engine,
            self._journal,
            self._program,
            cut,
            run,
            check,
            self._observer,
            skip,
        )
        self._sent = done.sent
        self._failures |= done.failures
        self._hints |= done.hints
        return done.cut

    def _fail(self, name: str, message: str, hint: str | None) -> None:
        self._failures[name] = message
        self._hints |= {name: hint} if hint else {}
        self._observer(events.TickFailure(name, message, hint))


@dataclass(frozen=True)
class _Job:
    """A view that is to be computed, and from what; for one that takes rows in, what came."""

    view: View
    state: RelationState
    inputs: Mapping[str, RelationState]
    mark: Mark
    advance: Advance | None = None

    @property
    def name(self) -> str:
        return self.view.name


def check_program(deployment: Deployment, program: Program) -> None:
    """Raise when `program` is not the one that is deployed.

    Raises:
        DeployedMovedError: it is another one by now.
    """
    if dict(deployment.program) != dict(program.files):
        raise DeployedMovedError(
            f"revision {deployment.revision or 'base'} was deployed since this process began",
            hint="run the command again: it ticks what is deployed now",
        )


def check_lease(journal: Journal, deployment: Deployment) -> None:
    """Raise when this process no longer holds the lease on ticking.

    Raises:
        UnfinishedPlanError: another process took it.
    """
    if deployment.runner is None or deployment.runner.owner.token != journal.owner.token:
        raise _fenced_off()


def check_ticking(journal: Journal, deployment: Deployment) -> None:
    """Raise when this process may not write to the tables.

    A plan that waits for this tick to end does not stop it; one that has its checkpoint does.

    Raises:
        UnfinishedPlanError: the lease was lost, or a plan went ahead.
    """
    check_lease(journal, deployment)
    plan = deployment.unfinished
    if plan is not None and plan.checkpoint is not None:
        raise _fenced_off()


def _fenced_off() -> UnfinishedPlanError:
    return UnfinishedPlanError(
        "the tick was fenced off: another process works on the pipeline",
        hint="`sqlmig status` shows what runs; run the command again after it",
    )


def _difference(before: Cut, after: Cut) -> dict[str, Any] | None:
    changed = Cut(
        relations={n: s for n, s in after.relations.items() if before.relations.get(n) != s},
        connectors={n: s for n, s in after.connectors.items() if before.connectors.get(n) != s},
        sinks={n: s for n, s in after.sinks.items() if before.sinks.get(n) != s},
    )
    return changed.to_dict() or None
