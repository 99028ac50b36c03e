"""What Structured Streaming reports of a round: how far behind it is, and what was missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Offsets = Mapping[tuple[str, str], int]
"""(topic, partition) -> the next offset to read."""


@dataclass(frozen=True)
class Gap:
    """Offsets of a batch that held no record: the range as Kafka's JSON, and how many."""

    batch: int
    start: str
    end: str
    count: int


def messages_behind(progress: Sequence[Any]) -> int | None:
    """Records that a Kafka source knew of and has not read after its last batch.

    Args:
        progress: the reports of a query, oldest first.

    Returns:
        None where no report has offsets of topics.
    """
    for report in reversed(progress):
        for source in report.sources:
            latest, end = _offsets(source.latestOffset), _offsets(source.endOffset)
            if latest is not None and end is not None:
                return sum(max(0, count - end.get(place, 0)) for place, count in latest.items())
    return None


def gaps(progress: Sequence[Any], read: Mapping[int, int]) -> tuple[Gap, ...]:
    """The batches of a Kafka source that brought fewer records than they had offsets.

    Args:
        progress: the reports of a query.
        read: batch -> records that it brought.
    """
    found = {}
    for report in progress:
        for source in report.sources:
            start, end = _offsets(source.startOffset), _offsets(source.endOffset)
            if start is None or end is None:
                continue
            wanted = sum(count - start.get(place, 0) for place, count in end.items())
            missing = wanted - read.get(report.batchId, 0)
            if missing > 0:
                batch = int(report.batchId)
                found[batch] = Gap(batch, _text(start), _text(end), missing)
    return tuple(found[batch] for batch in sorted(found))


def _text(offsets: Offsets) -> str:
    """Offsets in Kafka's JSON, as `startingOffsets` takes them."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[partition] = offset
    return json.dumps(topics, separators=(",", ":"))


def _offsets(text: str | None) -> Offsets | None:
    """Offsets in Kafka's JSON; None for those of another format."""
    try:
        return {
            (topic, partition): int(offset)
            for topic, partitions in json.loads(text or "null").items()
            for partition, offset in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        return None
