"""Column types taken apart: a structure's fields, an array's elements. It reads canonical texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_OPEN, _CLOSE = "<(", ">)"


@dataclass(frozen=True)
class Field:
    """A column, a field of a structure, an element of an array, a key or a value of a map.

    Args:
        name: as spelled. type: canonical, as `column_type.read_type` gives it.
    """

    name: str
    type: str
    is_nullable: bool = True


@dataclass(frozen=True)
class Shape:
    """A type: its kind (`struct`, `array`, `map`, else the whole text), text, and inner fields."""

    kind: str
    text: str
    fields: tuple[Field, ...] = ()


def shape_of(text: str) -> Shape:
    """The shape of a type.

    Args:
        text: canonical, such as `struct<a:int not null,b:array<string>>`.
    """
    kind, _, rest = text.partition("<")
    inner = rest[:-1]
    match kind:
        case "struct":
            return Shape(kind, text, tuple(_field(part) for part in _parts(inner)))
        case "array":
            return Shape(kind, text, (Field("element", inner),))
        case "map":
            key, value = _parts(inner)
            return Shape(kind, text, (Field("key", key, False), Field("value", value)))
        case _:
            return Shape(text, text)


def _field(text: str) -> Field:
    end = text.index(":", text.index("`", 1) if text.startswith("`") else 0)
    name, rest = text[:end].strip("`").replace("``", "`"), text[end + 1 :]
    kind = next(_parts(rest, " comment "))
    is_nullable = not kind.endswith(" not null")
    return Field(name, kind.removesuffix(" not null"), is_nullable)


def _parts(text: str, separator: str = ",") -> Iterator[str]:
    """The parts of a text between separators that are neither quoted nor in brackets."""
    depth, start, position, quote = 0, 0, 0, ""
    while position < len(text):
        letter = text[position]
        if quote:
            if letter == "\\" and quote != "`":
                position += 1
            elif letter == quote:
                quote = ""
        elif letter in "`'\"":
            quote = letter
        elif letter in _OPEN:
            depth += 1
        elif letter in _CLOSE:
            depth -= 1
        elif depth == 0 and text.startswith(separator, position):
            yield text[start:position]
            position += len(separator) - 1
            start = position + 1
        position += 1
    if text:
        yield text[start:]
