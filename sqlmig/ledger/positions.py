"""Where in a Delta table's history a streaming table stands: which commits' rows have passed.

A version number alone would not do. A table that was put back to version 5 goes on with 7, and what
6 brought is gone; put back to 6 later, it is there again. So a position is the set of commits whose
rows have passed, and what has not passed are the commits that made the table what it is, less
those. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Versions:
    """A set of Delta versions, as ascending ranges (first, last) that don't touch."""

    ranges: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def from_text(text: str) -> Versions:
        """The inverse of `str`: `0-5,7`."""
        ranges = []
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            ranges.append((int(first), int(last or first)))
        return Versions(tuple(ranges))

    def __str__(self) -> str:
        return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in self.ranges)

    def __contains__(self, version: int) -> bool:
        return any(first <= version <= last for first, last in self.ranges)

    @property
    def first_missing(self) -> int:
        """The least version that is not in it."""
        first, last = self.ranges[0] if self.ranges else (1, 0)
        return last + 1 if first == 0 else 0

    def meets(self, first: int, last: int | None) -> bool:
        """Whether a version from `first` to `last` is in it; None for no end."""
        end = self.ranges[-1][1] if self.ranges and last is None else last
        if end is None or first > end:
            return False
        return any(before <= end and first <= after for before, after in self.ranges)

    def united(self, others: Iterable[int]) -> Versions:
        """This set with further versions."""
        return self._with((version, version) for version in others)

    def up_to(self, version: int) -> Versions:
        """This set with all versions from 0 to `version`."""
        return self._with([(0, version)] if version >= 0 else [])

    def _with(self, more: Iterable[tuple[int, int]]) -> Versions:
        joined: list[tuple[int, int]] = []
        for first, last in sorted((*self.ranges, *more)):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        return Versions(tuple(joined))


@dataclass(frozen=True)
class LogEntry:
    """What one commit of a Delta table did.

    Args:
        brings_rows: it added rows that were not there before; changed rows don't count.
        restored: the version that it put the table back to, or None.
    """

    brings_rows: bool
    restored: int | None = None


class LostHistory(Exception):
    """The log doesn't tell any more what came: `version` is the newest that it lacks."""

    def __init__(self, version: int) -> None:
        super().__init__(f"version {version} is not in the log")
        self.version = version


def not_passed(log: Mapping[int, LogEntry], now: int, passed: Versions) -> tuple[int, ...]:
    """The commits that made the table what it is at version `now`, less those that have passed.

    What has passed is closed: with a commit, all that it was built on have passed too. So the walk
    back ends at the first that has.

    Returns:
        Their versions, ascending; also those that brought no rows.

    Raises:
        LostHistory: the log doesn't reach back far enough.
    """
    found: list[int] = []
    version: int | None = now
    while version is not None and version >= 0 and version not in passed:
        entry = log.get(version)
        if entry is None:
            raise LostHistory(version)
        found.append(version)
        version = entry.restored if entry.restored is not None else version - 1
    return tuple(sorted(found))


def all_passed(log: Mapping[int, LogEntry], now: int) -> Versions:
    """The position after every row at version `now`; what the log lacks counts as passed."""
    found: set[int] = set()
    version = now
    while version >= 0 and version not in found:
        entry = log.get(version)
        if entry is None:
            return Versions().united(found).up_to(version)
        found.add(version)
        version = entry.restored if entry.restored is not None else version - 1
    return Versions().united(found)
