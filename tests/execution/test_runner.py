"""The runner: how it ticks, makes way for plans and stops, backs off, and is replaced."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from sqlmig.errors import EngineError, LedgerError, StepFailed, UnfinishedPlanError
from sqlmig.execution import events, process
from sqlmig.execution.backoff import LONGEST, Backoff
from sqlmig.execution.runner import PipelineRunner, RunnerSettings
from sqlmig.ledger.deployment import State
from sqlmig.ledger.records import Kind, Record, Status
from tests.fakes import Died, MemoryLedger, Pipeline, Revision, World, parse

SQL = """
CREATE TABLE t (a INT);
CREATE TABLE u (a INT);
CREATE SOURCE s INTO t USING json OPTIONS (path '/t');
CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;
CREATE MATERIALIZED VIEW w AS SELECT n + 1 AS m FROM v;
CREATE MATERIALIZED VIEW x AS SELECT COUNT(*) AS n FROM u;
"""
NEXT = SQL.replace("n + 1", "n + 2")
LAST = SQL.replace("n + 1", "n + 3")
REVISIONS = [Revision("r1", SQL), Revision("r2", NEXT), Revision("r3", LAST)]
AT_ONCE = RunnerSettings(interval=0, workers=1)


def deployed() -> Pipeline:
    """The pipeline with two rows at its source, not yet read."""
    pipeline = Pipeline(World(inputs={"/t": [1, 2]}), REVISIONS)
    pipeline.go("r1")
    return pipeline


def run(
    pipeline: Pipeline,
    *turns: Callable[[], object],
    settings: RunnerSettings = AT_ONCE,
    observer: events.Observer = events.ignore,
) -> int:
    """Run in another process; before each round the next of `turns` is called; ends after them."""
    other = Pipeline(pipeline.world, REVISIONS, observer)
    left = list(turns)

    def is_over() -> bool:
        if not left:
            return True
        left.pop(0)()
        return False

    runner = PipelineRunner(
        other.engine, other.warehouse, other.journal, parse, observer, lambda seconds: None
    )
    return runner.run(settings, is_over)


def nothing() -> None:
    """A turn in which nobody does anything."""


def kinds(pipeline: Pipeline, after: int = 0) -> list[str]:
    """The records from the one with this seq on, in words."""
    return [f"{r.kind.value} {r.status.value}" for r in pipeline.world.records if r.seq > after]


def test_it_ticks_again_and_again_and_lets_its_lease_go() -> None:
    pipeline = deployed()
    seq = pipeline.deployment.seq
    ticks = run(pipeline, nothing, lambda: pipeline.world.inputs["/t"].append(3), nothing)
    assert ticks == 3
    pipeline.check_views()
    assert pipeline.rows("t") == [(1,), (2,), (3,)]
    assert pipeline.deployment.runner is None
    assert kinds(pipeline, seq) == ["runner started", "tick done", "tick done", "runner stopped"]


def test_of_an_idle_tick_nothing_is_recorded() -> None:
    pipeline = deployed()
    pipeline.tick()
    seq = pipeline.deployment.seq
    pipeline.world.computed.clear()
    assert run(pipeline, *[nothing] * 20) == 20
    assert kinds(pipeline, seq) == ["runner started", "runner stopped"]
    assert pipeline.world.computed == []
    assert pipeline.world.records[-1].details["ticks"] == 20


def test_it_makes_way_for_a_plan_and_goes_on_with_the_new_program() -> None:
    pipeline = deployed()
    told: list[events.Event] = []
    versions: list[int] = []

    def upgrade() -> None:
        plan = pipeline.plan("r2")
        begin(pipeline, plan)

    def answered() -> None:
        runner = pipeline.deployment.runner
        assert runner is not None
        assert runner.is_paused
        versions.append(pipeline.world.written("t").version)
        pipeline.world.inputs["/t"].append(3)

    def go_on_to_the_bootstrap() -> None:
        with pytest.raises(Died):
            Pipeline(pipeline.world, REVISIONS, die_after_checkpoint).executor.resume()
        plan = pipeline.deployment.unfinished
        assert plan is not None
        assert plan.checkpoint is not None

    def finish() -> None:
        runner = pipeline.deployment.runner
        assert runner is not None
        assert runner.is_paused
        assert pipeline.world.written("t").version == versions[0], "nothing was read meanwhile"
        pipeline.executor.resume()

    run(
        pipeline,
        *(nothing, upgrade, answered, go_on_to_the_bootstrap, nothing, finish, nothing),
        observer=told.append,
    )

    assert pipeline.deployment.revision == "r2"
    pipeline.check_views()
    assert pipeline.rows("t") == [(1,), (2,), (3,)]
    turns = [e for e in told if isinstance(e, (events.RunnerTicks, events.RunnerPauses))]
    plan = next(r.plan for r in reversed(pipeline.world.records) if r.plan)
    assert turns == [
        events.RunnerTicks("r1"),
        events.RunnerPauses(plan),
        events.RunnerTicks("r2"),
    ]


def die_after_checkpoint(event: events.Event) -> None:
    """An observer that kills its process when the step after the checkpoint begins."""
    if isinstance(event, events.StepStarted) and event.step.number == 3:
        raise Died


def begin(pipeline: Pipeline, plan: object) -> None:
    """Start a plan as a process does that is then slow, and counts as dead to this one."""
    died: list[int] = []

    def die(event: events.Event) -> None:
        died.append(1)
        raise Died

    slow = Pipeline(pipeline.world, REVISIONS, die)
    with pytest.raises(Died):
        slow.executor.run(plan)  # type: ignore[arg-type]
    assert died


def test_a_plan_waits_until_the_tick_under_way_is_over() -> None:
    """The runner's tick ends although the plan has begun; what it read is in the checkpoint."""
    pipeline = deployed()
    began: list[bool] = []

    def meanwhile(event: events.Event) -> None:
        if isinstance(event, events.Refresh) and event.relation == "v" and not began:
            began.append(True)
            begin(pipeline, pipeline.plan("r2"))

    run(pipeline, nothing, nothing, nothing, observer=meanwhile)
    assert pipeline.deployment.unfinished is not None
    pipeline.executor.resume()
    assert pipeline.deployment.revision == "r2"
    assert pipeline.rows("t") == [(1,), (2,)]
    pipeline.check_views()
    assert pipeline.deployment.cut.connectors["t.s"].rows == 2


def test_a_runner_that_does_not_end_its_tick_fails_the_plan() -> None:
    pipeline = deployed()
    caught: list[str] = []

    def upgrade() -> None:
        impatient = Pipeline(pipeline.world, REVISIONS)
        impatient.executor._patience = 0.0
        with pytest.raises(StepFailed) as failed:
            impatient.go("r2")
        caught.append(failed.value.message)

    run(pipeline, upgrade, nothing)
    assert "did not end its tick within 0 s; the pipeline is back at revision r1" in caught[0]
    assert pipeline.deployment.revision == "r1"
    pipeline.check_views()


def test_a_stop_pauses_it_and_resume_lets_it_go_on() -> None:
    pipeline = deployed()
    states: list[State] = []

    def ask(what: str) -> Callable[[], None]:
        def do() -> None:
            states.append(pipeline.deployment.state)
            details = {"ask": what, "at": None}
            pipeline.journal.append(Kind.REQUEST, Status.ASKED, details=details)

        return do

    def look() -> None:
        states.append(pipeline.deployment.state)
        pipeline.world.inputs["/t"].append(3)
        with pytest.raises(EngineError, match="the pipeline is ticking in process"):
            pipeline.tick()

    run(pipeline, nothing, ask("stop"), look, nothing, ask("resume"), nothing)
    assert states == [State.RUNNING, State.STOPPED, State.STOPPED]
    assert pipeline.deployment.state is State.RUNNING
    assert pipeline.rows("t") == [(1,), (2,), (3,)]


def test_a_stop_in_the_future_comes_about_then() -> None:
    pipeline = deployed()
    at = pipeline.deployment.since
    assert at is not None

    def ask() -> None:
        later = pipeline.journal.clock() + timedelta(seconds=3)
        details = {"ask": "stop", "at": later.isoformat()}
        pipeline.journal.append(Kind.REQUEST, Status.ASKED, details=details)
        assert not pipeline.deployment.is_stopped

    run(pipeline, ask, *[nothing] * 8)
    assert pipeline.deployment.is_stopped


@pytest.mark.parametrize("what", ["plan", "stop"])
def test_it_pauses_on_when_the_next_plan_or_stop_comes_before_it_goes_on(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given: the next one gets in between the runner's look at the ledger and its record
    pipeline = deployed()
    append = MemoryLedger.append
    faster: list[str] = []

    def in_between(ledger: MemoryLedger, records: Sequence[Record], expected: int) -> object:
        first = records[0]
        if (first.kind, first.status) == (Kind.RUNNER, Status.RESUMED) and not faster:
            faster.append(what)
            if what == "plan":
                begin(pipeline, pipeline.plan("r3"))
            else:
                ask("stop")
        return append(ledger, records, expected)

    monkeypatch.setattr(MemoryLedger, "append", in_between)

    def ask(which: str) -> None:
        details = {"ask": which, "at": None}
        pipeline.journal.append(Kind.REQUEST, Status.ASKED, details=details)

    def still_pauses() -> None:
        runner = pipeline.deployment.runner
        assert faster == [what]
        assert runner is not None
        assert runner.is_paused

    def let_it() -> None:
        pipeline.world.inputs["/t"].append(3)
        if what == "plan":
            pipeline.executor.resume()
        else:
            ask("resume")

    # when
    run(
        pipeline,
        *(nothing, lambda: begin(pipeline, pipeline.plan("r2")), nothing),
        *(lambda: pipeline.executor.resume(), nothing, still_pauses, let_it, nothing, nothing),
    )

    # then
    assert pipeline.deployment.revision == ("r3" if what == "plan" else "r2")
    assert kinds(pipeline)[-2:] == ["tick done", "runner stopped"]
    pipeline.check_views()


def test_a_single_tick_of_a_stopped_pipeline_is_refused() -> None:
    pipeline = deployed()
    pipeline.journal.append(Kind.REQUEST, Status.ASKED, details={"ask": "stop", "at": None})
    with pytest.raises(EngineError) as caught:
        pipeline.tick()
    assert caught.value.message.startswith("the pipeline is stopped since 20")
    assert caught.value.hint == "`sqlmig resume` lets it tick again"


def test_only_one_runs_at_a_time() -> None:
    pipeline = deployed()

    def another() -> None:
        with pytest.raises(EngineError, match="the pipeline is ticking in process"):
            run(pipeline, nothing)

    assert run(pipeline, another, nothing) == 2


def test_what_fails_is_named_tried_again_later_and_stops_no_other() -> None:
    pipeline = deployed()
    pipeline.world.broken["t.s"] = 2
    pipeline.world.broken["x"] = 1
    pipeline.insert("u", 7)
    told: list[events.Event] = []
    seq = pipeline.deployment.seq
    run(pipeline, *[nothing] * 3, settings=RunnerSettings(0.1, 1), observer=told.append)
    failed = [e.name for e in told if isinstance(e, events.TickFailure)]
    assert failed[:2] == ["t.s", "x"]
    assert pipeline.deployment.failures["t.s"] == "t.s is broken"
    assert kinds(pipeline, seq).count("tick done") <= 3
    pipeline.world.broken.clear()
    pipeline.tick()
    assert pipeline.deployment.failures == {}
    pipeline.check_views()


def test_back_off_doubles_up_to_a_limit_and_forgets_what_succeeds() -> None:
    now = [0.0]
    backoff = Backoff(5, lambda: now[0])
    pauses = []
    for _ in range(9):
        backoff.note({"a": "broken"}, frozenset())
        begun = now[0]
        while backoff.waiting:
            now[0] += 1
        pauses.append(now[0] - begun)
    assert pauses == [5, 10, 20, 40, 80, 160, LONGEST, LONGEST, LONGEST]
    backoff.note({"b": "broken"}, {"a"})
    assert backoff.waiting == {"b"}
    backoff.note({}, set())
    assert backoff.waiting == set()


def test_a_runner_that_was_replaced_writes_nothing_more() -> None:
    """It was stopped (SIGSTOP) for longer than its lease in the middle of a tick."""
    pipeline = deployed()
    versions: dict[str, int] = {}

    def stopped_for_long(event: events.Event) -> None:
        if isinstance(event, events.Ingestion):
            runner = pipeline.deployment.runner
            assert runner is not None
            process._at_work.discard(runner.owner.token)
            pipeline.go("r2")
            versions.update(
                {n: pipeline.world.written(n).version for n in pipeline.deployment.cut.relations}
            )

    with pytest.raises(UnfinishedPlanError, match="fenced off: another process works"):
        run(pipeline, nothing, nothing, observer=stopped_for_long)
    assert versions == {
        n: pipeline.world.written(n).version for n in pipeline.deployment.cut.relations
    }
    assert pipeline.deployment.revision == "r2"
    pipeline.tick()
    pipeline.check_views()
    assert pipeline.rows("t") == [(1,), (2,)]


def test_a_dead_runner_is_replaced_and_its_tables_are_fenced_off() -> None:
    pipeline = deployed()

    def die() -> None:
        pipeline.world.is_dead = True
        raise Died

    with pytest.raises(Died):
        run(pipeline, nothing, die)
    pipeline.world.revive()
    before = pipeline.contents()
    pipeline.world.computed.clear()
    assert run(pipeline, nothing) == 1
    assert pipeline.contents() == before
    assert pipeline.world.computed == [], "contents have new versions, and are the same"
    assert all((v[-1].mark or v[-2].mark) for v in pipeline.world.tables.values())
    fences = [v[-1].mark.run for v in pipeline.world.tables.values() if v[-1].mark]
    assert all(run.startswith("fence-") for run in fences)


def test_after_many_ticks_the_ledger_has_a_checkpoint() -> None:
    pipeline = deployed()
    turns = [lambda n=n: pipeline.world.inputs["/t"].append(n) for n in range(101)]
    run(pipeline, *turns)
    assert kinds(pipeline).count("checkpoint done") == 1
    assert pipeline.deployment.ticks == 101
    assert len(pipeline.deployment.materializations) <= 6


def test_two_ticks_never_share_a_name_even_if_the_first_could_record_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By its name a commit is known as made: a second tick must not take the first one's for it."""
    pipeline = deployed()
    append = MemoryLedger.append
    refused: list[Kind] = []

    def full_disk(ledger: MemoryLedger, records: Sequence[Record], expected: int) -> object:
        if records[0].kind is Kind.TICK and not refused:
            refused.append(records[0].kind)
            raise LedgerError("no space left on device")
        return append(ledger, records, expected)

    monkeypatch.setattr(MemoryLedger, "append", full_disk)

    def more_records() -> None:
        pipeline.world.inputs["/t"].append(3)
        time.sleep(0.15)  # as long as a tick that failed is not tried again

    run(pipeline, nothing, more_records, nothing)
    assert refused == [Kind.TICK]
    pipeline.check_views()
    runs = [v.mark.run for v in pipeline.world.tables["v"] if v.mark]
    assert len(runs) == len(set(runs)) >= 2


def test_a_runner_whose_ledger_can_not_be_written_for_a_while_goes_on_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given: its answer to a plan finds the disk full, once
    pipeline = deployed()
    append = MemoryLedger.append
    told: list[events.Event] = []
    refused: list[Status] = []

    def full_disk(ledger: MemoryLedger, records: Sequence[Record], expected: int) -> object:
        if records[0].status is Status.PAUSED and not refused:
            refused.append(records[0].status)
            raise LedgerError("no space is left on the disk")
        return append(ledger, records, expected)

    monkeypatch.setattr(MemoryLedger, "append", full_disk)

    def has_paused() -> bool:
        runner = pipeline.deployment.runner
        return runner is not None and runner.is_paused

    def answered_not_yet() -> None:
        assert not has_paused()
        time.sleep(0.15)  # as long as what failed is not tried again

    def finish() -> None:
        assert has_paused()
        pipeline.executor.resume()

    # when
    run(
        pipeline,
        *(nothing, lambda: begin(pipeline, pipeline.plan("r2"))),
        *(answered_not_yet, nothing, finish, nothing, nothing),
        observer=told.append,
    )

    # then
    assert refused == [Status.PAUSED]
    assert events.TickFailure("ledger", "no space is left on the disk") in told
    assert pipeline.deployment.revision == "r2"
    pipeline.check_views()
