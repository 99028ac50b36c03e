"""The steps of sinks as data. They change the ledger only: sending is done by ticks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StartSink:
    """Start a sink: its next tick sends all rows of its relation, later ones the changes.

    `mode` is what a later cutover sends, as the sink's definition says.
    """

    connector: str
    folder: str
    generation: int
    fingerprint: str
    mode: str = "difference"


@dataclass(frozen=True)
class ContinueSink:
    """Let a sink go on from what this definition of it sent last; fields as in `StartSink`."""

    connector: str
    folder: str
    generation: int
    fingerprint: str
    mode: str = "difference"


@dataclass(frozen=True)
class CutOverSink:
    """Let a sink go on over contents that are not what ticks made of those that it sent last.

    Args:
        connector, folder, generation, fingerprint, mode: as in `StartSink`.
        relation: what it read before, as that is called at the checkpoint.
        sends: what this cutover sends: `difference`, `snapshot` or `continue`.
    """

    connector: str
    folder: str
    generation: int
    fingerprint: str
    mode: str
    relation: str
    sends: str


@dataclass(frozen=True)
class DetachSink:
    """Take a sink off; what it sent stays where it is, and how far it got is kept."""

    connector: str


SinkAction = StartSink | ContinueSink | CutOverSink | DetachSink
