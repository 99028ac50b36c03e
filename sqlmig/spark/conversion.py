"""Where the values of a table's new columns come from, and which rows have no room there.

It compares the stored table with the definition that it shall have, and asks Spark which values can
be cast. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmig.execution.values import Misfit
from sqlmig.program.model import Column, Table
from sqlmig.spark.alterations import PARKED, constraints, fits
from sqlmig.spark.casting import Cast, Caster
from sqlmig.spark.names import quoted
from sqlmig.spark.tables import default_sql, storage_type
from sqlmig.stored import StoredColumn, StoredTable
from sqlmig.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

_SAMPLES = 3
_LONGEST = 60
_NESTED = ("array<", "map<", "struct<")


@dataclass(frozen=True)
class Conversion:
    """A column of the new definition.

    Args:
        source: the stored column that its values come from; None for a new one.
        is_cast: they have to be cast: Delta can't read them as the new type.
        may_lack: the column is NOT NULL, and nothing says yet that each row has a value.
    """

    column: Column
    source: StoredColumn | None
    is_cast: bool = False
    may_lack: bool = False

    @property
    def name(self) -> str:
        """The source in SQL."""
        assert self.source is not None
        return quoted(self.source.name)


def conversions(
    stored: StoredTable, table: Table, renamed: Sequence[tuple[str, str]]
) -> tuple[Conversion, ...]:
    """Where the values of each column of `table` come from.

    Args:
        stored: the table as it is.
        renamed: (column before, column after) of those that still have their old names.
    """
    current = {column.name.lower(): column for column in stored.columns}
    origin = {after.lower(): before.lower() for before, after in renamed}
    leaving = {before.lower() for before, _ in renamed}
    bound = set(constraints(stored))
    found = []
    for column in table.columns:
        name = column.name.lower()
        parked = f"{PARKED}{name}"
        before = parked if parked in current else origin.get(name, name)
        is_taken = before == name and name in leaving
        source = None if is_taken else current.get(before)
        has_values = source is not None and (not source.nullable or before in bound)
        found.append(
            Conversion(
                column,
                source,
                is_cast=source is not None and not fits(source, column),
                may_lack=not column.nullable and not has_values,
            )
        )
    return tuple(found)


def converted(rows: DataFrame, conversion: Conversion) -> Expression:
    """The values of a column under the new definition; a value that can't be cast is an error."""
    from pyspark.sql import functions as F  # noqa: N812

    column = conversion.column
    value = default_sql(column) if conversion.source is None else _cast(rows, conversion).value
    notes = {"comment": column.comment} if column.comment else {}
    if storage_type(column.type) != column.type:
        notes["__CHAR_VARCHAR_TYPE_STRING"] = column.type
    return F.expr(value).alias(column.name, metadata=notes)


def _cast(rows: DataFrame, conversion: Conversion) -> Cast:
    assert conversion.source is not None
    caster = Caster(rows.sparkSession)
    was = rows.schema[conversion.source.name].dataType
    return caster.cast(conversion.name, was, caster.type_of(storage_type(conversion.column.type)))


def find_misfits(
    rows: DataFrame, table: Table, found: Sequence[Conversion], *, has_new_key: bool
) -> Sequence[Misfit]:
    """The rows that can't be kept, and those whose values change, with counts and samples.

    Args:
        rows: what the stored table holds.
        found: `conversions` of it.
        has_new_key: also look for rows that have one key now.
    """
    from pyspark.sql import functions as F  # noqa: N812

    checks = [check for conversion in found for check in _checks(rows, table, conversion)]
    counts = rows.agg(
        F.count(F.lit(1)),
        *(F.count(F.when(F.expr(check.condition), 1)) for check in checks),
    ).collect()[0]
    total = counted(counts[0], "row")
    misfits = []
    for check, count in zip(checks, list(counts)[1:], strict=True):
        if count:
            samples = _samples(rows, check) if check.sample else []
            told = f": {', '.join(samples)}" if samples else ""
            misfits.append(Misfit(f"{check.text} in {count:,} of {total}{told}", check.is_loss))
    if has_new_key and all(misfit.is_loss for misfit in misfits):
        misfits.extend(_repeated(rows, table, found))
    return misfits


@dataclass(frozen=True)
class _Check:
    """What a row may break: SQL that is true then, the words for it, SQL of what to show of it."""

    condition: str
    text: str
    sample: str | None
    is_loss: bool = False


def _checks(rows: DataFrame, table: Table, conversion: Conversion) -> list[_Check]:
    column = conversion.column
    name = f"`{table.name}.{column.name}`"
    if conversion.source is None:
        text = f"{name} is new, NOT NULL and without a default: it would lack a value"
        is_open = conversion.may_lack
        return [_Check(f"{default_sql(column)} IS NULL", text, None)] if is_open else []
    checks = _cast_checks(rows, name, conversion) if conversion.is_cast else []
    if conversion.may_lack:
        text = f"{name} becomes NOT NULL, and is NULL"
        checks.append(_Check(f"{conversion.name} IS NULL", text, "to_json(struct(*))"))
    return checks


def _cast_checks(rows: DataFrame, name: str, conversion: Conversion) -> list[_Check]:
    assert conversion.source is not None
    column, value, was = conversion.column, conversion.name, conversion.source.type
    kind = storage_type(column.type)
    words = f"cast from {was} to {column.type}"
    cast = _cast(rows, conversion)
    is_nested = was.startswith(_NESTED)
    sample = f"to_json({value})" if is_nested else f"CAST({value} AS string)"
    if storage_type(was).startswith("string"):
        sample = f"concat('\\'', {value}, '\\'')"
    if not cast.is_known:
        text = f"Spark has no {words} for {name}, which has a value"
        return [_Check(cast.fails, text, sample)]
    fails = cast.fails
    if kind != column.type:
        limit = int(column.type[column.type.index("(") + 1 : -1])
        fails = f"({fails} OR coalesce(length({cast.value}) > {limit}, false))"
    shown = sample
    if not is_nested:
        shown = f"concat({sample}, ' becomes ', CAST(try_cast({value} AS {kind}) AS string))"
    return [
        _Check(fails, f"{name} can't be {words}", sample),
        _Check(
            f"(NOT {fails} AND {cast.changes})",
            f"{name} changes by the {words}",
            shown,
            is_loss=True,
        ),
    ]


def _repeated(rows: DataFrame, table: Table, found: Sequence[Conversion]) -> list[Misfit]:
    """Keys that several rows have under the new definition."""
    from pyspark.sql import functions as F  # noqa: N812

    wanted = {key.lower() for key in table.primary_key}
    columns = [c for c in found if c.column.name.lower() in wanted]
    count = "__sqlmig_rows"
    keys = rows.select(*(converted(rows, c) for c in columns))
    grouped = keys.groupBy(*(quoted(c.column.name) for c in columns))
    several = grouped.agg(F.count(F.lit(1)).alias(count)).where(F.col(count) > 1)
    total = several.agg(F.count(F.lit(1)), F.sum(count)).collect()[0]
    if not total[0]:
        return []
    shown = F.concat_ws(", ", *(F.col(quoted(c.column.name)).cast("string") for c in columns))
    samples = several.select(shown.alias("v")).orderBy("v").limit(_SAMPLES).collect()
    listed = ", ".join(f"({_cut(row[0])})" for row in samples)
    return [
        Misfit(
            f"`{table.name}`: the key ({', '.join(table.primary_key)}) would be there more than "
            f"once {counted(total[0], 'time')}, in {total[1]:,} rows: {listed}"
        )
    ]


def _samples(rows: DataFrame, check: _Check) -> list[str]:
    from pyspark.sql import functions as F  # noqa: N812

    assert check.sample is not None
    value = F.expr(check.sample).alias("v")
    found = rows.where(check.condition).select(value).distinct().orderBy("v").limit(_SAMPLES)
    return [_cut(row[0]) for row in found.collect()]


def _cut(text: str | None) -> str:
    text = str(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
