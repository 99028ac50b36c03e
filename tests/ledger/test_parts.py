"""Parts of a ledger on a real Delta folder: single records are found, and former states read."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sqlmig.execution.journal import Journal
from sqlmig.ledger.delta import DeltaLedger
from sqlmig.ledger.fold import fold
from sqlmig.ledger.records import Kind, Status
from tests.ledger.samples import NOON, state

MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> DeltaLedger:
    """A tick each minute from noon on; after each fifth a checkpoint, the second one named."""
    folder: Path = tmp_path_factory.mktemp("warehouse") / "ledger"
    ledger = DeltaLedger(str(folder))
    now = [NOON]
    journal = Journal(ledger, "school", clock=lambda: now[0])
    journal.append(Kind.STAMP, Status.DONE, revision="r1", program={"a.sql": "..."})
    for minute in range(1, 18):
        now[0] = NOON + minute * MINUTE
        cut = {"relations": {"t": state("t", minute).to_dict()}}
        journal.append(Kind.TICK, Status.DONE, revision="r1", cut=cut)
        if minute % 5 == 0:
            journal.checkpoint(**({"name": "here"} if minute == 10 else {}))
    return ledger


def test_a_record_is_found_by_its_time(ledger: DeltaLedger) -> None:
    records = ledger.read(is_whole=True)[1]
    for at in (NOON - MINUTE, NOON, NOON + 3.5 * MINUTE, NOON + 10 * MINUTE, NOON + 99 * MINUTE):
        younger = [r.seq for r in records if r.at >= at]
        older = [r.seq for r in records if r.at <= at]
        assert ledger.find(since=at) == (younger[0] if younger else None), at
        assert ledger.find(until=at) == (older[-1] if older else None), at


def test_a_checkpoint_is_found_by_its_name(ledger: DeltaLedger) -> None:
    named = [r.seq for r in ledger.read(is_whole=True)[1] if r.details.get("name") == "here"]
    assert [ledger.find(checkpoint="here")] == named
    assert ledger.find(checkpoint="elsewhere") is None


def test_a_ledger_that_is_not_there_has_no_record(tmp_path: Path) -> None:
    assert DeltaLedger(str(tmp_path / "ledger")).find(since=NOON) is None


def test_what_is_read_up_to_a_record_says_the_same_as_all_before_it(ledger: DeltaLedger) -> None:
    records = ledger.read(is_whole=True)[1]
    for record in records:
        _, part = ledger.read(until=record.seq)
        whole = fold([r for r in records if r.seq <= record.seq])
        assert part[-1].seq == record.seq
        assert len(part) <= 8, "the stamp, and the ticks since the newest checkpoint"
        assert fold(part) == whole


def test_a_former_state_is_that_before_the_first_record_since(ledger: DeltaLedger) -> None:
    journal = Journal(ledger, "school")
    assert journal.former(NOON + 7 * MINUTE).cut.relations["t"].version == 6
    assert journal.former(NOON).seq == -1
    assert journal.former(NOON + 99 * MINUTE).cut.relations["t"].version == 17
