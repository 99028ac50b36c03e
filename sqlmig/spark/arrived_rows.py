"""The rows that came into a stream, with the columns that it has now, from its change feed.

It knows no query, and nothing of who takes them in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.execution.values import Arrived
from sqlmig.ledger.cut import RelationState
from sqlmig.spark.delta import read_version
from sqlmig.spark.failures import told
from sqlmig.spark.names import quoted
from sqlmig.spark.tables import storage_type
from sqlmig.stored import StoredTable
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

_MODE = "spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable"
_ACROSS = "spark.databricks.delta.changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled"
"""Delta would refuse to read over what has been renamed or dropped since a row came."""


def arrived(
    session: SparkSession,
    warehouse: DeltaWarehouse,
    states: Mapping[str, RelationState],
    arrivals: Mapping[str, Arrived],
) -> dict[str, DataFrame]:
    """Stream -> the rows that came into it, with the columns that it has in `states`.

    The columns are those of now, whatever they were when a row came. But where a stream was
    partitioned in another way since, the feed would give NULL for a column that parts its files
    now: then rows are read with the columns of their time, which are known by their ids.

    Raises:
        EngineError: what a column of then is called now isn't told.
    """
    pieces = {
        name: _pieces(warehouse, states[name], came.versions)
        for name, came in arrivals.items()
        if came.versions
    }
    # one setting for all of them: over Spark Connect it counts when the query runs
    is_of_now = all(piece.is_laid_out_as_now for found in pieces.values() for piece in found)
    session.conf.set(_ACROSS, "true")
    session.conf.set(_MODE, "latest" if is_of_now else "endVersion")
    found = {}
    for name, came in arrivals.items():
        state = states[name]
        path = warehouse.table_path(state.folder)
        with told(f"the table in folder `{state.folder}`"):
            now = read_version(session, path, state.version)
            if came.versions is None:
                found[name] = now
            elif not came.versions:
                found[name] = now.where("false")
            elif is_of_now:
                rows = _feed(session, path, came.versions)
                found[name] = rows.select(*map(_column, now.columns))
            else:
                frames = [
                    _feed(session, path, piece.versions).select(*_columns_of_then(state, piece))
                    for piece in pieces[name]
                ]
                found[name] = reduce(lambda one, other: one.unionAll(other), frames)
    return found


@dataclass(frozen=True)
class _Piece:
    """Versions between which no rows were written anew or put back; the stream then and now."""

    versions: Sequence[int]
    then: StoredTable
    now: StoredTable

    @property
    def is_laid_out_as_now(self) -> bool:
        return self.then.partitions == self.now.partitions


def _pieces(
    warehouse: DeltaWarehouse, state: RelationState, versions: Sequence[int]
) -> list[_Piece]:
    path = warehouse.table_path(state.folder)
    breaks = [
        commit.version
        for commit in warehouse.commits(path, after=versions[0])
        if commit.version <= state.version and (commit.is_rewrite or commit.operation == "RESTORE")
    ]
    parted: dict[int, list[int]] = {}
    for version in versions:
        parted.setdefault(sum(1 for at in breaks if at <= version), []).append(version)
    now = warehouse.describe(state.folder, state.version)
    return [
        _Piece(piece, warehouse.describe(state.folder, piece[-1]) if breaks else now, now)
        for piece in parted.values()
    ]


def _feed(session: SparkSession, path: str, versions: Sequence[int]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    feed = (
        session.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", versions[0])
        .option("endingVersion", versions[-1])
        .load(path)
    )
    return feed.where(
        (F.col("_change_type") == "insert") & F.col("_commit_version").isin(list(versions))
    )


def _columns_of_then(state: RelationState, piece: _Piece) -> list[SparkColumn]:
    from pyspark.sql import functions as F  # noqa: N812

    there = {column.id: column for column in piece.then.columns}
    names = {column.name.lower() for column in piece.then.columns}
    columns = []
    for column in piece.now.columns:
        then = there.get(column.id)
        if then is None and column.name.lower() in names:
            raise EngineError(
                f"rows that came with version {piece.versions[-1]} of `{state.folder}` have "
                f"another `{column.name}` than it has now",
                hint='`op.rebuild("...")` in a revision begins the streaming table anew',
            )
        value = _column(then.name) if then is not None else F.lit(None)
        if then is None or then.type != column.type:
            value = value.cast(storage_type(column.type))
        columns.append(value.alias(column.name))
    return columns


def _column(name: str) -> SparkColumn:
    from pyspark.sql import functions as F  # noqa: N812

    return F.col(quoted(name))
