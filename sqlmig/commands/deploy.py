"""The verbs that change what is deployed: upgrade, downgrade, approve, reject, repair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmig.commands.plans import plan_way, read_directives
from sqlmig.commands.policy import check_checkout
from sqlmig.commands.project import Project
from sqlmig.commands.running import runner
from sqlmig.commands.waiting import wait_for_time
from sqlmig.errors import (
    BlockedError,
    DeployedMovedError,
    EngineError,
    RejectedError,
    RevisionError,
    UnfinishedPlanError,
)
from sqlmig.execution import events
from sqlmig.execution.delivery import has_due
from sqlmig.execution.executor import Executor, check_idle
from sqlmig.execution.journal import Journal
from sqlmig.execution.lease import is_gone, plan_holder, seems_gone
from sqlmig.execution.runner import is_stop_due
from sqlmig.execution.staleness import has_stale
from sqlmig.execution.tick import TickResult
from sqlmig.ledger.deployment import Deployment, PlanInProgress
from sqlmig.ledger.records import AppliedRevision, Kind, Status
from sqlmig.planning.directives import Run
from sqlmig.planning.steps import Plan, RunFunction
from sqlmig.program.model import Program
from sqlmig.revisions.identifier import resolve

Confirm = Callable[[Plan], bool]


@dataclass(frozen=True)
class Deployed:
    """What a deploying verb did.

    Args:
        status: `applied`, `nothing_to_do` or `awaiting_approval`.
        plan: the plan that it is about.
        tick: the tick after it; None when there was none.
        resumed: id of an unfinished plan that was finished before, if there was one.
        taken_back: id of an unfinished plan that was taken back before, if there was one.
    """

    status: str
    plan: Plan
    tick: TickResult | None = None
    resumed: str | None = None
    taken_back: str | None = None


def upgrade(
    project: Project,
    target: str = "head",
    *,
    policy: str | None = None,
    yes: bool = False,
    allow_destructive: bool = False,
    allow_unknown: bool = False,
    confirm: Confirm | None = None,
    observer: events.Observer = events.ignore,
    stop_timeout: float | None = None,
    at: datetime | None = None,
) -> Deployed:
    """Take the pipeline to a later revision.

    Args:
        target: any name of a revision.
        policy: `await_approval`, `allow` or `reject`; by default the target's.
        yes: go on without asking, whatever the policy.
        allow_destructive: let steps run that lose rows; empty tables whose rows can't be kept.
        allow_unknown: take a deployed revision back that has no file here, whatever the policy.
        confirm: shows the plan to a person and returns the answer; None when nobody is there.
        observer: told what happens.
        stop_timeout: seconds that the tick under way may take to end; by default the target's.
        at: from when on rows pass streaming tables that go on in place under the new queries; what
            came before passes under the old ones. Until then nothing is begun.

    Returns:
        What was done; `awaiting_approval` when the plan was recorded for `approve`.

    Raises:
        BlockedError: the plan has blockers, or is destructive and that isn't allowed.
        RejectedError: by the policy, or the person; or the checkout isn't what the target asks for.
        StepFailed: a step failed; the pipeline was taken back.
    """
    check_checkout(project)
    resumed = _finish(project, _dead_plan(project, observer), observer)
    deployment = project.journal.refresh()
    check_idle(deployment)
    chosen = "allow" if yes else policy or project.target.bootstrap_policy
    plan, after = plan_way(
        project,
        deployment,
        target,
        direction="upgrade",
        analyze=chosen != "reject",
        allow_destructive=allow_destructive,
        allow_unknown=allow_unknown,
        at=at,
    )
    if plan.is_noop:
        return Deployed("nothing_to_do", plan, resumed=resumed)
    _refuse_blocked(plan, allow_destructive or chosen == "reject")
    if plan.needs_approval:
        if chosen == "reject":
            raise RejectedError(
                f"the policy rejects changes; plan {plan.id} would make these:\n"
                + "\n".join(f"  {line}" for line in _diff_lines(plan)),
                hint="`--bootstrap-policy await_approval` records the plan for approval",
            )
        if chosen == "await_approval" and confirm is None:
            _await(project, plan, after)
            return Deployed("awaiting_approval", plan, resumed=resumed)
        if chosen == "await_approval" and confirm is not None and not confirm(plan):
            raise RejectedError("not approved; nothing was run")
    wait_for_time(plan, project.journal.clock, observer)
    _executor(project, observer, stop_timeout).run(plan)
    return Deployed("applied", plan, _tick(project, after, observer, with_sources=True), resumed)


def downgrade(
    project: Project,
    target: str,
    *,
    allow_destructive: bool = False,
    observer: events.Observer = events.ignore,
    stop_timeout: float | None = None,
) -> Deployed:
    """Take the pipeline back to an earlier revision; it works although revision files are gone.

    Args and errors are those of `upgrade`. No sources are read and nothing is sent; what became
    stale is computed.

    An upgrade that died under way is taken back where the way down leads at least to where it
    began; `-1` then counts from the revision that it was going to.
    """
    dead = _dead_plan(project, observer)
    goal, taken_back = _take_back_dead_upgrade(project, target, dead, observer)
    resumed = _finish(project, dead, observer) if taken_back is None else None
    deployment = project.journal.refresh()
    check_idle(deployment)
    plan, after = plan_way(
        project, deployment, goal, direction="downgrade", allow_destructive=allow_destructive
    )
    if plan.is_noop:
        status = "applied" if taken_back else "nothing_to_do"
        return Deployed(status, plan, resumed=resumed, taken_back=taken_back)
    _refuse_blocked(plan, allow_destructive)
    state = _executor(project, observer, stop_timeout).run(plan)
    tick = (
        _tick(project, after, observer, with_sources=False) if has_stale(after, state.cut) else None
    )
    return Deployed("applied", plan, tick, resumed, taken_back)


def approve(
    project: Project, plan_id: str | None = None, *, observer: events.Observer = events.ignore
) -> Deployed:
    """Carry out the plan that waits for approval, if the deployed state is still the planned one.

    Args:
        plan_id: the plan's id or a prefix of it; by default the one that waits.

    Raises:
        DeployedMovedError: no plan waits, another one does, or the deployed state moved.
    """
    deployment = project.journal.refresh()
    waiting = _waiting(deployment, plan_id)
    plan = Plan.from_dict(waiting.plan)
    after = project.parse_deployed(plan.stages[-1])
    wait_for_time(plan, project.journal.clock, observer)
    _executor(project, observer).run(plan, is_approved=True)
    return Deployed("applied", plan, _tick(project, after, observer, with_sources=True))


def reject(project: Project, plan_id: str | None = None) -> str:
    """Turn the waiting plan down; nothing is run. Returns the plan's id."""
    journal = project.journal
    waiting = _waiting(journal.refresh(), plan_id)

    def check(now: Deployment) -> None:
        _waiting(now, waiting.id)

    journal.append(
        Kind.PLAN, Status.REJECTED, check=check, plan=waiting.id, revision=waiting.target
    )
    return waiting.id


def repair(
    project: Project,
    *,
    resume: bool = False,
    rollback: bool = False,
    observer: events.Observer = events.ignore,
) -> PlanInProgress | None:
    """Show, finish or take back an unfinished plan.

    Args:
        resume: finish it. rollback: take it back; contents are those of its checkpoint.

    Returns:
        The plan that was unfinished; None when there was none.
    """
    unfinished = project.journal.refresh().unfinished
    if unfinished is None or not (resume or rollback):
        return unfinished
    executor = _executor(project, observer)
    if rollback:
        executor.roll_back()
    else:
        executor.resume()
    return unfinished


def _executor(
    project: Project, observer: events.Observer, patience: float | None = None
) -> Executor:
    def load_hook(plan: Plan, step: RunFunction) -> Callable[[Any], object]:
        known: Mapping[str, AppliedRevision] = {
            **project.journal.deployment.known,
            **{r.revision: r for r in plan.ups},
        }
        directive = read_directives(known[step.revision], step.hook)[step.index]
        if not isinstance(directive, Run):
            raise RevisionError(
                f"{step.hook}() of {step.revision} asked for something else "
                "than when it was planned",
                hint="a hook must ask for the same each time it is called",
            )
        return directive.function

    return Executor(
        project.engine,
        project.warehouse,
        project.journal,
        project.parse_deployed,
        load_hook,
        observer,
        patience=project.target.runner.stop_timeout if patience is None else patience,
    )


def _dead_plan(project: Project, observer: events.Observer) -> PlanInProgress | None:
    """The unfinished plan whose owner is dead, or was silent for its whole lease."""
    deployment = project.journal.refresh()
    holder = plan_holder(deployment)
    if holder is None or not seems_gone(holder, project.journal.clock()):
        return None
    if not is_gone(project.journal, plan_holder, observer):
        return None
    return project.journal.deployment.unfinished


def _finish(
    project: Project, unfinished: PlanInProgress | None, observer: events.Observer
) -> str | None:
    if unfinished is None:
        return None
    _executor(project, observer).resume(gone=unfinished.sign)
    return unfinished.id


def _take_back_dead_upgrade(
    project: Project, target: str, unfinished: PlanInProgress | None, observer: events.Observer
) -> tuple[str, str | None]:
    """Where a downgrade to `target` leads, and the id of the dead upgrade that it took back."""
    deployment = project.journal.deployment
    if unfinished is None or unfinished.plan["direction"] != "upgrade":
        return target, None
    ups = [AppliedRevision.from_dict(entry) for entry in unfinished.plan["ups"]]
    graph = project.directory.graph_with([*deployment.known.values(), *ups])
    goal = resolve(graph, target, unfinished.target)
    if graph.path(deployment.revision, goal).ups:
        return target, None
    _executor(project, observer).roll_back(gone=unfinished.sign)
    return goal or "base", unfinished.id


def _refuse_blocked(plan: Plan, allow_destructive: bool) -> None:
    if plan.blockers:
        first = plan.blockers[0]
        more = "".join(
            f"\n{f'{b.location}: ' if b.location else ''}{b.message}" for b in plan.blockers[1:]
        )
        raise BlockedError(
            f"{first.message}{more}", location=first.location, hint=first.hint or "`sqlmig plan`"
        )
    if plan.destructive and not allow_destructive:
        losses = "; ".join(step.destructive or "" for step in plan.destructive)
        raise BlockedError(
            f"the plan is destructive: it loses {losses}",
            hint="add `--allow-destructive` if that is meant",
        )


def _await(project: Project, plan: Plan, after: Program) -> None:
    journal = project.journal
    waiting = journal.deployment.awaiting
    if waiting is not None and waiting.id == plan.id:
        return

    def check(now: Deployment) -> None:
        check_idle(now)
        if now.deployed_seq != plan.deployed_seq:
            raise DeployedMovedError(
                "the deployed state has moved while the plan was made",
                hint="run the command again",
            )

    journal.append(
        Kind.PLAN,
        Status.AWAITING,
        check=check,
        plan=plan.id,
        revision=plan.target,
        program=dict(after.files),
        program_diff=plan.diff.to_json(),
        details={"plan": plan.to_dict()},
    )


def _waiting(deployment: Deployment, plan_id: str | None) -> PlanInProgress:
    waiting = deployment.awaiting
    if waiting is None:
        raise DeployedMovedError(
            "no plan waits for approval",
            hint="`sqlmig upgrade head --bootstrap-policy await_approval` records one",
        )
    if plan_id is not None and not waiting.id.startswith(plan_id):
        raise DeployedMovedError(
            f"plan {plan_id} does not wait for approval; plan {waiting.id} does",
            hint=f"`sqlmig approve {waiting.id}`",
        )
    return waiting


def _tick(
    project: Project, program: Program, observer: events.Observer, *, with_sources: bool
) -> TickResult | None:
    """The tick after a change; None where it has nothing to do, or others have taken over."""
    journal = project.journal
    now = journal.deployment
    if now.runner is not None or is_stop_due(journal, now):
        return None  # the runner goes on by itself; what was stopped stays so
    is_needed = with_sources and (bool(program.sources) or has_due(program, now))
    if not is_needed and not has_stale(program, now.cut):
        return None
    workers = project.target.runner.workers
    try:
        return runner(project, observer).once(program, with_sources=with_sources, workers=workers)
    except (EngineError, UnfinishedPlanError, DeployedMovedError):
        if _is_left_to_others(journal, now.deployed_seq):
            return None
        raise


def _is_left_to_others(journal: Journal, deployed_seq: int) -> bool:
    """Whether another process ticks, stopped or changes the pipeline since it was deployed."""
    now = journal.refresh()
    if now.runner is not None:
        return now.runner.owner.token != journal.owner.token
    has_moved = now.unfinished is not None or now.deployed_seq != deployed_seq
    return has_moved or is_stop_due(journal, now)


def _diff_lines(plan: Plan) -> tuple[str, ...]:
    from sqlmig.planning.explain import describe_diff

    return describe_diff(plan.diff)
