"""Why something counts as modified, in words. It knows two versions of one thing, and decides
nothing.

Values of connector options are never shown: they may be secret.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlmig.program.model import Column, Sink, Source, Table, View
from sqlmig.program.text_changes import text_changes

_MOST = 4


def table_reasons(before: Table, after: Table) -> tuple[str, ...]:
    """What changed in a table: its columns, its key, its comment."""
    old = {column.name.lower(): column for column in before.columns}
    new = {column.name.lower(): column for column in after.columns}
    reasons = [f"column `{c.name} {c.type}` added" for name, c in new.items() if name not in old]
    reasons += [f"column `{c.name}` dropped" for name, c in old.items() if name not in new]
    for name in (name for name in new if name in old):
        reasons += _column_reasons(old[name], new[name])
    if [n for n in old if n in new] != [n for n in new if n in old]:
        reasons.append(f"order of columns changed to {_list(c.name for c in after.columns)}")
    old_key, new_key = (tuple(name.lower() for name in t.primary_key) for t in (before, after))
    if old_key != new_key:
        if not old_key:
            reasons.append(f"primary key {_list(after.primary_key)} added")
        elif not new_key:
            reasons.append(f"primary key {_list(before.primary_key)} dropped")
        else:
            was, now = _list(before.primary_key), _list(after.primary_key)
            reasons.append(f"primary key changed from {was} to {now}")
    if before.comment != after.comment:
        reasons.append("comment changed")
    return (*reasons, *layout_reasons(before, after))


def layout_reasons(before: Table | View, after: Table | View) -> tuple[str, ...]:
    """How a relation is partitioned in another way; nothing where it isn't."""
    was, now = (tuple(name.lower() for name in r.partitioned_by) for r in (before, after))
    if was == now:
        return ()
    if not now:
        return (f"no longer partitioned by {_list(before.partitioned_by)}",)
    return (f"partitioned by {_list(after.partitioned_by)}",)


def _column_reasons(old: Column, new: Column) -> list[str]:
    reasons = []
    if old.type != new.type:
        reasons.append(f"column `{new.name}` became `{new.type}` (was `{old.type}`)")
    if old.nullable != new.nullable:
        reasons.append(f"column `{new.name}` {'can be' if new.nullable else 'is no longer'} null")
    if old.default != new.default:
        was = f" (was `{old.default}`)" if old.default is not None else ""
        now = f"became `{new.default}`" if new.default is not None else "dropped"
        reasons.append(f"default of column `{new.name}` {now}{was}")
    if old.comment != new.comment:
        reasons.append(f"comment of column `{new.name}` changed")
    return reasons


def _list(names: Iterable[str]) -> str:
    return f"({', '.join(names)})"


def view_reasons(before: View, after: View) -> tuple[str, ...]:
    """What changed in a view: its kind, its column list, its query."""
    reasons = []
    if before.kind is not after.kind:
        reasons.append(f"became a {after.kind.value} (was a {before.kind.value})")
    if tuple(c.lower() for c in before.columns) != tuple(c.lower() for c in after.columns):
        names = [_list(v.columns) if v.columns else "none" for v in (before, after)]
        reasons.append(f"column list changed from {names[0]} to {names[1]}")
    if before.canonical == after.canonical and before.spelled != after.spelled:
        reasons.append(
            "letter case of names changed, and a query of the program turns names into data"
        )
    elif before.canonical != after.canonical:
        reasons += text_changes(before.query, after.query) or _star_reasons(before, after)
    reasons += layout_reasons(before, after)
    if len(reasons) > _MOST:
        reasons = [*reasons[: _MOST - 1], f"{len(reasons) - _MOST + 1} more changes"]
    return tuple(reasons)


def _star_reasons(before: View, after: View) -> list[str]:
    """The text is the same: what it stands for has changed."""
    if (
        "*" not in after.query
        or before.canonical.split("\n* ")[0] != after.canonical.split("\n* ")[0]
    ):
        return ["names in its query stand for something else"]
    old, new = before.output, after.output
    if old is None or new is None or old == new:
        return ["`*` stands for other columns"]
    reasons = [f"`*` now gives column `{name}`" for name in new if name not in old]
    reasons += [f"`*` no longer gives column `{name}`" for name in old if name not in new]
    return reasons or ["`*` gives its columns in another order"]


def connector_reasons(before: Source | Sink, after: Source | Sink) -> tuple[str, ...]:
    """What changed in a connector: its format, the names of its options, which values; never a
    value."""
    reasons = []
    if before.format != after.format:
        reasons.append(f"format changed from `{before.format}` to `{after.format}`")
    old, new = dict(before.options), dict(after.options)
    for key in sorted(old.keys() | new.keys()):
        if key not in old:
            reasons.append(f"option `{key}` added")
        elif key not in new:
            reasons.append(f"option `{key}` removed")
        elif old[key] != new[key]:
            reasons.append(f"option `{key}` changed")
    if isinstance(before, Source) and isinstance(after, Source):
        was, now = before.retain_raw, after.retain_raw
        if was != now and now is not None:
            reasons.append(f"its raw records are kept {f'for {now}' if now else 'for ever'}")
        elif was != now:
            reasons.append("its raw records are kept no longer")
    return tuple(reasons)
