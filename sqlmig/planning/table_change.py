"""How a table gets from one definition to another: what is done, and what its rows must bear. Pure.

Every row is kept. Where it is not certain that all of them fit the new definition, the change has
demands, and the rows are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlmig.program.model import Column, Table

_WIDENING: Mapping[str, frozenset[str]] = {
    "tinyint": frozenset({"smallint", "int", "bigint", "double"}),
    "smallint": frozenset({"int", "bigint", "double"}),
    "int": frozenset({"bigint", "double"}),
    "float": frozenset({"double"}),
    "date": frozenset({"timestamp_ntz"}),
}
"""Widenings that Delta makes without touching the rows (its type widening feature)."""
_INTEGER_DIGITS: Mapping[str, int] = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


@dataclass(frozen=True)
class TableChange:
    """What happens to a table.

    Args:
        operations: the alterations in words, for people; empty when only sqlmig's own notes change.
        demands: what not every row may bear, in words; empty when all rows are kept for certain.
        cast: the columns whose values are cast, so that the rows are written anew; lower case.
        is_filled: a new column has a default, which the rows that are there get.
        has_other_key: the key's columns, or the types of them, are others than before.
        has_new_key: two rows may have one key that had not before.
        added: the columns that are new, in lower case.
    """

    operations: tuple[str, ...]
    demands: tuple[str, ...] = ()
    cast: frozenset[str] = frozenset()
    is_filled: bool = False
    has_other_key: bool = False
    has_new_key: bool = False
    added: frozenset[str] = frozenset()

    @property
    def is_rewritten(self) -> bool:
        """True when rows are written, and not metadata alone."""
        return bool(self.cast) or self.is_filled


@dataclass
class _Found:
    """What was found so far."""

    operations: list[str] = field(default_factory=list)
    demands: list[str] = field(default_factory=list)
    cast: set[str] = field(default_factory=set)


def table_change(before: Table, after: Table, renamed: Mapping[str, str]) -> TableChange:
    """Compare two definitions of one table.

    Args:
        before: the deployed definition.
        after: the target's.
        renamed: column name before -> column name after, as the hooks asked.

    Returns:
        The alterations in words, and what the rows have to bear.
    """
    found = _Found()
    old = {c.name.lower(): c for c in before.columns}
    new = {c.name.lower(): c for c in after.columns}
    taken = set(renamed.values())
    goal = {name: renamed.get(name, "" if name in taken else name) for name in old}
    origin = {target: name for name, target in goal.items() if target in new}
    for name, column in old.items():
        if goal[name] not in new:
            found.operations.append(f"drop column `{column.name}`")
        elif goal[name] != name:
            found.operations.append(f"rename column `{column.name}` to `{new[goal[name]].name}`")
    for name, column in new.items():
        if name in origin:
            _column_change(old[origin[name]], column, found)
            continue
        found.operations.append(f"add column `{column.name} {column.type}`")
        if not column.nullable and column.default is None:
            found.demands.append(f"new column `{column.name}` is NOT NULL and has no default")
    kept = [goal[name] for name in old if goal[name] in new]
    if [*kept, *(name for name in new if name not in origin)] != list(new):
        found.operations.append("reorder columns")
    has_other_key, has_new_key = _key_change(before, after, goal, found)
    if before.comment != after.comment:
        found.operations.append("change the comment")
    return TableChange(
        tuple(found.operations),
        tuple(found.demands),
        frozenset(found.cast),
        any(name not in origin and c.default is not None for name, c in new.items()),
        has_other_key,
        has_new_key,
        frozenset(name for name in new if name not in origin),
    )


def _column_change(before: Column, after: Column, found: _Found) -> None:
    if before.type != after.type:
        if widens(before.type, after.type):
            found.operations.append(f"widen `{after.name}` from {before.type} to {after.type}")
        else:
            found.operations.append(f"cast `{after.name}` from {before.type} to {after.type}")
            found.demands.append(f"`{after.name}` becomes {after.type}, was {before.type}")
            found.cast.add(after.name.lower())
    if before.nullable and not after.nullable:
        found.operations.append(f"require a value in `{after.name}`")
        found.demands.append(f"`{after.name}` becomes NOT NULL")
    elif after.nullable and not before.nullable:
        found.operations.append(f"allow NULL in `{after.name}`")
    if before.comment != after.comment:
        found.operations.append(f"change the comment of `{after.name}`")
    if before.default != after.default:
        found.operations.append(f"change the default of `{after.name}`")


def _key_change(
    before: Table, after: Table, goal: Mapping[str, str], found: _Found
) -> tuple[bool, bool]:
    """Note what happens to the key; whether it is another, and whether rows may have one now.

    Rule `wider-key`: rows that differ in some columns differ in these and more, so a key to which
    columns are added stays one, unless a cast makes values equal that were not.
    """
    key_before = {goal[name.lower()] for name in before.primary_key}
    key_after = {name.lower() for name in after.primary_key}
    is_cast = bool(key_after & found.cast)
    if key_before == key_after:
        return is_cast, is_cast
    is_open = is_cast or not key_before or not key_before <= key_after
    listed = ", ".join(after.primary_key)
    if not key_after:
        found.operations.append("drop the primary key")
        return True, False
    if not key_before:
        found.operations.append(f"add the primary key ({listed})")
        found.demands.append(f"primary key ({listed}) is added")
    else:
        was = ", ".join(before.primary_key)
        found.operations.append(f"change the primary key from ({was}) to ({listed})")
        if is_open:
            found.demands.append(f"primary key becomes ({listed}), was ({was})")
    return True, is_open


def widens(before: str, after: str) -> bool:
    """True when every value of type `before` is one of `after` and Delta can widen in place.

    Args:
        before, after: canonical Spark type names.
    """
    if after in _WIDENING.get(before, frozenset()):
        return True
    target = _DECIMAL.fullmatch(after)
    if not target:
        return False
    precision, scale = int(target[1]), int(target[2])
    if before in _INTEGER_DIGITS:
        return precision - scale >= _INTEGER_DIGITS[before]
    source = _DECIMAL.fullmatch(before)
    if not source:
        return False
    digits, source_scale = int(source[1]), int(source[2])
    return scale >= source_scale and precision - scale >= digits - source_scale
