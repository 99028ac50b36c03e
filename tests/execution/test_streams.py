"""Streaming tables: each row passes once, under the query that was deployed when it came."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlmig.errors import StepFailed
from sqlmig.planning.directives import Backfill, Directive, Execute, InPlace, Rebuild, RenameTable
from sqlmig.planning.explain import describe_action
from sqlmig.planning.planner import make_plan
from sqlmig.planning.stream_steps import AdvanceStream, EvolveStream, RestoreStream
from tests.execution.deaths import maybe_dying, whole
from tests.fakes import Pipeline, Revision, World, original

T = "CREATE TABLE t (a INT);"
COUNT = "CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM s;"


def stream(query: str = "SELECT a, 1 AS v", name: str = "s", of: str = "t") -> str:
    """A streaming table."""
    select, _, where = query.partition(" WHERE ")
    tail = f" WHERE {where}" if where else ""
    return f"CREATE STREAMING TABLE {name} AS {select} FROM STREAM {of}{tail};"


def history(*programs: str | tuple[str, Sequence[Directive]]) -> list[Revision]:
    """Revisions r1, r2, ..., each a program and what its `up` asks for."""
    pairs = [p if isinstance(p, tuple) else (p, ()) for p in programs]
    return [Revision(f"r{n}", sql, tuple(up)) for n, (sql, up) in enumerate(pairs, 1)]


def deployed(*programs: str | tuple[str, Sequence[Directive]]) -> Pipeline:
    """A pipeline at the first of these programs."""
    pipeline = Pipeline(World(), history(*programs))
    pipeline.go("r1")
    return pipeline


def rows(pipeline: Pipeline, name: str = "s") -> list[tuple[str, int]]:
    """What the streaming table holds: the number `v` in the query, and `a` of the input row."""
    found = []
    for text in pipeline.contents()[name][1]:
        row = json.loads(text)
        version = row["query"].partition(" AS v")[0].rpartition(" ")[2]
        found.append((version, original(row)["a"]))
    return sorted(found, key=lambda pair: pair[1])


def steps(pipeline: Pipeline, target: str) -> list[str]:
    """The plan's steps in words, without those that every plan has."""
    words = [describe_action(step.action) for step in pipeline.plan(target).steps]
    return [word for word in words if word not in ("stop", "checkpoint", "resume")]


def test_a_row_passes_once_and_what_came_is_told_without_computing() -> None:
    pipeline = deployed(T + stream() + COUNT)
    assert steps(Pipeline(World(), history(T + stream())), "r1") == [
        "create table `t`",
        "bootstrap `s`",
    ]
    pipeline.insert("t", 1)
    pipeline.insert("t", 2)
    assert pipeline.tick().refreshed == {"s": 2, "n": 1}
    assert rows(pipeline) == [("1", 1), ("1", 2)]
    assert pipeline.tick().refreshed == {}
    pipeline.insert("t", 3)
    pipeline.tick()
    assert rows(pipeline) == [("1", 1), ("1", 2), ("1", 3)]
    pipeline.check_views()


def test_a_streaming_table_begins_with_the_earliest_row_and_feeds_another() -> None:
    both = T + stream() + stream("SELECT *, 2 AS v", "s2", "s")
    pipeline = deployed(T, both)
    pipeline.insert("t", 1)
    pipeline.go("r2")
    assert rows(pipeline) == [("1", 1)]
    assert rows(pipeline, "s2") == [("2", 1)]
    pipeline.insert("t", 2)
    pipeline.tick()
    assert rows(pipeline, "s2") == [("2", 1), ("2", 2)]


def test_a_changed_query_goes_on_where_the_old_one_stopped() -> None:
    pipeline = deployed(T + stream() + COUNT, T + stream("SELECT a, 2 AS v") + COUNT)
    pipeline.insert("t", 1)
    pipeline.tick()
    pipeline.insert("t", 2)  # came under r1, and no tick has seen it
    plan = pipeline.plan("r2")
    assert [describe_action(s.action) for s in plan.steps[2:5]] == [
        "take in rows for `s`",
        "continue `s` in place",
        "bootstrap `n`",
    ]
    assert plan.steps[3].cause == (
        "`1 AS v` became `2 AS v`; in place: it goes on where it "
        "stopped; its rows stay (historical)"
    )
    pipeline.executor.run(plan)
    assert rows(pipeline) == [("1", 1), ("1", 2)]
    pipeline.insert("t", 3)
    pipeline.tick()
    assert rows(pipeline) == [("1", 1), ("1", 2), ("2", 3)]
    assert pipeline.deployment.cut.relations["s"].is_historical
    pipeline.check_views()


def test_what_a_filter_let_not_through_has_passed_all_the_same() -> None:
    pipeline = deployed(
        T + stream("SELECT a, 1 AS v WHERE a % 2 = 0") + COUNT, T + stream("SELECT a, 2 AS v")
    )
    pipeline.insert("t", 1)
    before = pipeline.deployment.cut.relations["s"].content
    assert pipeline.tick().refreshed == {"s": 0}, "contents are the same, so `n` is not computed"
    assert pipeline.deployment.cut.relations["s"].content == before
    pipeline.go("r2")
    pipeline.insert("t", 3)
    pipeline.tick()
    assert rows(pipeline) == [("2", 3)]


def test_going_back_restores_where_no_row_has_passed_and_is_in_place_where_one_has() -> None:
    pipeline = deployed(T + stream(), T + stream("SELECT a, 2 AS v"))
    pipeline.insert("t", 1)
    pipeline.tick()
    one = pipeline.deployment.cut.relations["s"]
    pipeline.go("r2")
    two = pipeline.deployment.cut.relations["s"]
    assert steps(pipeline, "r1") == [
        "take in rows for `s`",
        f"restore `s` to version {one.version}",
    ]
    pipeline.go("r1")
    back = pipeline.deployment.cut.relations["s"]
    assert (back.content, back.is_historical) == (one.content, False)
    assert steps(pipeline, "r2")[1] == f"restore `s` to version {two.version}"
    pipeline.go("r2")
    pipeline.insert("t", 2)
    pipeline.tick()
    assert steps(pipeline, "r1") == ["take in rows for `s`", "continue `s` in place"]
    pipeline.go("r1")
    pipeline.insert("t", 3)
    pipeline.tick()
    assert rows(pipeline) == [("1", 1), ("2", 2), ("1", 3)]


def test_rows_that_come_while_a_way_back_is_planned_pass_and_stay() -> None:
    pipeline = deployed(T + stream(), T + stream("SELECT a, 2 AS v"))
    pipeline.go("r2")
    plan = pipeline.plan("r1")
    assert any(isinstance(step.action, RestoreStream) for step in plan.steps)
    pipeline.insert("t", 1)
    pipeline.executor.run(plan)
    assert rows(pipeline) == [("2", 1)]
    note = [r.details["note"] for r in pipeline.world.records if r.details.get("note")][-1]
    assert note == "in place: rows have passed"


def test_a_rebuild_makes_every_row_anew_and_so_does_its_reader_unless_it_is_kept() -> None:
    one = T + stream() + stream("SELECT *, 7 AS v", "s2", "s")
    two = T + stream("SELECT a, 2 AS v") + stream("SELECT *, 7 AS v", "s2", "s")
    pipeline = deployed(one, (two, [Rebuild("s")]))
    pipeline.insert("t", 1)
    pipeline.tick()
    plan = pipeline.plan("r2")
    causes = {describe_action(s.action): s.cause for s in plan.steps}
    assert causes["bootstrap `s`"] == "`1 AS v` became `2 AS v`; rebuilt: asked by up() of r2"
    assert causes["bootstrap `s2`"].endswith("rebuilt: its stream `s` is made anew")
    pipeline.executor.run(plan)
    assert rows(pipeline) == [("2", 1)]
    assert '"query": "SELECT a, 2 AS v FROM STREAM t"' in pipeline.contents()["s2"][1][0]
    assert not pipeline.deployment.cut.relations["s"].is_historical

    kept = deployed(one, (two, [Rebuild("s"), InPlace("s2")]))
    kept.insert("t", 1)
    kept.tick()
    kept.go("r2")
    kept.insert("t", 2)
    kept.tick()
    assert [json.loads(r)["row"]["query"][:16] for r in kept.contents()["s2"][1]] == [
        "SELECT a, 1 AS v",
        "SELECT a, 2 AS v",
    ], "rows that a rebuild wrote again don't pass again"


def test_a_rebuild_that_is_asked_for_without_a_change_computes() -> None:
    pipeline = deployed(T + stream(), (T + stream(), [Rebuild("s")]))
    pipeline.insert("t", 1)
    pipeline.tick()
    assert steps(pipeline, "r2") == ["bootstrap `s`"]
    pipeline.go("r2")
    assert rows(pipeline) == [("1", 1)]


def test_a_backfill_makes_the_rows_from_a_time_on_anew() -> None:
    backfill = Backfill("s", "2", "a")
    pipeline = deployed(T + stream(), (T + stream("SELECT a, 2 AS v"), [backfill]))
    for value in (1, 2, 3):
        pipeline.insert("t", value)
    pipeline.tick()
    plan = pipeline.plan("r2")
    assert [describe_action(s.action) for s in plan.steps[2:4]] == [
        "take in rows for `s`",
        "backfill `s` since 2",
    ]
    assert plan.steps[3].cause == (
        "`1 AS v` became `2 AS v`; backfilled: asked by up() of r2; "
        "rows with `a` from 2 on are made anew, "
        "earlier ones stay (historical)"
    )
    pipeline.executor.run(plan)
    assert rows(pipeline) == [("1", 1), ("2", 2), ("2", 3)]
    assert steps(pipeline, "r1")[1].startswith("restore `s`")
    pipeline.go("r1")
    assert rows(pipeline) == [("1", 1), ("1", 2), ("1", 3)]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "CREATE TABLE t (a INT, PRIMARY KEY (a));" + stream(),
            "streaming table `s` reads STREAM t, which has a primary key: its rows change, and a "
            "row passes once",
        ),
        (
            T + "CREATE VIEW w AS SELECT a FROM t;" + stream(of="w"),
            "streaming table `s` reads STREAM w, which is a view",
        ),
        (
            T + "CREATE VIEW w AS SELECT a FROM STREAM t;",
            "`w` reads STREAM t, and is a view",
        ),
        (
            T + stream("SELECT count(*) AS v"),
            "streaming table `s` aggregates: it calls count()",
        ),
        (
            T + "CREATE STREAMING TABLE s AS SELECT x.a FROM STREAM t x JOIN t y ON x.a = y.a;",
            "streaming table `s` reads `t` with STREAM and without",
        ),
        (
            T
            + "CREATE FUNCTION most() RETURNS INT RETURN (SELECT max(a) FROM t);"
            + "CREATE FUNCTION more() RETURNS INT RETURN most() + 1;"
            + "CREATE STREAMING TABLE s AS SELECT a, more() AS m FROM STREAM t;",
            "streaming table `s` calls `most`, which reads its stream `t`",
        ),
        (
            (T + stream(), [InPlace("t")]),
            "up() of r1: op.in_place names `t`, which is a table in the program that is gone to",
        ),
        (
            (T + stream(), [Rebuild("x")]),
            "up() of r1: op.rebuild names `x`, which is not there in the program that is gone to",
        ),
    ],
)
def test_what_can_not_be_a_stream_stands_in_the_plans_way(
    program: str | tuple[str, Sequence[Directive]], message: str
) -> None:
    (blocker,) = Pipeline(World(), history(program)).plan("r1").blockers
    assert blocker.message == message
    assert blocker.hint


def test_a_streaming_table_that_comes_again_goes_on_where_it_stopped() -> None:
    pipeline = deployed(T, T + stream())
    pipeline.go("r2")
    pipeline.insert("t", 1)
    pipeline.tick()
    pipeline.go("r1")
    pipeline.insert("t", 2)
    assert steps(pipeline, "r2") == ["attach `s`"]
    pipeline.go("r2")
    pipeline.tick()
    assert rows(pipeline) == [("1", 1), ("1", 2)]


def test_a_view_and_a_streaming_table_of_one_name_keep_a_folder_each() -> None:
    view = "CREATE MATERIALIZED VIEW s AS SELECT COUNT(*) AS n FROM t;"
    pipeline = deployed(T + stream(), T + view)
    pipeline.insert("t", 1)
    pipeline.tick()
    pipeline.go("r2")
    pipeline.check_views()
    assert pipeline.deployment.cut.relations["s"].folder == "s__2"
    pipeline.insert("t", 2)
    pipeline.tick()
    pipeline.go("r1")
    pipeline.tick()
    assert rows(pipeline) == [("1", 1), ("1", 2)]


def test_a_row_that_a_failed_upgrade_brought_is_not_passed() -> None:
    hook = Execute("INSERT INTO t VALUES (9)")
    pipeline = deployed(
        T + stream(), (T + stream("SELECT a, 2 AS v") + COUNT, [hook]), T + stream()
    )
    pipeline.insert("t", 1)
    pipeline.tick()
    pipeline.world.broken["n"] = 1
    with pytest.raises(StepFailed):
        pipeline.go("r2")
    assert rows(pipeline) == [("1", 1)]
    pipeline.insert("t", 2)
    pipeline.tick()
    assert rows(pipeline) == [("1", 1), ("1", 2)]
    pipeline.go("r2")
    pipeline.tick()
    assert rows(pipeline) == [("1", 1), ("1", 2), ("2", 9)]


def test_a_renamed_stream_and_a_lost_row_of_it_change_nothing_that_has_passed() -> None:
    renamed = "CREATE TABLE u (a INT);" + stream(of="u")
    delete = Execute("DELETE FROM u")
    pipeline = deployed(T + stream(), (renamed, [RenameTable("t", "u")]), (renamed, [delete]))
    pipeline.insert("t", 1)
    pipeline.tick()
    pipeline.go("r2")
    pipeline.insert("u", 2)
    pipeline.tick()
    pipeline.go("r3")
    pipeline.tick()
    assert rows(pipeline) == [("1", 1), ("1", 2)]
    assert pipeline.rows("u") == []


PROGRAMS = (
    T + stream("SELECT a, 1 AS v") + stream("SELECT *, 9 AS v", "s2", "s") + COUNT,
    T + stream("SELECT a, 2 AS v") + stream("SELECT *, 9 AS v", "s2", "s") + COUNT,
    "CREATE TABLE t (a INT, b INT);"
    + stream("SELECT a, 3 AS v")
    + stream("SELECT *, 8 AS v", "s2", "s"),
    T + stream("SELECT a, 4 AS v") + COUNT,
    "CREATE TABLE t (a INT, b INT) PARTITIONED BY (b);"
    + stream("SELECT a, 3 AS v")
    + stream("SELECT *, 8 AS v", "s2", "s"),
)
"""The last one has the rows of the third, and lays them out in another way."""
QUERY_OF = {f"r{n}": "3" if n == 5 else str(n) for n in range(1, 6)}


@settings(max_examples=60)
@given(st.data())
def test_over_any_walk_with_kills_every_row_passes_once_under_the_query_in_force(
    data: st.DataObject,
) -> None:
    world = World()
    revisions = history(*PROGRAMS)
    expected: Counter[tuple[str, int]] = Counter()
    Pipeline(world, revisions).go("r1")
    for value in range(data.draw(st.integers(4, 12))):
        pipeline = whole(world, revisions, data)
        revision = pipeline.deployment.revision
        assert revision is not None
        pipeline.insert("t", *([value, 0] if revision in ("r3", "r5") else [value]))
        expected[(QUERY_OF[revision], value)] += 1
        for _ in range(data.draw(st.integers(0, 2))):
            pipeline = whole(world, revisions, data)
            with maybe_dying(world, data):
                if data.draw(st.booleans()):
                    pipeline.tick()
                else:
                    plan = pipeline.plan(data.draw(st.sampled_from(sorted(QUERY_OF))))
                    pipeline.executor.run(plan)
    pipeline = whole(world, revisions, data)
    pipeline.tick()
    assert Counter(rows(pipeline)) == expected
    pipeline.check_views()
    pipeline.go("r1")
    pipeline.tick()
    assert Counter(row[1] for row in rows(pipeline, "s2")) == Counter(row[1] for row in expected)


def test_the_steps_of_a_change_name_the_table_once_each() -> None:
    pipeline = deployed(T + stream(), T + stream("SELECT a, 2 AS v"))
    actions = [step.action for step in pipeline.plan("r2").steps[2:-1]]
    assert actions == [AdvanceStream("s"), EvolveStream("s", "s", True)]


def test_a_query_that_fails_is_mended_and_its_rows_pass_under_the_new_one() -> None:
    pipeline = deployed(T + stream(), T + stream("SELECT a, 2 AS v"))
    pipeline.insert("t", 1)
    pipeline.world.broken["s"] = 2
    with pytest.raises(StepFailed) as failed:
        pipeline.go("r2")
    assert "`sqlmig run --once` fail on them" in (failed.value.hint or "")
    assert pipeline.tick().failures == {"s": "s is broken"}
    assert steps(pipeline, "r2") == ["continue `s` in place"]
    (step,) = (s for s in pipeline.plan("r2").steps if isinstance(s.action, EvolveStream))
    assert "with the rows that the query deployed so far failed on" in step.cause
    pipeline.go("r2")
    assert rows(pipeline) == [("2", 1)]


def test_a_full_disk_is_told_as_such_and_nothing_is_made_instead() -> None:
    # given: one that could go on in place, where it can't be put back
    pipeline = deployed(T + stream(), T + stream("SELECT a, 2 AS v"))
    pipeline.insert("t", 1)
    pipeline.go("r2")
    assert steps(pipeline, "r1")[-1].startswith("restore `s`")

    # when
    pipeline.world.full.add("restore s")
    with pytest.raises(StepFailed, match="restore s finds the disk full") as failed:
        pipeline.go("r1")

    # then
    assert failed.value.hint == "free some"
    assert pipeline.deployment.revision == "r2"
    pipeline.go("r1")
    notes = [r.details["note"] for r in pipeline.world.records if r.details.get("note")]
    assert not any("in place" in note for note in notes)

    # and: rows that find no room as the old query takes them in are no fault of that
    pipeline.insert("t", 2)
    pipeline.world.full.add("s")
    with pytest.raises(StepFailed, match="s finds the disk full") as failed:
        pipeline.go("r2")
    assert failed.value.hint == "free some"


def test_rows_that_come_again_from_a_source_pass_once() -> None:
    source = "CREATE SOURCE f INTO t USING json OPTIONS (path '/f');"
    pair = stream() + stream("SELECT *, 9 AS v", "s2", "s")
    keyed = "CREATE TABLE t (a STRING);"
    pipeline = deployed(T + source + pair, keyed + source + pair)
    pipeline.world.inputs["/f"] = [1, 2]
    pipeline.tick()
    assert rows(pipeline, "s2") == [("9", 1), ("9", 2)]
    emptied = {"t": "they can't be cast"}
    plan = make_plan(replace(pipeline.request("r2"), emptied=emptied))
    causes = {describe_action(s.action): s.cause for s in plan.steps}
    assert causes["bootstrap `s`"].endswith("rebuilt: the rows of `t` come again from its sources")
    assert causes["bootstrap `s2`"].endswith("rebuilt: its stream `s` is made anew")
    assert plan.warnings == ("`s` begins empty, as `t` does",)
    pipeline.executor.run(plan)
    pipeline.tick()
    assert rows(pipeline) == [("1", 1), ("1", 2)]
    assert rows(pipeline, "s2") == [("9", 1), ("9", 2)]


def test_a_mistake_is_told_at_its_place() -> None:
    sql = f"{T}\nCREATE STREAMING TABLE s AS\nSELECT a,\n  max(a) AS m FROM STREAM t;"
    (blocker,) = Pipeline(World(), history(sql)).plan("r1").blockers
    assert str(blocker.location) == "pipeline/p.sql:4:3"
    assert blocker.message == "streaming table `s` aggregates: it calls max()"
