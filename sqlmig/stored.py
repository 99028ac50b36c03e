"""What a Delta table's metadata and commits say, in Spark's words, and whether it moved.

It reads no log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sqlmig.execution.engine import Mark
from sqlmig.ledger.positions import LogEntry

_ROWS: Mapping[str, tuple[str, ...]] = {
    "WRITE": ("numOutputRows",),
    "MERGE": ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
    "UPDATE": ("numUpdatedRows",),
    "DELETE": ("numDeletedRows",),
}


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


@dataclass(frozen=True)
class Commit:
    """One commit of a table's history: what it did, and the mark that sqlmig left in it.

    Args:
        note: the whole JSON of the commit's `userMetadata`; {} where it is none.
        at: when its writer made it; None where it does not say.
    """

    version: int
    operation: str
    parameters: Mapping[str, Any]
    metrics: Mapping[str, Any]
    mark: Mark | None
    note: Mapping[str, Any]
    at: datetime | None = None

    @property
    def rows(self) -> int:
        """Rows that the commit wrote, changed or deleted; 0 where it changed no row."""
        return sum(int(self.metrics.get(name) or 0) for name in _ROWS.get(self.operation, ()))


def commit_of(entry: Mapping[str, Any]) -> Commit:
    """A commit, of its entry in the history that delta-rs tells."""
    return Commit(
        version=int(entry["version"]),
        operation=str(entry.get("operation", "")),
        parameters=entry.get("operationParameters") or {},
        metrics=entry.get("operationMetrics") or {},
        mark=Mark.from_json(entry.get("userMetadata")),
        note=_note(entry.get("userMetadata")),
        at=_time(entry.get("timestamp")),
    )


def log_entry(commit: Commit) -> LogEntry:
    """What a commit did, as a streaming table sees it.

    Rows that were appended, and those that a MERGE inserted, have come. Rows that were changed,
    written over or put back came earlier.
    """
    match commit.operation:
        case "WRITE":
            is_append = str(commit.parameters.get("mode", "")).lower() == "append"
            return LogEntry(is_append and _some(commit, "numOutputRows"))
        case "STREAMING UPDATE":
            return LogEntry(commit.parameters.get("outputMode") == "Append")
        case "MERGE":
            return LogEntry(_some(commit, "numTargetRowsInserted"))
        case "RESTORE":
            version = commit.parameters.get("version")
            return LogEntry(False, int(version) if version is not None else None)
        case _:
            return LogEntry(False)


def _some(commit: Commit, metric: str) -> bool:
    """Whether the count may be other than zero."""
    return str(commit.metrics.get(metric, "?")) != "0"


def _time(milliseconds: Any) -> datetime | None:
    if not isinstance(milliseconds, (int, float)):
        return None
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def _note(text: str | None) -> Mapping[str, Any]:
    try:
        note = json.loads(text or "{}")
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


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
