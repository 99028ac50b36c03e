"""Input tables in Delta: created, altered with their rows, emptied. It knows no plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.execution.values import Mark, Written
from sqlmig.program.model import Column, Table
from sqlmig.spark.alterations import (
    begun_renames,
    create_statement,
    next_alteration,
    next_constraint,
    next_lasting_constraint,
)
from sqlmig.spark.delta import marked_once, read_version
from sqlmig.spark.failures import told
from sqlmig.spark.names import delta_name, literal, quoted
from sqlmig.spark.sessions import Sessions, once, once_only, transaction_name
from sqlmig.spark.views import RETENTION
from sqlmig.stored import Commit
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter

PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableChangeDataFeed": "true",
    **RETENTION,
}


class Tables:
    """Makes input tables what the program says. Every method may be called again.

    Args:
        sessions: where Spark is.
        warehouse: where the tables are.
    """

    def __init__(self, sessions: Sessions, warehouse: DeltaWarehouse) -> None:
        self._sessions = sessions
        self._warehouse = warehouse

    def create(self, table: Table, folder: str, mark: Mark) -> Written:
        """Make an empty table; one that an earlier try left there is emptied and altered.

        Raises:
            EngineError: Delta refuses a type, or the folder holds something else.
        """
        if self._warehouse.exists(folder):
            self.empty(table, folder, mark)
            return self.lay_out(table.name, folder, table.layout, mark)
        name = delta_name(self._warehouse.table_path(folder))
        with told(f"`{table.name}`", begins=table.location):
            self._sessions.fresh(mark).sql(create_statement(name, table, PROPERTIES))
        return self._warehouse.written(folder)

    def empty(self, table: Table, folder: str, mark: Mark) -> Written:
        """Drop all rows, then bring the schema to `table`."""
        name = delta_name(self._warehouse.table_path(folder))
        if self._warehouse.written(folder).rows != 0:
            with told(f"`{table.name}`"):
                self._sessions.fresh(mark).sql(f"DELETE FROM {name}")
        self.lay_out(table.name, folder, (), mark)
        self._converge(table, folder, (), mark, keeps_rows=False)
        return self._warehouse.written(folder)

    def alter(
        self, table: Table, folder: str, renamed: Sequence[tuple[str, str]], mark: Mark
    ) -> Written:
        """Bring the schema to `table` and keep the rows; new columns get their default.

        Args:
            renamed: (column before, column after).

        Raises:
            EngineError: the rows can't be kept, or a default doesn't fit its column.
        """
        self._converge(table, folder, renamed, mark, keeps_rows=True)
        return self._warehouse.written(folder)

    def lay_out(self, name: str, folder: str, columns: Sequence[str], mark: Mark) -> Written:
        """Write the rows of a table or stored view anew, partitioned by `columns`, in one commit.

        Raises:
            EngineError: Delta can't partition by a column of that type.
        """
        path = self._warehouse.table_path(folder)
        application = f"{transaction_name(mark)}/{','.join(columns)}"
        if self._warehouse.describe(folder).partitions != tuple(columns):
            with told(f"`{name}` can't be partitioned by ({', '.join(columns)})"):
                session = self._sessions.fresh(mark)
                while clause := next_lasting_constraint(self._warehouse.describe(folder)):
                    session.sql(f"ALTER TABLE {delta_name(path)} {clause}")
                version = self._warehouse.version(folder)
                rows = read_version(session, path, version)
                with once_only(self._warehouse, path, application):
                    overwriting(rows, mark, application, columns).save(path)
        return self._warehouse.written(folder)

    def restore(self, folder: str, version: int, mark: Mark) -> Written:
        """Put a table back to a version with Spark, where delta-rs can't."""
        name = delta_name(self._warehouse.table_path(folder))
        with told(f"`{folder}` can't be put back to version {version}"):
            self._sessions.fresh(mark).sql(
                f"RESTORE TABLE {name} TO VERSION AS OF {version:d}"
            ).collect()
        return self._warehouse.written(folder)

    def _converge(
        self,
        table: Table,
        folder: str,
        renamed: Sequence[tuple[str, str]],
        mark: Mark,
        *,
        keeps_rows: bool,
    ) -> None:
        name = delta_name(self._warehouse.table_path(folder))
        session = self._sessions.fresh(mark)
        begun = self.begun(folder, mark) if renamed else frozenset()
        with told(f"`{table.name}`", begins=table.location):
            last = None
            while True:
                stored = self._warehouse.describe(folder)
                left = [(b, a) for b, a in renamed if b.lower() not in begun]
                clause = next_alteration(stored, table, left, keeps_rows=keeps_rows)
                if clause is None:
                    break
                if clause == last:
                    raise EngineError(f"`{table.name}` does not take the alteration {clause}")
                session.sql(f"ALTER TABLE {name} {clause}")
                last = clause
                if clause.startswith("RENAME"):
                    begun = self.begun(folder, mark)
            if keeps_rows:
                self._fill(table, folder, mark)
            while clause := next_constraint(self._warehouse.describe(folder), table):
                session.sql(f"ALTER TABLE {name} {clause}")
            if (table.comment or "") != (self._warehouse.describe(folder).comment or ""):
                session.sql(f"COMMENT ON TABLE {name} IS {literal(table.comment or '')}")

    def commits(self, folder: str, mark: Mark) -> list[Commit]:
        """What the mark's step has committed to the table so far, newest first."""
        path = self._warehouse.table_path(folder)
        return [
            commit
            for commit in self._warehouse.commits(path)
            if commit.mark and (commit.mark.run, commit.mark.step) == (mark.run, mark.step)
        ]

    def begun(self, folder: str, mark: Mark) -> frozenset[str]:
        """The columns whose renaming the mark's step has begun."""
        return begun_renames(
            [
                (str(c.parameters["oldColumnPath"]), str(c.parameters["newColumnPath"]))
                for c in self.commits(folder, mark)
                if c.operation == "RENAME COLUMN"
            ]
        )

    def _fill(self, table: Table, folder: str, mark: Mark) -> None:
        """Give the rows that were there the defaults of the columns that this step added."""
        commits = self.commits(folder, mark)
        if any(commit.operation == "UPDATE" for commit in commits):
            return
        added = {
            entry["column"]["name"]
            for commit in commits
            if commit.operation == "ADD COLUMNS"
            for entry in json.loads(commit.parameters["columns"])
        }
        columns = [c for c in table.columns if c.default is not None and c.name in added]
        if not columns:
            return
        sets = ", ".join(
            f"{quoted(c.name)} = coalesce({quoted(c.name)}, {default_sql(c)})" for c in columns
        )
        where = " OR ".join(f"{quoted(c.name)} IS NULL" for c in columns)
        session = once(self._sessions.fresh(mark), transaction_name(mark))
        path = self._warehouse.table_path(folder)
        session.sql(f"UPDATE {delta_name(path)} SET {sets} WHERE {where}")


def overwriting(
    rows: DataFrame, mark: Mark, application: str, partitions: Sequence[str]
) -> DataFrameWriter:
    """What writes `rows` in place of a Delta table's own, columns too, once for `application`."""
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer = writer.options(**marked_once(mark.to_json(), application))
    spelled = {name.lower(): name for name in rows.columns}
    names = [spelled[name.lower()] for name in partitions]
    return writer.partitionBy(*names) if names else writer


def default_sql(column: Column) -> str:
    """The value of a column that a row leaves out, as SQL of the column's type."""
    return f"CAST(({column.default or 'NULL'}) AS {storage_type(column.type)})"


def storage_type(kind: str) -> str:
    """The type as an expression can have it: a string for char and varchar."""
    return "string" if kind.startswith(("varchar(", "char(")) else kind
