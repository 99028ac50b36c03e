"""The fields that a predicate names."""

from __future__ import annotations

import pytest

from sqlmig.program.lexer import LexError
from sqlmig.program.predicate import fields_beyond, named_fields


@pytest.mark.parametrize(
    ("predicate", "fields"),
    [
        ("op = 'd'", ["op"]),
        ("deleted", ["deleted"]),
        ("NOT deleted AND Deleted IS NOT NULL", ["deleted"]),
        ("payload.op IN ('d', 'x') OR payload.`ts ms` > 3", ["payload.op", "payload.ts ms"]),
        ("lower(op) = 'd' -- op_old", ["op"]),
        ("CAST(flag AS BOOLEAN) OR flag::int = 1", ["flag"]),
        ("at > DATE '2026-01-01' AND date < current_date()", ["at", "date"]),
        ("CASE WHEN a THEN b ELSE c END", ["a", "b", "c"]),
        ("`and` = 1", ["and"]),
        ("exists(tags, x -> tag = 'gone')", ["tags", "tag"]),
        ("1 = 1", []),
    ],
)
def test_a_predicate_names_its_fields_once_in_their_order(
    predicate: str, fields: list[str]
) -> None:
    assert [".".join(path) for path in named_fields(predicate)] == fields


def test_fields_that_the_table_has_not_are_strings_or_structures_of_strings() -> None:
    predicate = "op = 'd' OR ID < 0 OR payload.after.id IS NULL OR payload.op = 'd'"

    assert fields_beyond(predicate, ["id", "name"]) == (
        ("op", "string"),
        ("payload", "struct<`after`: struct<`id`: string>, `op`: string>"),
    )


def test_a_string_that_does_not_end_is_a_mistake() -> None:
    with pytest.raises(LexError):
        named_fields("op = 'd")
