"""Streaming tables with windows: each window is emitted once, from all rows that came in time.

Times are microseconds since 1970, and windows are ten of them long, so that numbers stay small.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlmig.execution import events
from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.planning.directives import Backfill, Directive, InPlace, Rebuild, RenameTable
from sqlmig.planning.explain import describe_action
from sqlmig.planning.steps import Plan
from tests.execution.deaths import maybe_dying, whole
from tests.fakes import Pipeline, Revision, World

T = "CREATE TABLE t (a TIMESTAMP);"
LENGTH = 10


def windows(
    version: int = 1, *, delay: int = 0, length: int = LENGTH, of: str = "t", more: str = ""
) -> str:
    """A streaming table that gathers rows; `version` tells its queries apart."""
    return (
        f"CREATE STREAMING TABLE s AS SELECT window.start AS w, {version} AS v{more} "
        f"FROM STREAM {of} WATERMARK a DELAY OF INTERVAL {delay} MICROSECONDS "
        f"GROUP BY window(a, '{length} microseconds');"
    )


def history(*programs: str | tuple[str, Sequence[Directive]]) -> list[Revision]:
    """Revisions r1, r2, ..., each a program and what its `up` asks for."""
    pairs = [p if isinstance(p, tuple) else (p, ()) for p in programs]
    return [Revision(f"r{n}", sql, tuple(up)) for n, (sql, up) in enumerate(pairs, 1)]


def deployed(*programs: str | tuple[str, Sequence[Directive]]) -> Pipeline:
    """A pipeline at the first of these programs."""
    pipeline = Pipeline(World(), history(*programs))
    pipeline.go("r1")
    return pipeline


def emitted(pipeline: Pipeline) -> list[tuple[int, int, list[int]]]:
    """What the table holds: (version of the query, start, times of the rows) of each window."""
    found = []
    for text in pipeline.contents()["s"][1]:
        row = json.loads(text)
        version = row["query"].partition(" AS v")[0].rpartition(" ")[2]
        found.append((int(version), row["row"]["a"], row["rows"]))
    return sorted(found, key=lambda each: (each[1], each[0]))


def state(pipeline: Pipeline) -> RelationState:
    """The table's state in the ledger."""
    return pipeline.deployment.cut.relations["s"]


def steps(plan: Plan) -> list[str]:
    """The plan's steps in words, without those that every plan has."""
    words = [describe_action(step.action) for step in plan.steps]
    return [word for word in words if word not in ("stop", "checkpoint", "resume")]


def feed(pipeline: Pipeline, *times: int, ticks: bool = True) -> None:
    """Rows of these times, one commit each, and a tick."""
    for at in times:
        pipeline.insert("t", at)
    if ticks:
        pipeline.tick()


def test_a_window_is_emitted_once_when_the_watermark_has_reached_its_end() -> None:
    # given
    seen: list[events.Event] = []
    pipeline = Pipeline(World(), history(T + windows(delay=5)), seen.append)
    pipeline.go("r1")
    assert (emitted(pipeline), state(pipeline).watermark) == ([], None)

    # when no further window is over, nothing is committed, and the position is recorded anyway
    feed(pipeline, 3)
    assert (emitted(pipeline), state(pipeline).watermark) == ([], -2)
    feed(pipeline, 6)
    before = state(pipeline).version
    pipeline.insert("t", 12)
    tick = pipeline.tick()
    assert (tick.refreshed, tick.is_recorded) == ({}, True)
    assert (state(pipeline).version, state(pipeline).watermark) == (before, 7)
    assert pipeline.tick().refreshed == {}

    # when the watermark reaches 10, the first window is over, with the row that came meanwhile
    feed(pipeline, 9, 15)
    assert emitted(pipeline) == [(1, 0, [3, 6, 9])]
    assert state(pipeline).watermark == 10

    # when a row comes behind it, it is in no window, and counted
    pipeline.insert("t", 8)
    pipeline.insert("t", 11)
    tick = pipeline.tick()
    assert tick.late == {"s": 1}
    assert seen[-1] == events.LateRows("s", 1)
    assert pipeline.world.records[-1].details["late"] == {"s": 1}
    feed(pipeline, 40)
    assert emitted(pipeline) == [(1, 0, [3, 6, 9]), (1, 10, [11, 12, 15])]
    assert (state(pipeline).late, state(pipeline).watermark) == (1, 35)
    assert Cut.from_dict(pipeline.deployment.cut.to_dict()) == pipeline.deployment.cut


def test_one_that_begins_later_has_every_window_that_is_over() -> None:
    pipeline = deployed(T, T + windows())
    feed(pipeline, 25, 3, 1)
    pipeline.go("r2")
    assert emitted(pipeline) == [(1, 0, [1, 3])]
    assert (state(pipeline).watermark, state(pipeline).late) == (25, 0)
    feed(pipeline, 30)
    assert emitted(pipeline) == [(1, 0, [1, 3]), (1, 20, [25])]


def test_a_changed_query_makes_every_window_anew_and_the_plan_says_so() -> None:
    # given
    pipeline = deployed(T + windows(), T + windows(2))
    feed(pipeline, 3, 12)
    feed(pipeline, 5)

    # when
    plan = pipeline.plan("r2")

    # then
    assert steps(plan) == ["bootstrap `s`"]
    assert plan.steps[2].cause == (
        "`1 AS v` became `2 AS v`; rebuilt: its windows gathered rows under the former query"
    )
    pipeline.executor.run(plan)
    assert emitted(pipeline) == [(2, 0, [3, 5])], "the late row is in its window now"
    assert (state(pipeline).late, state(pipeline).is_historical) == (0, False)

    # and back again nothing is computed, until a window has been emitted
    back = pipeline.plan("r1")
    assert [word.partition(" to ")[0] for word in steps(back)] == ["restore `s`"]
    assert back.steps[2].cause.endswith("; no window has been emitted since")
    pipeline.executor.run(back)
    assert emitted(pipeline) == [(1, 0, [3])]
    assert (state(pipeline).watermark, state(pipeline).late) == (12, 1)


def test_one_that_can_not_be_put_back_after_all_is_made_anew() -> None:
    pipeline = deployed(T + windows(), T + windows(2))
    feed(pipeline, 3, 12)
    pipeline.go("r2")
    plan = pipeline.plan("r1")
    feed(pipeline, 22)
    pipeline.executor.run(plan)
    assert emitted(pipeline) == [(1, 0, [3]), (1, 10, [12])]
    notes = [r.details["note"] for r in pipeline.world.records if r.details.get("note")]
    assert notes[-1] == "made anew: rows have passed"


def test_in_place_keeps_what_was_emitted_and_no_row_is_in_two_windows_or_none() -> None:
    pipeline = deployed(T + windows(), (T + windows(2), [InPlace("s")]), T + windows(3))
    feed(pipeline, 3, 12)
    pipeline.insert("t", 14)
    plan = pipeline.plan("r2")
    assert steps(plan) == ["take in rows for `s`", "continue `s` in place"]
    pipeline.executor.run(plan)
    assert state(pipeline).is_historical
    feed(pipeline, 33)
    assert emitted(pipeline) == [(1, 0, [3]), (2, 10, [12, 14])]
    pipeline.go("r3")
    assert emitted(pipeline) == [(3, 0, [3]), (3, 10, [12, 14])]
    assert not state(pipeline).is_historical


def test_another_delay_goes_on_in_place_by_itself() -> None:
    pipeline = deployed(T + windows(delay=5), T + windows(delay=20))
    feed(pipeline, 3, 18)
    plan = pipeline.plan("r2")
    assert steps(plan) == ["take in rows for `s`", "continue `s` in place"]
    assert "only how long it waits for late rows has changed; its rows stay" in plan.steps[3].cause
    pipeline.executor.run(plan)
    assert (emitted(pipeline), state(pipeline).watermark) == ([(1, 0, [3])], 13)
    assert not state(pipeline).is_historical
    feed(pipeline, 30, 15)
    assert (emitted(pipeline), state(pipeline).watermark) == ([(1, 0, [3])], 13)
    feed(pipeline, 40)
    assert emitted(pipeline) == [(1, 0, [3]), (1, 10, [15, 18])]


@pytest.mark.parametrize("since", ["1970-01-01 00:00:00.000017", "1970-01-01T00:00:00.000010Z"])
def test_a_backfill_begins_with_the_window_that_holds_its_time(since: str) -> None:
    # given
    asked = Backfill("s", since, "w")
    pipeline = deployed(T + windows(), (T + windows(2), [asked]))
    feed(pipeline, 3, 12, 25, 33)
    feed(pipeline, 14, 4)  # both late
    pipeline.insert("t", 41)
    pipeline.insert("t", 38)

    # when
    plan = pipeline.plan("r2")

    # then
    assert steps(plan) == ["take in rows for `s`", "backfill `s` since 1970-01-01 00:00:00.000010"]
    held = " (the start of the window that holds 1970-01-01 00:00:00.000017)"
    assert plan.steps[3].cause.endswith(
        "rows with `w` from 1970-01-01 00:00:00.000010"
        f"{held if since.endswith('17') else ''} on are made anew, earlier ones stay (historical)"
    )
    pipeline.executor.run(plan)
    assert emitted(pipeline) == [
        (1, 0, [3]),
        (2, 10, [12, 14]),
        (2, 20, [25]),
        (2, 30, [33, 38]),
    ]
    assert state(pipeline).is_historical
    assert steps(pipeline.plan("r1"))[0] == "restore `s` to version 3"
    feed(pipeline, 50)
    assert emitted(pipeline)[-1] == (2, 40, [41])


def test_a_backfill_from_the_future_or_before_any_window_loses_none() -> None:
    asked = Backfill("s", "1970-01-01 00:00:00.000070", "w")
    pipeline = deployed(T + windows(), (T + windows(2), [asked]), (T + windows(3), [asked]))
    feed(pipeline, 3)
    pipeline.go("r2")
    assert (emitted(pipeline), state(pipeline).watermark) == ([], 3)
    feed(pipeline, 12)
    pipeline.world.broken["s"] = 1
    assert pipeline.tick().failures == {}
    pipeline.insert("t", 22)
    assert pipeline.tick().failures == {"s": "s is broken"}
    pipeline.go("r3")
    assert emitted(pipeline) == [(2, 0, [3]), (3, 10, [12])]
    feed(pipeline, 30)
    assert emitted(pipeline) == [(2, 0, [3]), (3, 10, [12]), (3, 20, [22])]


SINCE = "1970-01-01"


@pytest.mark.parametrize(
    ("before", "after", "asked", "message"),
    [
        (
            windows(),
            windows(2, length=20),
            InPlace("s"),
            "op.in_place can't keep windows of `s`: its windows were 10 microseconds "
            "of `t.a`, and become 20 microseconds of `t.a`",
        ),
        (
            windows(),
            windows(2, length=20),
            Backfill("s", SINCE, "w"),
            "op.backfill can't keep windows of `s`: its windows were 10 microseconds "
            "of `t.a`, and become 20 microseconds of `t.a`",
        ),
        (
            windows(),
            "CREATE STREAMING TABLE s AS SELECT a AS w FROM STREAM t;",
            InPlace("s"),
            "op.in_place can't keep windows of `s`: it has windows only before the change",
        ),
        (
            "CREATE STREAMING TABLE s AS SELECT a AS w FROM STREAM t;",
            windows(),
            InPlace("s"),
            "op.in_place can't keep windows of `s`: it had no windows",
        ),
        (
            windows().replace("window.start", "max(a)"),
            windows(),
            InPlace("s"),
            "op.in_place can't keep windows of `s`: `w` becomes the start of a window, which older "
            "rows don't have in it",
        ),
        (
            windows(more=", window.end AS e"),
            windows(2, more=", window.end AS e"),
            Backfill("s", SINCE, "e"),
            "op.backfill tells windows of `s` by `e`, which is not certainly their start",
        ),
        (
            windows(),
            windows(2),
            Backfill("s", "yesterday", "w"),
            "op.backfill since `yesterday`, which is no date and no timestamp",
        ),
    ],
)
def test_what_would_count_rows_twice_or_never_stands_in_the_plans_way(
    before: str, after: str, asked: Directive, message: str
) -> None:
    pipeline = deployed(T + before, (T + after, [asked]))
    (blocker,) = pipeline.plan("r2").blockers
    assert blocker.message == f"up() of r2: {message}"
    assert blocker.hint


def test_windows_that_come_go_or_become_others_are_made_anew() -> None:
    plain = "CREATE STREAMING TABLE s AS SELECT a, 9 AS v FROM STREAM t;"
    pipeline = deployed(T + windows(), T + windows(2, length=20), T + plain, T + windows(4))
    feed(pipeline, 3, 12, 25)
    for revision in ("r2", "r3", "r4"):
        assert steps(pipeline.plan(revision)) == ["bootstrap `s`"]
        pipeline.go(revision)
        if revision == "r2":
            assert emitted(pipeline) == [(2, 0, [3, 12])]
    assert emitted(pipeline) == [(4, 0, [3]), (4, 10, [12])]


def test_a_renamed_stream_goes_on_in_place_if_asked_and_one_that_comes_again_does() -> None:
    renamed = "CREATE TABLE u (a TIMESTAMP);"
    pipeline = deployed(
        T + windows(),
        (renamed + windows(2, of="u"), [RenameTable("t", "u"), InPlace("s")]),
        renamed,
        renamed + windows(2, of="u"),
    )
    feed(pipeline, 3, 12)
    pipeline.go("r2")
    pipeline.insert("u", 22)
    pipeline.tick()
    assert emitted(pipeline) == [(1, 0, [3]), (2, 10, [12])]
    pipeline.go("r3")
    pipeline.insert("u", 33)
    pipeline.go("r2")
    pipeline.tick()
    assert emitted(pipeline) == [(1, 0, [3]), (2, 10, [12]), (2, 20, [22])]


PROGRAMS: tuple[str | tuple[str, Sequence[Directive]], ...] = (
    T + windows(1),
    (T + windows(2, delay=15), [InPlace("s")]),
    (T + windows(3, delay=5), [InPlace("s")]),
)


@settings(max_examples=60)
@given(st.data())
def test_over_any_ticks_changes_and_kills_a_window_has_all_rows_that_came_in_time(
    data: st.DataObject,
) -> None:
    world = World()
    revisions = [
        Revision(r.id, r.sql, r.up, (InPlace("s"),) if r.id != "r1" else ())
        for r in history(*PROGRAMS)
    ]
    Pipeline(world, revisions).go("r1")
    came: list[int] = []
    for _ in range(data.draw(st.integers(3, 10))):
        pipeline = whole(world, revisions, data)
        for at in data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=3)):
            pipeline.insert("t", at)
            came.append(at)
        for _ in range(data.draw(st.integers(0, 2))):
            pipeline = whole(world, revisions, data)
            with maybe_dying(world, data):
                if data.draw(st.integers(0, 2)):
                    pipeline.tick()
                else:
                    plan = pipeline.plan(data.draw(st.sampled_from(["r1", "r2", "r3"])))
                    assert not plan.blockers
                    pipeline.executor.run(plan)

    # then each window that is over is there once, and no row is in it that was not late
    pipeline = whole(world, revisions, data)
    pipeline.tick()
    check(pipeline, came)
    # and when all are over, a rebuild adds the late ones, and nothing else
    world.revive()
    pipeline.insert("t", 1000)
    pipeline.tick()
    check(pipeline, came)
    late = state(pipeline).late
    again = Revision("r4", T + windows(4), (Rebuild("s"),))
    final = Pipeline(world, [*revisions, again])
    final.go("r4")
    check(final, came)
    assert sum(len(times) for _, _, times in emitted(final)) == len(came)
    assert late == len(came) - sum(len(times) for _, _, times in emitted_before(final))


def emitted_before(pipeline: Pipeline) -> list[tuple[int, int, list[int]]]:
    """What the table held one upgrade ago."""
    now = state(pipeline)
    assert now.altered_from is not None
    version = pipeline.world.tables[now.folder][now.altered_from.version]
    rows = [json.loads(text) for text in version.contents]
    return [(0, row["row"]["a"], row["rows"]) for row in rows]


def check(pipeline: Pipeline, came: Sequence[int]) -> None:
    """Each window at most once, only if it is over; its rows came, and those that miss are late."""
    now = state(pipeline)
    found = emitted(pipeline)
    begins = [begin for _, begin, _ in found]
    assert len(begins) == len(set(begins))
    over = -1 if now.watermark is None else now.watermark // LENGTH * LENGTH
    in_windows = [at for _, _, times in found for at in times]
    waiting = [at for at in came if at >= over]
    for _, begin, times in found:
        assert begin + LENGTH <= over
        assert all(begin <= at < begin + LENGTH for at in times)
    for at in set(came):
        assert in_windows.count(at) <= came.count(at)
    assert len(came) == len(in_windows) + len(waiting) + now.late
