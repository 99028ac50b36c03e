"""Raw records in a real Delta table: what is known of them, and which go. No Spark."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from arro3.core import Array, DataType, Table
from deltalake import write_deltalake

from sqlmig.errors import EngineError
from sqlmig.execution.collection import Collector, Place
from sqlmig.execution.values import RawSource
from sqlmig.ledger.deployment import Deployment
from sqlmig.spark.raw_rows import check_whole
from sqlmig.vacuum import LocalStorage
from sqlmig.warehouse import DeltaWarehouse
from tests.fakes import Pipeline, Revision, World

DAY = 86400.0
SQL = (
    "CREATE TABLE t (a INT);"
    "CREATE SOURCE s INTO t USING json OPTIONS (path '/in') RETAIN RAW FOR 30 DAYS;"
)


def keep(warehouse: DeltaWarehouse, batch: int, at: datetime, generation: int = 1) -> None:
    """Two records of a batch."""
    micros = Array([int(at.timestamp() * 1e6)] * 2, DataType.int64())
    rows = Table.from_pydict(
        {
            "generation": Array([generation] * 2, DataType.int32()),
            "batch": Array([batch] * 2, DataType.int64()),
            "at": micros.cast(DataType.timestamp("us", tz="UTC")),
            "value": Array([b"x", b"y"], DataType.binary()),
        }
    )
    path = Path(warehouse.raw_path("t.s"))
    path.mkdir(parents=True, exist_ok=True)
    write_deltalake(str(path), rows, mode="append")


def test_old_records_go_batch_by_batch_and_what_is_left_is_told(tmp_path: Path) -> None:
    # given: of the first generation one batch is old; a clock was set back in the second one
    warehouse = DeltaWarehouse(str(tmp_path))
    storage = LocalStorage(warehouse)
    pipeline = Pipeline(World(), [Revision("r1", SQL)])
    pipeline.go("r1")
    now = pipeline.journal.clock()
    for generation, batch, days in ((1, 0, 40), (1, 1, 10), (2, 0, 9), (2, 1, 50)):
        keep(warehouse, batch, now - timedelta(days=days), generation)
    before = warehouse.raw_records("t.s")

    def retained(deployment: Deployment) -> dict[str, float]:
        assert deployment.revision == "r1"
        return {"t.s": 30 * DAY, "t.never": DAY}

    # when
    collector = Collector(storage, pipeline.journal, 7 * DAY, retained)
    findings = collector.find()
    size = collector.remove(findings)

    # then
    assert [(r.first, r.last, r.is_gapless, r.records) for r in before.values()] == [
        (0, 1, True, 4),
        (0, 1, True, 4),
    ]
    (found,) = findings.removed
    limit = findings.raw["t.s"]
    assert (found.place, found.files, found.is_whole) == (Place("raw", "t.s"), 1, False)
    assert found.why == f"raw records that came before {limit:%Y-%m-%d %H:%M:%S} UTC"
    assert size == found.bytes > 0
    after = warehouse.raw_records("t.s")
    assert [(g, r.first, r.last, r.records) for g, r in after.items()] == [
        (1, 1, 1, 2),
        (2, 0, 1, 4),
    ]
    assert after[1].since == (now - timedelta(days=10)).isoformat(timespec="seconds")
    assert len(list(Path(warehouse.raw_path("t.s")).glob("*.parquet"))) == 3
    assert collector.find().removed == ()


def test_a_batch_that_is_missing_is_seen_and_no_table_has_none(tmp_path: Path) -> None:
    warehouse = DeltaWarehouse(str(tmp_path))
    assert warehouse.raw_records("t.s") == {}
    assert LocalStorage(warehouse).old_raw("t.s", datetime.now().astimezone()) is None
    LocalStorage(warehouse).remove_raw("t.s", datetime.now().astimezone())
    for batch in (0, 2):
        keep(warehouse, batch, datetime.now().astimezone())
    assert not warehouse.raw_records("t.s")[1].is_gapless


def test_a_table_is_not_made_again_of_what_has_gone_meanwhile(tmp_path: Path) -> None:
    warehouse = DeltaWarehouse(str(tmp_path))
    now = datetime.now().astimezone()
    sources = [RawSource("t.s", "t.s", 1)]
    for batch in (0, 1):
        keep(warehouse, batch, now - timedelta(days=2 - batch))
    check_whole(warehouse, sources)
    LocalStorage(warehouse).remove_raw("t.s", now - timedelta(days=1.5))
    with pytest.raises(EngineError) as caught:
        check_whole(warehouse, sources)
    assert caught.value.message == "raw records of `t.s` have gone since the plan was made"
    assert caught.value.hint == "run the command again: it makes a new plan"


def test_when_all_are_too_old_none_is_left(tmp_path: Path) -> None:
    warehouse = DeltaWarehouse(str(tmp_path))
    now = datetime.now().astimezone()
    keep(warehouse, 0, now - timedelta(days=2))
    LocalStorage(warehouse).remove_raw("t.s", now)
    assert warehouse.raw_records("t.s") == {}
    assert LocalStorage(warehouse).old_raw("t.s", now) is None
