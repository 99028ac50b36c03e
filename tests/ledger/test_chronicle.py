"""Records told as deploys."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from sqlmig.ledger.chronicle import Deploy, deploys
from sqlmig.ledger.records import Kind, Record, Status

BEGAN = datetime(2026, 6, 10, 12, tzinfo=timezone.utc)


def record(kind: Kind, status: Status, second: int, **values: Any) -> Record:
    return Record("school", kind, status, BEGAN + timedelta(seconds=second), **values)


def plan(before: str | None, after: str, direction: str = "upgrade") -> dict[str, Any]:
    ups = [{"revision": after, "message": f"to {after}\nand more"}]
    return {"plan": {"direction": direction, "deployed": before, "ups": ups}}


def test_an_upgrade_is_told_with_time_rows_and_the_checkout_of_its_plan() -> None:
    told = deploys(
        [
            record(Kind.STAMP, Status.DONE, 0, revision="a", details={"ups": []}),
            record(
                Kind.PLAN,
                Status.AWAITING,
                10,
                plan="p",
                revision="b",
                commit="c0ffee",
                branch="main",
                dirty=False,
                author="Ann",
                remote="https://example.com/a.git",
                actor="ci@runner",
                details=plan("a", "b"),
            ),
            record(
                Kind.PLAN,
                Status.STARTED,
                20,
                plan="p",
                revision="b",
                commit="other",
                actor="bob@desk",
                details=plan("a", "b"),
            ),
            record(Kind.STEP, Status.DONE, 21, plan="p", step=1, details={"rows": None}),
            record(Kind.STEP, Status.DONE, 22, plan="p", step=2, details={"rows": 40}),
            record(Kind.STEP, Status.DONE, 23, plan="p", step=3, details={"rows": 2}),
            record(Kind.PLAN, Status.APPLIED, 24, plan="p", revision="b"),
            record(Kind.TICK, Status.DONE, 30),
        ]
    )

    assert told[0] == Deploy(
        kind="upgrade",
        status="applied",
        plan="p",
        before="a",
        revision="b",
        message="to b",
        began=BEGAN + timedelta(seconds=20),
        ended=BEGAN + timedelta(seconds=24),
        rows=42,
        commit="c0ffee",
        branch="main",
        is_dirty=False,
        author="Ann",
        remote="https://example.com/a.git",
        actor="bob@desk",
    )
    assert told[0].seconds == 4.0
    assert [(d.kind, d.before, d.revision) for d in told[1:]] == [("stamp", None, "a")]


def test_what_was_taken_back_or_is_under_way_is_told_so() -> None:
    told = deploys(
        [
            record(Kind.PLAN, Status.STARTED, 0, plan="p", revision="a", details=plan(None, "a")),
            record(Kind.PLAN, Status.ROLLED_BACK, 5, plan="p", error="step 3 failed"),
            record(Kind.PLAN, Status.STARTED, 9, plan="q", revision="a", details=plan(None, "a")),
            record(Kind.PLAN, Status.RESUMED, 10, plan="q", revision="a"),
        ]
    )

    assert [(d.plan, d.status, d.error, d.seconds) for d in told] == [
        ("q", "under way", None, None),
        ("p", "taken back", "step 3 failed", 5.0),
    ]


def test_a_downgrade_keeps_the_message_of_the_revision_that_it_went_back_to() -> None:
    down = {"plan": {"direction": "downgrade", "deployed": "b", "ups": []}}
    told = deploys(
        [
            record(Kind.PLAN, Status.STARTED, 0, plan="p", revision="a", details=plan(None, "a")),
            record(Kind.PLAN, Status.APPLIED, 1, plan="p", revision="a"),
            record(Kind.PLAN, Status.STARTED, 2, plan="q", revision="a", details=down),
            record(Kind.PLAN, Status.APPLIED, 3, plan="q", revision="a"),
        ]
    )

    assert [(d.kind, d.before, d.revision, d.message) for d in told] == [
        ("downgrade", "b", "a", "to a"),
        ("upgrade", None, "a", "to a"),
    ]
