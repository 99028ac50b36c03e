"""Which ALTER comes next: found from the table as it is, without Spark."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.errors import EngineError
from sqlmig.program.model import Column, Table
from sqlmig.spark.alterations import begun_renames, next_alteration, next_constraint
from sqlmig.stored import StoredColumn, StoredTable


def stored(*columns: str, **properties: str) -> StoredTable:
    """A Delta table with `name type` columns."""
    parts = [column.split() for column in columns]
    return StoredTable(
        0,
        tuple(StoredColumn(p[0], p[1], nullable="not" not in p) for p in parts),
        None,
        properties,
        frozenset(),
    )


def table(*columns: str) -> Table:
    """A table of the program with `name type` columns."""
    parts = [column.split() for column in columns]
    return Table("t", tuple(Column(p[0], p[1], nullable="not" not in p) for p in parts))


@pytest.mark.parametrize(
    ("before", "after", "clause"),
    [
        (("a int",), ("a int",), None),
        (("a int",), ("a int", "b string"), "ADD COLUMNS (`b` string)"),
        (("a int", "b int"), ("a int",), "DROP COLUMNS (`b`)"),
        (("a int", "b int"), ("b int", "a int"), "ALTER COLUMN `b` FIRST"),
        (("a int not",), ("a int",), "ALTER COLUMN `a` DROP NOT NULL"),
        (
            ("a int",),
            ("a bigint",),
            "SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        ),
        (("A int",), ("a int",), None),
    ],
)
def test_the_next_alteration_is_what_differs_first(
    before: tuple[str, ...], after: tuple[str, ...], clause: str | None
) -> None:
    assert next_alteration(stored(*before), table(*after), (), keeps_rows=True) == clause


def test_a_type_that_can_not_be_widened_is_refused_while_rows_are_kept() -> None:
    with pytest.raises(EngineError) as caught:
        next_alteration(stored("a string"), table("a int"), (), keeps_rows=True)
    assert caught.value.message == "`t.a` can't become int, it is string"


def test_a_not_null_that_delta_can_not_add_becomes_a_constraint() -> None:
    # given
    before = stored("a int")

    # when
    clause = next_constraint(before, table("a int not"))

    # then
    assert clause == "ADD CONSTRAINT `sqlmig_not_null_a` CHECK (`a` IS NOT NULL)"
    done = stored("a int", **{"delta.constraints.sqlmig_not_null_a": "`a` IS NOT NULL"})
    assert next_constraint(done, table("a int not")) is None
    freed = next_alteration(done, table("a int"), (), keeps_rows=True)
    assert freed == "DROP CONSTRAINT IF EXISTS `sqlmig_not_null_a`"


def _altered(before: StoredTable, clause: str) -> StoredTable:
    """What Delta makes of a table by a clause."""
    columns = list(before.columns)
    names = [column.name for column in columns]
    quoted = re.findall(r"`([^`]+)`", clause)
    if clause.startswith("RENAME"):
        assert quoted[1] not in names, "a name can't be given twice"
        at = names.index(quoted[0])
        columns[at] = replace(columns[at], name=quoted[1])
    elif clause.startswith("DROP COLUMNS"):
        columns = [column for column in columns if column.name not in quoted]
        assert columns, "Delta wants one column to stay"
    elif clause.startswith("ADD COLUMNS"):
        for name, kind in re.findall(r"`([^`]+)` (\w+)", clause):
            assert name not in names, "a column can't be added twice"
            columns.append(StoredColumn(name, kind, nullable=True))
    elif "TYPE " in clause:
        at = names.index(quoted[0])
        columns[at] = replace(columns[at], type=clause.split()[-1])
    elif clause.startswith("SET"):
        return replace(before, properties={"delta.enableTypeWidening": "true"})
    elif clause.startswith("ALTER COLUMN"):
        moved = columns.pop(names.index(quoted[0]))
        rest = [column.name for column in columns]
        columns.insert(rest.index(quoted[1]) + 1 if len(quoted) > 1 else 0, moved)
    else:
        raise AssertionError(clause)
    return replace(before, columns=tuple(columns))


_TYPES = st.sampled_from(["int", "bigint", "string"])
_SHAPES = st.dictionaries(st.sampled_from("abcde"), _TYPES, min_size=1)


@given(_SHAPES, _SHAPES, st.data())
def test_any_table_gets_to_any_definition_though_it_dies_after_every_alteration(
    before: dict[str, str], after: dict[str, str], data: st.DataObject
) -> None:
    # given: some columns that stay under another name, their type with them
    olds = data.draw(st.lists(st.sampled_from(sorted(before)), unique=True))
    news = data.draw(st.permutations(sorted(after)))
    renames = [(o, n) for o, n in zip(olds, news, strict=False) if o != n]
    # a directive never names a column that stays as it is, nor leaves one out of the table
    now = stored(*(f"{n} {t}" for n, t in before.items()))
    goal = table(*(f"{n} {t}" for n, t in after.items()))
    made: list[tuple[str, str]] = []

    # when: each alteration is found anew, from the table and its history alone
    for _ in range(100):
        begun = begun_renames(made)
        left = [(o, n) for o, n in renames if o not in begun]
        clause = next_alteration(now, goal, left, keeps_rows=False)
        if clause is None:
            break
        if clause.startswith("RENAME"):
            old, new = re.findall(r"`([^`]+)`", clause)
            made.append((old, new))
        now = _altered(now, clause)

    # then
    reached = [(c.name, c.type) for c in now.columns]
    assert reached == list(after.items()), "the definition, in its order"
