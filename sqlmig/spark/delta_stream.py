"""A Delta table as a source: what is appended to it, or its change feed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlmig.planning.source_options import reads_changes
from sqlmig.program.model import Table
from sqlmig.spark.names import quoted
from sqlmig.spark.streams import BLOCK, CORRUPT, DELETED, FILE, TIME, WHY, is_deleted
from sqlmig.spark.tables import storage_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OWN = frozenset({"delete_when", "on_data_loss", "sequence_by", "path"})
_CHANGE = "_change_type"


def delta_stream(session: SparkSession, table: Table, options: Mapping[str, str]) -> DataFrame:
    """The rows of a Delta source: all that are there at first, then what comes.

    With `readChangeFeed`, the changes: an update is its new row, a delete deletes by key.
    """
    from pyspark.sql import functions as F  # noqa: N812

    reader = session.readStream.format("delta")
    frame = reader.options(**{k: v for k, v in options.items() if k not in _OWN}).load(
        options["path"]
    )
    given = {name.lower() for name in frame.columns}
    values = [
        F.col(quoted(c.name)).cast(storage_type(c.type)).alias(c.name)
        if c.name.lower() in given
        else F.lit(None).cast(storage_type(c.type)).alias(c.name)
        for c in table.columns
    ]
    nothing = F.lit(None).cast("string")
    deleted = is_deleted(options)
    arrived = F.lit(None)
    if reads_changes(options):
        frame = frame.where(F.col(_CHANGE) != "update_preimage")
        is_gone = F.col(_CHANGE) == "delete"
        deleted = deleted | is_gone
        # of one commit, what leaves leaves first: a key may go and come again in it
        arrived = F.col("_commit_version") * 2 + F.when(is_gone, 0).otherwise(1)
    return frame.select(
        *values,
        nothing.alias(CORRUPT),
        nothing.alias(WHY),
        nothing.alias(FILE),
        nothing.cast("timestamp").alias(TIME),
        arrived.cast("long").alias(BLOCK),
        deleted.alias(DELETED),
    )
