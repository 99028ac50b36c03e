"""Fills a ledger without Spark: plans that wait, run or died."""

from __future__ import annotations

import os

from sqlmig.commands import Project, make_plan
from sqlmig.execution.journal import Journal
from sqlmig.execution.process import machine, process_start
from sqlmig.ledger.records import Kind, Owner, Status
from sqlmig.planning.steps import Plan


def await_approval(project: Project, target: str = "head") -> Plan:
    """Record a plan to `target` that waits for approval, as `upgrade` does."""
    plan = make_plan(project, target, offline=True)
    _append(project.journal, plan, Status.AWAITING)
    return plan


def start(project: Project, target: str = "head", *, owner: Owner | None = None) -> Plan:
    """Record a plan to `target` as started, two of its steps as done and the third as begun.

    Args:
        owner: the process that runs it; by default one that is dead.
    """
    plan = make_plan(project, target, offline=True)
    journal = project.journal
    owner = owner or Owner("dead", os.uname().nodename, 2**22 - 1, "1", machine())
    _append(journal, plan, Status.STARTED, owner=owner.to_dict())
    for number in (1, 2):
        journal.append(Kind.STEP, Status.STARTED, plan=plan.id, step=number)
        journal.append(Kind.STEP, Status.DONE, plan=plan.id, step=number)
    journal.append(Kind.STEP, Status.STARTED, plan=plan.id, step=3)
    return plan


def living_process() -> Owner:
    """A process that is not this one, and lives: the one that started the tests."""
    return Owner("alive", os.uname().nodename, os.getppid(), process_start(os.getppid()), machine())


def _append(journal: Journal, plan: Plan, status: Status, **details: object) -> None:
    journal.refresh()
    journal.append(
        Kind.PLAN,
        status,
        plan=plan.id,
        revision=plan.target,
        program=dict(plan.stages[-1]),
        program_diff=plan.diff.to_json(),
        details={"plan": plan.to_dict(), **details},
    )
