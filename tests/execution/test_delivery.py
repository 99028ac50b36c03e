"""Deliveries: what is due, what a failure leaves, and that a repetition sends the same rows."""

from __future__ import annotations

import pytest

from sqlmig.errors import UnfinishedPlanError
from sqlmig.execution import events
from sqlmig.execution.delivery import has_due
from sqlmig.ledger.records import Kind, Status
from sqlmig.ledger.sink_state import PinnedContents
from tests.fakes import Died, Pipeline, Revision, World, parse

SQL = """
CREATE TABLE t (a INT);
CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;
CREATE SINK k FROM t USING json OPTIONS (path '/k');
CREATE SINK k FROM v USING json OPTIONS (path '/v');
""".replace("SINK k FROM v", "SINK kv FROM v")


def deployed(world: World | None = None, observer: events.Observer = events.ignore) -> Pipeline:
    """The pipeline with a row in `t`, not yet ticked."""
    pipeline = Pipeline(world or World(), [Revision("r1", SQL)], observer)
    pipeline.go("r1")
    pipeline.insert("t", 7)
    return pipeline


def test_a_sink_gets_a_snapshot_then_the_changes_then_nothing() -> None:
    seen: list[events.Event] = []
    pipeline = deployed(observer=seen.append)
    assert pipeline.tick().sent == {"t.k": 1, "v.kv": 1}
    pipeline.insert("t", 8)
    assert pipeline.tick().sent == {"t.k": 1, "v.kv": 2}
    records = len(pipeline.world.records)
    assert pipeline.tick().sent == {}
    assert len(pipeline.world.records) == records + 2, "an idle tick begins no batch"
    pipeline.check_sinks()
    state = pipeline.deployment.cut.sinks["t.k"]
    assert (state.batch, state.rows, state.generation) == (3, 2, 1)
    assert state.sent_at is not None
    assert state.sent_at.startswith("2026-06-10T12:00:")
    sent = [(e.connector, e.rows) for e in seen if isinstance(e, events.Sending)]
    assert sent == [("t.k", 1), ("v.kv", 1), ("t.k", 1), ("v.kv", 2)]


def test_what_is_about_to_be_sent_is_in_the_ledger_before() -> None:
    pipeline = deployed()
    pipeline.tick()
    first, second, done = pipeline.world.records[-3:]
    assert [r.kind for r in (first, second, done)] == [Kind.SEND, Kind.SEND, Kind.TICK]
    assert [*first.details["batches"], *second.details["batches"]] == ["t.k/1", "v.kv/1"]
    assert done.details["sent"] == {"t.k": 1, "v.kv": 1}


def test_contents_that_were_restored_and_are_equal_are_not_sent_again() -> None:
    """A content id is what counts, not the Delta version."""
    without = SQL.replace("COUNT(*) AS n", "COUNT(*) + 1 AS n")
    pipeline = Pipeline(World(), [Revision("r1", SQL), Revision("r2", without)])
    pipeline.go("r1")
    pipeline.tick()
    pipeline.go("r2")
    pipeline.go("r1")
    program = parse(pipeline.deployment.program)
    assert not has_due(program, pipeline.deployment)
    assert pipeline.tick().sent == {}


def test_a_failing_sink_is_named_stops_nothing_and_gets_all_of_it_later() -> None:
    pipeline = deployed()
    pipeline.world.broken["t.k"] = 2
    for value in (8, 9):
        result = pipeline.tick()
        assert result.failures == {"t.k": "t.k is broken"}
        assert list(result.sent) == ["v.kv"]
        assert pipeline.deployment.error == "t.k: t.k is broken"
        pipeline.insert("t", value)
    assert has_due(parse(pipeline.deployment.program), pipeline.deployment)
    result = pipeline.tick()
    assert (result.failures, result.sent["t.k"]) == ({}, 3)
    pipeline.check_sinks()
    assert [len(batch.rows) for batch in pipeline.world.sent["/k"].values()] == [1, 2]


def test_a_batch_that_can_not_be_worked_out_is_not_begun_and_the_next_contents_are_sent() -> None:
    """Two rows had one key; when that is mended, nobody has to be sent what was wrong."""
    pipeline = deployed()
    pipeline.tick()
    pipeline.world.broken["rows of t.k"] = 1
    pipeline.insert("t", 8)
    assert pipeline.tick().failures == {"t.k": "rows of t.k is broken"}
    assert pipeline.deployment.sending["t.k/1"].number == 1
    pipeline.insert("t", 9)
    assert pipeline.tick().sent["t.k"] == 2
    assert [batch.is_snapshot for batch in pipeline.world.sent["/k"].values()] == [True, False]
    pipeline.check_sinks()


def test_contents_that_differ_in_no_row_are_settled_without_a_batch() -> None:
    pipeline = deployed()
    pipeline.tick()
    tables = pipeline.world.tables["t"]
    tables.append(tables[-1])
    state = pipeline.deployment.cut.relations["t"].with_rows(len(tables) - 1, 1, 8)
    pipeline.journal.append(Kind.EXEC, Status.DONE, cut={"relations": {"t": state.to_dict()}})
    assert "t.k" not in pipeline.tick().sent
    sink = pipeline.deployment.cut.sinks["t.k"]
    assert (sink.batch, sink.sent and sink.sent.content) == (1, state.content)
    assert not has_due(parse(pipeline.deployment.program), pipeline.deployment)


def test_a_process_that_was_fenced_off_while_it_worked_a_batch_out_sends_nothing() -> None:
    pipeline = deployed()
    other = Pipeline(pipeline.world, [Revision("r1", SQL)])
    engine = pipeline.engine
    changes = engine._at

    def overtaken(contents: PinnedContents) -> tuple[str, ...]:
        other.journal.append(
            Kind.RUNNER, Status.STARTED, details={"owner": other.journal.owner.to_dict()}
        )
        return changes(contents)

    engine._at = overtaken  # type: ignore[method-assign]
    with pytest.raises(UnfinishedPlanError, match="fenced off"):
        pipeline.tick()
    assert pipeline.world.sent.get("/k", {}) == {}


def test_a_tick_that_dies_anywhere_sends_the_same_batch_again_though_rows_came_between() -> None:
    start = deployed()
    start.tick()
    start.insert("t", 8)
    at, repeated = 0, 0
    while True:
        pipeline = Pipeline(start.world.copy(), [Revision("r1", SQL)])
        pipeline.world.revive(at)
        try:
            pipeline.tick()
        except Died:
            pipeline.world.revive()
        else:
            break
        begun = pipeline.deployment.sending.get("t.k/1")
        repeated += begun is not None and begun.number > pipeline.deployment.cut.sinks["t.k"].batch
        pipeline.insert("t", 9)
        assert pipeline.tick().failures == {}
        pipeline.check_sinks()
        at += 1
    assert repeated > 3


def test_contents_that_go_back_after_a_batch_was_begun_are_sent_all_the_same() -> None:
    """A process dies when the batch is out; then the relation is again as it was before."""
    pipeline = deployed()
    pipeline.tick()
    before = pipeline.deployment.cut.relations["t"]
    pipeline.insert("t", 8)
    batches = pipeline.world.sent["/k"]

    def die_behind(event: events.Event) -> None:
        if isinstance(event, events.Sending) and event.connector == "t.k":
            raise Died

    with pytest.raises(Died):
        Pipeline(pipeline.world, [Revision("r1", SQL)], die_behind).tick()
    assert list(batches) == [1, 3]
    pipeline.world.tables["t"].append(pipeline.world.tables["t"][before.version])
    state = {**before.to_dict(), "version": len(pipeline.world.tables["t"]) - 1}
    pipeline.journal.refresh()
    pipeline.journal.append(Kind.EXEC, Status.DONE, cut={"relations": {"t": state}})
    pipeline.tick()
    assert [len(batch.rows) for batch in batches.values()] == [1, 1, 1]
    pipeline.check_sinks()


def test_a_sink_whose_warehouse_is_new_numbers_its_batches_behind_those_that_lie_there() -> None:
    first = deployed()
    first.tick()
    again = Pipeline(World(sent=first.world.sent), [Revision("r1", SQL)])
    again.go("r1")
    assert again.tick().sent == {"v.kv": 1}, "a table without rows is settled without a batch"
    again.insert("t", 7)
    assert again.tick().sent == {"t.k": 1, "v.kv": 2}
    assert list(again.world.sent["/k"]) == [1, 4]
    assert list(again.world.sent["/v"]) == [2, 3, 5]
    again.check_sinks()


def test_sinks_that_take_turns_at_one_place_never_use_a_number_twice() -> None:
    """A sink is removed; another one writes to its path; then a downgrade brings the first back."""
    other = SQL.replace("SINK k FROM t", "SINK other FROM t")
    pipeline = Pipeline(World(), [Revision("r1", SQL), Revision("r2", other)])
    for number, revision in enumerate(["r1", "r2", "r1", "r2"]):
        pipeline.go(revision)
        pipeline.insert("t", number)
        assert pipeline.tick().failures == {}
        pipeline.check_sinks()
    batches = pipeline.world.sent["/k"]
    assert [batch.is_snapshot for batch in batches.values()] == [True, True, False, False]
    assert len({batch.id for batch in batches.values()}) == 2


def test_a_sink_without_a_state_is_said_and_started_by_an_upgrade() -> None:
    pipeline = deployed()
    record = pipeline.world.records[-1]
    pipeline.journal.refresh()
    pipeline.journal.append(
        Kind.STAMP,
        Status.DONE,
        revision="r1",
        program=dict(pipeline.deployment.program),
        cut={"removed_sinks": ["t.k"]},
    )
    assert record.seq >= 0
    failures = pipeline.tick().failures
    assert failures == {"t.k": "it has no state in the ledger"}


def test_a_tick_without_sources_sends_nothing() -> None:
    pipeline = deployed()
    assert pipeline.tick(with_sources=False).sent == {}
    assert pipeline.world.sent == {}
