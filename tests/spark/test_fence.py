"""The fence: a write of Spark's that was begun before it does not commit after it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig.execution.values import Mark
from sqlmig.program.parse import parse_program
from sqlmig.spark.sessions import Sessions
from sqlmig.spark.tables import Tables
from sqlmig.warehouse import DeltaWarehouse
from tests.stories.running import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def waiting_row(spark: SparkSession, begun: Path, go_on: Path) -> DataFrame:
    """One row that makes the file `begun` when it is computed, and waits for the file `go_on`."""
    from pyspark.sql.functions import udf

    def wait(value: int) -> int:
        begun.touch()
        while not go_on.exists():
            time.sleep(0.02)
        return value

    return spark.range(1).select(udf(wait, "bigint", useArrow=False)("id").alias("id"))


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write_that_was_begun_before_a_fence_is_refused(
    mode: str, tmp_path: Path, tmp_warehouse: Path, spark: SparkSession
) -> None:
    # given: a table as sqlmig makes it, and a write to it that is under way
    warehouse = DeltaWarehouse(str(tmp_warehouse))
    (table,) = parse_program({"a.sql": "CREATE TABLE t (id BIGINT);"}).tables.values()
    Tables(Sessions(lambda: spark), warehouse).create(table, "t", Mark("p", "r", 1, "rev"))
    begun, go_on = tmp_path / "begun", tmp_path / "go_on"
    failed: list[str] = []

    def write() -> None:
        try:
            frame = waiting_row(spark, begun, go_on)
            frame.write.format("delta").mode(mode).save(warehouse.table_path("t"))
        except Exception as error:
            failed.append(str(error))

    writer = threading.Thread(target=write)
    writer.start()
    eventually(begun.exists)

    # when
    version = warehouse.fence("t", Mark("p", "fence", 0, "rev"))
    go_on.touch()
    writer.join()

    # then
    assert version is not None
    assert len(failed) == 1
    assert "DELTA_METADATA_CHANGED" in failed[0]
    assert warehouse.version("t") == version
