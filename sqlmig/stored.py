"""What a Delta table's metadata and commits say, in Spark's words, and whether it moved.

It reads no log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sqlmig.execution.values import Mark, Written
from sqlmig.ledger.positions import LogEntry
from sqlmig.planning.request import Observed, RawRecords

_ROWS: Mapping[str, tuple[str, ...]] = {
    "WRITE": ("numOutputRows",),
    "MERGE": ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
    "UPDATE": ("numUpdatedRows",),
    "DELETE": ("numDeletedRows",),
}


@dataclass(frozen=True)
class StoredColumn:
    """A column as a Delta table has it; `type` is Spark's, canonical.

    `id` is that of column mapping: a renamed column keeps it, one that is added has another.
    """

    name: str
    type: str
    nullable: bool
    comment: str | None = None
    id: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class StoredTable:
    """What a Delta table's metadata says.

    Args:
        properties: its table properties, without defaults.
        features: the writer features that its protocol names.
        partitions: the columns that it is partitioned by, in lower case.
    """

    version: int
    columns: tuple[StoredColumn, ...]
    comment: str | None
    properties: Mapping[str, str]
    features: frozenset[str]
    partitions: tuple[str, ...] = ()


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
    def is_rewrite(self) -> bool:
        """True where all rows were written anew, maybe in other columns or partitions."""
        return str(self.parameters.get("canOverwriteSchema", "")).lower() == "true"

    @property
    def rows(self) -> int:
        """Rows that the commit wrote, changed or deleted; 0 where it changed no row."""
        return sum(int(self.metrics.get(name) or 0) for name in _ROWS.get(self.operation, ()))


def raw_records(files: Any) -> dict[int, RawRecords]:
    """Generation -> its raw records, of the files of a table of them, as delta-rs lists them."""
    names = "min.generation", "min.batch", "max.batch", "min.at", "num_records", "size_bytes"
    columns = [files.column(name).to_pylist() for name in names]
    found: dict[int, list[tuple[Any, ...]]] = {}
    for generation, *rest in zip(*columns, strict=True):
        found.setdefault(int(generation), []).append(tuple(rest))
    return {generation: _raw_records(parts) for generation, parts in sorted(found.items())}


def _raw_records(parts: list[tuple[Any, ...]]) -> RawRecords:
    batches = {n for first, last, *_ in parts for n in range(int(first), int(last) + 1)}
    since = min(part[2] for part in parts)
    return RawRecords(
        min(batches),
        max(batches),
        len(batches) == max(batches) - min(batches) + 1,
        sum(int(part[3]) for part in parts),
        sum(int(part[4]) for part in parts),
        since.isoformat(timespec="seconds") if hasattr(since, "isoformat") else str(since),
    )


def column_of(entry: Mapping[str, Any]) -> StoredColumn:
    """A column, of its entry in a schema in Delta's JSON."""
    metadata = entry.get("metadata", {})
    return StoredColumn(
        entry["name"],
        spark_type(entry["type"], metadata),
        entry["nullable"],
        metadata.get("comment"),
        metadata.get("delta.columnMapping.id"),
    )


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


def observed(now: Written, mark: Mark | None) -> Observed:
    """A table as it is now, with what the mark of a commit says of it, if there is one."""
    if mark is None:
        return Observed(now.version, now.rows, now.bytes)
    position = mark.passed, mark.watermark, mark.late
    return Observed(now.version, now.rows, now.bytes, mark.fingerprint, mark.inputs, *position)


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


def volume(table: Any) -> tuple[int | None, int]:
    """Rows and bytes, from the files' statistics; rows is None where a file lacks them."""
    files = table.get_add_actions(flatten=True)
    size = sum(files.column("size_bytes").to_pylist())
    counts = files.column("num_records").to_pylist()
    if any(count is None for count in counts):
        return None, size
    rows = sum(counts)
    if "deletionVectors" in (table.protocol().reader_features or ()):
        batches = table.deletion_vectors()
        for batch in batches:
            for vector in batch.column("selection_vector").to_pylist():
                rows -= sum(1 for is_kept in vector if not is_kept)
    return rows, size
