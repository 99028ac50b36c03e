"""The verb status: what runs, what waits, how far everything is. It reads the ledger only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlmig.commands.project import Project
from sqlmig.program.intervals import time_text

if TYPE_CHECKING:
    from sqlmig.ledger.deployment import Runner


@dataclass(frozen=True)
class Status:
    """The pipeline's state, as the ledger has it.

    Args:
        details: the program diff of the plan that waits for approval or is under way, as JSON.
        plan: that plan's id. plan_target: where it leads. steps_done, steps: how far it is.
        deployer: the process that carries it out, in words; None while it waits.
        is_deployer_alive: whether that still runs; None when it is on another machine.
        runner: the process that ticks the pipeline: who, since when, how often; None for none.
        stop_at: from when on nothing ticks, if somebody asked for that.
        failures: relation or connector -> what went wrong when it was last tried.
        hints: of these -> what to do about it, where that is known.
        collected_at: when files that nothing needs were removed last, or looked for.
        relations: relation -> its state as JSON. connectors, sinks: the same for these.
    """

    pipeline: str
    target: str
    state: str
    revision: str | None
    since: datetime | None
    plan: str | None
    plan_target: str | None
    details: Mapping[str, Any] | None
    steps_done: int | None
    steps: int | None
    deployer: str | None
    is_deployer_alive: bool | None
    runner: Mapping[str, Any] | None
    stop_at: datetime | None
    last_tick: datetime | None
    error: str | None
    failures: Mapping[str, str]
    hints: Mapping[str, str]
    collected_at: datetime | None
    relations: Mapping[str, Mapping[str, Any]]
    connectors: Mapping[str, Mapping[str, Any]]
    sinks: Mapping[str, Mapping[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "pipeline": self.pipeline,
            "target": self.target,
            "state": self.state,
            "revision": self.revision,
            "since": _iso(self.since),
            "plan": self.plan,
            "plan_target": self.plan_target,
            "details": self.details,
            "steps_done": self.steps_done,
            "steps": self.steps,
            "deployer": self.deployer,
            "is_deployer_alive": self.is_deployer_alive,
            "runner": self.runner,
            "stop_at": _iso(self.stop_at),
            "last_tick": _iso(self.last_tick),
            "error": self.error,
            "failures": dict(self.failures),
            "hints": dict(self.hints),
            "collected_at": _iso(self.collected_at),
            "relations": dict(self.relations),
            "connectors": dict(self.connectors),
            "sinks": dict(self.sinks),
        }


def status(project: Project) -> Status:
    """The pipeline's state."""
    from sqlmig.commands.sinks import sink_states
    from sqlmig.execution.process import describe_owner, is_alive

    deployment = project.deployment()
    plan = deployment.unfinished or deployment.awaiting
    owner = deployment.unfinished.owner if deployment.unfinished else None
    done = None
    if plan is not None:
        done = sum(1 for s in plan.steps.values() if s.status.value == "done")
    return Status(
        pipeline=project.config.pipeline,
        target=project.target.name,
        state=deployment.state.value,
        revision=deployment.revision,
        since=deployment.since,
        plan=plan.id if plan else None,
        plan_target=plan.target if plan else None,
        details=plan.program_diff if plan else None,
        steps_done=done,
        steps=len(plan.plan["steps"]) if plan else None,
        deployer=describe_owner(owner) if owner else None,
        is_deployer_alive=is_alive(owner) if owner else None,
        runner=_runner(deployment.runner) if deployment.runner else None,
        stop_at=deployment.stop_at,
        last_tick=deployment.last_tick,
        error=deployment.error,
        failures=dict(sorted(deployment.failures.items())),
        hints=dict(sorted(deployment.hints.items())),
        collected_at=deployment.collected.at,
        relations={
            name: {
                "kind": state.kind,
                "version": state.version,
                "rows": state.rows,
                "bytes": state.bytes,
                "folder": state.folder,
                "is_historical": state.is_historical,
                "watermark": None if state.watermark is None else time_text(state.watermark),
                "late": state.late,
                "last_refresh": _iso(deployment.refreshed.get(name)),
                "error": deployment.failures.get(name),
            }
            for name, state in sorted(deployment.cut.relations.items())
        },
        connectors={
            name: {
                "generation": state.generation,
                "rows": state.rows,
                "rejected": state.rejected,
                "behind": state.behind,
                "last_read": _iso(deployment.refreshed.get(name)),
                "error": deployment.failures.get(name),
            }
            for name, state in sorted(deployment.cut.connectors.items())
        },
        sinks=sink_states(deployment),
    )


def _runner(runner: Runner) -> Mapping[str, Any]:
    from sqlmig.execution.process import describe_owner, is_alive

    seconds = (runner.at - runner.since).total_seconds()
    return {
        "process": describe_owner(runner.owner),
        "is_alive": is_alive(runner.owner),
        "is_once": runner.is_once,
        "is_paused": runner.is_paused,
        "since": _iso(runner.since),
        "last_sign": _iso(runner.at),
        "lease_seconds": runner.owner.lease,
        "ticks": runner.ticks,
        "ticks_per_minute": round(60 * runner.ticks / seconds, 1) if seconds > 0 else None,
        "seconds_per_tick": runner.seconds,
        "interval_seconds": runner.interval,
    }


def _iso(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None
