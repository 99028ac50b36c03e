"""Records and states for the ledger's tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.fold import fold
from sqlmig.ledger.records import AppliedRevision, Kind, Owner, Record, Status

NOON = datetime(2026, 6, 10, 12, tzinfo=timezone.utc)
OWNER = Owner("token", "host", 4711, "100")


def revision(name: str) -> AppliedRevision:
    """A revision as the ledger holds it."""
    return AppliedRevision(name, (), (), (), f"message of {name}", f"revisions/{name}.py", "text")


def state(folder: str, version: int = 0, **values: Any) -> RelationState:
    """A table's state; by default contents are new in each version."""
    made = RelationState(folder, "table", version, f"{folder}@{version}", "f", rows=1, bytes=8)
    return replace(made, **values)


class Story:
    """A ledger told record by record; `fold` says what it adds up to."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def fold(self) -> Deployment:
        """The deployment by now."""
        return fold(self.records)

    def add(self, kind: Kind, status: Status, **values: Any) -> Story:
        """Any record."""
        seq = len(self.records) + 1
        at = NOON + timedelta(seconds=seq)
        self.records.append(Record("school", kind, status, at, seq=seq, **values))
        return self

    def runs(self) -> Story:
        """OWNER takes the lease on ticking."""
        return self.runner(Status.STARTED, owner=OWNER.to_dict())

    def runner(self, status: Status, cut: Mapping[str, Any] | None = None, **details: Any) -> Story:
        """A record of OWNER as the runner."""
        return self.add(Kind.RUNNER, status, cut=cut, details={"token": OWNER.token, **details})

    def plan(self, status: Status, target: str | None = "r1", **values: Any) -> Story:
        """A record about a plan; the one that starts it holds it."""
        if status in (Status.STARTED, Status.AWAITING):
            ups = [revision(target).to_dict()] if target else []
            plan = {"id": "p", "ups": ups, "downs": values.pop("downs", [])}
            values["details"] = {"plan": plan, "owner": OWNER.to_dict()}
            values.setdefault("program", {"p.sql": f"-- {target}"})
        return self.add(Kind.PLAN, status, plan="p", revision=target, **values)

    def step(
        self, number: int, status: Status, cut: Mapping[str, Any] | None = None, **details: Any
    ) -> Story:
        """A record about a step."""
        return self.add(Kind.STEP, status, plan="p", step=number, cut=cut, details=details)

    def checkpoint(self, cut: Cut) -> Story:
        """The checkpoint is step 2."""
        self.step(2, Status.STARTED)
        return self.step(2, Status.DONE, cut.to_dict(), is_checkpoint=True)

    def changed(self, number: int, **cut: Any) -> Story:
        """A step that changed the cut."""
        self.step(number, Status.STARTED)
        return self.step(number, Status.DONE, cut)

    def applied(self, target: str | None = "r1", **relations: RelationState) -> Story:
        """A whole plan that leads to `relations`."""
        before = self.fold().cut
        self.plan(Status.STARTED, target).checkpoint(before)
        self.changed(3, relations={n: s.to_dict() for n, s in relations.items()})
        return self.plan(Status.APPLIED, target)
