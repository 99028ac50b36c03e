"""What the ledger knows of a sink: what it has sent, and the batch that it is about to send.

Values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True)
class PinnedContents:
    """Contents of a stored relation, pinned to a version at which they can be read.

    Args:
        folder: of its table. version: the Delta version to read.
        content: the content id; equal ids mean equal contents, whatever the versions.
    """

    folder: str
    version: int
    content: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"folder": self.folder, "version": self.version, "content": self.content}

    @staticmethod
    def from_dict(data: Json) -> PinnedContents:
        """The inverse of `to_dict`."""
        return PinnedContents(**data)


@dataclass(frozen=True)
class Batch:
    """The changes from one contents of a relation to another, as a sink sends them.

    It is in the ledger before anything is sent, so that a repetition sends the same rows.

    Args:
        number: unique among all sinks of a pipeline, and ascending, from 1.
        before: what was sent last; None for a snapshot.
        after: what has been sent after it.
        at: when it was begun, in UTC.
        is_whole: all rows of `after` are sent, not only those that differ, and what of `before` is
            gone.
    """

    number: int
    before: PinnedContents | None
    after: PinnedContents
    at: datetime | None = None
    is_whole: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON; without a time where that is to be the record's."""
        data: dict[str, Any] = {
            "number": self.number,
            "before": self.before.to_dict() if self.before else None,
            "after": self.after.to_dict(),
        }
        if self.at is not None:
            data["at"] = self.at.isoformat()
        if self.is_whole:
            data["is_whole"] = True
        return data

    @staticmethod
    def from_dict(data: Json, at: datetime | None = None) -> Batch:
        """The inverse of `to_dict`; `at` is for a batch that was written without a time."""
        before = data["before"]
        if "at" in data:
            at = datetime.fromisoformat(data["at"])
        return Batch(
            data["number"],
            PinnedContents.from_dict(before) if before else None,
            PinnedContents.from_dict(data["after"]),
            at,
            data.get("is_whole", False),
        )


@dataclass(frozen=True)
class Owed:
    """Changes of before a cutover that a sink has yet to send; fields as those of `Batch`."""

    before: PinnedContents | None
    after: PinnedContents
    is_whole: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "before": self.before.to_dict() if self.before else None,
            "after": self.after.to_dict(),
            "is_whole": self.is_whole,
        }

    @staticmethod
    def from_dict(data: Json) -> Owed:
        """The inverse of `to_dict`."""
        before = data["before"]
        return Owed(
            PinnedContents.from_dict(before) if before else None,
            PinnedContents.from_dict(data["after"]),
            data["is_whole"],
        )


def begun_batches(details: Json, at: datetime | None = None) -> Mapping[str, Batch]:
    """`folder/generation` of a sink -> the batch that a record says it began to send."""
    batches: Json = details.get("batches", {})
    return {offsets: Batch.from_dict(batch, at) for offsets, batch in batches.items()}


@dataclass(frozen=True)
class SinkState:
    """A sink at a cut.

    Args:
        folder: its name when it was first started; its generations share it.
        generation: counts the starts, from 1.
        fingerprint: of its definition and its key, without secrets.
        id: names this generation for ever, also to a Delta table that it writes to.
        sent: the contents that its readers have; None before the first batch. Where something is
            owed, the contents from whose changes on it goes on behind that.
        batch: number of the last batch that was sent; 0 before it.
        rows: change rows sent so far by this generation.
        sent_at: when the last batch was begun, ISO 8601 in UTC.
        mode: what a cutover sends, as its definition says.
        owed: what is sent first, in this order.
        sends_all: the next batch from `sent` on is a whole one.
        is_continued: a cutover was passed over, so that readers may lack what it changed.
    """

    folder: str
    generation: int
    fingerprint: str
    id: str
    sent: PinnedContents | None = None
    batch: int = 0
    rows: int = 0
    sent_at: str | None = None
    mode: str = "difference"
    owed: tuple[Owed, ...] = ()
    sends_all: bool = False
    is_continued: bool = False

    @property
    def pinned(self) -> tuple[PinnedContents, ...]:
        """The contents that have to stay readable for it."""
        ends = (end for owed in self.owed for end in (owed.before, owed.after))
        return tuple(contents for contents in (*ends, self.sent) if contents is not None)

    @property
    def offsets(self) -> str:
        """`folder/generation`: what tells it from other generations."""
        return f"{self.folder}/{self.generation}"

    def after(self, batch: Batch, rows: int) -> SinkState:
        """This sink after a batch of so many rows."""
        return replace(
            self.settled(batch),
            batch=batch.number,
            rows=self.rows + rows,
            sent_at=batch.at.isoformat(timespec="seconds") if batch.at else None,
        )

    def settled(self, batch: Batch) -> SinkState:
        """This sink after a batch without a row, which was neither begun nor sent."""
        place = self._place(batch)
        if place < len(self.owed):
            return replace(self, owed=self.owed[place + 1 :])
        sends_all = self.sends_all and not batch.is_whole
        return replace(self, sent=batch.after, owed=(), sends_all=sends_all)

    def _place(self, batch: Batch) -> int:
        """Which of the changes that are owed the batch has; their number if it comes behind them.

        A batch is begun when those before it were sent: all that it is not behind is done.
        """
        same = Owed(batch.before, batch.after, batch.is_whole)
        return self.owed.index(same) if same in self.owed else len(self.owed)

    def passed_over(
        self, before: PinnedContents, after: PinnedContents, begun: Batch | None
    ) -> SinkState:
        """This sink after a cutover that sends nothing.

        Args:
            before: the last contents before the cutover: what its readers lack of them is owed.
            after: the first contents behind it: changes are sent from there on.
            begun: the batch that it began last, if it did not end.
        """
        owed = list(self.owed[self._place(begun) :] if begun is not None else self.owed)
        at, is_whole = self.sent, self.sends_all
        if begun is not None and not owed:
            owed.append(Owed(begun.before, begun.after, begun.is_whole))
            at, is_whole = begun.after, is_whole and not begun.is_whole
        if is_whole or at is None or at.content != before.content:
            owed.append(Owed(at, before, is_whole))
        return replace(self, sent=after, owed=tuple(owed), sends_all=False, is_continued=True)

    def to_dict(self) -> dict[str, Any]:
        """As JSON; empty fields are left out."""
        data: dict[str, Any] = {
            "folder": self.folder,
            "generation": self.generation,
            "fingerprint": self.fingerprint,
            "id": self.id,
        }
        if self.sent is not None:
            data["sent"] = self.sent.to_dict()
        if self.batch:
            data["batch"] = self.batch
        if self.rows:
            data["rows"] = self.rows
        if self.sent_at is not None:
            data["sent_at"] = self.sent_at
        if self.mode != "difference":
            data["mode"] = self.mode
        if self.owed:
            data["owed"] = [owed.to_dict() for owed in self.owed]
        if self.sends_all:
            data["sends_all"] = True
        if self.is_continued:
            data["is_continued"] = True
        return data

    @staticmethod
    def from_dict(data: Json) -> SinkState:
        """The inverse of `to_dict`."""
        sent = data.get("sent")
        values = {
            **data,
            "sent": PinnedContents.from_dict(sent) if sent else None,
            "owed": tuple(Owed.from_dict(owed) for owed in data.get("owed", ())),
        }
        return SinkState(**values)


def unfinished_batch(state: SinkState, sending: Mapping[str, Batch]) -> Batch | None:
    """The batch that the sink began, and which is not known to have ended."""
    begun = sending.get(state.offsets)
    return begun if begun is not None and begun.number > state.batch else None
