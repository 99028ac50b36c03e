"""Carrying a plan out: failures, other processes, hooks, what observers are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlmig.errors import (
    BlockedError,
    DeployedMovedError,
    EngineError,
    LedgerError,
    StepFailed,
    UnfinishedPlanError,
)
from sqlmig.execution import events
from sqlmig.execution.executor import check_idle
from sqlmig.execution.journal import Journal
from sqlmig.execution.process import at_work, describe_owner, is_alive, with_token
from sqlmig.ledger.deployment import State
from sqlmig.ledger.records import Kind, Status
from sqlmig.planning.directives import Execute, Run
from sqlmig.planning.planner import make_plan
from sqlmig.planning.steps import Execute as ExecuteStep
from tests.fakes import Died, MemoryLedger, Pipeline, Revision, World

ONE = "CREATE TABLE t (a INT);\nCREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;\n"
TWO = ONE.replace("(a INT)", "(a INT, b INT)").replace("COUNT(*)", "SUM(a)")
R1, R2 = Revision("r1", ONE), Revision("r2", TWO)


def deployed(*revisions: Revision) -> Pipeline:
    """r1 with a row, ticked."""
    pipeline = Pipeline(World(), revisions or (R1, R2))
    pipeline.go("r1")
    pipeline.insert("t", 7)
    pipeline.tick()
    return pipeline


def died_during(pipeline: Pipeline, target: str, beat: int) -> None:
    """A process that upgrades dies at a beat."""
    plan = pipeline.plan(target)
    pipeline.world.revive(beat)
    with pytest.raises(Died):
        pipeline.executor.run(plan)
    pipeline.world.revive()


# failures


@pytest.mark.parametrize(("broken", "step"), [("t", "alter table `t`"), ("v", "bootstrap `v`")])
def test_a_failing_step_takes_the_pipeline_back(broken: str, step: str) -> None:
    pipeline = deployed()
    before = pipeline.summary()
    pipeline.world.broken[broken] = 1
    with pytest.raises(StepFailed) as caught:
        pipeline.go("r2")
    assert caught.value.message.startswith("step ")
    assert step in caught.value.message
    assert f"failed: {broken} is broken" in caught.value.message
    assert "the pipeline is back at revision r1, its data as before" in caught.value.message
    assert pipeline.summary() == before
    now = pipeline.deployment
    assert (now.state, now.revision) == (State.RUNNING, "r1")
    assert now.error is not None
    assert now.error.endswith(f"failed: {broken} is broken")
    pipeline.go("r2")
    pipeline.check_views()
    assert pipeline.deployment.error is None


def test_a_failing_first_plan_is_stopped_at_base() -> None:
    pipeline = Pipeline(World(broken={"v": 1}), [R1])
    with pytest.raises(StepFailed, match="back at revision base"):
        pipeline.go("r1")
    assert (pipeline.deployment.state, pipeline.deployment.revision) == (State.STOPPED, None)
    assert pipeline.contents() == {}
    pipeline.go("r1")
    assert pipeline.deployment.state is State.RUNNING


def test_a_failing_hook_leaves_the_data_as_it_was() -> None:
    insert = "INSERT INTO t VALUES (1, 2)"
    two = replace(R2, up=(Execute("INSERT INTO t VALUES (3, 4)"), Execute(insert)))
    pipeline = deployed(R1, two)
    before = pipeline.summary()
    pipeline.world.broken[insert] = 1
    with pytest.raises(StepFailed, match="INSERT INTO t VALUES"):
        pipeline.go("r2")
    assert pipeline.summary() == before


def test_any_exception_of_a_function_of_a_hook_takes_the_pipeline_back() -> None:
    def fill(context: object) -> None:
        context.execute("INSERT INTO t VALUES (1, 2)")  # type: ignore[attr-defined]
        raise ZeroDivisionError("one by zero\nsecond line")

    pipeline = deployed(R1, replace(R2, up=(Run("fill", fill),)))
    before = pipeline.summary()
    with pytest.raises(StepFailed, match=r"run fill\(\)\) failed: one by zero; the pipeline"):
        pipeline.go("r2")
    assert pipeline.summary() == before


def test_a_rollback_that_fails_too_has_failed_until_repaired() -> None:
    pipeline = deployed()
    before = pipeline.summary()
    pipeline.world.broken |= {"v": 1, "restore t": 2}
    with pytest.raises(StepFailed) as caught:
        pipeline.go("r2")
    assert "taking it back failed: restore t is broken" in caught.value.message
    assert caught.value.hint == "`sqlmig repair --rollback` tries again"
    now = pipeline.deployment
    assert now.state is State.FAILED
    assert now.error is not None
    assert "v is broken" in now.error
    with pytest.raises(UnfinishedPlanError):
        check_idle(now)
    with pytest.raises(StepFailed, match="taking it back failed: restore t is broken"):
        pipeline.executor.roll_back()
    assert pipeline.deployment.state is State.FAILED
    pipeline.executor.resume()  # it was going back, so it goes on going back
    assert pipeline.summary() == before
    assert pipeline.deployment.error is not None
    assert "v is broken" in pipeline.deployment.error


def test_why_it_failed_is_kept_when_the_process_dies_while_it_takes_back() -> None:
    pipeline = deployed()
    plan = pipeline.plan("r2")
    pipeline.world.broken["v"] = 1

    def die(event: events.Event) -> None:
        if isinstance(event, events.StepFailedEvent):
            pipeline.world.revive(4)  # two records, then in the middle of the restore

    dying = Pipeline(pipeline.world, [R1, R2], die)
    with pytest.raises(Died):
        dying.executor.run(plan)
    pipeline.world.revive()
    pipeline.executor.resume()
    assert pipeline.deployment.state is State.RUNNING
    assert "v is broken" in (pipeline.deployment.error or "")


def test_a_plan_with_blockers_is_refused_before_anything_is_recorded() -> None:
    sink = ONE + "CREATE SINK k FROM t USING json;"
    pipeline = deployed(R1, Revision("r2", sink))
    records = len(pipeline.world.records)
    with pytest.raises(BlockedError, match=r"sink `t\.k`"):
        pipeline.go("r2")
    assert len(pipeline.world.records) == records


# several processes


def test_of_two_that_upgrade_at_once_one_applies_and_the_other_is_told_who_does() -> None:
    pipeline = deployed()
    other = Pipeline(pipeline.world, [R1, R2])
    plan = other.plan("r2")
    refusals: list[str] = []

    def meanwhile(event: events.Event) -> None:
        if isinstance(event, events.StepStarted):
            with pytest.raises(UnfinishedPlanError) as caught:
                other.executor.run(plan)
            refusals.append(caught.value.message)

    Pipeline(pipeline.world, [R1, R2], meanwhile).go("r2")
    assert pipeline.deployment.revision == "r2"
    assert len(refusals) == len(plan.steps)
    who = describe_owner(pipeline.journal.owner)
    assert refusals[0].startswith(f"plan {plan.id} is being run by {who} since 2026-06-10 12:")


def test_a_plan_made_before_another_was_applied_is_refused() -> None:
    pipeline = deployed()
    other = Pipeline(pipeline.world, [R1, R2])
    plan = other.plan("r2")
    pipeline.go("r2")
    with pytest.raises(DeployedMovedError) as caught:
        other.executor.run(plan)
    assert caught.value.message == (
        f"the deployed state has moved since plan {plan.id} was made: revision r2 is deployed now"
    )
    assert caught.value.hint


def test_a_plan_that_died_is_shown_to_the_next_and_refuses_another() -> None:
    pipeline = deployed()
    died_during(pipeline, "r2", 9)
    with pytest.raises(UnfinishedPlanError) as caught:
        pipeline.executor.run(pipeline.plan("r2"))
    assert "is unfinished: process" in caught.value.message
    assert "died at 2026-06-10" in caught.value.message
    assert "sqlmig repair --rollback" in (caught.value.hint or "")


def test_a_run_that_was_taken_over_is_fenced_off() -> None:
    """The process stalls so long that another takes its plan over, and then wakes up."""
    pipeline = deployed()
    stalled: list[events.Event] = []

    def stall(event: events.Event) -> None:
        if isinstance(event, events.StepStarted) and event.step.number == 3:
            owner = pipeline.deployment.unfinished
            assert owner is not None
            assert owner.owner is not None
            _forget(owner.owner.token)
            Pipeline(pipeline.world, [R1, R2]).executor.resume()
            stalled.append(event)

    slow = Pipeline(pipeline.world, [R1, R2], stall)
    with pytest.raises(UnfinishedPlanError) as caught:
        slow.go("r2")
    assert stalled
    assert caught.value.message.startswith("this run was fenced off: another process took the plan")
    assert pipeline.deployment.revision == "r2"
    pipeline.check_views()


def _forget(token: str) -> None:
    from sqlmig.execution import process

    process._at_work.discard(token)


def test_a_plan_under_way_is_not_taken_over() -> None:
    pipeline = deployed()
    refusals: list[str] = []

    def meanwhile(event: events.Event) -> None:
        if isinstance(event, events.StepEffected):
            for attempt in (pipeline.executor.resume, pipeline.executor.roll_back):
                with pytest.raises(UnfinishedPlanError) as caught:
                    attempt()
                refusals.append(caught.value.message)

    Pipeline(pipeline.world, [R1, R2], meanwhile).go("r2")
    assert all("is being run by" in refusal for refusal in refusals)
    assert pipeline.deployment.revision == "r2"


def test_there_is_nothing_to_repair_where_nothing_is_unfinished() -> None:
    with pytest.raises(UnfinishedPlanError, match="no plan is unfinished"):
        deployed().executor.resume()


def test_an_interrupted_run_can_be_finished_by_the_same_process() -> None:
    """In a notebook the process goes on after Ctrl-C: its run must not count as alive."""
    pipeline = deployed()

    def interrupt(event: events.Event) -> None:
        if isinstance(event, events.StepEffected) and event.step.number == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Pipeline(pipeline.world, [R1, R2], interrupt).go("r2")
    pipeline.executor.resume()
    assert pipeline.deployment.revision == "r2"
    pipeline.check_views()


def test_a_ledger_that_can_not_be_written_stops_the_run_and_takes_nothing_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline = deployed()
    append = MemoryLedger.append
    full = {"after": 5}

    def refuse(self: MemoryLedger, record: object, expected: int) -> object:
        full["after"] -= 1
        if full["after"] < 0:
            raise LedgerError("the disk is full")
        return append(self, record, expected)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(MemoryLedger, "append", refuse)
        with pytest.raises(LedgerError, match="the disk is full"):
            pipeline.go("r2")
    assert pipeline.deployment.state is State.BOOTSTRAPPING
    pipeline.executor.resume()
    pipeline.check_views()


def test_an_approved_plan_runs_only_while_it_is_the_one_that_waits() -> None:
    pipeline = deployed()
    plan = pipeline.plan("r2")
    with pytest.raises(DeployedMovedError, match="waits for approval no more"):
        pipeline.executor.run(plan, is_approved=True)
    pipeline.journal.append(
        Kind.PLAN, Status.AWAITING, plan=plan.id, revision="r2", details={"plan": plan.to_dict()}
    )
    pipeline.executor.run(plan, is_approved=True)
    assert pipeline.deployment.revision == "r2"


def test_rows_that_come_between_plan_and_run_are_kept() -> None:
    """The plan puts the table back as it was; by the time it runs, that would lose a row."""
    pipeline = deployed(R1, Revision("r2", ONE.replace("(a INT)", "(a STRING)")))
    request = replace(pipeline.request("r2"), emptied={"t": "its rows can't be cast"})
    pipeline.executor.run(make_plan(request))
    back = pipeline.plan("r1")
    pipeline.insert("t", 8)
    with pytest.raises(StepFailed, match="rows of `t` have moved since the plan was made"):
        pipeline.executor.run(back)
    assert pipeline.rows("t") == [(8,)]


def test_rows_that_come_between_plan_and_run_are_kept_by_altering_where_that_is_possible() -> None:
    pipeline = deployed(R1, Revision("r2", ONE.replace("(a INT)", "(a INT, b INT)")))
    pipeline.go("r2")
    plan = pipeline.plan("r1")
    pipeline.insert("t", 8, 8)
    pipeline.executor.run(plan)
    assert pipeline.rows("t") == [(7,), (8,)]
    pipeline.tick()
    pipeline.check_views()


def test_a_detached_table_that_something_wrote_to_is_not_taken_up() -> None:
    pipeline = deployed(R1, Revision("r2", "CREATE TABLE u (a INT);"))
    pipeline.go("r2")
    pipeline.world.tables["t"].append(pipeline.world.tables["t"][0])
    with pytest.raises(StepFailed, match="detached table in folder `t` was written to"):
        pipeline.go("r1")
    assert pipeline.deployment.revision == "r2"


def test_a_table_that_is_gone_from_the_warehouse_is_named() -> None:
    pipeline = deployed()
    plan = pipeline.plan("r2")
    del pipeline.world.tables["t"]
    with pytest.raises(StepFailed, match="the Delta table of `t` is not in the warehouse"):
        pipeline.executor.run(plan)


# observers and owners


def test_observers_are_told_everything_in_order() -> None:
    pipeline = deployed()
    told: list[str] = []
    watched = Pipeline(pipeline.world, [R1, R2], lambda e: told.append(type(e).__name__))
    plan = watched.go("r2")
    step = ["StepStarted", "StepEffected", "StepFinished"]
    assert told == ["PlanStarted", *(step * len(plan.steps)), "PlanApplied"]
    pipeline.world.broken["v"] = 1
    told.clear()
    three = [R1, R2, Revision("r3", ONE)]
    failing = Pipeline(pipeline.world, three, lambda e: told.append(type(e).__name__))
    with pytest.raises(StepFailed):
        failing.go("r3")
    assert told[-2:] == ["StepFailedEvent", "PlanRolledBack"]


def test_an_owner_is_alive_while_its_run_lasts() -> None:
    owner = Journal(MemoryLedger(World()), "school").owner
    assert is_alive(owner) is False
    with at_work(owner):
        assert is_alive(owner) is True
        assert is_alive(with_token(owner)) is False
    assert is_alive(owner) is False
    assert is_alive(replace(owner, pid=2**22 + 1)) is False
    assert is_alive(replace(owner, started="another process had this id")) is False
    assert is_alive(replace(owner, host="elsewhere")) is None


def test_a_hook_runs_once_though_its_process_dies_after_it() -> None:
    pipeline = deployed(R1, replace(R2, up=(Execute("INSERT INTO t VALUES (1, 2)"),)))
    plan = pipeline.plan("r2")

    def die(event: events.Event) -> None:
        if isinstance(event, events.StepEffected) and isinstance(event.step.action, ExecuteStep):
            pipeline.world.is_dead = True
            raise Died

    with pytest.raises(Died):
        Pipeline(pipeline.world, list(pipeline.revisions.values()), die).executor.run(plan)
    pipeline.world.revive()
    pipeline.executor.resume()
    assert pipeline.rows("t") == [(1, 2), (7, None)]


def test_a_repeated_upgrade_after_a_rollback_repeats_no_effect_of_the_first() -> None:
    """Both attempts have the same plan id: a mark of the first must not pass for the second's."""
    pipeline = deployed(R1, replace(R2, up=(Execute("INSERT INTO t VALUES (1, 2)"),)))
    first = pipeline.plan("r2")
    pipeline.world.broken["v"] = 1
    with pytest.raises(StepFailed):
        pipeline.executor.run(first)
    second = pipeline.plan("r2")
    assert second.id == first.id
    pipeline.executor.run(second)
    assert pipeline.rows("t") == [(1, 2), (7, None)]
    pipeline.check_views()


def test_an_engine_error_keeps_its_place_and_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlmig.errors import Location
    from tests.fakes import FakeEngine

    def fail(*args: object) -> None:
        raise EngineError("no such column", location=Location("p.sql", 3, 4), hint="mend it")

    pipeline = deployed()
    monkeypatch.setattr(FakeEngine, "materialize", fail)
    with pytest.raises(StepFailed) as caught:
        pipeline.go("r2")
    assert str(caught.value.location) == "p.sql:3:4"
    assert caught.value.hint == "mend it"
