"""The law of casts: rows without a misfit are what CAST makes of them; others can't be cast."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlmig.program.model import Column, Table
from sqlmig.spark.casting import Caster
from sqlmig.spark.conversion import Conversion, converted, find_misfits
from sqlmig.spark.tables import storage_type
from sqlmig.stored import StoredColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES = ("int", "tinyint", "double", "decimal(4,1)", "date", "timestamp", "boolean", "string")
_PAIRS = st.tuples(st.sampled_from(_TYPES), st.sampled_from((*_TYPES, "varchar(3)", "binary")))
_VALUES = st.sampled_from(
    [
        "1",
        "007",
        "-3.25",
        "300",
        "99999999999",
        "true",
        "2026-02-03",
        "2026-02-03 04:05:06",
        "é",
        "",
    ]
)


@pytest.mark.timeout(300)
@settings(max_examples=3)
@given(
    st.lists(_PAIRS, min_size=3, max_size=3, unique=True),
    st.lists(st.none() | _VALUES, min_size=3, max_size=5),
)
def test_rows_without_a_misfit_are_cast_and_rows_with_one_can_not_be(
    spark: SparkSession, pairs: list[tuple[str, str]], values: list[str | None]
) -> None:
    # given: a column of each type, with those of the values that it can hold
    from pyspark.sql import functions as F  # noqa: N812

    texts = spark.createDataFrame([(value,) for value in values], "v string")
    names = [f"c{number}" for number in range(len(pairs))]
    rows = texts.select(
        *(
            F.expr(f"try_cast(v AS {was})").alias(name)
            for name, (was, _) in zip(names, pairs, strict=True)
        )
    )
    found = [
        Conversion(Column(name, kind), StoredColumn(name, was, nullable=True), is_cast=was != kind)
        for name, (was, kind) in zip(names, pairs, strict=True)
    ]
    table = Table("t", tuple(conversion.column for conversion in found))

    # when
    misfits = find_misfits(rows, table, found, has_new_key=False)

    # then
    for conversion, (was, kind) in zip(found, pairs, strict=True):
        told = [m for m in misfits if f"`t.{conversion.column.name}`" in m.message]
        value = conversion.column.name
        storage = storage_type(kind)
        if any("Spark has no cast" in m.message for m in told):
            assert len(told) == 1
            continue
        caster = Caster(spark)
        if not caster.cast(value, rows.schema[value].dataType, caster.type_of(storage)).is_known:
            assert rows.where(f"{value} IS NOT NULL").count() == 0, (was, kind)
            continue
        wanted = rows.select(F.expr(f"CAST({value} AS {storage})"))
        if any(not m.is_loss for m in told):
            failing = f"{value} IS NOT NULL AND try_cast({value} AS {storage}) IS NULL"
            if kind == "varchar(3)":
                failing = f"({failing}) OR length(CAST({value} AS string)) > 3"
            assert rows.where(failing).count() > 0, (was, kind)
        else:
            made = rows.select(converted(rows, conversion)).collect()
            assert [row[0] for row in made] == [row[0] for row in wanted.collect()]
            if not told and was != kind:
                back = f"CAST(CAST({value} AS {storage}) AS {was}) <=> {value}"
                if storage != "binary":
                    assert rows.where(f"NOT ({back})").count() == 0, "no value changed unseen"
