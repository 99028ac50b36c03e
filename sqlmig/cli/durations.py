"""Durations and times as arguments of commands."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click


class _Time(click.ParamType):  # type: ignore[type-arg]
    """A point in time as people write it."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        from sqlmig.durations import parse_time
        from sqlmig.execution.clock import utc_now

        try:
            return value if isinstance(value, datetime) else parse_time(str(value), utc_now())
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Duration(click.ParamType):  # type: ignore[type-arg]
    """A duration as people write it, in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from sqlmig.durations import parse_duration

        seconds = value if isinstance(value, float) else parse_duration(str(value))
        if seconds is None:
            self.fail(f"`{value}` is no duration: write 5s, 10m, 2h or 7d", param, ctx)
        return seconds


TIME = _Time()
DURATION = _Duration()
