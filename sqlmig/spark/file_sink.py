"""Sinks of files: every batch a folder `batch=<n>`, which is complete once it has `_SUCCESS`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlmig.spark.outgoing import Outgoing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_PATH = "PATH_NOT_FOUND"
_BATCH = re.compile(r"/batch=(\d+)/[^/]*$")
_ONE_FILE = 100_000
"""Rows up to which a batch is one file."""
_DEFAULTS = {"csv": {"header": "true"}, "json": {"ignorenullfields": "false"}}


def write_files(session: SparkSession, rows: DataFrame, batch: Outgoing, count: int) -> None:
    """Write a batch's folder; one that is complete is left alone.

    Spark writes `_SUCCESS` when all files are in their place. A folder without it is what a process
    left that died: it is written anew.
    """
    folder = f"{batch.place}/batch={batch.number}"
    if _exists(session, f"{folder}/_SUCCESS"):
        return
    options = {**_DEFAULTS.get(batch.format, {}), **batch.options}
    if count <= _ONE_FILE:
        rows = rows.coalesce(1)
    rows.write.format(batch.format).mode("overwrite").options(**options).save(folder)


def last_batch(session: SparkSession, path: str) -> int:
    """The greatest number of a batch at `path`; 0 where there is none."""
    from pyspark.sql import functions as F  # noqa: N812

    try:
        files = session.read.format("binaryFile").load(f"{path}/batch=*/*").select(F.col("path"))
        found = [_BATCH.search(row["path"]) for row in files.collect()]
    except Exception as error:
        if _is_missing(error):
            return 0
        raise
    return max((int(match[1]) for match in found if match), default=0)


def _exists(session: SparkSession, path: str) -> bool:
    """Whether a file is there; Spark looks, for sqlmig may be on another machine."""
    try:
        _ = session.read.text(path).columns
    except Exception as error:
        if _is_missing(error):
            return False
        raise
    return True


def _is_missing(error: Exception) -> bool:
    condition = getattr(error, "getCondition", lambda: None)()
    return _NO_PATH in (condition or "") or _NO_PATH in str(error)
