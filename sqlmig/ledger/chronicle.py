"""What was deployed, one after another: the ledger's records told as deploys. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmig.ledger.records import Kind, Record, Status

_ENDS = {Status.APPLIED: "applied", Status.ROLLED_BACK: "taken back"}


@dataclass(frozen=True)
class Deploy:
    """An upgrade, a downgrade or a stamp.

    Args:
        kind: `upgrade`, `downgrade` or `stamp`.
        status: `applied`, `taken back`, or `under way`.
        plan: the plan's id; None for a stamp.
        before, revision: what was deployed before it, and what it led to; None for base.
        message: the revision's, its first line; "" where it isn't known.
        began, ended: when; a stamp takes no time.
        rows: written by its steps.
        commit, branch, is_dirty, author, remote: of the checkout that the plan was made in.
        actor: who ran it.
        error: why it was taken back.
    """

    kind: str
    status: str
    plan: str | None
    before: str | None
    revision: str | None
    message: str
    began: datetime
    ended: datetime | None
    rows: int
    commit: str | None
    branch: str | None
    is_dirty: bool | None
    author: str | None
    remote: str | None
    actor: str | None
    error: str | None = None

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it is under way."""
        return None if self.ended is None else (self.ended - self.began).total_seconds()


def deploys(records: Iterable[Record]) -> tuple[Deploy, ...]:
    """The deploys that the records tell, newest first.

    Args:
        records: those of plans, steps and stamps, in the order of `seq`; others are passed over.
    """
    found: list[Deploy] = []
    awaited: dict[str | None, Record] = {}
    messages: dict[str | None, str] = {}
    under_way: Deploy | None = None
    deployed: str | None = None
    for record in records:
        for entry in _ups(record):
            messages[entry["revision"]] = entry["message"].partition("\n")[0]
        if record.kind is Kind.PLAN and record.status is Status.AWAITING:
            awaited[record.plan] = record
        elif record.kind is Kind.PLAN and record.status is Status.STARTED:
            origin = awaited.pop(record.plan, record)
            under_way = _begun(record, origin, messages.get(record.revision, ""))
        elif record.kind is Kind.STEP and record.status is Status.DONE and under_way:
            rows = under_way.rows + (record.details.get("rows") or 0)
            under_way = replace(under_way, rows=rows)
        elif record.kind is Kind.PLAN and record.status in _ENDS and under_way:
            status = _ENDS[record.status]
            found.append(replace(under_way, status=status, ended=record.at, error=record.error))
            deployed = under_way.revision if status == "applied" else deployed
            under_way = None
        elif record.kind is Kind.STAMP:
            stamp = _begun(record, record, messages.get(record.revision, ""))
            found.append(
                replace(stamp, kind="stamp", status="applied", before=deployed, ended=record.at)
            )
            deployed, under_way = record.revision, None
    return tuple(reversed([*found, under_way] if under_way else found))


def _ups(record: Record) -> Iterable[dict[str, str]]:
    plan = record.details.get("plan")
    ups: Iterable[dict[str, str]] = (plan if isinstance(plan, dict) else record.details).get(
        "ups", ()
    )
    return ups


def _begun(record: Record, origin: Record, message: str) -> Deploy:
    plan = record.details.get("plan") or {}
    return Deploy(
        kind=plan.get("direction", "upgrade"),
        status="under way",
        plan=record.plan,
        before=plan.get("deployed"),
        revision=record.revision,
        message=message,
        began=record.at,
        ended=None,
        rows=0,
        commit=origin.commit,
        branch=origin.branch,
        is_dirty=origin.dirty,
        author=origin.author,
        remote=origin.remote,
        actor=record.actor,
    )
