"""`history --deployed`: who deployed what, and what it takes to undo it. It reads the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from sqlmig.commands.project import Project
from sqlmig.errors import SqlmigError
from sqlmig.ledger.chronicle import Deploy, deploys

if TYPE_CHECKING:
    from sqlmig.ledger.deployment import Deployment
    from sqlmig.planning.steps import Plan


@dataclass(frozen=True)
class Undoing:
    """What the way back from now to before a deploy takes.

    Args:
        computes: relations whose rows are computed, backfilled, converted, laid out anew, filled or
            made of raw records; sorted.
        runs: hooks on the way run statements or functions.
        loses: what is lost, in words.
        blocker: why there is no way; None where there is one.
    """

    computes: tuple[str, ...] = ()
    runs: bool = False
    loses: tuple[str, ...] = ()
    blocker: str | None = None

    @property
    def is_free(self) -> bool:
        """Nothing is computed, run or lost: contents that were there are put back."""
        return not (self.computes or self.runs or self.loses or self.blocker)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "is_free": self.is_free,
            "computes": list(self.computes),
            "runs_hooks": self.runs,
            "loses": list(self.loses),
            "blocker": self.blocker,
        }


@dataclass(frozen=True)
class DeployEntry:
    """A deploy as `history --deployed` lists it.

    Args:
        deploy: what the ledger says of it.
        is_current: it made the deployed state what it is.
        undoing: what the way back takes; None for what was undone already, or never applied.
    """

    deploy: Deploy
    is_current: bool
    undoing: Undoing | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        deploy = self.deploy
        return {
            "kind": deploy.kind,
            "status": deploy.status,
            "plan": deploy.plan,
            "before": deploy.before,
            "revision": deploy.revision,
            "message": deploy.message,
            "is_current": self.is_current,
            "began": deploy.began.isoformat(timespec="seconds"),
            "ended": deploy.ended.isoformat(timespec="seconds") if deploy.ended else None,
            "seconds": None if deploy.seconds is None else round(deploy.seconds, 3),
            "rows": deploy.rows,
            "commit": deploy.commit,
            "branch": deploy.branch,
            "is_dirty": deploy.is_dirty,
            "author": deploy.author,
            "remote": deploy.remote,
            "actor": deploy.actor,
            "error": deploy.error,
            "undoing": self.undoing.to_dict() if self.undoing else None,
        }


def deployed_history(project: Project, *, newest: int = 0) -> tuple[tuple[DeployEntry, ...], int]:
    """The deploys of the target, newest first, and how many there are in all.

    What it takes to undo one is the plan from now to the revision before it, made from the ledger
    alone: no Spark is started and no table looked at. It is made for those that are returned, once
    for each revision.

    Args:
        newest: only so many; 0 for all.
    """
    _, records = project.ledger.read()
    deployment = project.deployment(records)
    found = deploys(records)
    current = next((d for d in found if d.status == "applied"), None)
    undone: dict[str | None, Undoing | None] = {}
    entries = []
    for deploy in found[: newest or None]:
        is_undoable = deploy.status == "applied" and deploy.kind == "upgrade"
        if is_undoable and deploy.before not in undone:
            undone[deploy.before] = _undoing(project, deployment, deploy.before)
        is_current = deploy is current
        entries.append(
            DeployEntry(deploy, is_current, undone.get(deploy.before) if is_undoable else None)
        )
    return tuple(entries), len(found)


def _undoing(project: Project, deployment: Deployment, goal: str | None) -> Undoing | None:
    """What the downgrade from now to `goal` takes; None where that is no way down."""
    from sqlmig.commands.plans import plan_way

    if goal == deployment.revision or (goal is not None and goal not in deployment.applied):
        return None
    try:
        plan, _ = plan_way(
            project,
            deployment,
            goal or "base",
            direction="downgrade",
            offline=True,
            explain=False,
        )
    except SqlmigError as error:
        return Undoing(blocker=error.message)
    return undoing_of(plan)


def undoing_of(plan: Plan) -> Undoing:
    """What a plan takes, as the way back."""
    from sqlmig.planning.steps import Bootstrap, Execute, RunFunction
    from sqlmig.planning.stream_steps import BackfillStream
    from sqlmig.planning.table_steps import TableAction

    actions = [step.action for step in plan.steps]
    computing = (Bootstrap, BackfillStream, *get_args(TableAction))
    return Undoing(
        computes=tuple(sorted({a.relation for a in actions if isinstance(a, computing)})),
        runs=any(isinstance(action, (Execute, RunFunction)) for action in actions),
        loses=tuple(step.destructive or "" for step in plan.destructive),
        blocker=plan.blockers[0].message if plan.blockers else None,
    )
