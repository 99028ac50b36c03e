"""What the writers of sinks are told of a batch. A value; it writes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlmig.errors import Location
from sqlmig.execution.values import Mark


@dataclass(frozen=True)
class Outgoing:
    """A batch on its way out.

    Args:
        connector: names the sink.
        format: of files or of Kafka's values.
        place: path or topic, resolved.
        options: for Spark's writer, secrets put in, which is why they are never printed.
        key: the columns that name a row; () for an unkeyed sink.
        id: names the sink's generation, for ever.
        number: of the batch.
        hidden: secrets in `place` and `options`. location: of the sink.
    """

    connector: str
    format: str
    place: str = field(repr=False)
    options: Mapping[str, str] = field(repr=False)
    key: tuple[str, ...]
    id: str
    number: int
    mark: Mark
    hidden: tuple[str, ...] = field(default=(), repr=False)
    location: Location | None = None

    @property
    def application(self) -> str:
        """The name under which Delta remembers the batches that it has."""
        return f"sqlmig/sink/{self.id}"

    @property
    def note(self) -> str:
        """JSON for the metadata of a commit in a Delta table that is not ours."""
        sink = {"connector": self.connector, "id": self.id, "batch": self.number}
        return json.dumps({**json.loads(self.mark.to_json()), "sink": sink}, sort_keys=True)
