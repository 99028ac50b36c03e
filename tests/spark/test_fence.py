"""The fence: a write of Spark's that was begun before it does not commit after it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig.execution.engine import Mark
from sqlmig.program.parse import parse_program
from sqlmig.spark.sessions import Sessions
from sqlmig.spark.tables import Tables
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOW = "SELECT sum(a.id % 7 + b.id % 3) AS id FROM range({rows}) a CROSS JOIN range(20000) b"


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write_that_was_begun_before_a_fence_is_refused(
    mode: str, tmp_warehouse: Path, spark: SparkSession
) -> None:
    # given: a table as sqlmig makes it, and a write that takes a while
    warehouse = DeltaWarehouse(str(tmp_warehouse))
    (table,) = parse_program({"a.sql": "CREATE TABLE t (id BIGINT);"}).tables.values()
    Tables(Sessions(lambda: spark), warehouse).create(table, "t", Mark("p", "r", 1, "rev"))
    failed: list[str] = []

    def write() -> None:
        try:
            frame = spark.sql(SLOW.format(rows=60_000))
            frame.write.format("delta").mode(mode).save(warehouse.table_path("t"))
        except Exception as error:
            failed.append(str(error))

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(2)
    assert writer.is_alive(), "the write has to be under way"

    # when
    version = warehouse.fence("t", Mark("p", "fence", 0, "rev"))
    writer.join()

    # then
    assert version is not None
    assert len(failed) == 1
    assert "DELTA_METADATA_CHANGED" in failed[0]
    assert warehouse.version("t") == version
