"""Which readers of a sink a change of its columns parts from its rows. It knows types and formats.

A reader has the columns of one time, the rows that it reads those of another. *Backward* keeps
tomorrow's readers able to read the rows that were sent before, *forward* today's readers able to
read what is sent from now on; the words are those of Confluent's schema registry. One rule is
stricter: a registry lets optional fields go, and nearly every column of a query is optional to it.
Here a column that was sent is one that readers use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlmig.program.sink_options import Compatibility
from sqlmig.program.type_shape import Field, Shape, shape_of

_BY_PLACE = frozenset({"csv"})
_AS_TEXT = frozenset({"csv", "json"})
_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Integer types and the digits that they need."""
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_TEXTS = ("string", "varchar", "char")


@dataclass(frozen=True)
class Break:
    """A column that would break a sink's compatibility.

    Args:
        column: its name; with a path in a structure, as in `address.zip`.
        problem: what is wrong with it, in words that go on from its name.
        direction: BACKWARD or FORWARD, whichever it breaks.
    """

    column: str
    problem: str
    direction: Compatibility


def find_breaks(
    compatibility: Compatibility, form: str, before: Sequence[Field], after: Sequence[Field]
) -> tuple[Break, ...]:
    """What of a change from the columns `before` to `after` breaks the compatibility.

    Args:
        form: the format of the rows: `json`, `csv`, `avro`, `parquet`, `orc` or `delta`.

    Returns:
        In the order of the columns, those that are gone last; nothing where none is asked for.
    """
    found: list[Break] = []
    if compatibility in (Compatibility.BACKWARD, Compatibility.FULL):
        found += _backward(form, before, after)
    if compatibility in (Compatibility.FORWARD, Compatibility.FULL):
        found += _forward(form, before, after)
    names = [f.name for f in (*after, *before)]
    return tuple(sorted(found, key=lambda b: names.index(_top(b.column, names))))


def _top(column: str, names: Sequence[str]) -> str:
    return column if column in names else column.partition(".")[0]


def _backward(
    form: str, before: Sequence[Field], after: Sequence[Field], path: str = ""
) -> Iterator[Break]:
    """What readers with the columns `after` can't read of rows with the columns `before`."""
    way = Compatibility.BACKWARD
    old = {field.name: field for field in before}
    for field in after:
        name = path + field.name
        was = old.get(field.name)
        if was is None:
            if not field.is_nullable:
                yield Break(name, "is new and never NULL, and rows sent before lack it", way)
            continue
        if was.is_nullable and not field.is_nullable:
            yield Break(name, "is never NULL from now on, and rows sent before may be", way)
        yield from _retyped(form, was, field, name, way)
    if form in _BY_PLACE and not path:
        yield from _misplaced(before, after, way)


def _forward(
    form: str, before: Sequence[Field], after: Sequence[Field], path: str = ""
) -> Iterator[Break]:
    """What readers with the columns `before` can't read of rows with the columns `after`."""
    way = Compatibility.FORWARD
    new = {field.name: field for field in after}
    for field in before:
        name = path + field.name
        now = new.get(field.name)
        if now is None:
            yield Break(name, "is gone, and present readers know it", way)
            continue
        if now.is_nullable and not field.is_nullable:
            yield Break(name, "can be NULL from now on, and for present readers it never is", way)
        yield from _retyped(form, field, now, name, way)
    if form in _BY_PLACE and not path:
        yield from _misplaced(before, after, way)


def _retyped(form: str, was: Field, now: Field, name: str, way: Compatibility) -> Iterator[Break]:
    if was.type == now.type:
        return
    old, new = shape_of(was.type), shape_of(now.type)
    if old.kind == new.kind and old.fields:
        inner = _backward if way is Compatibility.BACKWARD else _forward
        yield from inner(form, old.fields, new.fields, f"{name}.")
        return
    sent, read = (old, new) if way is Compatibility.BACKWARD else (new, old)
    if not _is_readable(form, sent, read):
        whom = "rows sent before" if way is Compatibility.BACKWARD else "present readers"
        yield Break(name, f"became `{now.type}`, and {whom} have `{was.type}`", way)


def _misplaced(
    before: Sequence[Field], after: Sequence[Field], way: Compatibility
) -> Iterator[Break]:
    """Columns that rows without names have at another place than readers look for them."""
    places = {field.name: place for place, field in enumerate(before)}
    for place, field in enumerate(after):
        was = places.get(field.name)
        if was is None:
            if place < len(before):
                yield Break(field.name, f"is new at place {place + 1}, not at the end", way)
        elif was != place:
            yield Break(field.name, f"is at place {place + 1}, and was at {was + 1}", way)


def _is_readable(form: str, sent: Shape, read: Shape) -> bool:
    """Whether a value sent as one type can be read as the other, whatever it is."""
    one, other = sent.text, read.text
    if one == other or (one.startswith(_TEXTS) and other.startswith(_TEXTS)):
        return True
    if sent.fields or read.fields:
        return False
    if form == "avro":
        return _is_promoted(one, other)
    if _is_number(one) and _is_number(other):
        return _has_room(form, one, other)
    if other.startswith(_TEXTS) and form in _AS_TEXT:
        return form == "csv" or one in ("date", "timestamp", "timestamp_ntz", "binary")
    return False


def _is_promoted(sent: str, read: str) -> bool:
    """Avro's rules for resolving a reader's type against a writer's."""
    ranks = {"tinyint": 0, "smallint": 0, "int": 0, "bigint": 1, "float": 2, "double": 3}
    if sent in ranks and read in ranks:
        return ranks[sent] <= ranks[read]
    texts = ("binary", *_TEXTS)
    return sent.startswith(texts) and read.startswith(texts)


def _is_number(text: str) -> bool:
    return text in _WHOLE or text in ("float", "double") or _DECIMAL.fullmatch(text) is not None


def _has_room(form: str, sent: str, read: str) -> bool:
    """Whether a number keeps its digits before the point, and all behind it or as a fraction."""
    if read == "double":
        return form in _AS_TEXT or sent in ("float", "tinyint", "smallint", "int")
    if sent in ("float", "double") or read == "float":
        return False
    before, behind = _digits(sent)
    room, fraction = _digits(read)
    return before <= room and behind <= fraction


def _digits(text: str) -> tuple[int, int]:
    """Digits before and behind the point."""
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return _WHOLE[text], 0
    precision, scale = int(found[1]), int(found[2])
    return precision - scale, scale
