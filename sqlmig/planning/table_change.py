"""How a table gets from one definition to another: altered with its rows, or emptied. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

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
        reason_to_empty: why the rows can't be kept; None when they are.
    """

    operations: tuple[str, ...]
    reason_to_empty: str | None = None


def table_change(before: Table, after: Table, renamed: Mapping[str, str]) -> TableChange:
    """Compare two definitions of one table.

    Args:
        before: the deployed definition.
        after: the target's.
        renamed: column name before -> column name after, as the hooks asked.

    Returns:
        The alterations in words, and why they can't keep the rows, if so.
    """
    operations: list[str] = []
    obstacles: list[str] = []
    old = {c.name.lower(): c for c in before.columns}
    new = {c.name.lower(): c for c in after.columns}
    taken = set(renamed.values())
    goal = {name: renamed.get(name, "" if name in taken else name) for name in old}
    origin = {target: name for name, target in goal.items() if target in new}
    key = {name.lower() for name in before.primary_key}
    for name, column in old.items():
        if goal[name] not in new:
            operations.append(f"drop column `{column.name}`")
            if name in key:
                obstacles.append(f"key column `{column.name}` is dropped")
        elif goal[name] != name:
            operations.append(f"rename column `{column.name}` to `{new[goal[name]].name}`")
    for name, column in new.items():
        if name in origin:
            _column_change(old[origin[name]], column, operations, obstacles)
            continue
        operations.append(f"add column `{column.name} {column.type}`")
        if not column.nullable and column.default is None:
            obstacles.append(f"new column `{column.name}` is NOT NULL and has no default")
    kept = [goal[name] for name in old if goal[name] in new]
    if [*kept, *(name for name in new if name not in origin)] != list(new):
        operations.append("reorder columns")
    _key_change(before, after, renamed, operations, obstacles)
    if before.comment != after.comment:
        operations.append("change the comment")
    return TableChange(tuple(operations), "; ".join(obstacles) or None)


def _column_change(
    before: Column, after: Column, operations: list[str], obstacles: list[str]
) -> None:
    if before.type != after.type:
        if widens(before.type, after.type):
            operations.append(f"widen `{after.name}` from {before.type} to {after.type}")
        else:
            obstacles.append(f"`{after.name}` becomes {after.type}, was {before.type}")
    if before.nullable and not after.nullable:
        obstacles.append(f"`{after.name}` becomes NOT NULL")
    elif after.nullable and not before.nullable:
        operations.append(f"allow NULL in `{after.name}`")
    if before.comment != after.comment:
        operations.append(f"change the comment of `{after.name}`")
    if before.default != after.default:
        operations.append(f"change the default of `{after.name}`")


def _key_change(
    before: Table,
    after: Table,
    renamed: Mapping[str, str],
    operations: list[str],
    obstacles: list[str],
) -> None:
    key_before = {renamed.get(name.lower(), name.lower()) for name in before.primary_key}
    key_after = {name.lower() for name in after.primary_key}
    if key_before == key_after:
        return
    if not key_after:
        operations.append("drop the primary key")
    elif not key_before:
        obstacles.append(f"primary key ({', '.join(after.primary_key)}) is added")
    else:
        obstacles.append(
            f"primary key becomes ({', '.join(after.primary_key)}), "
            f"was ({', '.join(before.primary_key)})"
        )


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
