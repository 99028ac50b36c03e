"""The executor: carries a plan out, step by step, in the journal. It knows protocols, not Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlmig.errors import (
    BlockedError,
    DeployedMovedError,
    LedgerError,
    NoSpaceError,
    SqlmigError,
    StepFailed,
    UnfinishedPlanError,
)
from sqlmig.execution import events
from sqlmig.execution.effects import Effects, HookLoader
from sqlmig.execution.engine import Engine, Warehouse
from sqlmig.execution.journal import Journal
from sqlmig.execution.lease import Lease
from sqlmig.execution.process import at_work, describe_owner, is_alive, with_token
from sqlmig.execution.rollback import fence_touched, restore_cut
from sqlmig.ledger.deployment import Deployment, PlanInProgress
from sqlmig.ledger.records import Kind, Status
from sqlmig.planning.collected import removed_from
from sqlmig.planning.steps import Checkpoint, Plan, Step
from sqlmig.program.model import Program

ProgramParser = Callable[[Mapping[str, str]], Program]


class Executor:
    """Runs plans.

    Args:
        engine: what only Spark can do; touched only by steps that need it.
        warehouse: the stored tables, without Spark.
        journal: the ledger.
        parse: files of a program -> program.
        load_hook: finds the function that a `RunFunction` step calls.
        observer: told what happens.
        patience: seconds that a runner may take to end its tick.
    """

    def __init__(
        self,
        engine: Engine,
        warehouse: Warehouse,
        journal: Journal,
        parse: ProgramParser,
        load_hook: HookLoader,
        observer: events.Observer = events.ignore,
        patience: float = 60.0,
    ) -> None:
        self._engine = engine
        self._warehouse = warehouse
        self._journal = journal
        self._parse = parse
        self._load_hook = load_hook
        self._observer = observer
        self._patience = patience

    def run(self, plan: Plan, *, is_approved: bool = False) -> Deployment:
        """Start a plan and carry it out.

        Args:
            plan: one without blockers.
            is_approved: it is the plan that waits for approval.

        Returns:
            The state after the APPLIED record.

        Raises:
            BlockedError: the plan has blockers.
            DeployedMovedError: what is deployed is not what the plan was made against.
            UnfinishedPlanError: another plan or tick is under way.
            StepFailed: a step failed; the pipeline was taken back.
        """
        if plan.blockers:
            raise BlockedError(plan.blockers[0].message, location=plan.blockers[0].location)
        journal = self._journal
        journal.owner = with_token(journal.owner)
        stages = self._stages(plan)

        def check(deployment: Deployment) -> None:
            check_idle(deployment)
            if deployment.deployed_seq != plan.deployed_seq:
                raise DeployedMovedError(
                    f"the deployed state has moved since plan {plan.id} was made: "
                    f"revision {deployment.revision or 'base'} is deployed now",
                    hint="look at the new plan with `sqlmig plan`, and run the command again",
                )
            removed = removed_from(plan, deployment)
            if removed is not None:
                raise DeployedMovedError(
                    f"{removed}, and plan {plan.id} needs that",
                    hint="run the command again: it makes a new plan",
                )
            waiting = deployment.awaiting
            if is_approved and (waiting is None or waiting.id != plan.id):
                raise DeployedMovedError(
                    f"plan {plan.id} waits for approval no more",
                    hint="`sqlmig status` shows what waits",
                )

        with at_work(journal.owner):
            journal.append(
                Kind.PLAN,
                Status.STARTED,
                check=check,
                plan=plan.id,
                revision=plan.target,
                program=dict(plan.stages[-1]),
                program_diff=plan.diff.to_json(),
                details={"plan": plan.to_dict(), "owner": journal.owner.to_dict()},
            )
            with self._lease():
                return self._go_on(plan, stages, is_resumed=False)

    def resume(self, *, gone: int | None = None) -> Deployment:
        """Take over the unfinished plan and finish it: forwards, or back if it was going back.

        Args:
            gone: the newest sign of its owner, which was watched and has lost its lease.
        """
        plan = self._take_over(Status.RESUMED, gone)
        with self._lease():
            unfinished = self._unfinished()
            if unfinished.is_rolling_back:
                return self._roll_back(plan, unfinished.error, is_orphan=True)
            return self._go_on(plan, self._stages(plan), is_resumed=True)

    def roll_back(self, *, gone: int | None = None) -> Deployment:
        """Take over the unfinished plan and take it back: contents are those of its checkpoint.

        Args:
            gone: as for `resume`.
        """
        plan = self._take_over(Status.ROLLING_BACK, gone)
        with self._lease():
            return self._roll_back(plan, self._unfinished().error, is_orphan=True)

    def _lease(self) -> Lease:
        journal = self._journal

        def renew() -> None:
            journal.append(
                Kind.PLAN,
                Status.RENEWED,
                check=journal.check_owner,
                plan=self._unfinished().id,
            )

        return Lease(journal, renew)

    def _take_over(self, status: Status, gone: int | None) -> Plan:
        journal = self._journal
        journal.owner = with_token(journal.owner)
        unfinished = journal.refresh().unfinished
        if unfinished is None:
            raise UnfinishedPlanError(
                "no plan is unfinished", hint="`sqlmig status` shows the state"
            )
        taken = unfinished.run

        def check(deployment: Deployment) -> None:
            now = deployment.unfinished
            if now is None or now.run != taken:
                raise UnfinishedPlanError(
                    "the plan was ended by another process meanwhile",
                    hint="`sqlmig status` shows the state",
                )
            if now.owner is not None and is_alive(now.owner) and now.sign != gone:
                raise UnfinishedPlanError(
                    f"plan {now.id} is being run by {describe_owner(now.owner)}",
                    hint="wait for it, or stop that process first",
                )

        journal.append(
            Kind.PLAN,
            status,
            check=check,
            plan=unfinished.id,
            revision=unfinished.target,
            details={"owner": journal.owner.to_dict()},
        )
        return Plan.from_dict(unfinished.plan)

    def _unfinished(self) -> PlanInProgress:
        unfinished = self._journal.deployment.unfinished
        if unfinished is None:
            raise UnfinishedPlanError("the plan was ended by another process meanwhile")
        return unfinished

    def _stages(self, plan: Plan) -> tuple[Program, ...]:
        return tuple(self._parse(stage) for stage in plan.stages)

    def _go_on(self, plan: Plan, stages: Sequence[Program], *, is_resumed: bool) -> Deployment:
        self._observer(events.PlanStarted(plan, is_resumed))
        effects = Effects(
            self._engine,
            self._warehouse,
            plan,
            stages,
            self._journal,
            self._load_hook,
            lambda: self._parse(self._journal.deployment.program),
            self._patience,
        )
        ended: list[Mapping[str, Any]] = []
        for step in plan.steps:
            done = self._unfinished().steps.get(step.number)
            if done is None or done.status is not Status.DONE:
                ended = self._step(plan, step, effects, ended, is_repeated=done is not None)
        self._journal.append_all(
            [
                *ended,
                {
                    "kind": Kind.PLAN,
                    "status": Status.APPLIED,
                    "plan": plan.id,
                    "revision": plan.target,
                    "details": {"direction": plan.direction},
                },
            ],
            check=self._journal.check_owner,
        )
        self._observer(events.PlanApplied(plan))
        return self._journal.deployment

    def _step(
        self,
        plan: Plan,
        step: Step,
        effects: Effects,
        ended: Sequence[Mapping[str, Any]],
        *,
        is_repeated: bool,
    ) -> list[Mapping[str, Any]]:
        """Carry a step out.

        Args:
            ended: the record that ends the step before, written together with this one's first:
                a commit of the ledger takes longer than most steps.
            is_repeated: an earlier process may have made its effect.

        Returns:
            The record that ends this step; the next commit writes it.
        """
        journal = self._journal
        began = time.monotonic()
        of_step = {"kind": Kind.STEP, "plan": plan.id, "step": step.number}
        journal.append_all(
            [*ended, {**of_step, "status": Status.STARTED}], check=journal.check_owner
        )
        self._observer(events.StepStarted(step))
        try:
            journal.still_owner()
            outcome = effects.make(step, is_repeated=is_repeated)
        except (LedgerError, UnfinishedPlanError):
            raise
        except Exception as error:
            seconds = time.monotonic() - began
            message = error.message if isinstance(error, SqlmigError) else _first_line(error)
            self._observer(events.StepFailedEvent(step, seconds, message))
            self._fail(plan, step, message, error)
            raise AssertionError("unreachable") from error
        self._observer(events.StepEffected(step))
        seconds = time.monotonic() - began
        self._observer(events.StepFinished(step, seconds, outcome.rows, outcome.note))
        details = {
            "seconds": round(seconds, 3),
            "rows": outcome.rows,
            "is_checkpoint": isinstance(step.action, Checkpoint),
            "note": outcome.note,
        }
        return [{**of_step, "status": Status.DONE, "cut": outcome.change, "details": details}]

    def _fail(self, plan: Plan, step: Step, message: str, error: Exception) -> None:
        from sqlmig.planning.explain import describe_action

        what = f"step {step.number} ({describe_action(step.action)}) failed: {message}"
        journal = self._journal
        try:
            journal.append(
                Kind.STEP,
                Status.FAILED,
                check=journal.check_owner,
                plan=plan.id,
                step=step.number,
                error=message,
            )
            journal.append(
                Kind.PLAN,
                Status.ROLLING_BACK,
                check=journal.check_owner,
                plan=plan.id,
                revision=plan.target,
                error=what,
            )
            self._roll_back(plan, what)
        except LedgerError as second:  # the plan stays unfinished, as if this process had died
            raise LedgerError(f"{what}; and {second.message}", hint=second.hint) from error
        except StepFailed as second:
            raise StepFailed(
                f"{what}; and {second.message}",
                location=getattr(error, "location", None),
                hint=second.hint,
            ) from error
        hint = getattr(error, "hint", None)
        raise StepFailed(
            f"{what}; the pipeline is back at revision {plan.deployed or 'base'}, "
            "its data as before",
            location=getattr(error, "location", None),
            hint=hint or "mend the cause and run the command again; nothing has to be undone",
        ) from error

    def _roll_back(self, plan: Plan, error: str | None, *, is_orphan: bool = False) -> Deployment:
        journal = self._journal
        unfinished = self._unfinished()
        cut = unfinished.checkpoint
        if cut is not None:
            try:
                if is_orphan:
                    fence_touched(self._warehouse, journal, plan, cut, unfinished.run)
                cut = restore_cut(self._engine, self._warehouse, journal, plan, cut, unfinished.run)
            except (LedgerError, UnfinishedPlanError):
                raise
            except Exception as second:
                failed = second.message if isinstance(second, SqlmigError) else _first_line(second)
                message = f"taking it back failed: {failed}"
                journal.append(
                    Kind.PLAN,
                    Status.FAILED,
                    check=journal.check_owner,
                    plan=plan.id,
                    revision=plan.target,
                    error=f"{error}; {message}" if error else message,
                )
                hint = second.hint if isinstance(second, NoSpaceError) else None
                hint = hint or "`sqlmig repair --rollback` tries again"
                raise StepFailed(message, hint=hint) from second
        journal.append(
            Kind.PLAN,
            Status.ROLLED_BACK,
            check=journal.check_owner,
            plan=plan.id,
            revision=plan.deployed,
            cut=cut.to_dict() if cut is not None else None,
            error=error,
        )
        self._observer(events.PlanRolledBack(plan))
        return journal.deployment


def check_idle(deployment: Deployment) -> None:
    """Raise when a plan is under way.

    Raises:
        UnfinishedPlanError: says which process runs it, or that it died, and what to do.
    """
    plan = deployment.unfinished
    if plan is not None:
        alive = is_alive(plan.owner) if plan.owner else False
        who = describe_owner(plan.owner) if plan.owner else "a process"
        if alive:
            raise UnfinishedPlanError(
                f"plan {plan.id} is being run by {who} since {plan.at:%Y-%m-%d %H:%M:%S} UTC",
                hint="wait for it; `sqlmig status` shows how far it is",
            )
        state = "died" if alive is False else "was last heard of"
        raise UnfinishedPlanError(
            f"plan {plan.id} is unfinished: {who} {state} "
            f"at {plan.last_sign:%Y-%m-%d %H:%M:%S} UTC",
            hint="`sqlmig repair` shows it; `sqlmig repair --resume` goes on, "
            "`sqlmig repair --rollback` takes it back",
        )


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
