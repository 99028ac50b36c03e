"""What the commits of a Delta table tell of times and positions. It reads nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlmig.errors import EngineError
from sqlmig.stored import Commit, log_entry


def came_before(folder: str, commits: Iterable[Commit], version: int, at: datetime) -> int:
    """The newest version up to `version` before which no commit is from `at` or later.

    Writers' clocks may differ: what was committed behind a commit from `at` on came after it.

    Args:
        folder: whose commits these are.
        commits: all that the log has.

    Returns:
        -1 where there is none.

    Raises:
        EngineError: the log doesn't reach back to `at`.
    """
    known = [c for c in commits if c.version <= version]
    since = [c.version for c in known if c.at is None or c.at >= at]
    if not since:
        return version
    first = min(since)
    if 0 < first == min(c.version for c in known):
        raise EngineError(
            f"the log of `{folder}` does not reach back to {at:%Y-%m-%d %H:%M:%S} UTC",
            hint="name a later time, or let op.rebuild or op.backfill make the rows anew",
        )
    return first - 1


def positions(commits: Iterable[Commit]) -> Sequence[tuple[int, Mapping[str, str]]]:
    """Version and position of each commit that says one, in the order of `commits`."""
    return [(c.version, c.mark.passed) for c in commits if c.mark and c.mark.passed is not None]


def restored_by(commits: Iterable[Commit], run: str) -> tuple[int, int] | None:
    """The version with which a run put the table back, and the one that it put it back to."""
    for commit in commits:
        restored = log_entry(commit).restored
        if commit.mark is not None and commit.mark.run == run and restored is not None:
            return commit.version, restored
    return None
