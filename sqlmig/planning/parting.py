"""What keeps a time from parting the rows of streaming tables (`upgrade --at`). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from sqlmig.planning.draft import Draft
from sqlmig.planning.steps import Blocker
from sqlmig.planning.streams import Decision
from sqlmig.planning.windows import has_windows

_WITHOUT = "take `--at` out: then the checkpoint parts them"


def check_parting(
    draft: Draft, streams: Mapping[str, Decision], views: Mapping[str, Decision]
) -> None:
    """Let what can't be parted by the time that was asked for stand in the plan's way.

    Args:
        streams: what becomes of streaming tables. views: of materialized views that took rows in.
    """
    if draft.request.at is not None:
        draft.blockers.extend(_blockers(draft, draft.request.at, streams, views))


def in_words(at: datetime) -> str:
    """A time for people: in UTC, to the second if that is all there is."""
    text = f"{at:%Y-%m-%d %H:%M:%S}"
    return f"{text}.{at:%f} UTC" if at.microsecond else f"{text} UTC"


def _blockers(
    draft: Draft, at: datetime, streams: Mapping[str, Decision], views: Mapping[str, Decision]
) -> Iterator[Blocker]:
    if not streams:
        yield Blocker(
            f"no streaming table goes on in place, so there are no rows for {in_words(at)} to part",
            hint="take `--at` out; op.backfill makes the rows from a time on anew",
        )
    applied = draft.deployment.last_applied
    if applied is not None and at < applied.at:
        yield Blocker(
            f"{in_words(at)} lies before {in_words(applied.at)}, when revision "
            f"{draft.deployment.revision} was deployed: other queries were in force then",
            hint="name a later time, or let op.backfill make the rows from then on anew",
        )
    for name, decision in sorted(streams.items()):
        location = draft.target.relations[name].location
        if decision.strategy != "in place":
            word = "rebuilt" if decision.strategy == "rebuild" else "backfilled"
            yield Blocker(
                f"`{name}` is {word} ({decision.why}), so no time parts its rows",
                location,
                "take `--at` out, or let it go on in place",
            )
        elif has_windows(draft.request.deployed, draft.target, name):
            yield Blocker(
                f"`{name}` has windows, which {in_words(at)} can't part",
                location,
                "take `--at` out; op.in_place parts them by the checkpoint",
            )
        elif name in draft.deployment.failures:
            yield Blocker(
                f"`{name}` failed in the last tick, so what came before {in_words(at)} can't pass "
                "under the query deployed so far",
                location,
                _WITHOUT,
            )
    for name, state in sorted(draft.observed.items()):
        is_above = name in draft.target.downstream(frozenset(streams))
        is_kept = name in views and views[name].strategy == "in place"
        if state.kind == "materialized view" and (is_kept or (is_above and state.takes_in)):
            yield Blocker(
                f"`{name}` goes on in place, and can't give back what it has counted since",
                draft.target.relations[name].location if name in draft.target.relations else None,
                f'{_WITHOUT}; or write op.rebuild("{name}")',
            )
