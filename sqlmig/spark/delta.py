"""Delta's options: a table at one version, and a write that is marked and happens once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmig.execution.values import Mark
from sqlmig.spark.sessions import transaction_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_version(session: SparkSession, path: str, version: int) -> DataFrame:
    """The rows of the Delta table at `path` as they were at `version`.

    Source: https://docs.delta.io/latest/delta-batch.html#query-an-older-snapshot-of-a-table-time-travel
    """
    return session.read.format("delta").option("versionAsOf", version).load(path)


def marked_once(note: str, application: str, number: int = 0) -> dict[str, str]:
    """The options of a write that is told apart in the table's history, and is done once.

    Args:
        note: the commit's `userMetadata`.
        application: under this name Delta remembers the number.
        number: Delta skips the write where it has committed this one, or a greater.

    Source: https://docs.delta.io/latest/delta-streaming.html#idempotent-table-writes-in-foreachbatch
    """
    return {"userMetadata": note, "txnAppId": application, "txnVersion": str(number)}


def step_options(mark: Mark) -> dict[str, str]:
    """The options of the one write that a step does."""
    return marked_once(mark.to_json(), transaction_name(mark))
