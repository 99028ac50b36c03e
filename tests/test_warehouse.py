"""The warehouse without Spark: versions, sizes, marks, and the way back."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from arro3.core import Array, DataType, Table
from deltalake import CommitProperties, DeltaTable, write_deltalake

from sqlmig.errors import EngineError
from sqlmig.execution.values import Arrived, Mark
from sqlmig.ledger.cut import RelationState
from sqlmig.planning.request import observe
from sqlmig.warehouse import DeltaWarehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> DeltaWarehouse:
    """A warehouse with the table `t`: two commits of runs `r1` and `r2`, 2 and 3 rows."""
    warehouse = DeltaWarehouse(str(tmp_path))
    write(warehouse, "t", [1, 2], Mark("p", "r1", 4, "rev", "f1", {"a": "a@1"}))
    write(warehouse, "t", [3], Mark("p", "r2", 5, "rev", "f2"))
    return warehouse


def write(warehouse: DeltaWarehouse, folder: str, values: list[int], mark: Mark) -> None:
    """Append rows to a table, as a commit with a mark."""
    write_deltalake(
        warehouse.table_path(folder),
        Table.from_pydict({"n": Array(values, DataType.int64())}),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": mark.to_json()}),
    )


def state(folder: str, version: int, rows: int | None = None) -> RelationState:
    """What the ledger may know of a table."""
    return RelationState(folder, "table", version, f"{folder}@{version}", "known", {}, rows, 7)


def test_a_table_is_seen_as_it_is_and_a_missing_folder_is_left_out(
    warehouse: DeltaWarehouse,
) -> None:
    # when
    seen = warehouse.observe({"a": state("t", 0), "b": state("gone", 3)})

    # then
    assert set(seen) == {"t"}
    now = seen["t"]
    assert (now.version, now.rows, now.fingerprint) == (1, 3, "f2")
    assert now.bytes is not None
    assert now.bytes > 0


def test_what_is_known_of_a_version_is_not_read_again(warehouse: DeltaWarehouse) -> None:
    # when
    now = warehouse.observe({"a": state("t", 1, rows=99)})["t"]

    # then
    assert (now.rows, now.bytes, now.fingerprint) == (99, 7, "known")


def test_a_commit_is_found_by_its_run_and_step(warehouse: DeltaWarehouse) -> None:
    assert warehouse.find_mark("t", "r1", 4) == 0
    assert warehouse.find_mark("t", "r2", 5) == 1
    assert warehouse.find_mark("t", "r1", 5) is None
    assert warehouse.find_mark("gone", "r1", 4) is None


def test_a_restore_puts_the_rows_back_and_carries_a_mark(warehouse: DeltaWarehouse) -> None:
    # when
    written = warehouse.restore("t", 0, Mark("p", "r3", 6, "rev", "f1", {"a": "a@1"}))

    # then
    assert written is not None
    assert (written.version, written.rows) == (2, 2)
    now = warehouse.observe({"a": state("t", 1)})["t"]
    assert (now.version, now.fingerprint, now.inputs) == (2, "f1", {"a": "a@1"})


def test_a_table_or_version_that_is_not_there_is_an_error_with_a_hint(
    warehouse: DeltaWarehouse,
) -> None:
    with pytest.raises(EngineError) as gone:
        warehouse.restore("gone", 0)
    with pytest.raises(EngineError) as late:
        warehouse.restore("t", 17)
    assert "there is no Delta table at" in gone.value.message
    assert "can't be put back to version 17" in late.value.message
    assert gone.value.hint
    assert late.value.hint


def test_a_damaged_table_is_named(warehouse: DeltaWarehouse) -> None:
    # given
    log = Path(warehouse.table_path("t")) / "_delta_log"
    (log / "00000000000000000000.json").unlink()

    # when
    with pytest.raises(EngineError) as caught:
        warehouse.observe({"a": state("t", 0)})

    # then
    assert warehouse.table_path("t") in caught.value.message
    assert "backup" in (caught.value.hint or "")


def test_a_folder_whose_maker_died_before_its_first_commit_is_no_table(
    warehouse: DeltaWarehouse,
) -> None:
    # given
    (Path(warehouse.table_path("dead")) / "_delta_log").mkdir(parents=True)

    # then
    assert not warehouse.exists("dead")


def test_types_are_told_as_spark_names_them(warehouse: DeltaWarehouse) -> None:
    # when
    described = warehouse.describe("t")

    # then
    assert [(c.name, c.type, c.nullable) for c in described.columns] == [("n", "bigint", True)]
    assert described.version == 1


def test_paths_of_an_object_store_are_those_that_spark_takes() -> None:
    # when
    warehouse = DeltaWarehouse("s3a://lake/school/")

    # then
    assert warehouse.table_path("t") == "s3a://lake/school/tables/t"
    assert warehouse.checkpoint_path("t.s", 2) == "s3a://lake/school/checkpoints/t.s/2"
    assert warehouse.rejected_path("t.s") == "s3a://lake/school/rejected/t.s"
    assert warehouse.deleted_path("t.s", 2) == "s3a://lake/school/deleted/t.s/2"
    assert not warehouse.is_local


def test_importing_it_starts_neither_spark_nor_delta() -> None:
    # when
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, sqlmig.warehouse;"
            "print(sorted({'pyspark', 'deltalake'} & set(sys.modules)))",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    # then
    assert loaded.strip() == "[]"


def test_a_table_has_not_moved_only_if_its_version_is_there_and_the_next_is_not(
    warehouse: DeltaWarehouse, tmp_path: Path
) -> None:
    # given: versions 0 and 1
    log = tmp_path / "tables" / "t" / "_delta_log"

    # then: the older one has a successor, so the table is read
    assert warehouse.observe({"a": state("t", 0, rows=99)})["t"].rows == 3
    assert warehouse.observe({"a": state("t", 1, rows=99)})["t"].rows == 99

    # when: a clean-up of the log removed what the ledger knows of, and the table has moved on
    for value in range(2, 5):
        write(warehouse, "t", [value], Mark("p", "r3", value, "rev"))
    DeltaTable(warehouse.table_path("t")).create_checkpoint()
    for version in (0, 1, 2):
        (log / f"{version:020d}.json").unlink()

    # then
    now = warehouse.observe({"a": state("t", 1, rows=99)})["t"]
    assert (now.version, now.rows) == (4, 6)


def test_a_fence_is_a_commit_with_the_same_rows_and_a_mark(warehouse: DeltaWarehouse) -> None:
    # given
    mark = Mark("p", "fence-1", 0, "rev", "f2", {"a": "a@1"})

    # when
    version = warehouse.fence("t", mark)

    # then
    assert version == 2
    now = warehouse.observe({"a": state("t", 1)})["t"]
    assert (now.version, now.rows, now.fingerprint, now.inputs) == (2, 3, "f2", {"a": "a@1"})
    assert warehouse.describe("t").properties["sqlmig.fence"] == "fence-1"
    assert warehouse.fence("gone", mark) is None


def test_what_came_into_a_table_is_told_by_its_log(warehouse: DeltaWarehouse) -> None:
    # given rows at 0 and 1; 2 is put back to 0, 3 brings a row, 4 is a fence
    warehouse.restore("t", 0, Mark("p", "r3", 1, "rev"))
    write(warehouse, "t", [9], Mark("p", "r4", 1, "rev"))
    warehouse.fence("t", Mark("p", "fence-1", 0, "rev"))

    # then
    assert warehouse.arrivals("t", 4, None) == Arrived(None, "0,2-4")
    assert warehouse.arrivals("t", 1, None) == Arrived(None, "0-1")
    assert warehouse.arrivals("t", 4, "0-1") == Arrived((3,), "0-4")
    assert warehouse.arrivals("t", 2, "0-1") == Arrived((), "0-2")
    assert warehouse.arrivals("t", 2, "0-1").is_empty

    # when it is put back to what 1 brought, and that has not passed
    warehouse.restore("t", 1, Mark("p", "r5", 1, "rev"))
    assert warehouse.arrivals("t", 5, "0,2-4") == Arrived((1,), "0-5")

    # when the log is cut short
    log = Path(warehouse.table_path("t")) / "_delta_log"
    DeltaTable(warehouse.table_path("t")).create_checkpoint()
    for version in range(3):
        (log / f"{version:020d}.json").unlink()
    assert warehouse.arrivals("t", 4, "0-2") == Arrived((3,), "0-4")
    with pytest.raises(EngineError) as lost:
        warehouse.arrivals("t", 4, "0")
    assert lost.value.message == "the log of `t` doesn't tell what came with version 2"
    assert "op.rebuild" in (lost.value.hint or "")


def test_the_position_of_a_streaming_table_is_that_of_the_newest_commit_that_says_one(
    warehouse: DeltaWarehouse,
) -> None:
    # given a commit with a position, one of somebody else, and a fence
    write(warehouse, "t", [4], Mark("p", "r3", 1, "rev", "f3", {"u": "u@7"}, {"u": "0-7"}))
    write(warehouse, "t", [5], Mark("p", "r4", 1, "rev", "f4", {"u": "u@9"}))
    warehouse.fence("t", Mark("p", "fence-1", 0, "rev", "f5", {"u": "u@9"}))
    known = replace(state("t", 1), kind="streaming table", passed={"u": "0-5"}, inputs={"u": "u@5"})

    # when
    now = warehouse.observe({"s": known})["t"]

    # then
    assert (now.version, now.fingerprint, now.inputs, now.passed) == (
        4,
        "f3",
        {"u": "u@7"},
        {"u": "0-7"},
    )
    seen = observe(known, now)
    assert (seen.version, seen.fingerprint, seen.passed) == (4, "known", {"u": "0-7"})
    later = warehouse.observe({"s": replace(known, version=2)})["t"]
    assert later.passed is None
    assert observe(replace(known, version=2), later).passed == {"u": "0-5"}
