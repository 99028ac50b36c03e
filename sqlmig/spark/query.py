"""Rows of a query as JSON values. It reads only, and converts every value in one fixed way."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Any

from sqlmig.errors import EngineError
from sqlmig.program.lexer import LexError, tokenize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_READS = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "(", "EXPLAIN"})
_LISTS = frozenset({"SHOW", "DESCRIBE", "DESC"})
_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})


def check_reads_only(sql: str) -> str:
    """The query without a semicolon at its end.

    Raises:
        EngineError: it would change something, or is no query.
    """
    try:
        tokens = tokenize(sql)
    except LexError as error:
        raise EngineError(error.message, hint=error.hint) from error
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens:
        raise EngineError("there is no query", hint='sqlmig query "SELECT * FROM t"')
    depth = 0
    for index, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        writes = depth == 0 and token.word in _WRITES
        if (index == 0 and token.word not in _READS) or (
            writes and (index == 0 or tokens[0].word in ("WITH", "FROM", "EXPLAIN"))
        ):
            raise EngineError(
                f"a query only reads: `{token.text}` can't be used here",
                hint="`sqlmig status` lists the relations"
                if token.word in _LISTS
                else "`sqlmig exec` runs INSERT, UPDATE, DELETE and MERGE",
            )
    return sql[: tokens[-1].end]


def collect(frame: DataFrame) -> tuple[Sequence[str], Sequence[Mapping[str, Any]]]:
    """Column names and rows. Of columns with one name, the later ones get `_2`, `_3`, ..."""
    kinds = [field.dataType for field in frame.schema.fields]
    names = _distinct(frame.columns)
    rows = [
        {
            name: to_json_value(value, kind)
            for name, value, kind in zip(names, row, kinds, strict=True)
        }
        for row in frame.collect()
    ]
    return names, rows


def _distinct(columns: Sequence[str]) -> list[str]:
    names: list[str] = []
    for column in columns:
        name, number = column, 1
        while name in names:
            number += 1
            name = f"{column}_{number}"
        names.append(name)
    return names


def to_json_value(value: Any, kind: DataType) -> Any:
    """One value of a row as JSON has it.

    Decimals stay exact (`decimal.Decimal`); dates and times are ISO 8601 text, a timestamp in UTC
    with `Z`; binary is base64; NaN and infinities are text; a map with other keys than text is a
    list of pairs.
    """
    from pyspark.sql.types import (
        ArrayType,
        MapType,
        StructType,
        TimestampNTZType,
    )

    if value is None:
        return None
    match kind:
        case ArrayType():
            return [to_json_value(item, kind.elementType) for item in value]
        case StructType():
            return {
                name: to_json_value(item, field.dataType)
                for name, item, field in zip(_distinct(kind.names), value, kind.fields, strict=True)
            }
        case MapType():
            return _map(value, kind.keyType, kind.valueType)
        case TimestampNTZType():
            return value.isoformat()
    return _simple(value)


def _map(value: Mapping[Any, Any], key: DataType, item: DataType) -> Any:
    pairs = [(to_json_value(k, key), to_json_value(v, item)) for k, v in value.items()]
    if all(isinstance(k, str) for k, _ in pairs):
        return dict(sorted(pairs))
    return [{"key": k, "value": v} for k, v in sorted(pairs, key=lambda pair: str(pair[0]))]


def _simple(value: Any) -> Any:
    match value:
        case bool() | int() | str():
            return value
        case float():
            if math.isfinite(value):
                return value
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case datetime():
            # pyspark gives local time without a zone; its `fold` tells the two hours in autumn.
            return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return _duration(value)
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
    if hasattr(value, "toPython"):  # variant
        return _variant(value.toPython())
    return value


def _variant(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _variant(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_variant(item) for item in value]
    return None if value is None else _simple(value)


def _duration(value: timedelta) -> str:
    """ISO 8601, in seconds: `PT90.5S`."""
    micros = value // timedelta(microseconds=1)
    sign = "-" if micros < 0 else ""
    seconds, rest = divmod(abs(micros), 1_000_000)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{sign}PT{seconds}{fraction}S"
