"""The compatibility of a sink's columns, cell by cell: change x format x direction."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.program.compatibility import find_breaks
from sqlmig.program.sink_options import Compatibility
from sqlmig.program.type_shape import Field, Shape, shape_of

FORMS = ("avro", "csv", "delta", "json", "orc", "parquet")
BACKWARD, FORWARD = Compatibility.BACKWARD, Compatibility.FORWARD
ID = Field("id", "bigint", is_nullable=False)
NAME = Field("name", "string")
AGE = Field("age", "int")


def broken(form: str, before: list[Field], after: list[Field]) -> str:
    """`B` if backward breaks, `F` if forward does, `BF` for both, '' for neither.

    `full` must break where one of them does, and `none` never.
    """
    found = [c for c in (BACKWARD, FORWARD) if find_breaks(c, form, before, after)]
    full = find_breaks(Compatibility.FULL, form, before, after)
    assert {b.direction for b in full} == set(found)
    assert find_breaks(Compatibility.NONE, form, before, after) == ()
    return "".join(c.value[0].upper() for c in found)


CHANGES = {
    "nothing": ([ID, NAME], [ID, NAME]),
    "added at the end": ([ID], [ID, NAME]),
    "added before": ([ID, NAME], [ID, AGE, NAME]),
    "added, never NULL": ([ID], [ID, Field("age", "int", False)]),
    "dropped from the end": ([ID, NAME], [ID]),
    "dropped before": ([ID, AGE, NAME], [ID, NAME]),
    "renamed": ([ID, NAME], [ID, Field("called", "string")]),
    "letter case": ([ID, NAME], [ID, Field("Name", "string")]),
    "swapped": ([ID, NAME, AGE], [ID, AGE, NAME]),
    "may be NULL": ([ID], [Field("id", "bigint")]),
    "never NULL": ([Field("id", "bigint")], [ID]),
}
EXPECTED = {
    # change: by name (avro, delta, json, orc, parquet), by place (csv)
    "nothing": ("", ""),
    "added at the end": ("", ""),
    "added before": ("", "BF"),
    "added, never NULL": ("B", "B"),
    "dropped from the end": ("F", "F"),
    "dropped before": ("F", "BF"),
    "renamed": ("F", "BF"),
    "letter case": ("F", "BF"),
    "swapped": ("", "BF"),
    "may be NULL": ("F", "F"),
    "never NULL": ("B", "B"),
}


@pytest.mark.parametrize(("change", "form"), list(product(CHANGES, FORMS)))
def test_a_change_of_the_columns(change: str, form: str) -> None:
    by_name, by_place = EXPECTED[change]
    assert broken(form, *CHANGES[change]) == (by_place if form == "csv" else by_name)


TYPES = {
    # (before, after): avro, csv, json, and files or tables with types (delta, orc, parquet)
    ("int", "bigint"): ("F", "F", "F", "F"),
    ("smallint", "int"): ("", "F", "F", "F"),
    ("bigint", "int"): ("B", "B", "B", "B"),
    ("int", "double"): ("F", "F", "F", "F"),
    ("bigint", "double"): ("F", "F", "F", "BF"),
    ("float", "double"): ("F", "F", "F", "F"),
    ("int", "float"): ("F", "BF", "BF", "BF"),
    ("int", "decimal(10,0)"): ("BF", "", "", ""),
    ("int", "decimal(12,2)"): ("BF", "F", "F", "F"),
    ("decimal(10,2)", "decimal(12,2)"): ("BF", "F", "F", "F"),
    ("decimal(10,2)", "decimal(10,4)"): ("BF", "BF", "BF", "BF"),
    ("decimal(10,2)", "double"): ("BF", "F", "F", "BF"),
    ("int", "string"): ("BF", "F", "BF", "BF"),
    ("boolean", "string"): ("BF", "F", "BF", "BF"),
    ("date", "string"): ("BF", "F", "F", "BF"),
    ("timestamp", "string"): ("BF", "F", "F", "BF"),
    ("date", "timestamp"): ("BF", "BF", "BF", "BF"),
    ("string", "binary"): ("", "B", "B", "BF"),
    ("binary", "string"): ("", "F", "F", "BF"),
    ("varchar(5)", "string"): ("", "", "", ""),
    ("string collate UTF8_LCASE", "char(3)"): ("", "", "", ""),
    ("array<int>", "array<bigint>"): ("F", "F", "F", "F"),
    ("array<int>", "int"): ("BF", "BF", "BF", "BF"),
    ("map<string,int>", "map<string,string>"): ("BF", "F", "BF", "BF"),
    ("struct<a:int>", "struct<a:int,b:int>"): ("", "", "", ""),
    ("struct<a:int,b:int>", "struct<a:int>"): ("F", "F", "F", "F"),
    ("struct<a:int>", "struct<a:int not null>"): ("B", "B", "B", "B"),
    ("struct<a:int,b:int>", "struct<b:int,a:int>"): ("", "", "", ""),
    ("array<struct<a:date>>", "array<struct<a:string>>"): ("BF", "F", "F", "BF"),
    ("variant", "string"): ("BF", "F", "BF", "BF"),
}


@pytest.mark.parametrize(("types", "form"), list(product(TYPES, FORMS)))
def test_a_change_of_a_type(types: tuple[str, str], form: str) -> None:
    avro, csv, json, typed = TYPES[types]
    expected = {"avro": avro, "csv": csv, "json": json}.get(form, typed)
    before, after = ([ID, Field("x", text)] for text in types)
    assert broken(form, before, after) == expected
    if [f.name for f in shape_of(types[0]).fields] == [f.name for f in shape_of(types[1]).fields]:
        turned = {"B": "F", "F": "B"}.get(expected, expected)
        assert broken(form, after, before) == turned, "what breaks one way, the other way back"


def test_a_break_names_the_column_and_what_is_wrong_with_it() -> None:
    before = [Field("id", "int"), NAME, Field("a", "struct<zip:int,city:string>"), AGE]
    after = [
        Field("id", "int", False),
        Field("a", "struct<zip:string>"),
        Field("new", "int", False),
        Field("age", "bigint"),
    ]
    found = find_breaks(Compatibility.FULL, "json", before, after)
    assert [(b.column, b.problem) for b in found] == [
        ("id", "is never NULL from now on, and rows sent before may be"),
        ("a.zip", "became `string`, and rows sent before have `int`"),
        ("a.zip", "became `string`, and present readers have `int`"),
        ("a.city", "is gone, and present readers know it"),
        ("new", "is new and never NULL, and rows sent before lack it"),
        ("age", "became `bigint`, and present readers have `int`"),
        ("name", "is gone, and present readers know it"),
    ]
    places = find_breaks(BACKWARD, "csv", [ID, NAME, AGE], [ID, AGE, Field("x", "int"), NAME])
    assert [(b.column, b.problem) for b in places] == [
        ("age", "is at place 2, and was at 3"),
        ("x", "is new at place 3, not at the end"),
        ("name", "is at place 4, and was at 2"),
    ]


def test_types_are_taken_apart() -> None:
    assert shape_of("decimal(10,2)") == Shape("decimal(10,2)", "decimal(10,2)")
    assert shape_of("struct<>").fields == ()
    found = shape_of(
        "struct<a:decimal(5,2) not null comment 'x, <y> \\' not null',"
        "`b:``c, d`:map<int,array<int>>,e:struct<f:int not null>>"
    )
    assert found.fields == (
        Field("a", "decimal(5,2)", False),
        Field("b:`c, d", "map<int,array<int>>"),
        Field("e", "struct<f:int not null>"),
    )
    assert shape_of("map<int,array<int>>").fields == (
        Field("key", "int", False),
        Field("value", "array<int>"),
    )


_names = st.sampled_from(("a", "b", "c", "d"))
_fields = st.lists(
    st.builds(Field, _names, st.sampled_from(("int", "bigint", "string")), st.booleans()),
    max_size=4,
    unique_by=lambda field: field.name,
)


@given(st.sampled_from(FORMS), _fields, _fields)
def test_no_change_breaks_nothing_and_backward_is_forward_turned_round_but_for_gone_columns(
    form: str, one: list[Field], other: list[Field]
) -> None:
    assert find_breaks(Compatibility.FULL, form, one, one) == ()
    if {f.name for f in one} == {f.name for f in other}:
        back = {b.column for b in find_breaks(BACKWARD, form, one, other)}
        forth = {b.column for b in find_breaks(FORWARD, form, other, one)}
        assert back == forth
