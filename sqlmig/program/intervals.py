"""Lengths of time and points in time as Spark writes them, in microseconds. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from fractions import Fraction

from sqlmig.program.lexer import STRING, Token, string_value
from sqlmig.wording import counted

_EPOCH = datetime(1970, 1, 1)
_SECOND = 1_000_000
_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": 86_400 * _SECOND,
    "week": 7 * 86_400 * _SECOND,
}
_PART = re.compile(r"([+-]?)\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?(?![a-z])\s*")


def read_interval(text: str) -> int | None:
    """A length of time.

    Args:
        text: numbers, each with a unit; a fraction has seconds. `interval` may stand before them.

    Returns:
        Microseconds. None where it is none, or its length is not fixed (months, years).
    """
    text = text.strip().lower().removeprefix("interval").strip()
    total, at = Fraction(0), 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[3] not in _UNITS or ("." in part[2] and part[3] != "second"):
            return None
        total += Fraction(f"{part[1]}{part[2]}") * _UNITS[part[3]]
        at = part.end()
    return int(total) if at and total.denominator == 1 else None


def interval_of(tokens: Sequence[Token]) -> int | None:
    """The length of time that the tokens behind INTERVAL say; None as in `read_interval`."""
    return read_interval(
        " ".join(string_value(t.text) if t.kind == STRING else t.text for t in tokens)
    )


def interval_text(length: int) -> str:
    """A length of time in the largest unit that it is a whole number of: `90 minutes`."""
    units = (unit for unit in _UNITS if unit != "week" and length % _UNITS[unit] == 0)
    *_, unit = units
    count = length // _UNITS[unit]
    return counted(count, unit)


def time_text(at: int) -> str:
    """A point in time as Spark writes it, in UTC: `2026-06-10 18:30:00`.

    Args:
        at: microseconds since 1970; what lies beyond the years 1 to 9999 is told as their end.
    """
    first, last = (_microseconds(edge) for edge in (datetime.min, datetime.max))
    return str(_EPOCH + timedelta(microseconds=min(max(at, first), last)))


def read_time(text: str) -> int | None:
    """A date or timestamp in microseconds since 1970; None where it is none.

    Args:
        text: as ISO 8601 and Spark write it; without an offset it is in UTC.
    """
    text = text.strip()
    iso = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return None
    if at.tzinfo is not None:
        at = at.astimezone(timezone.utc).replace(tzinfo=None)
    return _microseconds(at)


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
