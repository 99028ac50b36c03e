"""Ticks: what they read and compute, and what they leave alone, fail at, or die in."""

from __future__ import annotations

import pytest

from sqlmig.errors import DeployedMovedError, EngineError, UnfinishedPlanError
from sqlmig.execution import events
from sqlmig.execution.process import at_work
from sqlmig.execution.staleness import has_stale
from sqlmig.ledger.records import Kind, Status
from tests.fakes import Died, Pipeline, Revision, Version, World, parse

SQL = """
CREATE TABLE t (a INT);
CREATE TABLE u (a INT);
CREATE SOURCE s INTO t USING json OPTIONS (path '/t');
CREATE SOURCE s INTO u USING json OPTIONS (path '/u');
CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;
CREATE MATERIALIZED VIEW w AS SELECT n + 1 AS m FROM v;
CREATE MATERIALIZED VIEW x AS SELECT COUNT(*) AS n FROM u;
""".replace("SOURCE s INTO u", "SOURCE su INTO u")
NEXT = SQL.replace("n + 1", "n + 2")


def deployed(observer: events.Observer = events.ignore) -> Pipeline:
    """The pipeline with two rows at each source, not yet read."""
    world = World(inputs={"/t": [1, 2], "/u": [3]})
    pipeline = Pipeline(world, [Revision("r1", SQL), Revision("r2", NEXT)], observer)
    pipeline.go("r1")
    return pipeline


def test_a_tick_reads_sources_and_computes_what_is_stale_in_order() -> None:
    pipeline = deployed()
    pipeline.world.computed.clear()
    result = pipeline.tick()
    assert result.ingested == {"t.s": (2, 0), "u.su": (1, 0)}
    assert list(result.refreshed) == ["v", "w", "x"]
    assert result.failures == {}
    assert pipeline.world.computed == ["v", "w", "x"]
    pipeline.check_views()
    assert pipeline.deployment.cut.connectors["t.s"].rows == 2


def test_what_is_not_stale_is_left_alone() -> None:
    pipeline = deployed()
    pipeline.tick()
    pipeline.world.computed.clear()
    pipeline.world.inputs["/u"].append(4)
    result = pipeline.tick()
    assert result.ingested == {"u.su": (1, 0)}
    assert pipeline.world.computed == ["x"]
    assert pipeline.tick().refreshed == {}


def test_a_tick_without_sources_reads_none() -> None:
    pipeline = deployed()
    assert pipeline.tick(with_sources=False).ingested == {}
    assert pipeline.rows("t") == []


def test_each_row_is_read_once() -> None:
    pipeline = deployed()
    pipeline.tick()
    pipeline.world.inputs["/t"].append(5)
    pipeline.tick()
    pipeline.tick()
    assert pipeline.rows("t") == [(1,), (2,), (5,)]


def test_a_tick_is_recorded_with_what_it_did() -> None:
    pipeline = deployed()
    pipeline.tick()
    began, ended = pipeline.world.records[-2:]
    assert (began.kind, began.status, began.revision) == (Kind.RUNNER, Status.STARTED, "r1")
    assert (ended.kind, ended.status) == (Kind.TICK, Status.DONE)
    token = began.details["owner"]["token"]
    assert ended.details == {
        "ingested": {"t.s": [2, 0], "u.su": [1, 0]},
        "refreshed": {"v": 1, "w": 1, "x": 1},
        "sent": {},
        "late": {},
        "failures": {},
        "hints": {},
        "token": token,
        "released": token,
    }
    assert ended.cut is not None
    assert sorted(ended.cut["relations"]) == ["t", "u", "v", "w", "x"]
    now = pipeline.deployment
    assert (now.ticks, now.runner, now.error) == (1, None, None)
    assert now.refreshed == dict.fromkeys(["t", "t.s", "u", "u.su", "v", "w", "x"], ended.at)
    assert now.last_tick == ended.at


def test_a_source_that_fails_is_named_and_stops_no_other() -> None:
    pipeline = deployed()
    pipeline.world.broken["t.s"] = 1
    result = pipeline.tick()
    assert result.failures == {"t.s": "t.s is broken"}
    assert pipeline.rows("u") == [(3,)]
    assert pipeline.deployment.error == "t.s: t.s is broken"
    assert pipeline.tick().failures == {}
    assert pipeline.rows("t") == [(1,), (2,)]
    assert pipeline.deployment.error is None


def test_a_view_that_fails_stops_what_reads_it_and_no_other() -> None:
    pipeline = deployed()
    pipeline.world.broken["v"] = 1
    pipeline.world.computed.clear()
    result = pipeline.tick()
    assert result.failures == {"v": "v is broken"}
    assert list(result.refreshed) == ["x"]
    assert pipeline.tick().failures == {}
    pipeline.check_views()


def test_a_source_without_a_state_is_named() -> None:
    pipeline = deployed()
    program = parse({"p.sql": SQL + "CREATE SOURCE z INTO t USING json OPTIONS (path '/z');"})
    details = {"ups": [pipeline.revisions["r1"].applied().to_dict()]}
    pipeline.journal.append(
        Kind.STAMP, Status.DONE, revision="r1", program=dict(program.files), details=details
    )
    result = pipeline.tick()
    assert result.failures == {"t.z": "it has no state in the ledger"}
    assert result.hints == {"t.z": "`sqlmig upgrade` starts it"}


def test_observers_are_told_of_rows_views_and_failures() -> None:
    told: list[events.Event] = []
    pipeline = deployed(told.append)
    pipeline.world.broken["x"] = 1
    told.clear()
    pipeline.tick()
    assert [type(event).__name__ for event in told] == [
        *("Ingestion", "Ingestion"),
        *("Refresh", "Refresh", "TickFailure"),
    ]


def test_an_unexpected_error_ends_the_tick_and_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.fakes import FakeEngine

    pipeline = deployed()

    def fail(*args: object) -> None:
        raise ZeroDivisionError("one by zero")

    with monkeypatch.context() as patch:
        patch.setattr(FakeEngine, "materialize", fail)
        with pytest.raises(ZeroDivisionError):
            pipeline.tick()
    now = pipeline.deployment
    assert (now.runner, now.error) == (None, "one by zero")
    pipeline.tick()
    pipeline.check_views()


@pytest.mark.parametrize("beat", range(16))
def test_after_a_tick_that_died_the_next_is_right(beat: int) -> None:
    pipeline = deployed()
    pipeline.world.revive(beat)
    with pytest.raises(Died):
        pipeline.tick()
    pipeline.world.revive()
    pipeline.tick()
    pipeline.check_views()
    assert (pipeline.rows("t"), pipeline.rows("u")) == ([(1,), (2,)], [(3,)])


@pytest.mark.parametrize("beat", range(2, 16))
def test_after_a_tick_that_died_an_upgrade_and_the_way_back_are_right(beat: int) -> None:
    pipeline = deployed()
    pipeline.world.revive(beat)
    with pytest.raises(Died):
        pipeline.tick()
    pipeline.world.revive()
    pipeline.go("r2")
    assert pipeline.world.computed[-1] == "w"
    pipeline.tick()
    pipeline.check_views()
    pipeline.go("r1")
    pipeline.tick()
    pipeline.check_views()
    assert (pipeline.rows("t"), pipeline.rows("u")) == ([(1,), (2,)], [(3,)])


def test_what_a_dead_tick_computed_is_not_computed_again() -> None:
    """The view's commit says from which inputs it was computed."""
    pipeline = deployed()

    def die(event: events.Event) -> None:
        if isinstance(event, events.Refresh) and event.relation == "v":
            pipeline.world.is_dead = True
            raise Died

    dying = Pipeline(pipeline.world, list(pipeline.revisions.values()), die)
    with pytest.raises(Died):
        dying.tick()
    pipeline.world.revive()
    pipeline.world.computed.clear()
    pipeline.tick()
    assert pipeline.world.computed == ["w", "x"]
    pipeline.check_views()


def test_a_tick_is_refused_while_a_plan_or_a_tick_is_under_way() -> None:
    pipeline = deployed()
    refusals: list[str] = []

    def meanwhile(event: events.Event) -> None:
        with pytest.raises((UnfinishedPlanError, EngineError, DeployedMovedError)) as caught:
            pipeline.tick()
        refusals.append(caught.value.message)

    watched = Pipeline(pipeline.world, list(pipeline.revisions.values()), meanwhile)
    watched.tick()
    assert refusals[0].startswith("the pipeline is ticking in process ")
    refusals.clear()
    plan = watched.plan("r2")
    pipeline.observer = events.ignore

    def during_a_plan(event: events.Event) -> None:
        if isinstance(event, events.StepStarted):
            meanwhile(event)

    Pipeline(pipeline.world, list(pipeline.revisions.values()), during_a_plan).executor.run(plan)
    assert all("is being run by" in refusal for refusal in refusals)


def test_a_process_that_read_an_older_program_does_not_tick_it() -> None:
    """`sqlmig run` read r1; r2 was deployed since: r1's queries must not overwrite r2's views."""
    pipeline = deployed()
    program = parse(pipeline.deployment.program)
    Pipeline(pipeline.world, list(pipeline.revisions.values())).go("r2")
    with pytest.raises(DeployedMovedError) as caught:
        pipeline.runner.once(program)
    assert caught.value.message == "revision r2 was deployed since this process began"


def test_a_tick_from_elsewhere_that_a_plan_overtook_records_nothing() -> None:
    """Nobody here can tell whether a process of another machine lives: its writes are fenced."""
    pipeline = deployed()

    def overtake(event: events.Event) -> None:
        if isinstance(event, events.Refresh) and event.relation == "v":
            from sqlmig.execution import process

            runner = pipeline.deployment.runner
            assert runner is not None
            process._at_work.discard(runner.owner.token)
            Pipeline(pipeline.world, list(pipeline.revisions.values())).go("r2")

    slow = Pipeline(pipeline.world, list(pipeline.revisions.values()), overtake)
    with pytest.raises(UnfinishedPlanError, match="the tick was fenced off"):
        slow.tick()
    assert pipeline.deployment.revision == "r2"
    assert pipeline.deployment.ticks == 0
    pipeline.tick()
    pipeline.check_views()


def test_a_dead_tick_does_not_stand_in_the_way() -> None:
    pipeline = deployed()
    with at_work(pipeline.journal.owner):
        pass
    pipeline.world.revive(3)
    with pytest.raises(Died):
        pipeline.tick()
    pipeline.world.revive()
    assert pipeline.deployment.runner is not None
    pipeline.go("r2")
    assert pipeline.deployment.runner is None


def test_a_volatile_view_is_computed_at_each_tick() -> None:
    sql = "CREATE TABLE t (a INT);\nCREATE MATERIALIZED VIEW v AS SELECT RAND() AS n FROM t;"
    pipeline = Pipeline(World(), [Revision("r1", sql)])
    pipeline.go("r1")
    pipeline.world.computed.clear()
    pipeline.tick()
    pipeline.tick()
    assert pipeline.world.computed == ["v", "v"]


def test_a_view_that_something_else_wrote_to_is_computed_again() -> None:
    sql = "CREATE MATERIALIZED VIEW one AS SELECT 1 AS n;"
    pipeline = Pipeline(World(), [Revision("r1", sql)])
    pipeline.go("r1")
    pipeline.world.tables["one"].append(Version((), ("scribble",)))
    pipeline.tick()
    pipeline.check_views()


def test_what_an_overtaken_process_computed_by_an_older_query_is_computed_again() -> None:
    """It had begun to compute `w` when r2 was applied, and commits only then."""
    pipeline = deployed()
    pipeline.tick()
    old = pipeline.world.newest("w")
    pipeline.go("r2")
    pipeline.world.tables["w"].append(old)
    pipeline.tick()
    pipeline.check_views()


def test_what_is_stale_is_known_without_looking_at_tables() -> None:
    pipeline = deployed()
    program = parse(pipeline.deployment.program)
    assert not has_stale(program, pipeline.deployment.cut)
    pipeline.insert("t", 9)
    assert has_stale(program, pipeline.deployment.cut)
    pipeline.tick()
    assert not has_stale(program, pipeline.deployment.cut)


def test_the_rows_of_a_tick_that_was_killed_are_counted_by_the_next() -> None:
    at = 0
    while True:
        pipeline = deployed()
        pipeline.world.revive(at)
        try:
            pipeline.tick()
        except Died:
            pass
        else:
            break
        finally:
            pipeline.world.revive()
        other = Pipeline(pipeline.world, list(pipeline.revisions.values()))
        other.tick()
        connectors = other.deployment.cut.connectors
        assert {n: c.rows for n, c in connectors.items()} == {"t.s": 2, "u.su": 1}, f"beat {at}"
        other.check_views()
        at += 1
    assert at > 10
