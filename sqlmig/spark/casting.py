"""How a value becomes one of another type: the cast, where it fails, where it changes the value.

All of it is SQL text by ANSI rules. Structures are taken apart by the names of their fields, arrays
and maps element by element, since Spark's own casts go by place and turn into NULL what fails
inside. It knows types, and no table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmig.spark.names import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class Cast:
    """A cast as SQL.

    Args:
        value: the value cast; an error where it fails.
        fails: true where it fails; never NULL.
        changes: true where the cast back gives another value; right only where nothing fails.
        is_known: False where Spark has no such cast: then a value that is not NULL fails.
    """

    value: str
    fails: str = "false"
    changes: str = "false"
    is_known: bool = True


class Caster:
    """Makes casts. It asks Spark which there are.

    Args:
        session: where Spark is.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def type_of(self, text: str) -> DataType:
        """The type that SQL names so."""
        return self._session.sql(f"SELECT CAST(NULL AS {text}) AS v").schema[0].dataType

    def cast(self, value: str, was: DataType, to: DataType, depth: int = 0) -> Cast:
        """The cast of `value`, which is SQL of type `was`."""
        from pyspark.sql.types import ArrayType, MapType, StructType

        if was.simpleString() == to.simpleString():
            return Cast(value)
        item = f"x{depth}"
        match was, to:
            case StructType(), StructType():
                return self._structure(value, was, to, depth)
            case ArrayType(), ArrayType():
                inner = self.cast(item, was.elementType, to.elementType, depth + 1)
                return _each(f"transform({value}, {item} -> {inner.value})", value, item, inner)
            case MapType(), MapType():
                key = self.cast(f"{item}.key", was.keyType, to.keyType, depth + 1)
                content = self.cast(f"{item}.value", was.valueType, to.valueType, depth + 1)
                entries = f"map_entries({value})"
                made = f"transform({entries}, {item} -> struct({key.value}, {content.value}))"
                both = _all("", [key, content])
                return _each(f"map_from_entries({made})", entries, item, both)
            case _:
                return self._simple(value, was, to)

    def _structure(self, value: str, was: StructType, to: StructType, depth: int) -> Cast:
        before = {field.name.lower(): field for field in was.fields}
        after = {field.name.lower() for field in to.fields}
        parts, casts = [], []
        for field in to.fields:
            old = before.get(field.name.lower())
            if old is None:
                cast = Cast(f"CAST(NULL AS {type_text(field.dataType)})")
            else:
                inside = f"{value}.{quoted(old.name)}"
                cast = self.cast(inside, old.dataType, field.dataType, depth)
            casts.append(cast)
            parts.append(f"{literal(field.name)}, {cast.value}")
        made = f"named_struct({', '.join(parts)})"
        gone = [
            Cast("", changes=f"({value}.{quoted(field.name)} IS NOT NULL)")
            for name, field in before.items()
            if name not in after
        ]
        return _all(f"CASE WHEN {value} IS NOT NULL THEN {made} END", [*casts, *gone])

    def _simple(self, value: str, was: DataType, to: DataType) -> Cast:
        kind = type_text(to)
        if not self._has_cast(was, to):
            return Cast(f"CAST(NULL AS {kind})", f"({value} IS NOT NULL)", is_known=False)
        tried = f"try_cast({value} AS {kind})"
        fails = f"({value} IS NOT NULL AND {tried} IS NULL)"
        changes = "false"
        if self._has_cast(to, was):
            changes = f"(NOT (try_cast({tried} AS {type_text(was)}) <=> {value}))"
        return Cast(f"CAST({value} AS {kind})", fails, changes)

    def _has_cast(self, was: DataType, to: DataType) -> bool:
        sql = f"SELECT try_cast(CAST(NULL AS {type_text(was)}) AS {type_text(to)}) AS v"
        try:
            self._session.sql(sql).schema  # noqa: B018
        except Exception:
            return False
        return True


def type_text(kind: DataType) -> str:
    """A type in SQL, the names of fields quoted."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match kind:
        case StructType():
            fields = (f"{quoted(f.name)}: {type_text(f.dataType)}" for f in kind.fields)
            return f"struct<{', '.join(fields)}>"
        case ArrayType():
            return f"array<{type_text(kind.elementType)}>"
        case MapType():
            return f"map<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
        case _:
            return kind.simpleString()


def _all(value: str, parts: list[Cast]) -> Cast:
    fails = [part.fails for part in parts if part.fails != "false"]
    changes = [part.changes for part in parts if part.changes != "false"]
    return Cast(value, _any(fails), _any(changes))


def _any(conditions: list[str]) -> str:
    return f"({' OR '.join(conditions)})" if conditions else "false"


def _each(value: str, elements: str, item: str, inner: Cast) -> Cast:
    def exists(condition: str) -> str:
        if condition == "false":
            return condition
        return f"coalesce(exists({elements}, {item} -> {condition}), false)"

    return Cast(value, exists(inner.fails), exists(inner.changes))
