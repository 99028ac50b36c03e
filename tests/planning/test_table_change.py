"""How a table changes: what is done, and what its rows must bear."""

from __future__ import annotations

import itertools

import pytest

from sqlmig.planning.table_change import TableChange, table_change, widens
from sqlmig.program.model import Column, Table

INT = Column("a", "int")
WIDER = {
    ("tinyint", "smallint"),
    ("tinyint", "int"),
    ("tinyint", "bigint"),
    ("tinyint", "double"),
    ("tinyint", "decimal(10,0)"),
    ("tinyint", "decimal(12,2)"),
    ("tinyint", "decimal(20,0)"),
    ("smallint", "int"),
    ("smallint", "bigint"),
    ("smallint", "double"),
    ("smallint", "decimal(10,0)"),
    ("smallint", "decimal(12,2)"),
    ("smallint", "decimal(20,0)"),
    ("int", "bigint"),
    ("int", "double"),
    ("int", "decimal(10,0)"),
    ("int", "decimal(12,2)"),
    ("int", "decimal(20,0)"),
    ("bigint", "decimal(20,0)"),
    ("float", "double"),
    ("date", "timestamp_ntz"),
    ("decimal(5,2)", "decimal(10,2)"),
    ("decimal(5,2)", "decimal(12,2)"),
    ("decimal(5,2)", "decimal(6,3)"),
    ("decimal(5,3)", "decimal(6,3)"),
    ("decimal(10,0)", "decimal(12,2)"),
    ("decimal(10,0)", "decimal(20,0)"),
    ("decimal(10,2)", "decimal(12,2)"),
}
TYPES = sorted(
    {t for pair in WIDER for t in pair}
    | {"string", "binary", "boolean", "timestamp", "array<int>", "varchar(9)"}
)


def table(*columns: Column, key: tuple[str, ...] = (), comment: str | None = None) -> Table:
    """A table `t`."""
    return Table("t", columns, key, comment)


def change(before: Table, after: Table, **renamed: str) -> TableChange:
    """What happens from one definition to the other."""
    return table_change(before, after, renamed)


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(TYPES, 2)))
def test_a_type_is_widened_only_where_every_value_fits_and_delta_can(
    before: str, after: str
) -> None:
    assert widens(before, after) is ((before, after) in WIDER)


@pytest.mark.parametrize(
    ("before", "after", "operation"),
    [
        (table(INT), table(INT, Column("b", "string")), "add column `b string`"),
        (
            table(INT),
            table(INT, Column("b", "int", nullable=False, default="0")),
            "add column `b int`",
        ),
        (table(INT, Column("b", "int")), table(INT), "drop column `b`"),
        (table(INT), table(Column("a", "bigint")), "widen `a` from int to bigint"),
        (
            table(Column("a", "int", nullable=False)),
            table(INT),
            "allow NULL in `a`",
        ),
        (table(INT), table(Column("a", "int", comment="x")), "change the comment of `a`"),
        (table(INT), table(Column("a", "int", default="1")), "change the default of `a`"),
        (table(INT), table(INT, comment="x"), "change the comment"),
        (table(INT, key=("a",)), table(INT), "drop the primary key"),
        (table(INT, Column("b", "int")), table(Column("b", "int"), INT), "reorder columns"),
    ],
)
def test_what_delta_can_alter_keeps_the_rows(before: Table, after: Table, operation: str) -> None:
    found = change(before, after)
    assert found.operations == (operation,)
    assert found.demands == ()
    assert not found.cast
    filled = [c for c in after.columns if c.default is not None and c not in before.columns]
    assert found.is_rewritten is (bool(filled) and operation.startswith("add"))


def test_a_column_added_in_between_is_put_in_its_place() -> None:
    between = change(
        table(INT, Column("c", "int")), table(INT, Column("b", "int"), Column("c", "int"))
    )
    assert between == TableChange(("add column `b int`", "reorder columns"), added=frozenset({"b"}))
    first = change(table(INT), table(Column("b", "int"), INT))
    assert first == TableChange(("add column `b int`", "reorder columns"), added=frozenset({"b"}))


def test_equal_definitions_need_nothing() -> None:
    assert change(table(INT), table(INT)) == TableChange(())
    assert change(table(INT), table(Column("A", "int"))) == TableChange(())


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            table(INT),
            table(INT, Column("b", "int", nullable=False)),
            TableChange(
                ("add column `b int`",),
                ("new column `b` is NOT NULL and has no default",),
                added=frozenset({"b"}),
            ),
        ),
        (
            table(Column("a", "bigint")),
            table(INT),
            TableChange(
                ("cast `a` from bigint to int",),
                ("`a` becomes int, was bigint",),
                cast=frozenset({"a"}),
            ),
        ),
        (
            table(INT),
            table(Column("a", "int", nullable=False)),
            TableChange(("require a value in `a`",), ("`a` becomes NOT NULL",)),
        ),
        (
            table(INT),
            table(INT, key=("a",)),
            TableChange(
                ("add the primary key (a)",),
                ("primary key (a) is added",),
                has_other_key=True,
                has_new_key=True,
            ),
        ),
        (
            table(INT, Column("b", "int"), key=("a",)),
            table(INT, Column("b", "int"), key=("b",)),
            TableChange(
                ("change the primary key from (a) to (b)",),
                ("primary key becomes (b), was (a)",),
                has_other_key=True,
                has_new_key=True,
            ),
        ),
        (
            table(INT, Column("B", "int"), key=("a", "B")),
            table(INT, key=("a",)),
            TableChange(
                ("drop column `B`", "change the primary key from (a, B) to (a)"),
                ("primary key becomes (a), was (a, B)",),
                has_other_key=True,
                has_new_key=True,
            ),
        ),
        (
            table(Column("a", "string"), key=("a",)),
            table(INT, key=("a",)),
            TableChange(
                ("cast `a` from string to int",),
                ("`a` becomes int, was string",),
                cast=frozenset({"a"}),
                has_other_key=True,
                has_new_key=True,
            ),
        ),
    ],
)
def test_what_not_every_row_may_bear_is_demanded_of_the_rows(
    before: Table, after: Table, expected: TableChange
) -> None:
    assert change(before, after) == expected


def test_a_key_with_more_columns_stays_one_without_a_look_at_the_rows() -> None:
    before = table(INT, Column("b", "int", nullable=False), key=("a",))
    after = table(INT, Column("b", "int", nullable=False), key=("b", "a"))
    assert change(before, after) == TableChange(
        ("change the primary key from (a) to (b, a)",), has_other_key=True
    )
    cast = table(INT, Column("b", "string", nullable=False), key=("a",))
    assert change(cast, after).has_new_key, "a cast may make values equal that were not"


def test_a_renamed_column_keeps_its_values() -> None:
    renamed = change(table(INT), table(Column("b", "int")), a="b")
    assert renamed == TableChange(("rename column `a` to `b`",))


def test_a_renamed_column_can_be_widened_too() -> None:
    renamed = change(table(INT), table(Column("b", "bigint")), a="b")
    assert renamed == TableChange(("rename column `a` to `b`", "widen `b` from int to bigint"))


def test_without_a_directive_a_rename_drops_and_adds() -> None:
    assert change(table(INT), table(Column("b", "int"))) == TableChange(
        ("drop column `a`", "add column `b int`"), added=frozenset({"b"})
    )


def test_two_columns_can_change_names() -> None:
    swapped = change(table(INT, Column("b", "int")), table(INT, Column("b", "int")), a="b", b="a")
    assert swapped.operations == (
        "rename column `a` to `b`",
        "rename column `b` to `a`",
        "reorder columns",
    )
    assert swapped.demands == ()


def test_a_renamed_column_whose_new_name_is_gone_is_dropped_and_its_old_name_is_new() -> None:
    after = table(Column("a", "string"), Column("c", "int"))
    assert change(table(INT, Column("c", "int")), after, a="b") == TableChange(
        ("drop column `a`", "add column `a string`", "reorder columns"), added=frozenset({"a"})
    )


def test_a_column_can_take_the_name_of_one_that_is_dropped() -> None:
    before, after = table(INT, Column("b", "string")), table(Column("b", "int"))
    assert change(before, after, a="b") == TableChange(
        ("rename column `a` to `b`", "drop column `b`")
    )


def test_a_renamed_key_column_stays_the_key() -> None:
    key = Column("id", "int", nullable=False)
    after = Column("number", "int", nullable=False)
    renamed = change(table(key, key=("id",)), table(after, key=("number",)), id="number")
    assert renamed == TableChange(("rename column `id` to `number`",))


def test_all_demands_are_given_at_once() -> None:
    both = change(
        table(INT, Column("b", "int")),
        table(Column("a", "string"), Column("b", "int", nullable=False)),
    )
    assert both.demands == ("`a` becomes string, was int", "`b` becomes NOT NULL")
