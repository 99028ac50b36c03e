"""Where a time parts the rows of a streaming table: what came before it, and what has passed since.

It reads Delta's logs, and changes nothing. Rows came when their commit was made; where the stream
is itself parted by the same plan, they come as their own rows came.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmig.errors import EngineError
from sqlmig.execution.engine import Warehouse
from sqlmig.ledger.cut import RelationState
from sqlmig.ledger.positions import Versions
from sqlmig.program.model import View


@dataclass(frozen=True)
class Part:
    """The point in a streaming table's history at which a time parts its rows.

    Args:
        streams: its streams as they were then.
        back_to: the version to put it back to; None where nothing has passed since.
        passed: its position there.
    """

    streams: Mapping[str, RelationState]
    back_to: int | None
    passed: Mapping[str, str]


def find_part(
    warehouse: Warehouse,
    view: View,
    states: Mapping[str, RelationState],
    at: datetime,
    parted: Collection[str] = (),
    run: str = "",
) -> Part:
    """Where `at` parts the rows of a streaming table.

    Args:
        states: the table and its streams.
        parted: streams that the plan of `run` has parted by the same time.

    Raises:
        EngineError: the logs don't reach back so far.
    """
    state = states[view.name]
    streams: dict[str, RelationState] = {}
    since: dict[str, tuple[int, int | None]] = {}  # what may not have passed: first, last version
    for name in view.streams:
        stream = states[name]
        if name in parted:
            streams[name] = stream
            back = warehouse.restored_by(stream.folder, run)
            if back is not None:
                since[stream.folder] = (back[1] + 1, back[0])
            continue
        limit = warehouse.came_before(stream.folder, stream.version, at)
        since[stream.folder] = (limit + 1, None)
        streams[name] = stream
        if limit < stream.version:
            content = f"{stream.folder}@{limit}"
            streams[name] = replace(stream, version=limit, content=content, rows=None)

    def is_before(passed: Mapping[str, str]) -> bool:
        return not any(
            Versions.from_text(passed.get(folder, "")).meets(first, last)
            for folder, (first, last) in since.items()
        )

    own = [
        (version, passed)
        for version, passed in warehouse.positions(state.folder)
        if version <= state.version
    ]
    if is_before(state.passed):
        return Part(streams, None, state.passed)
    first_since: int | None = None
    for version, passed in own:
        if is_before(passed):
            back_to = first_since - 1 if first_since is not None else None
            return Part(streams, back_to, passed)
        first_since = version
    raise EngineError(
        f"the log of `{view.name}` does not tell what it held at {at:%Y-%m-%d %H:%M:%S} UTC",
        location=view.location,
        hint="name a later time, or let op.rebuild or op.backfill make its rows anew",
    )
