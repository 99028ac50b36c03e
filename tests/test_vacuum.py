"""Which files of real Delta tables a vacuum finds and removes. No Spark."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from arro3.core import Array, DataType, Field, Schema, Table
from deltalake import DeltaTable, write_deltalake

from sqlmig.execution.collection import Place
from sqlmig.ledger.retention import Kept
from sqlmig.vacuum import LocalStorage
from sqlmig.warehouse import DeltaWarehouse

DAY = 86400.0


class Stored:
    """A table `t`, each of whose versions was written a day after the one before."""

    def __init__(self, root: Path, days: int) -> None:
        self.warehouse = DeltaWarehouse(str(root))
        self.storage = LocalStorage(self.warehouse)
        self.path = Path(self.warehouse.table_path("t"))
        self.path.parent.mkdir(parents=True)
        self._begin = time.time() - days * DAY
        for day in range(days):
            self.write(day)

    def write(self, day: int) -> None:
        """Replace the table's only row."""
        rows = Table.from_pydict(
            {"day": Array([day], DataType.int64())},
            schema=Schema([Field("day", DataType.int64(), nullable=True)]),
        )
        write_deltalake(str(self.path), rows, mode="overwrite")
        self._age(self._begin + day * DAY)

    def _age(self, at: float) -> None:
        """Let what was written and removed just now be of that time."""
        for file in self.path.rglob("*"):
            if file.is_file() and file.stat().st_mtime > time.time() - DAY / 2:
                if file.suffix == ".json":
                    text = file.read_text(encoding="utf-8")
                    aged = f'"deletionTimestamp":{int(at * 1000)}'
                    file.write_text(re.sub(r'"deletionTimestamp":\d+', aged, text))
                os.utime(file, (at, at))

    def readable(self) -> list[int]:
        """The versions whose rows can be read."""
        newest = DeltaTable(str(self.path)).version()
        return [v for v in range(newest + 1) if self._can_read(v)]

    def _can_read(self, version: int) -> bool:
        names = DeltaTable(str(self.path), version=version).get_add_actions(flatten=True)
        return all((self.path / n).exists() for n in names.column("path").to_pylist())

    def vacuum(self, kept: Kept, slack: float = 60.0) -> tuple[int, ...]:
        """Remove what is not kept; the versions that the ledger knows and that are lost."""
        found = self.storage.unneeded("t", kept, slack)
        self.storage.remove_files(found)
        return found.lost


def test_versions_that_are_kept_can_be_read_and_no_others(tmp_path: Path) -> None:
    table = Stored(tmp_path, 10)
    lost = table.vacuum(Kept(6, frozenset({2}), frozenset({1, 7})))
    assert table.readable() == [2, 6, 7, 8, 9]
    assert lost == (1,)
    assert table.vacuum(Kept(6, frozenset({2}))) == ()


def test_a_detached_table_keeps_its_newest_version(tmp_path: Path) -> None:
    table = Stored(tmp_path, 5)
    table.vacuum(Kept(None))
    assert table.readable() == [4]


def test_what_a_restore_brought_back_and_a_later_commit_removed_is_kept(tmp_path: Path) -> None:
    # given: version 10 is version 1 again
    table = Stored(tmp_path, 10)
    DeltaTable(str(table.path)).restore(1)
    table.write(10)

    # when
    table.vacuum(Kept(5))

    # then: it was needed until lately, and so was the version that it was made from
    assert table.readable() == [1, 5, 6, 7, 8, 9, 10, 11]


def test_a_file_that_no_commit_names_is_kept_for_a_day(tmp_path: Path) -> None:
    # given
    table = Stored(tmp_path, 3)
    now = time.time()
    names = ("old.parquet", "new.parquet", "_change_data/cdc-old.parquet", "other.txt")
    (table.path / "_change_data").mkdir()
    for name in names:
        (table.path / name).write_text("x")
        at = now - (10 if "new" not in name else 0.5) * DAY
        os.utime(table.path / name, (at, at))
    (table.path / ".old.parquet.crc").write_text("x")

    # when
    found = table.storage.unneeded("t", Kept(2), 60.0)
    table.storage.remove_files(found)

    # then
    listed = [name for name, _ in found.files if name in names]
    assert listed == ["_change_data/cdc-old.parquet", "old.parquet"]
    assert not (table.path / ".old.parquet.crc").exists()
    assert (table.path / "new.parquet").exists()
    assert (table.path / "other.txt").exists()


def test_a_table_whose_log_does_not_go_back_to_a_kept_version_is_left_alone(
    tmp_path: Path,
) -> None:
    table = Stored(tmp_path, 6)
    table.warehouse.latest(str(table.path))
    DeltaTable(str(table.path)).create_checkpoint()
    for version in range(3):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()
    assert table.storage.unneeded("t", Kept(2), 60.0).files == ()
    assert len(table.storage.unneeded("t", Kept(None), 60.0).files) == 5


def test_folders_are_measured_and_removed(tmp_path: Path) -> None:
    table = Stored(tmp_path, 2)
    offsets = Path(table.warehouse.checkpoint_path("t.s", 3))
    (offsets / "offsets").mkdir(parents=True)
    (offsets / "offsets" / "0").write_text("12345")
    place = Place("checkpoints", "t.s/3")
    assert table.storage.size(place) == (1, 5)
    table.storage.remove(place)
    table.storage.remove(place)
    assert table.storage.size(place) is None
    table.storage.remove(Place("tables", "t"))
    assert not table.path.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may remove everything")
def test_what_can_not_be_removed_is_an_error(tmp_path: Path) -> None:
    from sqlmig.errors import EngineError

    table = Stored(tmp_path, 2)
    table.path.chmod(0o500)
    try:
        with pytest.raises(EngineError) as caught:
            table.vacuum(Kept(None))
    finally:
        table.path.chmod(0o700)
    assert "can't be removed: permission denied" in caught.value.message
