"""A disk that is full where delta-rs writes: the ledger, and the way back of a table. No Spark."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path

import pytest

from sqlmig.errors import LedgerError, NoSpaceError
from sqlmig.execution.values import Mark
from sqlmig.ledger.delta import DeltaLedger
from sqlmig.ledger.records import Kind, Record, Status
from sqlmig.warehouse import DeltaWarehouse
from tests.faults.processes import RUNS
from tests.faults.small_disk import SmallDisk

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


def record(step: int, size: int = 0) -> Record:
    """A record whose text compresses badly."""
    text = random.Random(step).randbytes(size // 2).hex()
    return Record("school", Kind.TICK, Status.DONE, NOON, step=step, error=text or None)


def files(folder: Path) -> set[Path]:
    """All files below a folder."""
    return {path for path in folder.rglob("*") if path.is_file()}


def test_a_record_that_finds_no_space_is_refused_whole_and_written_when_there_is(
    disk: SmallDisk,
) -> None:
    path = disk.folder / "warehouse" / "ledger"
    ledger = DeltaLedger(str(path))
    seq = ledger.append([record(0)], -1)[0].seq
    refused: list[LedgerError] = []
    for seed in range(RUNS):
        # given: some kilobytes are left
        before = files(path)
        disk.fill(random.Random(seed).randrange(0, 120_000))

        # when
        try:
            ledger.append([record(seed, 20_000)], seq)
        except LedgerError as error:
            refused.append(error)
            assert files(path) == before, f"seed {seed}: nothing is left behind"
            disk.clear()
            seq = ledger.append([record(seed, 20_000)], seq)[0].seq
        else:
            seq += 1
        disk.clear()

        # then
        version, records = DeltaLedger(str(path)).read()
        assert version == seq
        assert [row.step for row in records] == [0, *range(seed + 1)]
    assert len(refused) > RUNS / 4
    assert (
        refused[-1].message
        == f"the ledger at {path} can't be written: no space is left on the disk"
    )
    assert refused[-1].hint == (
        f"free some space in {path.parent}, then run the command again: it ends what is begun"
    )


def test_a_ledger_that_there_is_no_space_for_is_made_when_there_is(disk: SmallDisk) -> None:
    # given
    path = disk.folder / "warehouse" / "ledger"
    disk.fill(0)

    # when
    with pytest.raises(LedgerError) as caught:
        DeltaLedger(str(path)).append([record(0)], -1)
    disk.clear()
    DeltaLedger(str(path)).append([record(0)], -1)

    # then
    assert "no space is left on the disk" in caught.value.message
    assert [row.step for row in DeltaLedger(str(path)).read()[1]] == [0]


def test_a_record_counts_as_written_when_only_the_checkpoint_of_the_log_found_no_space(
    disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given: with the next commit delta-rs writes a checkpoint of the log
    monkeypatch.setattr("sqlmig.ledger.delta._COMPACT_AFTER", 1000)
    monkeypatch.setattr("sqlmig.ledger.delta._ROOM", 0)
    path = disk.folder / "ledger"
    ledger = DeltaLedger(str(path))
    seq = -1
    while seq < 98:
        seq = ledger.append([record(seq + 1)], seq)[0].seq

    # when: there is room for the commit and for nothing more
    disk.fill(24_576)
    (written,) = ledger.append([record(99)], 98)
    disk.clear()

    # then: it is there, once; and the next one is, too
    assert not list((path / "_delta_log").glob("*.checkpoint.parquet"))
    assert written.seq == 99
    assert ledger.append([record(100)], 99)[0].seq == 100
    steps = [row.step or 0 for row in DeltaLedger(str(path)).read()[1]]
    assert steps == [*sorted(steps[:-2]), 99, 100]
    assert len(steps) == len(set(steps))


def test_a_table_goes_back_when_there_is_space_and_says_so_when_there_is_none(
    disk: SmallDisk,
) -> None:
    # given: a table, by the writer that is at hand
    warehouse = DeltaWarehouse(str(disk.folder))
    table = DeltaLedger(warehouse.table_path("marks"))
    for number in range(3):
        table.append([record(number)], table.version())
    mark = Mark("school", "run", 1, "r1")
    before = warehouse.version("marks")

    # when
    disk.fill(0)
    with pytest.raises(NoSpaceError) as restored:
        warehouse.restore("marks", 1, mark)
    with pytest.raises(NoSpaceError) as fenced:
        warehouse.fence("marks", mark)
    refused_at = warehouse.version("marks")
    disk.clear()
    back = warehouse.restore("marks", 1, mark)

    # then
    assert restored.value.message == (
        "`marks` can't be put back to version 1: no space is left on the disk"
    )
    assert fenced.value.message == "`marks` can't be fenced off: no space is left on the disk"
    assert f"free some space in {disk.folder}" in (restored.value.hint or "")
    assert refused_at == before
    assert back is not None
    assert back.version == before + 1
    assert back.rows == 1
