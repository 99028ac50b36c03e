"""Clocks: the time that people read, and the seconds that leases are counted in."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(timezone.utc)


def elapsed() -> float:
    """Seconds since the machine was started; goes on while it sleeps, and is never set back."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
