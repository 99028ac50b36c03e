"""The verbs of a pipeline that runs: run, stop, resume, checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlmig.commands.collecting import collector
from sqlmig.commands.project import Project, deployed
from sqlmig.execution import events
from sqlmig.execution.executor import check_idle
from sqlmig.execution.runner import PipelineRunner, RunnerSettings
from sqlmig.execution.tick import TickResult
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.records import Kind, Status


def run(project: Project, *, observer: events.Observer = events.ignore) -> TickResult:
    """Run one tick of the deployed pipeline: sources in, stale views computed, the cut recorded.

    Args:
        observer: told what happens.

    Raises:
        UnfinishedPlanError: a plan is under way.
        EngineError: nothing is deployed, the pipeline is stopped, or another process ticks it.
    """
    deployment = deployed(project)
    check_idle(deployment)
    program = project.parse_deployed(deployment.program)
    return runner(project, observer).once(program, workers=project.target.runner.workers)


def keep_running(
    project: Project,
    *,
    interval: float | None = None,
    until: datetime | None = None,
    is_over: Callable[[], bool] = lambda: False,
    observer: events.Observer = events.ignore,
) -> int:
    """Tick the deployed pipeline again and again; upgrades by other processes are taken up.

    Args:
        interval: seconds from the begin of one tick to the begin of the next; by default the
            target's.
        until: when to end.
        is_over: asked between ticks, a few times a second, whether to end.
        observer: told what happens.

    Returns:
        The number of ticks made.

    Raises:
        EngineError: nothing is deployed, or another process ticks the pipeline.
        UnfinishedPlanError: another process took this one for dead; it wrote nothing since.
    """
    deployed(project)
    chosen = project.target.runner
    settings = RunnerSettings(
        interval=chosen.interval if interval is None else interval,
        workers=chosen.workers,
        until=until,
        vacuum_every=chosen.vacuum_every,
    )
    return runner(project, observer).run(settings, is_over)


def stop(project: Project, *, at: datetime | None = None) -> Deployment:
    """Ask that nothing ticks any more, until `resume`.

    A tick under way is ended; the process that runs the pipeline stays, and waits.

    Args:
        at: from when on; by default now.

    Returns:
        The state after it; `is_stopped` says whether nothing ticks already.
    """
    deployed(project)
    project.journal.append(
        Kind.REQUEST,
        Status.ASKED,
        details={"ask": "stop", "at": at.isoformat() if at else None},
    )
    return project.journal.deployment


def resume(project: Project) -> Deployment:
    """Let the pipeline tick again after `stop`. Returns the state after it."""
    if deployed(project).stop_at is not None:
        project.journal.append(Kind.REQUEST, Status.ASKED, details={"ask": "resume"})
    return project.journal.deployment


def checkpoint(project: Project, name: str | None = None) -> int:
    """Record the newest consistent cut under a number, and a name, for `query --at`.

    Args:
        name: another word for it.

    Returns:
        The checkpoint's number.
    """
    deployed(project)
    return project.journal.checkpoint(**({"name": name} if name else {})).seq


def runner(project: Project, observer: events.Observer) -> PipelineRunner:
    """What ticks the project's pipeline."""
    return PipelineRunner(
        project.engine,
        project.warehouse,
        project.journal,
        project.parse_deployed,
        observer,
        collector=collector(project) if project.warehouse.is_local else None,
    )
