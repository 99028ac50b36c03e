"""Former cuts: a checkpoint or a time, to the state of every relation then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmig.commands.project import Project
from sqlmig.durations import parse_time
from sqlmig.errors import EngineError
from sqlmig.ledger.fold import Folding
from sqlmig.ledger.records import Cut, Kind, Record


@dataclass(frozen=True)
class FormerCut:
    """A consistent cut, when it was recorded, and the program that was deployed."""

    number: int
    at: datetime
    cut: Cut
    program: Mapping[str, str]


def find_cut(project: Project, name: str) -> FormerCut:
    """The newest consistent cut at a checkpoint or a time.

    Args:
        name: number of a record of the ledger, a checkpoint's name, or a time.

    Raises:
        EngineError: there is none, or it is older than cuts are kept.
    """
    records = project.ledger.read(is_whole=True)[1]
    now = project.journal.clock()
    last = _last(records, name, now)
    if last is None:
        raise EngineError(
            f"there is no checkpoint `{name}`",
            hint="`sqlmig checkpoint NAME` makes one; a time is written 2026-06-10T18:30",
        )
    folding = Folding()
    for record in records:
        if record.seq > last.seq:
            break
        folding.take(record)
    then = folding.result()
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
    return FormerCut(last.seq, last.at, then.consistent, then.program)


def _last(records: Sequence[Record], name: str, now: datetime) -> Record | None:
    """The last record that counts for `name`."""
    named = [r for r in records if r.kind is Kind.CHECKPOINT and r.details.get("name") == name]
    if named:
        return named[-1]
    if name.isdigit():
        found = [r for r in records if r.seq == int(name)]
        return found[-1] if found else None
    try:
        at = parse_time(name, now)
    except ValueError:
        return None
    before = [r for r in records if r.at <= at]
    return before[-1] if before else None
