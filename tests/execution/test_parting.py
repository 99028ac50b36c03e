"""`upgrade --at`: rows before a time pass under the old query, those from then on under the new."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlmig.commands.waiting import wait_for_time
from sqlmig.errors import EngineError, StepFailed
from sqlmig.execution import events
from sqlmig.execution.values import Mark
from sqlmig.ledger.positions import Versions
from sqlmig.planning.directives import Backfill, Directive, InPlace, Rebuild
from sqlmig.planning.explain import describe_action
from sqlmig.stored import Commit
from sqlmig.table_log import came_before, positions, restored_by
from tests.fakes import Died, Pipeline, Revision, World, original

T = "CREATE TABLE t (a INT);"
COUNT = "CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM s;"
SECOND = timedelta(seconds=1)


def stream(number: int, name: str = "s", of: str = "t") -> str:
    """A streaming table; the number tells its query from others."""
    return f"CREATE STREAMING TABLE {name} AS SELECT *, {number} AS v FROM STREAM {of};"


def chain(number: int, second: int = 9) -> str:
    """A streaming table over another, and a view that counts."""
    return T + stream(number) + stream(second, "s2", "s") + COUNT


def deployed(*programs: str | tuple[str, Sequence[Directive]]) -> Pipeline:
    """A pipeline at the first of these programs."""
    pairs = [p if isinstance(p, tuple) else (p, ()) for p in programs]
    revisions = [Revision(f"r{n}", sql, tuple(up)) for n, (sql, up) in enumerate(pairs, 1)]
    pipeline = Pipeline(World(), revisions)
    pipeline.go("r1")
    return pipeline


def insert(pipeline: Pipeline, *values: int) -> datetime:
    """Rows, each by a commit of its own; the time of the last one."""
    for value in values:
        pipeline.insert("t", value)
    at = pipeline.world.newest("t").at
    assert at is not None
    return at


def rows(pipeline: Pipeline, name: str = "s") -> list[tuple[int, int]]:
    """What a streaming table holds: `a` of the input row, and the number of the query."""
    found = []
    for text in pipeline.contents()[name][1]:
        row = json.loads(text)
        number = int(row["query"].partition(" AS v")[0].rpartition(" ")[2])
        found.append((original(row)["a"], number))
    return sorted(found)


def go(pipeline: Pipeline, target: str, at: datetime) -> None:
    """Plan and run, parted by a time."""
    pipeline.executor.run(pipeline.plan(target, at=at))


def test_rows_that_have_passed_since_pass_again_under_the_new_query() -> None:
    pipeline = deployed(chain(1), chain(2))
    insert(pipeline, 1)
    pipeline.tick()
    insert(pipeline, 2)
    at = insert(pipeline, 3)
    pipeline.tick()
    insert(pipeline, 4)
    pipeline.tick()
    insert(pipeline, 5)
    plan = pipeline.plan("r2", at=at)
    words = [describe_action(step.action) for step in plan.steps[2:-1]]
    assert words == [
        f"take in rows for `s` until {at:%Y-%m-%d %H:%M:%S} UTC",
        f"take in rows for `s2` until {at:%Y-%m-%d %H:%M:%S} UTC",
        "continue `s` in place",
        "bootstrap `n`",
        "continue `s2` in place",
    ]
    assert plan.steps[2].cause == (
        "what came before then passes under the query deployed so far; what has passed since is "
        "taken out, and passes again"
    )
    pipeline.executor.run(plan)
    # 2 and 3 came between two ticks: the time parts them all the same
    assert rows(pipeline) == [(1, 1), (2, 1), (3, 2), (4, 2), (5, 2)]
    assert rows(pipeline, "s2") == [(n, 9) for n in range(1, 6)]
    pipeline.check_views()
    pipeline.insert("t", 6)
    pipeline.tick()
    assert rows(pipeline)[-1] == (6, 2)
    assert len(rows(pipeline, "s2")) == 6


def test_a_time_after_all_that_passed_takes_nothing_out() -> None:
    pipeline = deployed(chain(1), chain(2))
    insert(pipeline, 1)
    pipeline.tick()
    at = insert(pipeline, 2)
    version = pipeline.deployment.cut.relations["s"].version
    go(pipeline, "r2", at)
    assert rows(pipeline) == [(1, 1), (2, 2)]
    restored = [v.restored for v in pipeline.world.tables["s"][version + 1 :]]
    assert set(restored) == {None}
    # and one after everything is the checkpoint
    later = deployed(chain(1), chain(2))
    at = insert(later, 1, 2) + SECOND
    go(later, "r2", at)
    assert rows(later) == [(1, 1), (2, 1)]


def test_both_of_a_chain_may_change_at_one_time() -> None:
    pipeline = deployed(chain(1, 3), chain(2, 4))
    insert(pipeline, 1)
    pipeline.tick()
    at = insert(pipeline, 2)
    pipeline.tick()
    go(pipeline, "r2", at)
    assert rows(pipeline) == [(1, 1), (2, 2)]
    assert rows(pipeline, "s2") == [(1, 3), (2, 4)]


def test_going_back_after_it_is_in_place_and_a_failure_leaves_everything_as_it_was() -> None:
    pipeline = deployed(chain(1), chain(2))
    insert(pipeline, 1)
    at = insert(pipeline, 2)
    pipeline.tick()
    before = pipeline.contents()
    pipeline.world.broken["n"] = 1
    with pytest.raises(StepFailed):
        go(pipeline, "r2", at)
    assert pipeline.contents() == before
    pipeline.insert("t", 3)
    pipeline.tick()
    assert rows(pipeline) == [(1, 1), (2, 1), (3, 1)]
    go(pipeline, "r2", at)
    assert rows(pipeline) == [(1, 1), (2, 2), (3, 2)]
    pipeline.go("r1")
    assert rows(pipeline) == [(1, 1), (2, 2), (3, 2)], "what a newer query wrote stays"


@settings(max_examples=40)
@given(st.data())
def test_with_kills_wherever_the_time_lies_it_parts_the_rows(data: st.DataObject) -> None:
    revisions = [Revision("r1", chain(1, 3)), Revision("r2", chain(2, 4))]
    world = World()
    pipeline = Pipeline(world, revisions)
    pipeline.go("r1")
    times: dict[int, datetime] = {}
    for value in range(data.draw(st.integers(1, 6))):
        times[value] = insert(pipeline, value)
        if data.draw(st.booleans()):
            pipeline.tick()
    at = data.draw(st.sampled_from([*times.values(), max(times.values()) + SECOND]))
    plan = pipeline.plan("r2", at=at)
    for value in range(10, 10 + data.draw(st.integers(0, 2))):  # after the plan was made
        times[value] = insert(pipeline, value)
    world.revive(data.draw(st.one_of(st.none(), st.integers(0, 45))))
    try:
        pipeline.executor.run(plan)
    except Died:
        world.revive()
        pipeline = Pipeline(world, revisions)
        if pipeline.deployment.unfinished is not None:
            pipeline.executor.resume()
        elif pipeline.deployment.revision == "r1":  # it died before it was begun
            go(pipeline, "r2", at)
    world.revive()
    pipeline.tick()
    expected = {value: 1 if time < at else 2 for value, time in times.items()}
    assert Counter(rows(pipeline)) == Counter(expected.items())
    second = {value: number + 2 for value, number in expected.items()}
    assert Counter(rows(pipeline, "s2")) == Counter(second.items())
    pipeline.check_views()


TOTALS = "CREATE MATERIALIZED VIEW v AS SELECT a, sum(a * {}) AS n FROM {} GROUP BY a;"
AT = datetime(2026, 6, 10, 14, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("before", "after", "up", "message", "hint"),
    [
        (
            T + COUNT.replace("FROM s", "FROM t"),
            T,
            (),
            "no streaming table goes on in place, so there are no rows for 2026-06-10 14:00:00 UTC "
            "to part",
            "take `--at` out; op.backfill makes the rows from a time on anew",
        ),
        (
            T + stream(1),
            T + stream(2),
            (Rebuild("s"),),
            "`s` is rebuilt (asked by up() of r2), so no time parts its rows",
            "take `--at` out, or let it go on in place",
        ),
        (
            T + stream(1),
            T + stream(2),
            (Backfill("s", "1", "a"),),
            "`s` is backfilled (asked by up() of r2), so no time parts its rows",
            "take `--at` out, or let it go on in place",
        ),
        (
            T + stream(1) + TOTALS.format(1, "t"),
            T + stream(2) + TOTALS.format(2, "t"),
            (InPlace("v"),),
            "`v` goes on in place, and can't give back what it has counted since",
            'take `--at` out: then the checkpoint parts them; or write op.rebuild("v")',
        ),
    ],
)
def test_what_no_time_can_part_stands_in_the_plans_way(
    before: str, after: str, up: Sequence[Directive], message: str, hint: str
) -> None:
    pipeline = deployed(before, (after, up))
    (blocker,) = pipeline.plan("r2", at=AT).blockers
    assert (blocker.message, blocker.hint) == (message, hint)


def test_a_time_before_what_is_deployed_and_a_query_that_failed_stand_in_its_way() -> None:
    pipeline = deployed(T + stream(1), T + stream(2))
    early = datetime(2026, 6, 10, 12, tzinfo=timezone.utc)
    (blocker,) = pipeline.plan("r2", at=early).blockers
    assert blocker.message.startswith("2026-06-10 12:00:00 UTC lies before 2026-06-10 12:00:")
    assert blocker.message.endswith(
        "when revision r1 was deployed: other queries were in force then"
    )
    insert(pipeline, 1)
    pipeline.world.broken["s"] = 1
    pipeline.tick()
    (blocker,) = pipeline.plan("r2", at=AT).blockers
    assert blocker.message == (
        "`s` failed in the last tick, so what came before 2026-06-10 14:00:00 UTC can't pass under "
        "the query deployed so far"
    )


def test_a_time_to_come_is_waited_for_and_any_other_plan_begins_at_once() -> None:
    pipeline = deployed(T + stream(1), T + stream(2))
    now = [AT - timedelta(seconds=2.5)]
    naps: list[float] = []
    told: list[events.Event] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        now[0] += timedelta(seconds=seconds)

    plan = pipeline.plan("r2", at=AT)
    wait_for_time(plan, lambda: now[0], told.append, sleep)
    assert naps == [1.0, 1.0, 0.5]
    assert told == [events.TimeAwaited(AT)]
    wait_for_time(plan, lambda: now[0], told.append, sleep)
    wait_for_time(pipeline.plan("r2"), lambda: AT - SECOND, told.append, sleep)
    assert (len(naps), len(told)) == (3, 1)


def commit(version: int, second: int, **more: object) -> Commit:
    """A commit of a table's log."""
    made = Commit(version, "WRITE", {}, {}, None, {}, AT + second * SECOND)
    return replace(made, **more)  # type: ignore[arg-type]


def test_the_log_tells_what_came_before_a_time_whatever_order_clocks_give() -> None:
    log = [commit(3, 9), commit(2, 4), commit(1, 5), commit(0, 0)]
    assert came_before("t", log, 3, AT) == -1
    assert came_before("t", log, 3, AT + 5 * SECOND) == 0, "2 was committed behind 1"
    assert came_before("t", log, 3, AT + 6 * SECOND) == 2
    assert came_before("t", log, 2, AT + 20 * SECOND) == 2
    with pytest.raises(EngineError) as lost:
        came_before("t", log[:2], 3, AT)
    assert lost.value.message == "the log of `t` does not reach back to 2026-06-10 14:00:00 UTC"
    assert lost.value.hint is not None


def test_the_log_tells_positions_and_what_a_run_put_back() -> None:
    mark = Mark("p", "run", 3, "r1", passed={"t": "0-2"})
    back = commit(
        5, 0, operation="RESTORE", parameters={"version": 2}, mark=replace(mark, passed=None)
    )
    log = [commit(6, 1, mark=mark), back, commit(4, 0, mark=Mark("p", "other", 1, "r1"))]
    assert positions(log) == [(6, {"t": "0-2"})]
    assert restored_by(log, "run") == (5, 2)
    assert restored_by(log, "other") is None


@given(st.sets(st.integers(0, 20)), st.integers(0, 20), st.integers(0, 20))
def test_a_position_meets_a_range_that_has_a_version_of_it(
    versions: set[int], first: int, last: int
) -> None:
    position = Versions().united(versions)
    assert position.meets(first, last) == any(first <= v <= last for v in versions)
    assert position.meets(first, None) == any(first <= v for v in versions)
