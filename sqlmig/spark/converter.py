"""Input tables whose rows may break their new definition: looked at, cast, and kept. It knows no
plan.

Rows are cast in one Delta commit, so that readers see the old table or the new one. With change
data feed and column mapping on Delta refuses such a commit; the feed is off while it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.execution.values import Mark, Misfit, Written
from sqlmig.program.model import Table
from sqlmig.spark.alterations import constraints, release
from sqlmig.spark.conversion import Conversion, conversions, converted, find_misfits
from sqlmig.spark.delta import read_version
from sqlmig.spark.failures import told
from sqlmig.spark.names import delta_name
from sqlmig.spark.sessions import Sessions, once_only, transaction_name
from sqlmig.spark.tables import Tables, overwriting
from sqlmig.stored import StoredTable
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEED = "delta.enableChangeDataFeed"
HINT = (
    'mend the rows (`sqlmig exec "UPDATE ..."`) and run the command again; '
    "`--allow-destructive` empties the table instead"
)


class TableConverter:
    """Converts tables. `convert` may be called again.

    Args:
        tables: brings a table to its schema once its rows fit.
    """

    def __init__(self, sessions: Sessions, warehouse: DeltaWarehouse, tables: Tables) -> None:
        self._sessions = sessions
        self._warehouse = warehouse
        self._tables = tables

    def find_misfits(
        self, table: Table, folder: str, renamed: Sequence[tuple[str, str]], *, has_new_key: bool
    ) -> Sequence[Misfit]:
        """The rows in `folder` that can't be kept under the definition `table`, or change by it."""
        if self._warehouse.written(folder).rows == 0:
            return ()
        stored = self._warehouse.describe(folder)
        return self._find(table, folder, stored, renamed, has_new_key=has_new_key)

    def convert(
        self,
        table: Table,
        folder: str,
        renamed: Sequence[tuple[str, str]],
        mark: Mark,
        *,
        has_new_key: bool,
    ) -> Written:
        """Look at the rows, cast them, and bring the schema to `table`.

        Raises:
            EngineError: a row can't be kept; nothing was changed.
        """
        commits = self._tables.commits(folder, mark)
        is_rewritten = any(commit.operation == "WRITE" for commit in commits)
        if not is_rewritten:
            stored = self._warehouse.describe(folder)
            begun = self._tables.begun(folder, mark)
            left = [(b, a) for b, a in renamed if b.lower() not in begun]
            found = conversions(stored, table, left)
            is_rewritten = any(conversion.is_cast for conversion in found)
            if is_rewritten or not commits:
                self._refuse(table, folder, stored, left, has_new_key=has_new_key)
            if is_rewritten:
                self._rewrite(table, folder, stored, found, mark)
        if is_rewritten and self._warehouse.describe(folder).properties.get(_FEED) != "true":
            self._alter(table, folder, mark, f"SET TBLPROPERTIES ('{_FEED}' = 'true')")
        return self._tables.alter(table, folder, () if is_rewritten else renamed, mark)

    def _refuse(
        self,
        table: Table,
        folder: str,
        stored: StoredTable,
        renamed: Sequence[tuple[str, str]],
        *,
        has_new_key: bool,
    ) -> None:
        found = self._find(table, folder, stored, renamed, has_new_key=has_new_key)
        reasons = [misfit.message for misfit in found if not misfit.is_loss]
        if reasons:
            raise EngineError("; ".join(reasons), hint=HINT, location=table.location)

    def _find(
        self,
        table: Table,
        folder: str,
        stored: StoredTable,
        renamed: Sequence[tuple[str, str]],
        *,
        has_new_key: bool,
    ) -> Sequence[Misfit]:
        with told(f"`{table.name}`", begins=table.location):
            rows = self._rows(folder, stored.version)
            found = conversions(stored, table, renamed)
            return find_misfits(rows, table, found, has_new_key=has_new_key)

    def _rows(self, folder: str, version: int, mark: Mark | None = None) -> DataFrame:
        session = self._sessions.fresh(mark)
        session.conf.set("spark.sql.ansi.enabled", "true")  # a cast that fails is an error
        path = self._warehouse.table_path(folder)
        return read_version(session, path, version)

    def _rewrite(
        self,
        table: Table,
        folder: str,
        stored: StoredTable,
        found: Sequence[Conversion],
        mark: Mark,
    ) -> None:
        """Write all rows under the new columns, in one commit."""
        required = {column.name.lower() for column in table.columns if not column.nullable}
        for name in sorted(set(constraints(stored)) - required):
            self._alter(table, folder, mark, release(name))
        if stored.properties.get(_FEED) == "true":
            self._alter(table, folder, mark, f"SET TBLPROPERTIES ('{_FEED}' = 'false')")
        path = self._warehouse.table_path(folder)
        with told(f"`{table.name}`", begins=table.location):
            rows = self._rows(folder, self._warehouse.version(folder), mark)
            with once_only(self._warehouse, path, transaction_name(mark)):
                frame = rows.select(*(converted(rows, conversion) for conversion in found))
                overwriting(frame, mark, transaction_name(mark), stored.partitions).save(path)
        ours = {commit.version for commit in self._tables.commits(folder, mark)}
        for commit in self._warehouse.commits(path, after=stored.version):
            if commit.version not in ours:
                raise EngineError(
                    f"something else wrote to `{table.name}` while its rows were cast",
                    hint="run the command again: it makes a new plan",
                )

    def _alter(self, table: Table, folder: str, mark: Mark, clause: str) -> None:
        name = delta_name(self._warehouse.table_path(folder))
        with told(f"`{table.name}`", begins=table.location):
            self._sessions.fresh(mark).sql(f"ALTER TABLE {name} {clause}")
