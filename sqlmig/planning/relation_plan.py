"""What a plan says of one relation that changes. It holds, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlmig.planning.promises import Promise


@dataclass(frozen=True)
class Strategy:
    """One way to take a relation across a change.

    Args:
        name: `restore`, `rebuild`, `in place`, `backfill`, `alter`, `cast`, `empty`, `define`,
            `create`, `detach`.
        is_possible: it could be taken here, by the plan or when a hook or an option asks for it.
        is_taken: the plan takes it.
        reason: why, or why not, in words.
    """

    name: str
    is_possible: bool
    is_taken: bool
    reason: str


@dataclass(frozen=True)
class RelationPlan:
    """One changed relation in a plan.

    Args:
        name: the relation.
        kind: `table`, `view`, `materialized view` or `streaming table`; what it is or was.
        how: `added`, `removed`, `modified` or `affected`.
        query: the kinds of its query; () for a table.
        change: the kinds of its change.
        strategies: those that there are for it; one of them is taken, unless the plan is blocked.
        promises: what the strategy that is taken keeps, and what it doesn't.
    """

    name: str
    kind: str
    how: str
    query: tuple[str, ...]
    change: tuple[str, ...]
    strategies: tuple[Strategy, ...]
    promises: tuple[Promise, ...]

    @property
    def taken(self) -> Strategy | None:
        """The strategy of the plan."""
        return next((s for s in self.strategies if s.is_taken), None)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> RelationPlan:
        """The inverse of `dataclasses.asdict`, also after a way through JSON."""
        return RelationPlan(
            data["name"],
            data["kind"],
            data["how"],
            tuple(data["query"]),
            tuple(data["change"]),
            tuple(Strategy(**strategy) for strategy in data["strategies"]),
            tuple(Promise(**promise) for promise in data["promises"]),
        )
