"""Tables made again, or new columns of them filled, from the raw records of their sources.

A row is known again by its values: what else it came from is not noted in it. So a column is filled
only in rows that are what a record gave, and where equal rows could have had different values it
stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.execution.values import Ingested, Mark, RawSource, Written
from sqlmig.planning.source_options import column_named
from sqlmig.program.model import Column, Program, Table
from sqlmig.spark.batches import REASON, ROW, BatchWriter
from sqlmig.spark.changes import Target, winners_of
from sqlmig.spark.delta import marked_once, read_version
from sqlmig.spark.failures import told
from sqlmig.spark.names import quoted
from sqlmig.spark.raw import RawReader, kept_records
from sqlmig.spark.sessions import Sessions, once_only, transaction_name
from sqlmig.spark.source_options import OptionReader
from sqlmig.spark.streams import BLOCK, DELETED
from sqlmig.spark.upsert import ORDER
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RANK, _COPIES, _KINDS, _FOUND = (
    f"__sqlmig_{name}" for name in ("rank", "copies", "kinds", "found")
)


class RawRows:
    """Makes rows of raw records. Every method may be called again.

    Args:
        options: reads the options of sources.
    """

    def __init__(
        self, sessions: Sessions, warehouse: DeltaWarehouse, options: OptionReader
    ) -> None:
        self._sessions = sessions
        self._warehouse = warehouse
        self._options = options

    def rebuild(
        self, program: Program, name: str, folder: str, sources: Sequence[RawSource], mark: Mark
    ) -> Ingested:
        """Bring into an empty table what its sources' raw records say, source by source.

        Returns:
            The records that became rows, upserts or deletes, and those that are bad by now, which
            are kept aside.

        Raises:
            EngineError: raw records are missing; nothing was written.
        """
        check_whole(self._warehouse, sources)
        table = program.tables[name]
        rows = rejected = 0
        for raw in sources:
            session = self._sessions.fresh()
            writer, reader = self._writer(program, table, folder, raw, mark)
            with told(f"the raw records of `{raw.connector}`", secrets=writer.secrets):
                path = self._warehouse.raw_path(raw.folder)
                writer(reader.read(kept_records(session, path, raw.generation)), 0)
            counts = self._counts(writer)
            rows, rejected = rows + counts[0], rejected + counts[1]
        return Ingested(rows, rejected, self._warehouse.written(folder))

    def fill(
        self,
        program: Program,
        name: str,
        folder: str,
        columns: Sequence[str],
        sources: Sequence[RawSource],
        mark: Mark,
    ) -> Written:
        """Give new columns the values that raw records have for the rows that are there.

        Args:
            columns: their names in lower case.

        Returns:
            The table; `written` says how many rows got a value.
        """
        table, path = program.tables[name], self._warehouse.table_path(folder)
        application = f"{transaction_name(mark)}/fill"
        known = comparable(table, columns)
        if not known or self._warehouse.last_transaction(path, application) is not None:
            return self._warehouse.written(folder)
        session = self._sessions.fresh(mark)
        with told(f"the raw records of `{name}`"):
            found = [self._rows_of(session, program, table, folder, r, mark) for r in sources]
            candidates = reduce(lambda one, other: one.unionByName(other), found)
            version = self._warehouse.version(folder)
            now = read_version(session, path, version)
            new = [c for c in table.columns if c.name.lower() in columns]
            filled = _filled(now, candidates, table, known, new).persist()
            try:
                count = filled.where(_FOUND).count()
                if count:
                    rows = filled.select(*(quoted(column) for column in now.columns))
                    writer = rows.write.format("delta").mode("overwrite")
                    writer = writer.options(**marked_once(mark.to_json(), application))
                    with once_only(self._warehouse, path, application):
                        writer.save(path)
            finally:
                filled.unpersist()
        written = self._warehouse.written(folder)
        return Written(written.version, written.rows, written.bytes, count)

    def _rows_of(
        self,
        session: SparkSession,
        program: Program,
        table: Table,
        folder: str,
        raw: RawSource,
        mark: Mark,
    ) -> DataFrame:
        """What one source's raw records, of whatever generation, would have made of the table."""
        from pyspark.sql import functions as F  # noqa: N812

        writer, reader = self._writer(program, table, folder, raw, mark)
        kept = kept_records(session, self._warehouse.raw_path(raw.folder))
        rows = writer.judged(reader.read(kept)).where(F.col(REASON).isNull())
        if table.primary_key:
            target = Target(table, writer.table_path, writer.sequence, None)
            rows = rows.withColumn(ORDER, F.struct(BLOCK, ROW))
            rows = winners_of(rows, target, has_deletes=True)
        return rows.where(~F.col(DELETED)).select(*(quoted(c.name) for c in table.columns))

    def _writer(
        self, program: Program, table: Table, folder: str, raw: RawSource, mark: Mark
    ) -> tuple[BatchWriter, RawReader]:
        source, hidden = program.sources[raw.connector], list[str]()
        options = self._options.meaning(source, hidden)
        column = column_named(table, options.get("sequence_by", ""))
        writer = BatchWriter(
            table=table,
            table_path=self._warehouse.table_path(folder),
            rejected_path=self._warehouse.rejected_path(raw.folder),
            application=f"{transaction_name(mark)}/{raw.connector}",
            connector=raw.connector,
            generation=raw.generation,
            mark=mark.to_json(),
            secrets=tuple(hidden),
            sequence=column.name if column is not None else None,
        )
        return writer, RawReader(table, source.format.lower(), options)

    def _counts(self, writer: BatchWriter) -> tuple[int, int]:
        """Good and bad records of the commits that the writer made, now or in an earlier try."""
        for path in (writer.table_path, writer.rejected_path):
            for commit in self._warehouse.commits(path):
                source = commit.note.get("source", {})
                if source.get("application") == writer.application:
                    return int(source["rows"]), int(source["rejected"])
        return 0, 0


def check_whole(warehouse: DeltaWarehouse, sources: Sequence[RawSource]) -> None:
    """Raise where raw records of a source are missing that there were when the plan was made.

    A runner removes those that are too old, until a plan makes it pause.

    Raises:
        EngineError: says of which.
    """
    for raw in sources:
        kept = warehouse.raw_records(raw.folder).get(raw.generation)
        if kept is None or kept.first != 0 or not kept.is_gapless:
            raise EngineError(
                f"raw records of `{raw.connector}` have gone since the plan was made",
                hint="run the command again: it makes a new plan",
            )


def comparable(table: Table, new: Sequence[str]) -> list[Column]:
    """The columns by whose values a row is known again.

    Not those with a default, which may be another one each time, nor maps, which have no order.
    """
    return [
        column
        for column in table.columns
        if column.name.lower() not in new
        and column.default is None
        and "map<" not in column.type
        and "variant" not in column.type
    ]


def _filled(
    now: DataFrame,
    candidates: DataFrame,
    table: Table,
    known: Sequence[Column],
    new: Sequence[Column],
) -> DataFrame:
    """The rows with what the candidates have for the new columns; FOUND where a row got a value.

    The n-th of several equal rows is the n-th of the equal candidates. Where there are more
    candidates than rows, and their values differ, which of them is gone is not known.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    names = [quoted(column.name) for column in known]
    values = F.to_json(F.struct(*(F.col(quoted(column.name)) for column in new)))
    equal = Window.partitionBy(*names)
    there = now.select(
        "*",
        F.row_number().over(equal.orderBy(F.lit(1))).alias(_RANK),
        F.count(F.lit(1)).over(equal).alias(_COPIES),
    )
    given = candidates.select(
        *(F.col(name).alias(f"__sqlmig_known_{n}") for n, name in enumerate(names)),
        *(F.col(quoted(column.name)).alias(f"__sqlmig_new_{column.name}") for column in new),
        F.row_number().over(equal.orderBy(values)).alias(f"{_RANK}_of"),
        F.count(F.lit(1)).over(equal).alias(f"{_COPIES}_of"),
        F.size(F.collect_set(values).over(equal)).alias(_KINDS),
    )
    on = F.col(_RANK) == F.col(f"{_RANK}_of")
    for number, name in enumerate(names):
        on = on & F.col(name).eqNullSafe(F.col(f"__sqlmig_known_{number}"))
    joined = there.join(given, on, "left")
    is_told = (F.col(_KINDS) == 1) | (F.col(_COPIES) >= F.col(f"{_COPIES}_of"))
    fills = {c.name: F.when(is_told, F.col(quoted(f"__sqlmig_new_{c.name}"))) for c in new}
    found = F.lit(False)
    for name, value in fills.items():
        found = found | (F.col(quoted(name)).isNull() & value.isNotNull())
    by_name = {name.lower(): value for name, value in fills.items()}
    return joined.select(
        *(
            F.coalesce(F.col(quoted(name)), by_name[name.lower()]).alias(name)
            if name.lower() in by_name
            else F.col(quoted(name))
            for name in now.columns
        ),
        found.alias(_FOUND),
    )
