"""Former cuts: a checkpoint or a time, to the state of every relation then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlmig.commands.project import Project
from sqlmig.durations import parse_time
from sqlmig.errors import EngineError
from sqlmig.ledger.cut import Cut
from sqlmig.ledger.fold import fold


@dataclass(frozen=True)
class FormerCut:
    """A consistent cut, when it was recorded, and the program that was deployed."""

    number: int
    at: datetime
    cut: Cut
    program: Mapping[str, str]


def find_cut(project: Project, name: str) -> FormerCut:
    """The newest consistent cut at a checkpoint or a time.

    Of the ledger only what the fold up to there needs is read.

    Args:
        name: number of a record of the ledger, a checkpoint's name, or a time.

    Raises:
        EngineError: there is none, it is older than cuts are kept, or it was removed.
    """
    now = project.journal.clock()
    seq = _seq(project, name, now)
    records = () if seq is None else project.ledger.read(until=seq)[1]
    if not records or records[-1].seq != seq:
        raise EngineError(
            f"there is no checkpoint `{name}`",
            hint="`sqlmig checkpoint NAME` makes one; a time is written 2026-06-10T18:30",
        )
    last, then = records[-1], fold(records)
    if then.deployed_seq < 0:
        raise EngineError(
            f"nothing was deployed at {last.at:%Y-%m-%d %H:%M:%S} UTC",
            hint="`sqlmig history --verbose` shows since when what was deployed",
        )
    kept = project.target.runner.keep_checkpoints
    if (now - last.at).total_seconds() > kept:
        raise EngineError(
            f"checkpoint `{name}` is of {last.at:%Y-%m-%d %H:%M:%S} UTC, and they are kept for "
            f"{kept / 86400:g} days",
            hint="`keep_checkpoints` in sqlmig.yml says how long; what was removed stays so",
        )
    gone = project.deployment().collected
    if gone.at is not None and gone.before is not None and last.at < gone.before:
        raise EngineError(
            f"checkpoint `{name}` is of {last.at:%Y-%m-%d %H:%M:%S} UTC, and what only cuts before "
            f"{gone.before:%Y-%m-%d %H:%M:%S} UTC needed was removed",
            hint="`sqlmig history --verbose` shows since when what was deployed",
        )
    return FormerCut(last.seq, last.at, then.consistent, then.program)


def _seq(project: Project, name: str, now: datetime) -> int | None:
    """The number of the last record that counts for `name`."""
    named = project.ledger.find(checkpoint=name)
    if named is not None:
        return named
    if name.isdigit():
        return int(name) if len(name) < 19 else None
    try:
        return project.ledger.find(until=parse_time(name, now))
    except ValueError:
        return None
