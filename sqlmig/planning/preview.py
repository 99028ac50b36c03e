"""The preview of a plan: which relations get other rows, where these come from, and what differs.

It knows the plan's steps and the states of relations, and computes no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sqlmig.ledger.cut import RelationState
from sqlmig.planning.steps import (
    AlterTable,
    Attach,
    Bootstrap,
    Detach,
    EmptyTable,
    Execute,
    Plan,
    RenameTable,
    Restore,
    RestoreTable,
    RunFunction,
)
from sqlmig.planning.stream_steps import BackfillStream, EvolveStream, RestoreStream
from sqlmig.planning.table_steps import ConvertTable, FillColumns, RebuildTable
from sqlmig.program.model import Program


class Way(str, Enum):
    """Where the rows of a relation come from once the plan is carried out."""

    QUERY = "query"
    """Its query, over its inputs as the plan leaves them."""
    ROWS = "rows"
    """Its rows of before under its new columns."""
    VERSION = "version"
    """A former version of it."""
    NONE = "none"
    """It has none: it was emptied or taken off."""
    UNKNOWN = "unknown"
    """Nothing says so without carrying the step out."""


@dataclass(frozen=True)
class Prospect:
    """A stored relation that the plan changes.

    Args:
        before: its state at the cut; None where it is new.
        way: where its rows come from. version: (folder, Delta version) for `Way.VERSION`.
        renamed: (column before, column after).
    """

    relation: str
    before: RelationState | None
    way: Way
    version: tuple[str, int] | None = None
    renamed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Samples:
    """Some of the rows that differ, sorted: column -> JSON value.

    Args:
        changed: the row before and after.
    """

    added: tuple[Mapping[str, Any], ...] = ()
    removed: tuple[Mapping[str, Any], ...] = ()
    changed: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...] = ()


@dataclass(frozen=True)
class Difference:
    """What differs between the rows of a relation before the plan and after it.

    Rows are compared by the columns that both have.

    Args:
        kind: the relation's kind, in the words of SQL.
        key: the columns that tell rows apart; () where none do: then a row that changes counts as
            one removed and one added.
        before, after: rows in all; None where unknown.
        added, removed, changed: rows.
        new_columns, lost_columns: those that only one side has.
        unknown: why it can't be said; '' where it can.
    """

    relation: str
    kind: str
    key: tuple[str, ...] = ()
    before: int | None = None
    after: int | None = None
    added: int = 0
    removed: int = 0
    changed: int = 0
    new_columns: tuple[str, ...] = ()
    lost_columns: tuple[str, ...] = ()
    samples: Samples = field(default_factory=Samples)
    unknown: str = ""

    @property
    def is_empty(self) -> bool:
        """Rows and columns stay as they are."""
        counts = self.added or self.removed or self.changed
        return not (counts or self.new_columns or self.lost_columns or self.unknown)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "relation": self.relation,
            "kind": self.kind,
            "key": list(self.key),
            "rows_before": self.before,
            "rows_after": self.after,
            "added": self.added,
            "removed": self.removed,
            "changed": self.changed,
            "new_columns": list(self.new_columns),
            "lost_columns": list(self.lost_columns),
            "samples": {
                "added": [dict(row) for row in self.samples.added],
                "removed": [dict(row) for row in self.samples.removed],
                "changed": [
                    {"before": dict(before), "after": dict(after)}
                    for before, after in self.samples.changed
                ],
            },
            "unknown": self.unknown or None,
        }


@dataclass(frozen=True)
class Preview:
    """What a plan does to the rows: relations in program order, those taken off last.

    Args:
        notes: what it leaves out.
    """

    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "relations": [difference.to_dict() for difference in self.differences],
            "notes": list(self.notes),
        }


def prospects(
    plan: Plan, after: Program, states: Mapping[str, RelationState]
) -> tuple[Prospect, ...]:
    """The stored relations that the plan changes, in program order, those taken off last.

    Args:
        after: the target's program.
        states: of the deployed relations, at the cut that is compared with.
    """
    found: dict[str, Prospect] = {}
    names: dict[str, str] = {}  # name now -> name deployed

    def state(name: str) -> RelationState | None:
        return states.get(names.get(name, name))

    for step in plan.steps:
        match step.action:
            case RenameTable(old, new):
                names[new] = names.pop(old, old)
                if old in found:
                    found[new] = _renamed(found.pop(old), new)
            case AlterTable(name, _, renamed) | ConvertTable(name, _, renamed):
                known = found.get(name)
                if known is None or known.way is Way.ROWS:
                    columns = _composed(known.renamed if known else (), renamed)
                    found[name] = Prospect(name, state(name), Way.ROWS, renamed=columns)
            case EmptyTable(name):
                found[name] = Prospect(name, state(name), Way.NONE)
            case RestoreTable(name, folder, version) | Restore(name, folder, version):
                found[name] = Prospect(name, state(name), Way.VERSION, (folder, version))
            case RestoreStream(name, folder, version):
                found[name] = Prospect(name, state(name), Way.VERSION, (folder, version))
            case Attach(name):
                found[name] = Prospect(name, state(name), Way.UNKNOWN)
            case Bootstrap(name):
                found[name] = Prospect(name, state(name), Way.QUERY)
            case EvolveStream(name):
                found[name] = Prospect(name, state(name), Way.ROWS)
            case BackfillStream(name) | FillColumns(name) | RebuildTable(name):
                found[name] = Prospect(name, state(name), Way.UNKNOWN)
            case Detach(name):
                found[name] = Prospect(name, state(name), Way.NONE)
            case _:
                pass
    turn = {name: number for number, name in enumerate(after.order)}
    return tuple(
        sorted(found.values(), key=lambda p: (turn.get(p.relation, len(turn)), p.relation))
    )


def notes(plan: Plan) -> tuple[str, ...]:
    """What a preview of the plan leaves out."""
    hooks = [s for s in plan.steps if isinstance(s.action, (Execute, RunFunction))]
    if not hooks:
        return ()
    numbers = ", ".join(str(step.number) for step in hooks)
    steps = f"step{'' if len(hooks) == 1 else 's'} {numbers}"
    return (f"hooks are not run for a preview: what {steps} does to rows is not in it",)


def _renamed(prospect: Prospect, name: str) -> Prospect:
    return Prospect(name, prospect.before, prospect.way, prospect.version, prospect.renamed)


def _composed(
    first: tuple[tuple[str, str], ...], then: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    """Two renamings of columns, one after the other, as one."""
    moved = {before.lower(): after for before, after in then}
    both = [(before, moved.pop(after.lower(), after)) for before, after in first]
    return (*both, *((before, after) for before, after in then if before.lower() in moved))
