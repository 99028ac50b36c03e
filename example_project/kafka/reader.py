"""A reader of a topic of keyed records: the table that they make, and what came since. It knows
nothing of sqlmig."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from example_project.kafka.broker import Broker, Message


class Reader:
    """Applies a topic's records in order: the last value of a key counts, no value deletes it.

    Args:
        topic: a topic of one partition, so that its records have one order.
    """

    def __init__(self, kafka: Broker, topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._told = 0
        self.records: Sequence[Message] = ()

    def rows(self) -> Mapping[str, Mapping[str, Any]]:
        """Key -> row, after all records that the topic has now; sorted."""
        self.records = self._kafka.consume(self._topic)
        found: dict[str, Mapping[str, Any]] = {}
        for message in self.records:
            key = (message.key or b"").decode()
            found.pop(key, None)
            if message.value is not None:
                found[key] = json.loads(message.value, parse_float=Decimal)
        return dict(sorted(found.items()))

    def news(self, *, without: str | None = None) -> list[str]:
        """A line for each record since it was asked last, by key.

        Args:
            without: a key whose records are left out.
        """
        self.rows()
        came, self._told = self.records[self._told :], len(self.records)
        lines: list[str] = []
        for message in sorted(came, key=lambda message: message.key or b""):
            key = (message.key or b"").decode()
            value = "(no value)" if message.value is None else message.value.decode()
            if key != without:
                lines.append(f"  {key}  {value}")
        return lines
