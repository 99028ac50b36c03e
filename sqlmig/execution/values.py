"""The values that cross between execution and what it asks of a warehouse and of Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlmig.ledger.cut import RelationState


@dataclass(frozen=True)
class Mark:
    """What a Delta commit of sqlmig carries in its metadata: whose it is, what it was made from.

    Args:
        run, step: name the effect; the same pair never commits twice.
        inputs: for a view's contents: stored input -> content id.
        passed: for rows that were taken in: the position after them, as in `RelationState`; None
            for a commit that says nothing about that.
        watermark, late: part of that position, as in `RelationState`.
    """

    pipeline: str
    run: str
    step: int
    revision: str | None
    fingerprint: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    passed: Mapping[str, str] | None = None
    watermark: int | None = None
    late: int = 0

    def leaving(self, state: RelationState) -> Mark:
        """The mark of a commit that leaves a relation in `state`: its fingerprint and position."""
        return replace(
            self,
            fingerprint=state.fingerprint,
            inputs=state.inputs,
            passed=state.passed if state.takes_in else None,
            watermark=state.watermark,
            late=state.late,
        )

    def to_json(self) -> str:
        """The text put into the commit's `userMetadata`."""
        body: dict[str, Any] = {
            "pipeline": self.pipeline,
            "run": self.run,
            "step": self.step,
            "revision": self.revision,
            "fingerprint": self.fingerprint,
            "inputs": dict(sorted(self.inputs.items())),
        }
        if self.passed is not None:
            body["passed"] = dict(self.passed)
        if self.watermark is not None:
            body["watermark"] = self.watermark
        if self.late:
            body["late"] = self.late
        return json.dumps({"sqlmig": body}, sort_keys=True)

    @staticmethod
    def from_json(text: str | None) -> Mark | None:
        """The mark in a commit's `userMetadata`; None where sqlmig did not write it."""
        try:
            body = json.loads(text or "")["sqlmig"]
            return Mark(
                pipeline=body["pipeline"],
                run=body["run"],
                step=body["step"],
                revision=body["revision"],
                fingerprint=body["fingerprint"],
                inputs=body["inputs"],
                passed=body.get("passed"),
                watermark=body.get("watermark"),
                late=body.get("late", 0),
            )
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True)
class Written:
    """A Delta table after a commit.

    Args:
        version: its Delta version.
        rows, bytes: its size now. written: rows that the commit wrote, where known.
    """

    version: int
    rows: int | None
    bytes: int | None
    written: int | None = None


@dataclass(frozen=True)
class Arrived:
    """The rows of a stream that have not passed yet.

    Args:
        versions: the commits that brought them, ascending; None for every row that is there.
        passed: the stream's position after them.
    """

    versions: tuple[int, ...] | None
    passed: str

    @property
    def is_empty(self) -> bool:
        """No commit brought rows."""
        return self.versions == ()


@dataclass(frozen=True)
class Period:
    """The rows from a time on.

    Args:
        column: of the streaming table and of its stream.
        since: a date or a timestamp as Spark reads it; rows of that very time are among them.
    """

    column: str
    since: str


@dataclass(frozen=True)
class Span:
    """The rows of a stream that fill whole windows.

    Args:
        column: of the stream: a row's time.
        since: rows of that very time are among them; None for no bound. Microseconds since 1970.
        until: rows of that very time are not; None where no window is over: then no row is.
    """

    column: str
    since: int | None
    until: int | None

    @property
    def is_empty(self) -> bool:
        """No window lies in it."""
        return self.until is None or (self.since is not None and self.until <= self.since)


@dataclass(frozen=True)
class Measured:
    """The times of rows that came.

    Args:
        latest: the greatest, in microseconds since 1970; None where no row has one.
        late: rows that came behind a given time.
    """

    latest: int | None
    late: int


@dataclass(frozen=True)
class Ingested:
    """What one round of a source brought.

    Args:
        rows: records read. rejected: bad ones that were kept aside.
        table: the table after it.
        behind: records that the source has and the round did not read; None where that is unknown.
        batch: number of the last batch in `rows`; None where that is unknown.
    """

    rows: int
    rejected: int
    table: Written
    behind: int | None = None
    batch: int | None = None


@dataclass(frozen=True)
class RawSource:
    """A source that has kept raw records: its connector, the folder, the generation in use."""

    connector: str
    folder: str
    generation: int


@dataclass(frozen=True)
class Misfit:
    """Rows of a table that its new definition has no room for, or that change under it.

    Args:
        message: which and how many, with samples.
        is_loss: the cast changes their values; else they can't be kept at all.
    """

    message: str
    is_loss: bool = False
