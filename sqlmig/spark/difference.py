"""The changes between two contents of a relation, as rows. It knows nothing of sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.ledger.sink_state import PinnedContents
from sqlmig.spark.delta import read_version
from sqlmig.spark.names import quoted
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT = "__sqlmig_count"
"""How many times a row came (positive) or went (negative)."""
_FEED = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
_PLAIN = frozenset({"WRITE", "MERGE", "UPDATE", "DELETE"})
"""Commits whose change feed says all that became of the rows."""


def contents_at(session: SparkSession, warehouse: DeltaWarehouse, at: PinnedContents) -> DataFrame:
    """The rows of a stored relation as they were at `at`.

    Raises:
        EngineError: that version is older than what the table's retention keeps.
    """
    path = warehouse.table_path(at.folder)
    try:
        return read_version(session, path, at.version)
    except Exception as error:
        raise EngineError(
            f"version {at.version} of the table in folder `{at.folder}` can't be read any more",
            hint="it is older than the table's retention; change the sink's definition, "
            "which starts it anew with a snapshot",
        ) from error


def changes(
    session: SparkSession,
    warehouse: DeltaWarehouse,
    before: PinnedContents | None,
    after: PinnedContents,
    *,
    may_use_feed: bool = True,
    is_whole: bool = False,
) -> DataFrame:
    """The multiset difference of two contents.

    Equal rows that are in both cancel out, one by one (EXCEPT ALL, both ways). With other columns,
    or other types or another order of them, every row is another row.

    Args:
        before: None for nothing: then every row of `after` came.
        may_use_feed: read the table's change feed where it tells the same, which is cheaper.
        is_whole: nothing cancels out: every row of `before` went, every row of `after` came.

    Returns:
        The columns of `after`, then those that only `before` has, and `__sqlmig_count`: how many
        times the row came, or went where it is negative; never 0.
    """
    from pyspark.sql import functions as F  # noqa: N812

    came = contents_at(session, warehouse, after).withColumn(COUNT, F.lit(1).cast("long"))
    if before is None:
        return came
    went = contents_at(session, warehouse, before).withColumn(COUNT, F.lit(-1).cast("long"))
    if is_whole or not _is_same_shape(went, came):
        return came.unionByName(_fitted(went, came), allowMissingColumns=True)
    if may_use_feed and is_fed(warehouse, before, after, came.columns):
        return _net(_feed(session, warehouse, before, after))
    return _net(came.unionByName(went))


def is_fed(
    warehouse: DeltaWarehouse, before: PinnedContents, after: PinnedContents, columns: list[str]
) -> bool:
    """Whether the table's change feed tells the way from `before` to `after`.

    It does where only plain writes of rows lie between them: a restored version, and a commit that
    changed the table itself, are compared as a whole. So is one that partitioned it in another
    way: the feed would give NULL for the partition columns of older files.
    """
    if before.folder != after.folder or before.version >= after.version:
        return False
    if _FEED & {name.lower() for name in columns}:
        return False
    table = warehouse.describe(after.folder)
    if table.properties.get("delta.enableChangeDataFeed") != "true":
        return False
    path = warehouse.table_path(after.folder)
    between = [
        c for c in warehouse.commits(path, after=before.version) if c.version <= after.version
    ]
    is_whole = len(between) == after.version - before.version
    return is_whole and all(c.operation in _PLAIN and not c.is_rewrite for c in between)


def _feed(
    session: SparkSession, warehouse: DeltaWarehouse, before: PinnedContents, after: PinnedContents
) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    feed = (
        session.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", before.version + 1)
        .option("endingVersion", after.version)
        .load(warehouse.table_path(after.folder))
    )
    came = F.col("_change_type").isin("insert", "update_postimage")
    names = [name for name in feed.columns if name not in _FEED]
    return feed.select(
        *(F.col(quoted(name)) for name in names),
        F.when(came, F.lit(1)).otherwise(F.lit(-1)).cast("long").alias(COUNT),
    )


def _net(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    names = [name for name in rows.columns if name != COUNT]
    grouped = rows.groupBy(*(F.col(quoted(name)) for name in names))
    return grouped.agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) != 0)


def _shape(frame: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]


def _is_same_shape(one: DataFrame, other: DataFrame) -> bool:
    return _shape(one) == _shape(other)


def _fitted(went: DataFrame, came: DataFrame) -> DataFrame:
    """`went` with the types of `came` for the columns that both have; a value may become NULL."""
    from pyspark.sql import functions as F  # noqa: N812

    types = {field.name.lower(): field for field in came.schema.fields}
    columns = []
    for field in went.schema.fields:
        value = F.col(quoted(field.name))
        now = types.get(field.name.lower())
        if now is not None and now.dataType.simpleString() != field.dataType.simpleString():
            value = value.try_cast(now.dataType)
        columns.append(value.alias(now.name if now is not None else field.name))
    return went.select(*columns)
