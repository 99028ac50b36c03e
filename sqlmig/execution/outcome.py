"""What a step changed in the cut. It makes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlmig.execution.values import Written
from sqlmig.ledger.cut import ConnectorState, RelationState
from sqlmig.program.model import RelationKind


@dataclass(frozen=True)
class Outcome:
    """What a step changed: a partial cut as JSON, rows written, and a word for people."""

    change: Mapping[str, Any] | None = None
    rows: int | None = None
    note: str | None = None


def fresh(
    folder: str,
    kind: RelationKind,
    written: Written,
    mark: str,
    inputs: Mapping[str, str],
    layout: tuple[str, ...] = (),
) -> RelationState:
    """The state of a stored relation whose contents were made just now."""
    return RelationState(
        folder=folder,
        kind=kind.value,
        version=written.version,
        content=f"{folder}@{written.version}",
        fingerprint=mark,
        inputs=inputs,
        rows=written.rows,
        bytes=written.bytes,
        layout=layout,
    )


def relation_changed(
    name: str, state: RelationState, rows: int | None, note: str | None = None
) -> Outcome:
    """A relation has changed."""
    return Outcome({"relations": {name: state.to_dict()}}, rows, note)


def connector_changed(name: str, state: ConnectorState) -> Outcome:
    """A source has changed."""
    return Outcome({"connectors": {name: state.to_dict()}})
