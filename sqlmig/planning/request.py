"""What a plan is made from: both programs, the hooks, the ledger's fold, the tables as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlmig.ledger.cut import RelationState
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.records import AppliedRevision
from sqlmig.planning.stages import Hop
from sqlmig.program.model import Program, RelationKind


@dataclass(frozen=True)
class Observed:
    """A Delta table as it is now: its version, and rows and bytes from its statistics.

    `fingerprint` and `inputs` come from the mark that sqlmig left in the commit, if it made it. For
    what takes rows in they, and its position (`passed`, `watermark`, `late`), come from the newest
    mark that says a position; `passed` is None where no commit since the known version does.
    """

    version: int
    rows: int | None
    bytes: int | None
    fingerprint: str | None = None
    inputs: Mapping[str, str] | None = None
    passed: Mapping[str, str] | None = None
    watermark: int | None = None
    late: int = 0


@dataclass(frozen=True)
class RawRecords:
    """Raw records that one generation of a source has kept.

    Args:
        first, last: numbers of the batches that they came in.
        is_gapless: every batch between these is there.
        since: when the first came, ISO 8601; '' where that is unknown.
    """

    first: int
    last: int
    is_gapless: bool
    records: int
    bytes: int
    since: str = ""


@dataclass(frozen=True)
class Request:
    """What a plan is made from.

    Args:
        deployment: the fold of the ledger.
        deployed, target: the programs at both ends.
        revision: the target revision; None for base.
        ups, downs: the revisions to apply and to take back, in order.
        hops: their hooks, in order.
        observed: folder -> the table as it is now; empty when planning from the ledger alone.
        folders: names of all folders of tables in the warehouse; empty as above.
        raw: folder of a source -> generation -> raw records that are kept of it.
        emptied: table -> why its rows can't be kept; it may lose them.
        at: from when on rows pass streaming tables under the target's queries; None for the
            checkpoint.
    """

    pipeline: str
    direction: str
    deployment: Deployment
    deployed: Program
    target: Program
    revision: str | None
    ups: tuple[AppliedRevision, ...] = ()
    downs: tuple[str, ...] = ()
    hops: tuple[Hop, ...] = ()
    observed: Mapping[str, Observed] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    emptied: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Mapping[int, RawRecords]] = field(default_factory=dict)
    at: datetime | None = None


def observe(state: RelationState, now: Observed) -> RelationState:
    """`state` as it is now: contents are new when the Delta version moved on.

    A view that was computed by another query than the one deployed, or by something else, has no
    fingerprint: a process that was overtaken by an upgrade may have written it.
    """
    if now.version == state.version:
        return replace(state, rows=now.rows, bytes=now.bytes)
    moved = state.with_rows(now.version, now.rows, now.bytes)
    if state.kind == RelationKind.TABLE.value:
        return moved
    if state.takes_in:
        # the rows that passed have passed, whoever let them
        if now.passed is None:
            return moved
        return replace(
            moved,
            inputs=now.inputs or {},
            passed=now.passed,
            watermark=now.watermark,
            late=now.late,
        )
    if not state.fingerprint or now.fingerprint != state.fingerprint:
        return replace(moved, fingerprint="", inputs={})
    return replace(moved, inputs=now.inputs or {})
