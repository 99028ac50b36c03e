"""The steps of what takes rows in, as data: of streaming tables, and of materialized views that go
on in place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AdvanceStream:
    """Let a relation take in, with the query deployed so far, the rows that came before.

    A materialized view that takes no rows in yet is computed, if it is behind its inputs.

    With a time `until` (ISO 8601), only those that came before it; what has passed since is taken
    out, and comes again. `parted` are those of its streams that the plan parts by the same time.
    """

    relation: str
    until: str = ""
    parted: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvolveStream:
    """Let a relation go on with its new query where the old one stopped; what it has stays.

    `is_historical` says that this is then not all what the query gives.
    """

    relation: str
    folder: str
    is_historical: bool


@dataclass(frozen=True)
class BackfillStream:
    """Replace a streaming table's rows from a time on by what the new query gives of the stream's.

    The rows are told by `column`, which the table and its stream both have; in one with windows it
    is the table's alone, holds the start of a row's window, and `since` is such a start.
    """

    relation: str
    folder: str
    since: str
    column: str


@dataclass(frozen=True)
class RestoreStream:
    """Put a relation back to how this query left it, rows and position.

    If rows have passed by the time the step runs, it goes on in place instead; or is made anew,
    where it is one with windows and nothing else was asked for (`is_rebuilt`).
    """

    relation: str
    folder: str
    version: int
    content: str
    is_rebuilt: bool = False


StreamAction = AdvanceStream | EvolveStream | BackfillStream | RestoreStream
