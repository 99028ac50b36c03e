"""The runner: ticks the deployed pipeline again and again, and makes way for upgrades.

It talks to other processes through the ledger only: a plan that has begun, or a stop that was asked
for, makes it pause at the end of its tick and say so; it goes on when the plan is over, with
the program that is deployed then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlmig.errors import (
    DeployedMovedError,
    EngineError,
    LedgerError,
    SqlmigError,
    UnfinishedPlanError,
)
from sqlmig.execution import events
from sqlmig.execution.backoff import Backoff
from sqlmig.execution.clock import elapsed
from sqlmig.execution.collection import Collector
from sqlmig.execution.engine import Engine, Warehouse
from sqlmig.execution.executor import check_idle
from sqlmig.execution.journal import Journal
from sqlmig.execution.lease import Lease, Sleep
from sqlmig.execution.process import with_token
from sqlmig.execution.stopping import give_way
from sqlmig.execution.tick import Ticker, TickResult, check_lease, check_program
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.records import Kind, Status
from sqlmig.program.model import Program

_POLL = 0.2
_CHECKPOINT_EVERY = 100
"""Recorded ticks after which the ledger gets a checkpoint, so that reading it stays quick."""
_SMOOTHING = 0.2
"""Weight of the newest tick in the average time of a tick."""


@dataclass(frozen=True)
class RunnerSettings:
    """How a pipeline is run.

    Args:
        interval: seconds from the begin of one tick to the begin of the next.
        workers: views computed at a time.
        until: when to end; None for never.
        vacuum_every: seconds from one removal of old files to the next; None for never.
    """

    interval: float = 5.0
    workers: int = 4
    until: datetime | None = None
    vacuum_every: float | None = None


class PipelineRunner:
    """Ticks the deployed pipeline: once, or until it is told to end.

    Args:
        parse: files of a program -> program.
        observer: told what happens.
        sleep: waits so many seconds.
        collector: removes files that no kept cut needs.
    """

    def __init__(
        self,
        engine: Engine,
        warehouse: Warehouse,
        journal: Journal,
        parse: Callable[[Mapping[str, str]], Program],
        observer: events.Observer = events.ignore,
        sleep: Sleep = time.sleep,
        collector: Collector | None = None,
    ) -> None:
        self._engine = engine
        self._warehouse = warehouse
        self._journal = journal
        self._parse = parse
        self._observer = observer
        self._sleep = sleep
        self._collector = collector
        self._vacuumed: float | None = None
        self._ticks = 0
        self._recorded = 0
        self._seconds: float | None = None

    def once(self, program: Program, *, with_sources: bool = True, workers: int = 4) -> TickResult:
        """Make one tick, which is recorded whatever it does.

        Args:
            program: what is to be ticked; it must be what is deployed.
            with_sources: read sources; else only compute what is stale.

        Raises:
            UnfinishedPlanError: a plan is under way, or the lease was lost.
            EngineError: another process ticks the pipeline, or it is stopped.
            DeployedMovedError: another program is deployed.
        """

        def check(deployment: Deployment) -> None:
            check_program(deployment, program)

        with self._leased(RunnerSettings(workers=workers), is_once=True, check=check) as lease:
            return self._ticker(program, lease, workers).tick(
                with_sources=with_sources,
                is_always_recorded=True,
                released=self._journal.owner.token,
            )

    def run(self, settings: RunnerSettings, is_over: Callable[[], bool] = lambda: False) -> int:
        """Tick until it is told to end; a tick under way is ended first.

        Args:
            is_over: asked between ticks, a few times a second.

        Returns:
            The number of ticks made.

        Raises:
            UnfinishedPlanError: the lease was lost: another process took this one for dead.
            EngineError: another process ticks the pipeline.
        """
        journal = self._journal

        def ends() -> bool:
            return is_over() or (settings.until is not None and journal.clock() >= settings.until)

        with self._leased(settings, is_once=False) as lease:
            try:
                self._loop(settings, lease, ends)
            finally:
                self._release()
        return self._ticks

    def _loop(self, settings: RunnerSettings, lease: Lease, ends: Callable[[], bool]) -> None:
        journal = self._journal
        backoff, unwritten = Backoff(settings.interval), Backoff(settings.interval)
        ticker: Ticker | None = None
        deployed = -1
        while not ends():
            if unwritten.waiting:
                self._sleep(_POLL)
                continue
            try:
                lease.check()
                deployment = journal.deployment
                check_lease(journal, deployment)
                if self._must_pause(deployment):
                    self._pause()
                    self._sleep(_POLL)
                    continue
                if not self._go_on():
                    continue
                deployment = journal.deployment
                if ticker is None or deployment.deployed_seq != deployed:
                    deployed = deployment.deployed_seq
                    program = self._parse(deployment.program)
                    ticker = self._ticker(program, lease, settings.workers)
                    backoff.forget()
                    self._observer(events.RunnerTicks(deployment.revision))
                began = elapsed()
                self._tick(ticker, backoff)
                self._vacuum(settings.vacuum_every)
                while elapsed() - began < settings.interval and not ends():
                    self._sleep(min(_POLL, settings.interval))
                    if self._must_pause(journal.refresh()):
                        break
            except LedgerError as error:  # a full disk: who wants our place can't write there, too
                self._observer(events.TickFailure("ledger", error.message, error.hint))
                unwritten.note({"ledger": error.message}, frozenset())
            else:
                unwritten.forget()

    def _tick(self, ticker: Ticker, backoff: Backoff) -> None:
        began = elapsed()
        skipped = backoff.waiting
        if "tick" in skipped:
            return
        try:
            result = ticker.tick(skip=skipped, ticks=self._ticks + 1, seconds=self._seconds)
        except DeployedMovedError:
            return  # the loop finds the new one
        except UnfinishedPlanError:
            raise
        except SqlmigError as error:  # no table of one view: the ledger, a table's folder
            self._observer(events.TickFailure("tick", error.message, error.hint))
            backoff.note({"tick": error.message}, skipped)
            return
        backoff.note(result.failures, skipped)
        self._ticks += 1
        took = elapsed() - began
        average = took if self._seconds is None else self._seconds
        self._seconds = round(average + _SMOOTHING * (took - average), 3)
        self._recorded += result.is_recorded
        if result.is_recorded and self._recorded % _CHECKPOINT_EVERY == 0:
            self._journal.checkpoint()

    def _vacuum(self, every: float | None) -> None:
        """Remove files that no kept cut needs, if it is time; makes way for plans."""
        if self._collector is None or every is None or not self._is_vacuum_due(every):
            return
        journal = self._journal

        def check(deployment: Deployment) -> None:
            check_lease(journal, deployment)
            if self._must_pause(deployment):
                raise DeployedMovedError("a plan has begun")

        def goes_on() -> bool:
            return not self._must_pause(journal.refresh())

        try:
            findings = self._collector.find(goes_on=goes_on)
            if not goes_on():
                return
            size = self._collector.remove(findings, check=check, goes_on=goes_on, by="runner")
            if size:
                self._observer(events.Vacuumed(findings.files, size))
        except DeployedMovedError:
            return  # after the plan
        except UnfinishedPlanError:
            raise
        except SqlmigError as error:
            self._observer(events.TickFailure("vacuum", error.message, error.hint))
        self._vacuumed = elapsed()

    def _is_vacuum_due(self, every: float) -> bool:
        if self._vacuumed is not None:
            return elapsed() - self._vacuumed >= every
        deployment = self._journal.deployment
        last = deployment.collected.at or deployment.since
        return last is None or (self._journal.clock() - last).total_seconds() >= every

    def _ticker(self, program: Program, lease: Lease, workers: int) -> Ticker:
        return Ticker(
            self._engine, self._warehouse, self._journal, program, lease, self._observer, workers
        )

    # the lease

    def _leased(
        self,
        settings: RunnerSettings,
        *,
        is_once: bool,
        check: Callable[[Deployment], None] | None = None,
    ) -> Lease:
        journal = self._journal
        give_way(journal, self._warehouse, self._observer, self._sleep)
        journal.owner = with_token(journal.owner)

        def may_begin(deployment: Deployment) -> None:
            if deployment.runner is not None:
                give_way(journal, self._warehouse, self._observer, self._sleep)
            if is_once:
                check_idle(deployment)
                check_not_stopped(journal, deployment)
            if check is not None:
                check(deployment)

        journal.append(
            Kind.RUNNER,
            Status.STARTED,
            check=may_begin,
            revision=journal.deployment.revision,
            details={
                "owner": journal.owner.to_dict(),
                "once": is_once,
                "interval": None if is_once else settings.interval,
            },
        )
        return Lease(journal, self._renew)

    def _renew(self) -> None:
        self._note(Status.RENEWED)

    def _release(self) -> None:
        journal = self._journal
        runner = journal.refresh().runner
        if runner is not None and runner.owner.token == journal.owner.token:
            self._note(Status.STOPPED, released=journal.owner.token)

    def _note(self, status: Status, **details: object) -> None:
        journal = self._journal
        journal.append(
            Kind.RUNNER,
            status,
            check=lambda deployment: check_lease(journal, deployment),
            details={
                "token": journal.owner.token,
                "ticks": self._ticks,
                "seconds": self._seconds,
                **details,
            },
        )

    # pauses

    def _must_pause(self, deployment: Deployment) -> bool:
        return (
            deployment.unfinished is not None
            or deployment.deployed_seq < 0
            or is_stop_due(self._journal, deployment)
        )

    def _pause(self) -> None:
        runner = self._journal.deployment.runner
        if runner is not None and not runner.is_paused:
            self._note(Status.PAUSED)
            plan = self._journal.deployment.unfinished
            self._observer(events.RunnerPauses(plan.id if plan else None))

    def _go_on(self) -> bool:
        """End a pause; False when the next plan or stop has begun meanwhile, and it goes on."""
        journal = self._journal
        runner = journal.deployment.runner
        if runner is None or not runner.is_paused:
            return True

        def check(now: Deployment) -> None:
            check_lease(journal, now)
            if self._must_pause(now):
                raise DeployedMovedError("another plan has begun")

        details = {"token": journal.owner.token}
        try:
            journal.append(Kind.RUNNER, Status.RESUMED, check=check, details=details)
        except DeployedMovedError:
            return False
        return True


def is_stop_due(journal: Journal, deployment: Deployment) -> bool:
    """Whether somebody asked that nothing ticks from a time on that has come."""
    at = deployment.stop_at
    return deployment.must_stop or (at is not None and journal.clock() >= at)


def check_not_stopped(journal: Journal, deployment: Deployment) -> None:
    """Raise when somebody stopped the pipeline.

    Raises:
        EngineError: says since when.
    """
    if is_stop_due(journal, deployment) and deployment.stop_at is not None:
        raise EngineError(
            f"the pipeline is stopped since {deployment.stop_at:%Y-%m-%d %H:%M:%S} UTC",
            hint="`sqlmig resume` lets it tick again",
        )
