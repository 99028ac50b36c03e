"""Sources: a round of Structured Streaming that reads what is there now, into an input table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlmig.environment import redact
from sqlmig.errors import EngineError
from sqlmig.execution.values import Ingested, Mark
from sqlmig.ledger.cut import ConnectorState, RelationState
from sqlmig.planning.source_options import column_named, raw_options, reads_changes
from sqlmig.program.model import Source, Table
from sqlmig.spark.batches import BatchWriter
from sqlmig.spark.callbacks import tidy_up
from sqlmig.spark.changes import Target, make_deleted
from sqlmig.spark.failures import told
from sqlmig.spark.progress import gaps, messages_behind
from sqlmig.spark.raw import RawKeeper, RawReader, raw_stream
from sqlmig.spark.sessions import Sessions
from sqlmig.spark.source_failures import describe_source
from sqlmig.spark.source_options import OptionReader
from sqlmig.spark.streams import open_stream
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    def deleted_path(self) -> str:
        """Where it is kept which keys were deleted, and when."""
        return self.warehouse.deleted_path(self.connector.folder, self.connector.generation)

    @property
    def raw_path(self) -> str:
        """Where the raw records are kept."""
        return self.warehouse.raw_path(self.connector.folder)

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
        self._options = OptionReader(project_root, secrets)

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
        options = self._options.read(source, ingestion.table, hidden)
        _check_offsets(ingestion, what)
        before = ingestion.warehouse.version(ingestion.state.folder)
        with told(what, begins=source.location, secrets=hidden):
            session = sessions.fresh()
            writer = _writer(session, ingestion, options, hidden)
            if source.retain_raw is not None:
                frame = raw_stream(session, source, options)
            else:
                frame = open_stream(session, source, ingestion.table, options)
            progress = self._run(frame, ingestion, writer, options, what, hidden)
            if options.get("on_data_loss") == "skip":
                for gap in gaps(progress, _read(ingestion)):
                    writer.note_gap(session, gap)
        return _result(ingestion, before, messages_behind(progress))

    def _run(
        self,
        frame: DataFrame,
        ingestion: Ingestion,
        writer: BatchWriter,
        options: Mapping[str, str],
        what: str,
        hidden: list[str],
    ) -> Sequence[Any]:
        query = (
            frame.writeStream.foreachBatch(writer)
            .option("checkpointLocation", ingestion.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
            return list(query.recentProgress)
        except Exception as error:
            cause = writer.failure or error
            failure = describe_source(ingestion.source, options, (cause, error), hidden)
            shown = RuntimeError(redact(str(cause), hidden)) if hidden else cause
            raise EngineError(
                f"{what}: {failure.message}",
                location=ingestion.source.location,
                hint=failure.hint,
            ) from shown
        finally:
            with suppress(Exception):
                query.stop()
            with suppress(Exception):
                tidy_up(frame.sparkSession)


def _writer(
    session: SparkSession, ingestion: Ingestion, options: Mapping[str, str], hidden: Sequence[str]
) -> BatchWriter:
    table, kind = ingestion.table, ingestion.source.format.lower()
    column = column_named(table, options.get("sequence_by", ""))
    sequence = column.name if column is not None else None
    may_delete = "delete_when" in options or kind == "kafka" or reads_changes(options)
    deleted = ingestion.deleted_path if sequence and may_delete else None
    if deleted is not None and ingestion.warehouse.latest(deleted) is None:
        make_deleted(session, Target(table, ingestion.table_path, sequence, deleted))
    return BatchWriter(
        table=table,
        table_path=ingestion.table_path,
        rejected_path=ingestion.rejected_path,
        application=ingestion.application,
        connector=ingestion.source.connector,
        generation=ingestion.connector.generation,
        mark=ingestion.mark.to_json(),
        secrets=tuple(hidden),
        sequence=sequence,
        deleted_path=deleted,
        raw=_keeper(ingestion, options, hidden)
        if ingestion.source.retain_raw is not None
        else None,
    )


def _keeper(ingestion: Ingestion, options: Mapping[str, str], hidden: Sequence[str]) -> RawKeeper:
    kind = ingestion.source.format.lower()
    return RawKeeper(
        ingestion.raw_path,
        ingestion.connector.generation,
        ingestion.application,
        ingestion.mark.to_json(),
        RawReader(ingestion.table, kind, raw_options(kind, options)),
        tuple(hidden),
    )


def _result(ingestion: Ingestion, before: int, behind: int | None) -> Ingested:
    warehouse, connector = ingestion.warehouse, ingestion.connector
    rows = _uncounted(ingestion, before)
    rejected = sum(
        int(commit.note["source"]["rejected"])
        for commit in warehouse.commits(ingestion.rejected_path)
        if _is_of(commit.note, ingestion)
    )
    table = warehouse.written(ingestion.state.folder)
    return Ingested(
        sum(rows.values()),
        max(0, rejected - connector.rejected),
        table,
        behind,
        max(rows, default=connector.batch),
    )


def _uncounted(ingestion: Ingestion, before: int) -> dict[int, int]:
    """Batch -> good records, of the batches that the ledger does not know yet.

    Besides this round's they may be of one whose process was killed before it recorded them.

    Args:
        before: the table's version before this round: what counts where no batch is known.
    """
    known = ingestion.connector.batch
    if known is None and not ingestion.connector.rows:
        known = -1
    found: dict[int, int] = {}
    for commit in ingestion.warehouse.commits(ingestion.table_path):
        if known is None and commit.version <= before:
            break
        if _is_of(commit.note, ingestion):
            batch = int(commit.note["source"]["batch"])
            if known is not None and batch <= known:
                break
            found[batch] = int(commit.note["source"]["rows"])
    return found


def _read(ingestion: Ingestion) -> dict[int, int]:
    """Batch -> good and bad records that it brought, of all that are known."""
    found: dict[int, dict[str, int]] = {}
    for path in (ingestion.table_path, ingestion.rejected_path):
        for commit in ingestion.warehouse.commits(path):
            source = commit.note.get("source", {})
            if _is_of(commit.note, ingestion) and not source.get("is_gap"):
                # both commits of a batch say both numbers
                found.setdefault(int(source["batch"]), {}).update(source)
    return {batch: int(n["rows"]) + int(n["rejected"]) for batch, n in found.items()}


def _is_of(note: Mapping[str, object], ingestion: Ingestion) -> bool:
    source = note.get("source")
    return isinstance(source, Mapping) and source.get("application") == ingestion.application


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
