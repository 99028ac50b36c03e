"""What a Delta table's metadata says, in Spark's words, and whether it moved. It reads no log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class StoredColumn:
    """A column as a Delta table has it; `type` is Spark's, canonical."""

    name: str
    type: str
    nullable: bool
    comment: str | None = None


@dataclass(frozen=True)
class StoredTable:
    """What a Delta table's metadata says.

    Args:
        properties: its table properties, without defaults.
        features: the writer features that its protocol names.
    """

    version: int
    columns: tuple[StoredColumn, ...]
    comment: str | None
    properties: Mapping[str, str]
    features: frozenset[str]


_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def spark_type(kind: Any, metadata: Mapping[str, Any]) -> str:
    """The canonical Spark name of a type in Delta's JSON."""
    if isinstance(kind, str):
        return str(metadata.get("__CHAR_VARCHAR_TYPE_STRING") or _NAMES.get(kind, kind))
    match kind["type"]:
        case "array":
            return f"array<{spark_type(kind['elementType'], {})}>"
        case "map":
            return f"map<{spark_type(kind['keyType'], {})},{spark_type(kind['valueType'], {})}>"
        case _:
            fields = ",".join(_spark_field(field) for field in kind["fields"])
            return f"struct<{fields}>"


def _spark_field(field: Mapping[str, Any]) -> str:
    name = field["name"]
    plain = name.isidentifier() and name.isascii()
    quoted = name if plain else "`" + name.replace("`", "``") + "`"
    return f"{quoted}:{spark_type(field['type'], field.get('metadata', {}))}"


def has_not_moved(path: str, version: int) -> bool:
    """Whether the table in a local folder is certainly still at `version`; reads no log.

    Rule `next-commit-absent`. Delta numbers commits without gaps, and a commit is there when its
    file is: who finds `version`'s file and not the next one's knows that `version` is the newest.
    That the former is there matters: log files are removed from the oldest on, so a table of
    which it is gone may have moved on for long. It holds where a file that is there is seen: on a
    local file system.
    """
    if version < 0:
        return False
    log = Path(path) / "_delta_log"
    now, after = (log / f"{number:020d}.json" for number in (version, version + 1))
    return now.exists() and not after.exists()
