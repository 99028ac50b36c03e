"""Whether rows that a relation has taken in come a second time: their table begins anew. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlmig.ledger.cut import RelationState
from sqlmig.planning.draft import Draft


@dataclass(frozen=True)
class Repetition:
    """A table whose rows have passed, and that is filled once more.

    Args:
        table: its name.
        is_rebuilt: of raw records, in the plan; else by its sources, so that it begins empty.
    """

    table: str
    is_rebuilt: bool

    @property
    def why(self) -> str:
        """Why what these rows gave has to go, in words."""
        if self.is_rebuilt:
            return f"the rows of `{self.table}` are made anew of raw records"
        return f"the rows of `{self.table}` come again from its sources"


def find_repetition(draft: Draft, reads: Iterable[str], state: RelationState) -> Repetition | None:
    """The first of `reads`, by name, whose rows have passed and would pass once more.

    A table that is emptied gets its sources' rows again.

    Args:
        reads: what a view takes rows in from; what a streaming table reads besides its streams
            is none of it. state: the view's.
    """
    fed = {source.table for source in draft.target.sources.values()}
    for read in sorted(fed.intersection(reads) & draft.fresh.keys()):
        if read in draft.states and draft.states[read].folder in state.passed:
            return Repetition(read, read in draft.rebuilt)
    return None
