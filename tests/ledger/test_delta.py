"""The ledger on a real Delta folder: appends, races, damage."""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlmig.errors import LedgerConflict, LedgerError
from sqlmig.execution.journal import Journal
from sqlmig.ledger import delta, rows
from sqlmig.ledger.delta import DeltaLedger
from sqlmig.ledger.records import Kind, Record, Status
from tests.ledger.samples import NOON

_json = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3)
_texts = st.none() | st.text(max_size=8)


def record(**values: Any) -> Record:
    """A record of a tick."""
    return Record("school", Kind.TICK, Status.DONE, NOON, **values)


def append(ledger: DeltaLedger, row: Record, expected: int) -> Record:
    """Append one record."""
    return ledger.append([row], expected)[0]


@pytest.fixture
def ledger(tmp_path: Path) -> DeltaLedger:
    """A ledger in an empty folder."""
    return DeltaLedger(str(tmp_path / "warehouse" / "ledger"))


def test_there_is_nothing_before_the_first_append(ledger: DeltaLedger) -> None:
    assert ledger.version() == -1
    assert ledger.read() == (-1, ())


def test_the_first_append_makes_the_ledger(ledger: DeltaLedger) -> None:
    written = append(ledger, record(actor="ann"), -1)
    assert written.seq == 1
    assert ledger.version() == 1
    assert ledger.read() == (1, (written,))


def test_records_come_in_order_each_with_its_version(ledger: DeltaLedger) -> None:
    version = -1
    for number in range(5):
        version = append(ledger, record(step=number), version).seq
    assert version == 5
    other = DeltaLedger(ledger.path)
    assert [(r.seq, r.step) for r in other.read()[1]] == [(n + 1, n) for n in range(5)]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.builds(
        Record,
        pipeline=st.text(min_size=1, max_size=8),
        kind=st.sampled_from(Kind),
        status=st.sampled_from(Status),
        at=st.datetimes(
            datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(timezone.utc)
        ),
        plan=_texts,
        step=st.none() | st.integers(0, 2**31 - 1),
        revision=_texts,
        program=st.none() | st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=2),
        program_diff=st.none() | _json,
        cut=st.none() | _json,
        commit=_texts,
        branch=_texts,
        dirty=st.none() | st.booleans(),
        author=_texts,
        actor=_texts,
        versions=st.none() | _json,
        error=_texts,
        details=_json,
        remote=_texts,
    )
)
def test_a_record_is_read_as_it_was_written(tmp_path: Path, row: Record) -> None:
    folder = tmp_path / "one"
    shutil.rmtree(folder, ignore_errors=True)
    written = append(DeltaLedger(str(folder)), row, -1)
    assert DeltaLedger(str(folder)).read() == (1, (written,))


def test_a_ledger_that_an_earlier_version_made_gets_the_columns_it_lacks(
    ledger: DeltaLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        for module in (delta, rows):
            earlier.setattr(module, "COLUMNS", rows.COLUMNS[:-1])
        first = append(ledger, record(), -1)
    assert DeltaLedger(ledger.path).read() == (1, (first,))

    second = append(DeltaLedger(ledger.path), record(remote="https://example.com/a.git"), 1)

    assert DeltaLedger(ledger.path).read() == (2, (first, second))
    assert second.remote == "https://example.com/a.git"
    third = append(DeltaLedger(ledger.path), record(), 2)
    assert ledger.read(2) == (3, (third,))


def test_text_that_is_no_unicode_is_written_too(ledger: DeltaLedger) -> None:
    append(ledger, record(error="no file /in/\udce4.csv", details={"path": "\udce4"}), -1)
    (read,) = ledger.read()[1]
    assert read.error == "no file /in/\\udce4.csv"
    assert read.details == {"path": "\udce4"}


def test_an_append_after_another_ones_is_refused(ledger: DeltaLedger) -> None:
    append(ledger, record(), -1)
    other = DeltaLedger(ledger.path)
    append(other, record(), 1)
    with pytest.raises(LedgerConflict) as caught:
        append(ledger, record(), 1)
    assert caught.value.message == "another process wrote to the ledger first"
    assert len(ledger.read()[1]) == 2


def test_a_second_maker_of_the_ledger_is_refused(ledger: DeltaLedger) -> None:
    append(DeltaLedger(ledger.path), record(), -1)
    with pytest.raises(LedgerConflict):
        append(ledger, record(), -1)


def test_a_ledger_whose_maker_died_before_the_first_record_goes_on(ledger: DeltaLedger) -> None:
    DeltaLedger(ledger.path)._create()
    assert ledger.read() == (0, ())
    assert append(ledger, record(), 0).seq == 1


def test_of_four_processes_that_race_each_record_has_a_seq_of_its_own(
    ledger: DeltaLedger,
) -> None:
    context = multiprocessing.get_context("spawn")
    failures = context.Queue()
    racers = [
        context.Process(target=_race, args=(ledger.path, number, failures)) for number in range(4)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(120)
    assert [racer.exitcode for racer in racers] == [0] * 4, _all(failures)
    version, records = ledger.read()
    assert version == 24
    assert [r.seq for r in records] == list(range(1, 25))
    for number in range(4):
        assert [r.step for r in records if r.actor == str(number)] == list(range(6))


def _race(path: str, number: int, failures: Any) -> None:
    try:
        ledger = DeltaLedger(path)
        version, _ = ledger.read()
        for step in range(6):
            while True:
                try:
                    version = append(ledger, record(actor=str(number), step=step), version).seq
                    break
                except LedgerConflict:
                    version = ledger.version()
    except BaseException as error:
        failures.put(repr(error))
        raise


def _all(queue: Any) -> Iterator[str]:
    while True:
        try:
            yield queue.get(timeout=1)
        except Empty:
            return


def test_a_ledger_of_another_pipeline_is_refused(ledger: DeltaLedger) -> None:
    append(ledger, record(), -1)
    with pytest.raises(LedgerError) as caught:
        Journal(ledger, "shop").refresh()
    assert caught.value.message == "this warehouse holds pipeline `school`, not `shop`"
    assert caught.value.hint == "give the target a warehouse of its own in sqlmig.yml"
    with pytest.raises(LedgerError, match="holds pipeline `school`"):
        Journal(ledger, "shop").append(Kind.TICK, Status.STARTED)


def test_a_damaged_data_file_is_named_with_a_hint(ledger: DeltaLedger) -> None:
    append(ledger, record(), -1)
    (file,) = Path(ledger.path).glob("*.parquet")
    file.write_bytes(b"damaged")
    with pytest.raises(LedgerError) as caught:
        DeltaLedger(ledger.path).read()
    assert caught.value.message.startswith(f"the ledger at {ledger.path} can't be read: ")
    assert "restore it" in (caught.value.hint or "")


def test_a_missing_data_file_is_an_error_and_no_missing_record(ledger: DeltaLedger) -> None:
    append(ledger, record(), -1)
    (file,) = Path(ledger.path).glob("*.parquet")
    file.unlink()
    with pytest.raises(LedgerError, match="can't be read"):
        ledger.read()


def test_a_damaged_log_is_named_with_a_hint(ledger: DeltaLedger) -> None:
    append(ledger, record(), -1)
    (Path(ledger.path) / "_delta_log" / f"{0:020}.json").write_text("{damaged", "utf-8")
    with pytest.raises(LedgerError) as caught:
        DeltaLedger(ledger.path).read()
    assert caught.value.message.startswith(f"the ledger at {ledger.path} can't be opened: ")
    assert caught.value.hint


def test_a_ledger_that_was_removed_while_open_is_an_error(ledger: DeltaLedger) -> None:
    append(ledger, record(), -1)
    shutil.rmtree(ledger.path)
    with pytest.raises(LedgerError):
        append(ledger, record(), 1)


def test_compaction_keeps_every_row(ledger: DeltaLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    version = -1
    for number in range(6):
        version = append(ledger, record(step=number), version).seq
    before = ledger.read()[1]
    monkeypatch.setattr(delta, "_COMPACT_AFTER", 4)
    ledger.compact()
    after = DeltaLedger(ledger.path)
    assert after.read()[1] == before
    assert after.version() > version
    written = append(after, record(step=6), after.version())
    assert after.read()[1] == (*before, written)
    assert ledger.read()[1] == (*before, written)


def test_an_append_compacts_when_there_are_many_files(
    ledger: DeltaLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "_COMPACT_AFTER", 3)
    version = -1
    for number in range(9):
        written = append(ledger, record(step=number), version)
        assert written.seq > version
        version = written.seq
    assert version == ledger.version() > 9
    assert [r.step for r in DeltaLedger(ledger.path).read()[1]] == list(range(9))


def test_files_that_were_compacted_are_removed_and_no_row_with_them(
    ledger: DeltaLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "_COMPACT_AFTER", 5)
    monkeypatch.setattr(delta, "_UNUSED_HOURS", 0)
    version = -1
    for number in range(23):
        version = append(ledger, record(step=number), version).seq
    assert len(list(Path(ledger.path).glob("*.parquet"))) <= 5
    assert [r.step for r in DeltaLedger(ledger.path).read()[1]] == list(range(23))


def test_compaction_waits_for_many_files(ledger: DeltaLedger) -> None:
    append(ledger, record(), -1)
    ledger.compact()
    assert ledger.version() == 1


def test_an_append_keeps_the_files_few(
    ledger: DeltaLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "_COMPACT_AFTER", 4)
    written = []
    version = -1
    for number in range(12):
        written.append(append(ledger, record(step=number), version))
        version = written[-1].seq
        assert version == ledger.version()
    table = DeltaTable(ledger.path)
    assert len(table.file_uris()) <= 4
    assert DeltaLedger(ledger.path).read() == (version, tuple(written))


def test_one_who_read_before_a_compaction_is_refused_and_reads_again(
    ledger: DeltaLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "_COMPACT_AFTER", 1)
    journal = Journal(ledger, "school")
    journal.append(Kind.TICK, Status.DONE)
    journal.append(Kind.TICK, Status.DONE)
    DeltaLedger(ledger.path).compact()
    journal.append(Kind.TICK, Status.DONE)
    assert journal.refresh().ticks == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_an_error_with_a_hint(ledger: DeltaLedger) -> None:
    append(ledger, record(), -1)
    log = Path(ledger.path) / "_delta_log"
    log.chmod(0o500)
    try:
        with pytest.raises(LedgerError, match="can't be written"):
            append(ledger, record(), 1)
    finally:
        log.chmod(0o700)


def test_a_ledger_that_can_not_be_made_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "warehouse").write_text("a file where the folder should be", "utf-8")
    ledger = DeltaLedger(str(tmp_path / "warehouse" / "ledger"))
    with pytest.raises(LedgerError) as caught:
        append(ledger, record(), -1)
    assert caught.value.message.startswith(f"no ledger can be made at {ledger.path}: ")
    assert "rights" in (caught.value.hint or "")


def test_a_full_disk_is_an_error_with_a_hint_and_writes_nothing(ledger: DeltaLedger) -> None:
    """A process that may write no byte to a file stands for a disk that has none left."""
    append(ledger, record(), -1)
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    writer = context.Process(target=_write_to_a_full_disk, args=(ledger.path, answers))
    writer.start()
    writer.join(120)
    message, hint = answers.get()
    assert message.startswith(f"the ledger at {ledger.path} can't be written: ")
    assert hint == "check free space and rights, then run the command again"
    assert len(ledger.read()[1]) == 1


def _write_to_a_full_disk(path: str, answers: Any) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = Journal(DeltaLedger(path), "school")
    journal.refresh()
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        journal.append(Kind.TICK, Status.DONE)
        answers.put(("written", None))
    except LedgerError as error:
        answers.put((error.message, error.hint))


def test_a_journal_whose_ledger_is_gone_does_not_try_for_ever(ledger: DeltaLedger) -> None:
    journal = Journal(ledger, "school")
    journal.append(Kind.TICK, Status.DONE)
    shutil.rmtree(ledger.path)
    with pytest.raises(LedgerError, match="ledger"):
        journal.append(Kind.TICK, Status.DONE)
