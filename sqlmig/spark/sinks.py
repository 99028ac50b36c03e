"""Sinks: one batch of changes, worked out and handed to the writer of its kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.execution.values import Mark
from sqlmig.ledger.sink_state import Batch, SinkState
from sqlmig.program.model import Program, Sink, Table
from sqlmig.program.sink_options import SinkKind, SinkOptions, read_sink_options
from sqlmig.spark.batch_rows import (
    IS_BAD,
    keyed_rows,
    refuse_keys,
    repeated_keys,
    unkeyed_rows,
)
from sqlmig.spark.delta_sink import write_delta
from sqlmig.spark.difference import COUNT, changes, contents_at
from sqlmig.spark.failures import told
from sqlmig.spark.file_sink import last_batch, write_files
from sqlmig.spark.kafka_sink import write_kafka
from sqlmig.spark.names import quoted
from sqlmig.spark.outgoing import Outgoing
from sqlmig.spark.secrets import placed, resolve_secrets
from sqlmig.spark.sessions import Sessions
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SinkWriter:
    """Writes to sinks.

    Args:
        sessions: where Spark is.
        warehouse: where the relations are.
        project_root: what a relative `path` starts from.
        secrets: gives the value of `${env:NAME}`, None where there is none.
    """

    def __init__(
        self,
        sessions: Sessions,
        warehouse: DeltaWarehouse,
        project_root: Path,
        secrets: Callable[[str], str | None],
    ) -> None:
        self._sessions = sessions
        self._warehouse = warehouse
        self._root = project_root
        self._secrets = secrets

    def send(
        self,
        program: Program,
        sink: Sink,
        state: SinkState,
        batch: Batch,
        mark: Mark,
        begin: Callable[[], None],
    ) -> int:
        """Send one batch. The same batch again sends the same rows, or is left as it is.

        Args:
            begin: called before the first row goes out.

        Returns:
            The change rows of the batch.

        Raises:
            EngineError: the sink can't be opened or written, or several rows have one key; then
                nothing was sent.
        """
        options = _checked(program, sink)
        outgoing = self._opened(sink, options, state, batch, mark)
        what = f"sink `{sink.connector}`"
        with told(what, begins=sink.location):
            session = self._sessions.fresh(mark)
            rows, key = self._rows(session, program, sink, options, batch, state)
            kept = rows.persist()
        try:
            with told(what, begins=sink.location):
                count = _counted(kept, key, sink.relation)
            if not count:
                return 0
            begin()
            with told(what, begins=sink.location, secrets=outgoing.hidden):
                good = kept.drop(IS_BAD)
                _write(session, good, options.kind, replace(outgoing, key=key), count)
            return count
        finally:
            kept.unpersist()

    def last_batch(self, program: Program, sink: Sink) -> int:
        """The greatest number of a batch that lies at the place of a sink of files; else 0."""
        options = _checked(program, sink)
        if options.kind is not SinkKind.FILES:
            return 0
        what = f"sink `{sink.connector}`"
        opened = resolve_secrets({"path": options.place}, self._secrets, what, sink.location)
        with told(what, begins=sink.location, secrets=opened.hidden):
            return last_batch(self._sessions.fresh(), placed(opened.options["path"], self._root))

    def _rows(
        self,
        session: SparkSession,
        program: Program,
        sink: Sink,
        options: SinkOptions,
        batch: Batch,
        state: SinkState,
    ) -> tuple[DataFrame, tuple[str, ...]]:
        """The batch's rows, and the key as the relation's columns spell it."""
        now = contents_at(session, self._warehouse, batch.after)
        _refuse_reserved(sink, options, now.columns)
        changed = changes(
            session, self._warehouse, batch.before, batch.after, is_whole=batch.is_whole
        )
        if not options.key:
            return unkeyed_rows(changed), ()
        key = _spelled(sink, options.key, now.columns)
        relation = program.relations[sink.relation]
        # what is owed is of another relation, or of this one under another definition
        is_unique = (
            not state.owed
            and isinstance(relation, Table)
            and _folded(relation.primary_key) == _folded(key)
        )
        if not is_unique:
            refuse_keys(repeated_keys(now, key), key, sink.relation)
        return keyed_rows(changed, now.columns, key), key

    def _opened(
        self, sink: Sink, options: SinkOptions, state: SinkState, batch: Batch, mark: Mark
    ) -> Outgoing:
        """What the writer is told; the key is not known yet."""
        texts = {**options.options, "place": options.place}
        what = f"sink `{sink.connector}`"
        opened = resolve_secrets(texts, self._secrets, what, sink.location)
        settings = {name: text for name, text in opened.options.items() if name != "place"}
        place = opened.options["place"]
        if options.kind is not SinkKind.KAFKA:
            place = placed(place, self._root)
        return Outgoing(
            connector=sink.connector,
            format=options.format,
            place=place,
            options=settings,
            key=(),
            id=state.id,
            number=batch.number,
            mark=mark,
            hidden=opened.hidden,
            location=sink.location,
        )


def _counted(rows: DataFrame, key: tuple[str, ...], relation: str) -> int:
    """How many rows there are; raises where a key is wrong."""
    from pyspark.sql import functions as F  # noqa: N812

    if not key:
        return rows.count()
    bad = F.count_if(F.col(IS_BAD))
    counts = rows.agg(F.count(F.lit(1)).alias("all"), bad.alias("bad")).collect()[0]
    if counts["bad"]:
        wrong = rows.where(F.col(IS_BAD)).select(*(F.col(quoted(name)) for name in key))
        refuse_keys(wrong, key, relation)
    return int(counts["all"])


def _write(
    session: SparkSession, rows: DataFrame, kind: SinkKind, batch: Outgoing, count: int
) -> None:
    match kind:
        case SinkKind.FILES:
            write_files(session, rows, batch, count)
        case SinkKind.DELTA:
            write_delta(session, rows, batch)
        case SinkKind.KAFKA:
            write_kafka(rows, batch)


def _checked(program: Program, sink: Sink) -> SinkOptions:
    options = read_sink_options(program, sink)
    for mistake in options.mistakes:
        message = f"sink `{sink.connector}`: {mistake.message}"
        raise EngineError(message, location=sink.location, hint=mistake.hint)
    return options


def _refuse_reserved(sink: Sink, options: SinkOptions, columns: list[str]) -> None:
    taken = sorted(set(options.reserved) & {name.lower() for name in columns})
    if taken or COUNT in columns:
        raise EngineError(
            f"`{sink.relation}` has a column `{taken[0] if taken else COUNT}`, which the sink adds",
            hint="select it under another name",
        )


def _spelled(sink: Sink, key: tuple[str, ...], columns: list[str]) -> tuple[str, ...]:
    known = {name.lower(): name for name in columns}
    for name in key:
        if name.lower() not in known:
            raise EngineError(
                f"key column `{name}` is no column of `{sink.relation}`",
                hint=f"its columns are {', '.join(columns)}",
            )
    return tuple(known[name.lower()] for name in key)


def _folded(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
