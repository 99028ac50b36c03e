"""Sources: a round of Structured Streaming that reads what is there now, into an input table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmig.environment import redact
from sqlmig.errors import EngineError
from sqlmig.execution.engine import Ingested, Mark
from sqlmig.ledger.records import ConnectorState, RelationState
from sqlmig.program.model import Source, Table
from sqlmig.spark.batches import BLOCK, CORRUPT, FILE, TIME, BatchWriter
from sqlmig.spark.failures import describe, told
from sqlmig.spark.names import quoted
from sqlmig.spark.sessions import Sessions
from sqlmig.spark.tables import storage_type
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES = frozenset({"json", "csv", "parquet", "orc", "avro", "text", "xml"})
_TEXT = frozenset({"json", "csv", "xml"})
"""Formats whose reader hands over the text of a record that it can't read."""
_SECRET = re.compile(r"\$\{env:([^}]+)\}")


@dataclass(frozen=True)
class Ingestion:
    """One round of one source: all that it is told.

    Args:
        connector: which generation of the offsets goes on.
        state: the table as it is before.
    """

    warehouse: DeltaWarehouse
    table: Table
    source: Source
    connector: ConnectorState
    state: RelationState
    mark: Mark

    @property
    def table_path(self) -> str:
        """Where the rows go."""
        return self.warehouse.table_path(self.state.folder)

    @property
    def rejected_path(self) -> str:
        """Where the bad records go."""
        return self.warehouse.rejected_path(self.connector.folder)

    @property
    def checkpoint(self) -> str:
        """Where the offsets are."""
        return self.warehouse.checkpoint_path(self.connector.folder, self.connector.generation)

    @property
    def application(self) -> str:
        """The name under which Delta remembers the batches that were committed."""
        return f"sqlmig/source/{self.connector.folder}/{self.connector.generation}"


class SourceReader:
    """Reads sources.

    Args:
        project_root: what a relative `path` starts from.
        secrets: gives the value of `${env:NAME}`, None where there is none.
    """

    def __init__(self, project_root: Path, secrets: Callable[[str], str | None]) -> None:
        self._root = project_root
        self._secrets = secrets

    def ingest(self, sessions: Sessions, ingestion: Ingestion) -> Ingested:
        """Read what the source has now, each record once.

        Returns:
            The rows that this round brought, and bad records: those that no earlier round told of.

        Raises:
            EngineError: the source can't be opened, or a file of it can't be read. Batches that
                were committed before stay, and are not read again.
        """
        source = ingestion.source
        what = f"source `{source.connector}`"
        hidden: list[str] = []
        options = self._options(source, hidden)
        _check_offsets(ingestion, what)
        before = ingestion.warehouse.version(ingestion.state.folder)
        writer = BatchWriter(
            table=ingestion.table,
            table_path=ingestion.table_path,
            rejected_path=ingestion.rejected_path,
            application=ingestion.application,
            connector=source.connector,
            generation=ingestion.connector.generation,
            mark=ingestion.mark.to_json(),
            secrets=tuple(hidden),
            is_text=source.format.lower() in _TEXT,
        )
        with told(what, begins=source.location, secrets=hidden):
            frame = _stream(sessions.fresh(), ingestion, options)
            self._run(frame, ingestion, writer, what, hidden)
        return _result(ingestion, before)

    def _run(
        self,
        frame: DataFrame,
        ingestion: Ingestion,
        writer: BatchWriter,
        what: str,
        hidden: list[str],
    ) -> None:
        query = (
            frame.writeStream.foreachBatch(writer)
            .option("checkpointLocation", ingestion.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except Exception as error:
            cause = writer.failure or error
            failure = describe(cause, hidden)
            message, hint = failure.message, failure.hint
            file = _file_in(str(cause)) or _file_in(str(error))
            if file and file not in message:
                message = f"{redact(file, hidden)} can't be read: {message}"
            if "CSV header does not conform" in str(cause):
                message, hint = _header_message(str(cause), hidden)
            if file and hint is None:
                hint = "mend or remove the file; the rows of other files stay as they are"
            shown = RuntimeError(redact(str(cause), hidden)) if hidden else cause
            location = ingestion.source.location
            raise EngineError(f"{what}: {message}", location=location, hint=hint) from shown
        finally:
            with suppress(Exception):
                query.stop()

    def _options(self, source: Source, hidden: list[str]) -> dict[str, str]:
        """The options with secrets put in; adds their values to `hidden`.

        Raises:
            EngineError: a secret or the directory is missing, or bad records would be dropped.
        """
        options: dict[str, str] = {}
        for key, text in source.options:
            options[key.lower()] = _SECRET.sub(
                lambda match: self._secret(match[1], source, hidden), text
            )
        what = f"source `{source.connector}`"
        drops = options.get("mode", "").upper() == "DROPMALFORMED"
        for key in ("ignorecorruptfiles", "ignoremissingfiles"):
            drops |= options.get(key, "").lower() == "true"
        if drops:
            raise EngineError(
                f"{what} would drop records silently",
                location=source.location,
                hint="leave out `mode` and `ignoreCorruptFiles`: bad records are kept aside",
            )
        if source.format.lower() in _FILES:
            options["path"] = self._path(source, options.get("path"), hidden)
        return options

    def _secret(self, name: str, source: Source, hidden: list[str]) -> str:
        value = self._secrets(name)
        if value is None:
            raise EngineError(
                f"source `{source.connector}`: the environment variable {name} is not set",
                location=source.location,
                hint=f"export {name}=...",
            )
        hidden.append(value)
        return value

    def _path(self, source: Source, path: str | None, hidden: list[str]) -> str:
        what = f"source `{source.connector}`"
        if not path:
            raise EngineError(
                f"{what} has no `path`",
                location=source.location,
                hint="OPTIONS (path 'data/grades')",
            )
        if "://" in path or path.startswith("file:"):
            return path
        place = Path(path) if Path(path).is_absolute() else self._root / path
        is_pattern = any(sign in path for sign in "*?[{")
        if not is_pattern and not place.exists():
            raise EngineError(
                f"{what}: there is no directory {redact(path, hidden)}",
                location=source.location,
                hint=f"make it, or correct `path`; it is looked for in {self._root}"
                if not Path(path).is_absolute()
                else "make it, or correct `path`",
            )
        return str(place)


def _stream(
    session: SparkSession, ingestion: Ingestion, options: Mapping[str, str]
) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    kind = ingestion.source.format.lower()
    columns = ingestion.table.columns
    reader = session.readStream.format(kind)
    if kind not in _FILES:
        frame = reader.options(**options).load()
        given = {name.lower() for name in frame.columns}
        selected = [
            F.col(quoted(c.name)) if c.name.lower() in given else F.lit(None).alias(c.name)
            for c in columns
        ]
        nothing = F.lit(None)
        return frame.select(
            *selected,
            nothing.cast("string").alias(CORRUPT),
            nothing.cast("string").alias(FILE),
            nothing.cast("timestamp").alias(TIME),
            nothing.cast("long").alias(BLOCK),
        )
    ours = {"ignorecorruptfiles": "false"}
    schema = ", ".join(f"{quoted(c.name)} {storage_type(c.type)}" for c in columns)
    if kind in _TEXT:
        ours |= {"mode": "PERMISSIVE", "columnnameofcorruptrecord": CORRUPT}
        schema += f", {quoted(CORRUPT)} string"
        if options.get("header", "").lower() == "true":
            ours["enforceschema"] = "false"  # else columns are taken by place, whatever their names
    frame = reader.options(**{**ours, **options}).schema(schema).load()
    return frame.select(
        *(F.col(quoted(c.name)) for c in columns),
        (F.col(CORRUPT) if kind in _TEXT else F.lit(None).cast("string")).alias(CORRUPT),
        F.col("_metadata.file_path").alias(FILE),
        F.col("_metadata.file_modification_time").alias(TIME),
        F.col("_metadata.file_block_start").alias(BLOCK),
    )


def _result(ingestion: Ingestion, before: int) -> Ingested:
    warehouse, connector = ingestion.warehouse, ingestion.connector
    rows = 0
    for commit in warehouse.commits(ingestion.table_path):
        if commit.version <= before:
            break
        if _is_of(commit.note, ingestion):
            rows += int(commit.note["source"]["rows"])
    rejected = sum(
        int(commit.note["source"]["rejected"])
        for commit in warehouse.commits(ingestion.rejected_path)
        if _is_of(commit.note, ingestion)
    )
    table = warehouse.written(ingestion.state.folder)
    return Ingested(rows, max(0, rejected - connector.rejected), table)


def _is_of(note: Mapping[str, object], ingestion: Ingestion) -> bool:
    source = note.get("source")
    return (
        isinstance(source, Mapping)
        and source.get("application") == ingestion.application
    )


def _check_offsets(ingestion: Ingestion, what: str) -> None:
    """Refuse to start without offsets that there were: Delta would skip the new batches silently.

    Raises:
        EngineError: Delta knows a later batch than the checkpoint does.
    """
    warehouse = ingestion.warehouse
    if not warehouse.is_local:
        return
    offsets = Path(ingestion.checkpoint) / "offsets"
    known = max((int(f.name) for f in offsets.glob("[0-9]*")), default=-1)
    for path in (ingestion.table_path, ingestion.rejected_path):
        committed = warehouse.last_transaction(path, ingestion.application)
        if committed is not None and committed > known:
            raise EngineError(
                f"{what}: its offsets in {ingestion.checkpoint} are gone or older than its rows",
                location=ingestion.source.location,
                hint="restore that folder from a backup, or change the source by a revision, "
                "which reads it again from the beginning",
            )


_FILE = re.compile(r"((?:file|s3a?|hdfs|abfss?|gs):/[^\s,;'\"]+|/[^\s,;'\"]+\.\w+)")


def _file_in(text: str) -> str | None:
    """The file that an error of a reader names."""
    for line in text.splitlines():
        if "reading file" in line or "FAILED_READ_FILE" in line or "CSV file:" in line:
            match = _FILE.search(line)
            if match:
                return match[1].rstrip(".")
    return None


def _header_message(text: str, hidden: list[str]) -> tuple[str, str]:
    parts = dict(re.findall(r"^\s*(Header|Schema|CSV file):\s*(.*)$", text, re.MULTILINE))
    file = redact(parts.get("CSV file", "a file"), hidden)
    return (
        f"{file}: its header is ({parts.get('Header', '?')}), "
        f"the table's columns are ({parts.get('Schema', '?')})",
        "the columns of a CSV file with a header come in the table's order",
    )
