"""The steps of sinks as data. They change the ledger only: sending is done by ticks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StartSink:
    """Start a sink: its next tick sends all rows of its relation, later ones the changes."""

    connector: str
    folder: str
    generation: int
    fingerprint: str


@dataclass(frozen=True)
class ContinueSink:
    """Let a sink go on from what this definition of it sent last."""

    connector: str
    folder: str
    generation: int
    fingerprint: str


@dataclass(frozen=True)
class DetachSink:
    """Take a sink off; what it sent stays where it is, and how far it got is kept."""

    connector: str
