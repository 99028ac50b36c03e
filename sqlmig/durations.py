"""Durations and times as people write them: `5s`, `10m`, `18:30`, `2026-06-10 18:30`, `+10m`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_UNITS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw]?)")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


def parse_duration(text: str) -> float | None:
    """A duration in seconds; None where it is none. Without a unit it is in seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    return float(match[1]) * _UNITS[match[2]] if match else None


def parse_time(text: str, now: datetime) -> datetime:
    """A point in time.

    Args:
        text: ISO 8601 (UTC without an offset), `HH:MM` (the next time it is that late in UTC),
            or `+` or `-` and a duration, counted from now.
        now: the time now, with its offset.

    Raises:
        ValueError: it is none of these; the text says what is.
    """
    text = text.strip()
    if text[:1] in ("+", "-"):
        seconds = parse_duration(text[1:])
        if seconds is not None:
            step = timedelta(seconds=seconds)
            return now + step if text[0] == "+" else now - step
    clock = _CLOCK.fullmatch(text)
    try:
        if clock:
            hour, minute, second = (int(part or 0) for part in clock.groups())
            at = now.astimezone(timezone.utc).replace(
                hour=hour, minute=minute, second=second, microsecond=0
            )
            return at if at > now else at + timedelta(days=1)
        iso = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
        at = datetime.fromisoformat(iso)
    except ValueError as error:
        raise ValueError(
            f"`{text}` is no time: write 2026-06-10T18:30, 18:30 (both in UTC), "
            "2026-06-10T18:30+02:00, or +10m"
        ) from error
    return at if at.tzinfo else at.replace(tzinfo=timezone.utc)
