"""Leases: renewed while work lasts, lost by silence, and never by what a clock says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from sqlmig.errors import EngineError, UnfinishedPlanError
from sqlmig.execution import events
from sqlmig.execution.journal import Journal
from sqlmig.execution.lease import Holder, Lease, is_gone, runner_holder, seems_gone
from sqlmig.execution.process import at_work, is_alive, this_process
from sqlmig.execution.stopping import give_way, wait_until_stopped
from sqlmig.ledger.records import Kind, Owner, Status
from tests.fakes import MemoryLedger, Pipeline, Revision, World

ELSEWHERE = Owner("far", "another-host", 7, "100", "another-boot", 0.4)
SQL = "CREATE TABLE t (a INT);\nCREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;"


def deployed() -> Pipeline:
    """A pipeline at rest."""
    pipeline = Pipeline(World(), [Revision("r1", SQL), Revision("r2", SQL + " ")])
    pipeline.go("r1")
    return pipeline


def runs_elsewhere(pipeline: Pipeline, owner: Owner = ELSEWHERE) -> None:
    """A process of another machine took the lease on ticking."""
    details = {"owner": owner.to_dict(), "once": False}
    pipeline.journal.append(Kind.RUNNER, Status.STARTED, details=details)


def signs(pipeline: Pipeline, count: int, every: float) -> threading.Thread:
    """That process gives signs of life, from a thread."""

    def give() -> None:
        for _ in range(count):
            time.sleep(every)
            journal = Journal(MemoryLedger(pipeline.world), "school")
            journal.append(Kind.RUNNER, Status.RENEWED, details={"token": ELSEWHERE.token})

    thread = threading.Thread(target=give)
    thread.start()
    return thread


def test_a_holder_that_is_silent_for_its_whole_lease_is_gone() -> None:
    pipeline = deployed()
    runs_elsewhere(pipeline)
    told: list[events.Event] = []
    began = time.monotonic()
    assert is_gone(pipeline.journal, runner_holder, told.append)
    assert time.monotonic() - began >= ELSEWHERE.lease
    assert told == [events.LeaseWatched("process 7 on another-host", 0.4)]


def test_a_holder_that_gives_a_sign_is_not_gone() -> None:
    pipeline = deployed()
    runs_elsewhere(pipeline)
    thread = signs(pipeline, 1, 0.1)
    assert not is_gone(pipeline.journal, runner_holder)
    thread.join()


def test_clocks_only_decide_whether_it_is_worth_watching() -> None:
    now = datetime(2026, 6, 10, 12, tzinfo=timezone.utc)

    def heard(seconds: float) -> bool:
        return seems_gone(Holder(ELSEWHERE, now - timedelta(seconds=seconds), 1), now)

    assert not heard(0.1)
    assert heard(0.5)
    assert heard(-3600), "a clock was set back: it is watched, not waited for"


def test_a_dead_process_of_this_machine_is_gone_at_once() -> None:
    dead = replace(this_process(60), pid=2**22 - 1, started="1")
    pipeline = deployed()
    runs_elsewhere(pipeline, dead)
    began = time.monotonic()
    assert is_gone(pipeline.journal, runner_holder)
    assert time.monotonic() - began < 1


def test_a_process_with_this_ones_number_on_another_boot_is_not_this_one() -> None:
    owner = this_process(60)
    with at_work(owner):
        assert is_alive(owner) is True
        assert is_alive(replace(owner, machine="another-boot")) is None
    assert is_alive(owner) is False


def test_a_lease_is_renewed_while_the_work_lasts_and_no_longer() -> None:
    pipeline = deployed()
    journal = Journal(MemoryLedger(pipeline.world), "school", lease=0.3)
    journal.refresh()
    renewed: list[float] = []

    def renew() -> None:
        renewed.append(time.monotonic())
        journal.append(Kind.RUNNER, Status.RENEWED, details={"token": "mine"})

    with Lease(journal, renew):
        time.sleep(0.75)
    count = len(renewed)
    assert 4 <= count <= 9, "each third of it, unless something else was written"
    time.sleep(0.3)
    assert len(renewed) == count


def test_a_holder_that_was_silent_for_half_its_lease_renews_it_before_it_goes_on() -> None:
    pipeline = deployed()
    journal = Journal(MemoryLedger(pipeline.world), "school", lease=0.2)
    journal.refresh()
    asked: list[int] = []

    def lost() -> None:
        asked.append(1)
        raise UnfinishedPlanError("fenced off")

    lease = Lease(journal, lost)
    lease.check()
    time.sleep(0.15)
    with pytest.raises(UnfinishedPlanError, match="fenced off"):
        lease.check()
    assert asked == [1]


@pytest.mark.parametrize("begins", ["tick", "plan"])
def test_a_silent_runner_of_another_machine_is_replaced(begins: str) -> None:
    pipeline = deployed()
    before = pipeline.contents()
    runs_elsewhere(pipeline)
    time.sleep(ELSEWHERE.lease)
    begin: dict[str, Callable[[], object]] = {
        "tick": pipeline.tick,
        "plan": lambda: pipeline.go("r2"),
    }
    begin[begins]()
    assert pipeline.deployment.runner is None
    taken = [r for r in pipeline.world.records if r.status is Status.TAKEN_OVER]
    assert [r.details["released"] for r in taken] == [ELSEWHERE.token] * 2
    assert taken[-1].cut is not None
    assert sorted(taken[-1].cut["relations"]) == ["t", "v"]
    assert pipeline.contents() == before


def test_a_runner_of_another_machine_that_lives_is_not_replaced() -> None:
    pipeline = deployed()
    runs_elsewhere(pipeline, replace(ELSEWHERE, lease=60.0))
    with pytest.raises(EngineError) as caught:
        give_way(pipeline.journal, pipeline.warehouse)
    assert caught.value.message == "the pipeline is ticking in process 7 on another-host"


def test_a_plan_waits_for_a_runner_that_gives_signs_as_long_as_it_is_patient() -> None:
    pipeline = deployed()
    runs_elsewhere(pipeline)
    thread = signs(pipeline, 8, 0.1)
    with pytest.raises(EngineError) as caught:
        wait_until_stopped(pipeline.journal, pipeline.warehouse, patience=0.5, check=lambda: None)
    thread.join()
    assert caught.value.message == ("process 7 on another-host did not end its tick within 0.5 s")
    assert "`--stop-timeout`" in (caught.value.hint or "")
