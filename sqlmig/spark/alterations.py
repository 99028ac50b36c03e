"""How a Delta table gets to its definition: one ALTER after the other. Pure: it says what is next.

Only alterations of metadata are used, since with change data feed and column mapping on Delta
refuses a commit that changes both names and rows. Each is found by comparing the table as it is
with what it shall be, so that a process that died half-way is carried on by starting again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from sqlmig.errors import EngineError
from sqlmig.planning.table_change import widens
from sqlmig.program.model import Column, Table
from sqlmig.spark.names import literal, quoted
from sqlmig.stored import StoredColumn, StoredTable

_CONSTRAINT = "sqlmig_not_null_"
PARKED = "__sqlmig_renamed_"
"""What a column is called while its new name is not free yet."""
_REPLACED = "__sqlmig_replaced"
_FIELD_NOTES = re.compile(r" not null| comment '(?:[^'\\]|\\.|'')*'| collate \w+", re.IGNORECASE)


def next_alteration(
    stored: StoredTable,
    table: Table,
    renames: Sequence[tuple[str, str]],
    *,
    keeps_rows: bool,
) -> str | None:
    """What to put behind `ALTER TABLE t` next.

    Args:
        stored: the table as it is.
        table: what it shall be.
        renames: (before, after) of the columns whose renaming was not begun yet.
        keeps_rows: refuse what would lose the values of a column that stays.

    Returns:
        The clause; None when only nullability, comments and the like could still differ.
    """
    current = {column.name.lower(): column for column in stored.columns}
    wanted = {column.name.lower(): column for column in table.columns}
    for before, after in renames:
        if before.lower() in current:
            target = after if after.lower() not in current else f"{PARKED}{after.lower()}"
            return _rename(stored, before, target)
    parked = {n: n.removeprefix(PARKED) for n in current if n.startswith(PARKED)}
    parked = {n: after for n, after in parked.items() if after in wanted}
    unwanted = [n for n in current if n not in wanted and n not in parked]
    unwanted += [n for n in parked.values() if n in current]
    for name, column in current.items():
        if name in wanted and name not in unwanted and not fits(column, wanted[name]):
            if keeps_rows:
                raise EngineError(
                    f"`{table.name}.{column.name}` can't become {wanted[name].type}, "
                    f"it is {column.type}",
                    hint="run the command again: it makes a new plan, which casts the rows",
                )
            unwanted.append(name)
    missing = [c for n, c in wanted.items() if n not in current and n not in parked.values()]
    if unwanted and len(unwanted) < len(current):
        return _drop(stored, unwanted)
    for name, after in parked.items():
        return _rename(stored, name, wanted[after].name)
    if missing:
        return f"ADD COLUMNS ({', '.join(map(_definition, missing))})"
    if unwanted:  # every column has to go, and Delta wants one to stay
        last = next(name for name in unwanted if name in wanted)
        rest = [name for name in unwanted if name != last]
        return _drop(stored, rest) if rest else _rename(stored, last, _REPLACED)
    return _next_in_place(stored, table, current)


def _next_in_place(
    stored: StoredTable, table: Table, current: dict[str, StoredColumn]
) -> str | None:
    constrained = constraints(stored)
    for column in table.columns:
        now = current[column.name.lower()]
        name = quoted(now.name)
        if _plain(now.type) != _plain(column.type):
            if column.name.lower() in constrained:
                return release(column.name)
            if stored.properties.get("delta.enableTypeWidening") != "true":
                return "SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
            return f"ALTER COLUMN {name} TYPE {column.type}"
        if column.nullable and column.name.lower() in constrained:
            return release(column.name)
        if column.nullable and not now.nullable:
            return f"ALTER COLUMN {name} DROP NOT NULL"
        if (column.comment or "") != (now.comment or ""):
            return f"ALTER COLUMN {name} COMMENT {literal(column.comment or '')}"
    order = list(current)
    for index, column in enumerate(table.columns):
        if order[index] != column.name.lower():
            place = f"AFTER {quoted(table.columns[index - 1].name)}" if index else "FIRST"
            return f"ALTER COLUMN {quoted(column.name)} {place}"
    return None


def next_constraint(stored: StoredTable, table: Table) -> str | None:
    """The next NOT NULL to enforce, once rows have a value there.

    Delta can't make a column of an existing table NOT NULL; a check constraint does the same.
    """
    current = {column.name.lower(): column for column in stored.columns}
    for column in table.columns:
        name = column.name.lower()
        if not column.nullable and current[name].nullable and name not in constraints(stored):
            return _constrain(column.name)
    return None


def constraints(stored: StoredTable) -> Collection[str]:
    """The columns that a check constraint of sqlmig keeps from being NULL, in lower case."""
    prefix = f"delta.constraints.{_CONSTRAINT}"
    return {key[len(prefix) :] for key in stored.properties if key.startswith(prefix)}


def begun_renames(parameters: Sequence[tuple[str, str]]) -> frozenset[str]:
    """The columns whose renaming was begun, from (old, new) of the commits of one step."""
    return frozenset(old.lower() for old, _ in parameters if not old.startswith(PARKED))


def create_statement(name: str, table: Table, properties: dict[str, str]) -> str:
    """CREATE TABLE for an input table.

    Args:
        name: the table's name in SQL.
    """
    columns = ", ".join(
        _definition(c) if c.nullable else _definition(c, not_null=True) for c in table.columns
    )
    listed = ", ".join(f"{literal(k)} = {literal(v)}" for k, v in sorted(properties.items()))
    comment = f" COMMENT {literal(table.comment)}" if table.comment else ""
    layout = ""
    if table.partitioned_by:
        layout = f" PARTITIONED BY ({', '.join(map(quoted, table.partitioned_by))})"
    return (
        f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING delta{layout}{comment} "
        f"TBLPROPERTIES ({listed})"
    )


def _definition(column: Column, *, not_null: bool = False) -> str:
    comment = f" COMMENT {literal(column.comment)}" if column.comment else ""
    return f"{quoted(column.name)} {column.type}{' NOT NULL' if not_null else ''}{comment}"


def fits(column: StoredColumn, wanted: Column) -> bool:
    """Whether the column can stay: its type is right, or Delta can widen it."""
    return _plain(column.type) == _plain(wanted.type) or widens(column.type, wanted.type)


def _plain(kind: str) -> str:
    return _FIELD_NOTES.sub("", kind).lower()


def _rename(stored: StoredTable, before: str, after: str) -> str:
    if before.lower() in constraints(stored):
        return release(before)
    return f"RENAME COLUMN {quoted(before)} TO {quoted(after)}"


def _drop(stored: StoredTable, names: Sequence[str]) -> str:
    bound = sorted(set(names) & set(constraints(stored)))
    if bound:
        return release(bound[0])
    return f"DROP COLUMNS ({', '.join(map(quoted, names))})"


def next_lasting_constraint(stored: StoredTable) -> str | None:
    """The next NOT NULL of a column itself to say by a constraint, which an overwrite keeps."""
    held = constraints(stored)
    for column in stored.columns:
        if not column.nullable and column.name.lower() not in held:
            return _constrain(column.name)
    return None


def _constrain(column: str) -> str:
    check = f"CHECK ({quoted(column)} IS NOT NULL)"
    return f"ADD CONSTRAINT {quoted(_CONSTRAINT + column.lower())} {check}"


def release(column: str) -> str:
    """What lets a column be NULL again."""
    return f"DROP CONSTRAINT IF EXISTS {quoted(_CONSTRAINT + column.lower())}"
