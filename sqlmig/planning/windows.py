"""What a change means for a streaming table with windows: whether it can go on, and from when on a
backfill makes it anew. Pure.

Rule `one-grid`. A streaming table with windows may go on in place, or be backfilled, only if the
windows before and after are the same: of the same column of the same stream, equally long, and
beginning at the same times. Then a row is in exactly one emitted window, or in none, being late.

Proof. Before the change, the windows that were emitted are all those that end at the last end E of
a window that is over or before it; their rows are those of the stream before E that came in time.
After it, the windows are the same ones, and those that begin at E or later are emitted, each once:
their rows are those from E on. So no row is in two, and none between two. A backfill since T, a
start of a window, takes out the windows that begin at T or later, told by a column that holds
their start, and makes all of these up to the new E: again T parts the rows. With windows of other
lengths, E or T would cut one in two, and rows be counted twice or never.

The column that a backfill tells windows by holds their start in every row, also in those that
earlier queries wrote: a change in place that lets a column become one is refused, so what the
query of now gives is what every row has, back to the last time that all were made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlmig.planning import directives
from sqlmig.planning.steps import Blocker
from sqlmig.program.canonical import materialization_fingerprint
from sqlmig.program.intervals import interval_text, read_time, time_text
from sqlmig.program.model import Program, View
from sqlmig.program.windows import (
    Windowing,
    differs_in_delay_alone,
    has_watermark,
    read_windows,
    start_columns,
)

REBUILT = "its windows gathered rows under the former query"
"""Why a streaming table with windows is made anew where nothing else is asked."""

DELAYED = "only how long it waits for late rows has changed"
"""Why one goes on in place without being asked."""


def has_windows(before: Program, after: Program, name: str) -> bool:
    """Whether a streaming table gathers rows in windows, before a change or after it."""
    views = (program.views.get(name) for program in (before, after))
    return any(view is not None and view.is_streaming and has_watermark(view) for view in views)


def obstacle(
    before: Program, after: Program, name: str, renamed: Mapping[str, str] | None = None
) -> str | None:
    """Why what a streaming table has can't stay while it goes on; None where it can.

    Args:
        renamed: table before -> the same table after.
    """
    old, new = before.views.get(name), after.views[name]
    if old is None or not has_windows(before, after, name):
        return None
    was, now = read_windows(old), read_windows(new)
    if was is None or now is None:
        return "it has windows only before the change" if was else "it had no windows"
    stream = (renamed or {}).get(was.stream, was.stream)
    if (stream, *was.grid[1:]) != now.grid:
        return f"its windows were {_words(was)}, and become {_words(now)}"
    gained = start_columns(after, new) - start_columns(before, old)
    if gained:
        return f"`{min(gained)}` becomes the start of a window, which older rows don't have in it"
    return None


def obstacles(
    before: Program,
    after: Program,
    asked: directives.InPlace | directives.Backfill,
    where: str,
    renamed: Mapping[str, str],
) -> Iterator[Blocker]:
    """What stands in the way of a strategy that a hook asks for.

    Args:
        where: the hook, in words.
    """
    view = after.views[asked.relation]
    what = "op.in_place" if isinstance(asked, directives.InPlace) else "op.backfill"
    location = view.query_location or view.location
    why = obstacle(before, after, asked.relation, renamed)
    if why is not None:
        yield Blocker(
            f"{where}: {what} can't keep windows of `{view.name}`: {why}",
            location,
            f'write op.rebuild("{view.name}")',
        )
        return
    if not isinstance(asked, directives.Backfill) or read_windows(view) is None:
        return
    starts = start_columns(after, view)
    if asked.column not in starts:
        known = f", such as `{min(starts)}`" if starts else ""
        yield Blocker(
            f"{where}: op.backfill tells windows of `{view.name}` by `{asked.column}`, which is "
            "not certainly their start",
            location,
            f"name a column that is window.start in the query{known}; op.rebuild needs none",
        )
    if read_time(asked.since) is None:
        yield Blocker(
            f"{where}: op.backfill since `{asked.since}`, which is no date and no timestamp",
            location,
            "write it as '2026-06-10' or '2026-06-10 18:30:00', in UTC",
        )


def changes_delay_alone(before: Program, after: Program, name: str) -> bool:
    """Whether nothing of a streaming table changes but the delay of its watermark."""
    old, new = before.views.get(name), after.views[name]
    if old is None or not differs_in_delay_alone(old, new):
        return False
    return _around(before, old) == _around(after, new)


def begin_of(view: View, since: str) -> tuple[str, str]:
    """The time that a backfill begins at, and of what rows, in words.

    Args:
        since: as it was asked for.
    """
    windowing = read_windows(view)
    at = read_time(since)
    if windowing is None or at is None:
        return since, since
    begin = time_text(windowing.begin(at))
    why = f"the start of the window that holds {since}"
    return begin, begin if windowing.begin(at) == at else f"{begin} ({why})"


def _around(program: Program, view: View) -> str:
    """The fingerprint of all that a view depends on besides its own text."""
    blank = replace(view, canonical="", spelled="")
    around = replace(program, relations={**program.relations, view.name: blank})
    return materialization_fingerprint(around, view.name)


def _words(windowing: Windowing) -> str:
    start = windowing.start % windowing.length
    offset = f" from {interval_text(start)} on" if start else ""
    return f"{interval_text(windowing.length)} of `{windowing.stream}.{windowing.column}`{offset}"
