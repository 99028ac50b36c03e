"""Records as rows of the ledger's table, and back. It opens no table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from sqlmig.ledger.records import Kind, Record, Status

COLUMNS: tuple[tuple[str, str], ...] = (
    ("seq", "long"),
    ("part", "integer"),
    ("at", "timestamp"),
    ("pipeline", "string"),
    ("kind", "string"),
    ("status", "string"),
    ("plan", "string"),
    ("step", "integer"),
    ("revision", "string"),
    ("program", "string"),
    ("program_diff", "string"),
    ("cut", "string"),
    ("commit", "string"),
    ("branch", "string"),
    ("dirty", "boolean"),
    ("author", "string"),
    ("actor", "string"),
    ("versions", "string"),
    ("error", "string"),
    ("details", "string"),
    ("remote", "string"),
)
"""What was not there from the first comes last: an older ledger gets it at its next append."""
ALWAYS = frozenset({"seq", "part"})
_JSON = frozenset({"program", "program_diff", "cut", "versions", "details"})
_NEEDED = (
    "kind NOT IN ('tick', 'exec', 'runner', 'request', 'checkpoint', 'send') OR seq >= "
    "(SELECT coalesce(max(seq), -1) FROM ledger WHERE kind = 'checkpoint' AND seq <= {until})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def selection(after: int, until: int, *, is_whole: bool) -> str:
    """The query for the records behind `after` up to `until`: all, or those that a fold needs."""
    needed = "" if is_whole or after >= 0 else f"AND ({_NEEDED.format(until=int(until))})"
    among = f"seq > {int(after)} AND seq <= {int(until)}"
    return f"SELECT * FROM ledger WHERE {among} {needed} ORDER BY seq, part"


def time_literal(at: datetime) -> str:
    """A time as the query engine reads it."""
    return f"to_timestamp_micros({(at - _EPOCH) // timedelta(microseconds=1)})"


def to_rows(records: Sequence[Record]) -> Any:
    """The records as an Arrow table."""
    from arro3.core import Array, DataType, Field, Schema, Table

    types: dict[str, Callable[[], Any]] = {
        "long": DataType.int64,
        "integer": DataType.int32,
        "boolean": DataType.bool,
        "string": DataType.string,
    }
    arrays: dict[str, Any] = {}
    fields: list[Any] = []
    for name, kind in COLUMNS:
        values = [getattr(record, name) for record in records]
        if name in _JSON:
            values = [None if value is None else _json(value) for value in values]
        if kind == "timestamp":
            micros = [(value - _EPOCH) // timedelta(microseconds=1) for value in values]
            data_type = DataType.timestamp("us", tz="UTC")
            arrays[name] = Array(micros, DataType.int64()).cast(data_type)
        else:
            data_type = types[kind]()
            arrays[name] = Array([_storable(value) for value in values], data_type)
        fields.append(Field(name, data_type, nullable=name not in ALWAYS))
    return Table.from_pydict(arrays, schema=Schema(fields))


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _storable(value: Any) -> Any:
    """A value as Arrow takes it; what is no Unicode in an error's text is escaped."""
    plain = getattr(value, "value", value)
    return plain.encode(errors="backslashreplace").decode() if isinstance(plain, str) else plain


def to_record(values: dict[str, Any]) -> Record:
    """The record that a row, column -> value, holds."""
    for name in _JSON:
        text = values[name]
        values[name] = None if text is None else json.loads(text)
    at: datetime = values["at"]
    values["at"] = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    values["kind"] = Kind(values["kind"])
    values["status"] = Status(values["status"])
    values["details"] = values["details"] or {}
    return Record(**values)
