"""Waiting for the time from which on a plan's queries count. It begins nothing."""

from __future__ import annotations

import time
from datetime import datetime

from sqlmig.execution import events
from sqlmig.execution.clock import Clock
from sqlmig.execution.lease import Sleep
from sqlmig.planning.steps import Plan
from sqlmig.planning.stream_steps import AdvanceStream

_NAP = 1.0
"""Seconds after which the clock is looked at again: it may be set."""


def wait_for_time(
    plan: Plan, clock: Clock, observer: events.Observer = events.ignore, sleep: Sleep = time.sleep
) -> None:
    """Wait until no row can come any more that passes under the former queries.

    Interrupting it changes nothing: the plan has not been begun, and the pipeline ticks on.

    Args:
        plan: one with a time that parts rows, or any other: then it does not wait.
    """
    at = _parts_at(plan)
    if at is None or clock() >= at:
        return
    observer(events.TimeAwaited(at))
    while (left := (at - clock()).total_seconds()) > 0:
        sleep(min(left, _NAP))


def _parts_at(plan: Plan) -> datetime | None:
    for step in plan.steps:
        match step.action:
            case AdvanceStream(_, until) if until:
                return datetime.fromisoformat(until)
            case _:
                pass
    return None
