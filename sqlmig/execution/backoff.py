"""Back-off: what failed lately is tried again later, each time later than before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from sqlmig.execution.clock import elapsed

LONGEST = 300.0
"""Seconds after which a thing that keeps failing is tried again."""


class Backoff:
    """Remembers what failed, and when it is to be tried again.

    Args:
        first: seconds until the first repetition; doubled by each further failure.
        clock: counts seconds.
    """

    def __init__(self, first: float, clock: Callable[[], float] = elapsed) -> None:
        self._first = max(first, 0.1)
        self._clock = clock
        self._failed: dict[str, tuple[int, float]] = {}

    @property
    def waiting(self) -> Set[str]:
        """What is not to be tried now."""
        now = self._clock()
        return {name for name, (_, due) in self._failed.items() if due > now}

    def note(self, failures: Mapping[str, str], skipped: Set[str]) -> None:
        """Take up what a tick's outcome was.

        Args:
            failures: what failed. skipped: what the tick did not try.
        """
        for name in [n for n in self._failed if n not in failures and n not in skipped]:
            del self._failed[name]
        for name in failures:
            count = self._failed.get(name, (0, 0.0))[0]
            pause = min(self._first * 2 ** min(count, 20), LONGEST)
            self._failed[name] = (count + 1, self._clock() + pause)

    def forget(self) -> None:
        """Try everything again: another program is deployed."""
        self._failed.clear()
