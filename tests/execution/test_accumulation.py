"""Materialized views in place: what they have stays, and each row that comes counts once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlmig.errors import StepFailed
from sqlmig.ledger.cut import RelationState
from sqlmig.planning.directives import (
    Backfill,
    Directive,
    Execute,
    InPlace,
    Rebuild,
    RenameTable,
)
from sqlmig.planning.explain import describe_action
from sqlmig.planning.planner import make_plan
from tests.execution.deaths import maybe_dying, whole
from tests.fakes import Pipeline, Revision, World, original

T = "CREATE TABLE t (a INT);"
S = "CREATE STREAMING TABLE s AS SELECT a FROM STREAM t;"


def view(number: int = 1, of: str = "t") -> str:
    """A view that can go on in place; the number tells its query from others."""
    return (
        f"CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n, sum(a * {number}) AS v "
        f"FROM {of} GROUP BY a;"
    )


def deployed(*programs: str | tuple[str, Sequence[Directive]]) -> Pipeline:
    """A pipeline at the first of these programs, whose `up` asks for what stands beside it."""
    pairs = [p if isinstance(p, tuple) else (p, ()) for p in programs]
    revisions = [Revision(f"r{n}", sql, tuple(up)) for n, (sql, up) in enumerate(pairs, 1)]
    pipeline = Pipeline(World(), revisions)
    pipeline.go("r1")
    return pipeline


def number(query: str) -> int:
    """The number of a query that `view` made."""
    return int(re.findall(r"a \* (\d)", query)[0])


def counted(pipeline: Pipeline) -> list[tuple[int, int]]:
    """What the view counts: `a` of each input row, and the number of the query that counted it."""
    found = []
    for text in pipeline.contents()["v"][1]:
        if text.startswith("<"):  # computed whole
            query, _, rows = text.partition(" | ")
            values = re.findall(r'"a": (\d+)', rows)
            found += [(int(value), number(query)) for value in values]
        else:
            row = json.loads(text)
            found.append((original(row)["a"], number(row["query"])))
    return sorted(found)


def state(pipeline: Pipeline) -> RelationState:
    """The view's state in the ledger."""
    return pipeline.deployment.cut.relations["v"]


def steps(pipeline: Pipeline, target: str) -> list[str]:
    """The plan's steps in words, without those that every plan has."""
    words = [describe_action(step.action) for step in pipeline.plan(target).steps]
    return [word for word in words if word not in ("stop", "checkpoint", "resume")]


def test_what_is_there_stays_and_from_now_on_the_new_query_counts() -> None:
    pipeline = deployed(T + view(1), (T + view(2), [InPlace("v")]))
    pipeline.insert("t", 1)
    pipeline.tick()
    pipeline.insert("t", 2)  # came under r1, and no tick has seen it
    plan = pipeline.plan("r2")
    assert [describe_action(s.action) for s in plan.steps[2:-1]] == [
        "take in rows for `v`",
        "continue `v` in place",
    ]
    assert plan.steps[3].cause == (
        "`a * 1` became `a * 2`; in place: asked by up() of r2; what it has stays, only rows that "
        "come are taken in (historical)"
    )
    pipeline.executor.run(plan)
    assert counted(pipeline) == [(1, 1), (2, 1)]
    assert state(pipeline).is_historical
    assert state(pipeline).kind == "materialized view"
    pipeline.insert("t", 3)
    assert pipeline.tick().refreshed == {"v": 2}, "the whole of before, and one row"
    assert pipeline.tick().refreshed == {}
    assert counted(pipeline) == [(1, 1), (2, 1), (3, 2)]


def test_without_being_asked_a_change_computes_it_anew_and_so_does_a_rebuild() -> None:
    one, two, three = T + view(1), T + view(2), T + view(3)
    pipeline = deployed(one, (two, [InPlace("v")]), three, (three, [Rebuild("v")]))
    pipeline.insert("t", 1)
    pipeline.tick()
    pipeline.go("r2")
    plan = pipeline.plan("r3")
    assert plan.steps[2].cause == (
        "`a * 2` became `a * 3`; computed anew: op.in_place is not asked for again"
    )
    pipeline.executor.run(plan)
    assert counted(pipeline) == [(1, 3)]
    assert not state(pipeline).takes_in
    assert not state(pipeline).is_historical
    pipeline.check_views()
    # one that equals its query is computed, too, when that is asked for
    assert pipeline.plan("r4").steps[2].cause == "computed anew: asked by up() of r4"
    assert steps(pipeline, "r4") == ["bootstrap `v`"]


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_table_that_begins_anew_has_the_view_computed_and_says_of_what(*, is_kept: bool) -> None:
    source = "CREATE SOURCE f INTO t USING json OPTIONS (path '/f')"
    source += " RETAIN RAW;" if is_kept else ";"
    other = T.replace("INT", "STRING")
    pipeline = deployed(
        T + source + view(1), (T + source + view(2), [InPlace("v")]), other + source + view(2)
    )
    pipeline.world.inputs["/f"] = [1, 2]
    pipeline.tick()
    pipeline.go("r2")
    assert state(pipeline).takes_in
    plan = make_plan(replace(pipeline.request("r3"), emptied={"t": "it can't be cast"}))
    causes = {describe_action(step.action): step.cause for step in plan.steps}
    why = "are made anew of raw records" if is_kept else "come again from its sources"
    assert causes["bootstrap `v`"].endswith(f"computed anew: the rows of `t` {why}")
    assert plan.warnings == (() if is_kept else ("`v` is computed: `t` begins empty",))
    pipeline.executor.run(plan)
    pipeline.tick()
    assert counted(pipeline) == [(1, 2), (2, 2)]
    pipeline.check_views()


def test_a_rebuild_that_changes_nothing_else_does_not_find_the_historical_rows_again() -> None:
    two = T + view(2)
    pipeline = deployed(T + view(1), (two, [InPlace("v")]), (two, [Rebuild("v")]))
    pipeline.insert("t", 1)
    pipeline.go("r2")
    assert counted(pipeline) == [(1, 1)]
    assert steps(pipeline, "r3") == ["bootstrap `v`"]
    pipeline.go("r3")
    assert counted(pipeline) == [(1, 2)]
    assert not state(pipeline).is_historical


def test_a_later_change_of_something_else_leaves_it_in_place() -> None:
    wider = "CREATE TABLE t (a INT, b INT);"
    other = "CREATE MATERIALIZED VIEW o AS SELECT count(*) AS n FROM t;"
    pipeline = deployed(
        T + view(1), (T + view(2), [InPlace("v")]), T + view(2) + other, wider + view(2)
    )
    pipeline.insert("t", 1)
    pipeline.go("r2")
    assert steps(pipeline, "r3") == ["bootstrap `o`"]
    pipeline.go("r3")
    pipeline.insert("t", 2)
    pipeline.tick()
    assert counted(pipeline) == [(1, 1), (2, 2)]
    # its input gets a column: it is affected, and goes on
    plan = pipeline.plan("r4")
    assert "it goes on where it stopped" in plan.steps[4].cause
    assert steps(pipeline, "r4") == [
        "take in rows for `v`",
        "alter table `t`: add column `b int`",
        "continue `v` in place",
        "detach `o`",
    ]
    pipeline.executor.run(plan)
    pipeline.insert("t", 3, 0)
    pipeline.tick()
    assert counted(pipeline) == [(1, 1), (2, 2), (3, 2)]
    assert state(pipeline).is_historical


def test_over_a_streaming_table_rows_on_their_way_count_as_they_came() -> None:
    pipeline = deployed(T + S + view(1, "s"), (T + S + view(2, "s"), [InPlace("v")]))
    pipeline.insert("t", 1)  # neither `s` nor `v` has seen it
    assert steps(pipeline, "r2") == [
        "take in rows for `s`",
        "take in rows for `v`",
        "continue `v` in place",
    ]
    pipeline.go("r2")
    pipeline.insert("t", 2)
    pipeline.tick()
    assert counted(pipeline) == [(1, 1), (2, 2)]


def test_a_rebuilt_input_takes_it_along_unless_it_is_kept() -> None:
    before = T + S + view(1, "s")
    anew = T + S.replace("SELECT a", "SELECT a, 0 AS z") + view(2, "s")
    pipeline = deployed(
        before,
        (T + S + view(2, "s"), [InPlace("v")]),
        (anew, [Rebuild("s")]),
        (anew, [Rebuild("s"), InPlace("v")]),
    )
    pipeline.insert("t", 1)
    pipeline.go("r2")
    plan = pipeline.plan("r3")
    causes = {describe_action(s.action): s.cause for s in plan.steps}
    assert causes["bootstrap `v`"].endswith("computed anew: its input `s` is made anew")

    kept = deployed(before, (anew, [Rebuild("s"), InPlace("v")]))
    kept.insert("t", 1)  # not seen by `s`, which is made anew
    assert steps(kept, "r2") == [
        "take in rows for `s`",
        "take in rows for `v`",
        "bootstrap `s`",
        "continue `v` in place",
    ]
    kept.go("r2")
    kept.insert("t", 2)
    kept.tick()
    assert counted(kept) == [(1, 1), (2, 2)], "rows that a rebuild wrote again don't count again"


def test_going_back_restores_what_was_computed_where_no_row_came_since() -> None:
    pipeline = deployed(T + view(1), (T + view(2), [InPlace("v")]))
    pipeline.insert("t", 1)
    pipeline.tick()
    one = state(pipeline)
    pipeline.go("r2")
    assert steps(pipeline, "r1") == [f"restore `v` to version {one.version}"]
    pipeline.go("r1")
    assert state(pipeline).content == one.content
    assert not state(pipeline).is_historical
    pipeline.check_views()
    # where one came, the older query is computed over all rows: a plain view equals its query
    pipeline.go("r2")
    pipeline.insert("t", 2)
    pipeline.tick()
    assert counted(pipeline) == [(1, 1), (2, 2)]
    assert steps(pipeline, "r1") == ["bootstrap `v`"]
    pipeline.go("r1")
    assert counted(pipeline) == [(1, 1), (2, 1)]
    pipeline.check_views()


def test_going_back_to_where_it_was_in_place_puts_back_what_it_had_and_takes_in_the_rest() -> None:
    pipeline = deployed(T + view(1), (T + view(2), [InPlace("v")]), T + view(3))
    pipeline.insert("t", 1)
    pipeline.go("r2")
    pipeline.insert("t", 2)
    pipeline.tick()
    pipeline.go("r3")
    pipeline.insert("t", 3)
    pipeline.tick()
    assert counted(pipeline) == [(1, 3), (2, 3), (3, 3)]
    plan = pipeline.plan("r2")
    assert plan.steps[2].cause == (
        "`a * 3` became `a * 2`; as this revision left it; what came since is taken in (historical)"
    )
    pipeline.executor.run(plan)
    assert counted(pipeline) == [(1, 1), (2, 2)]
    pipeline.tick()
    assert counted(pipeline) == [(1, 1), (2, 2), (3, 2)]
    assert state(pipeline).is_historical


def test_between_two_revisions_in_place_going_back_restores_or_goes_on() -> None:
    pipeline = deployed(T + view(1), (T + view(2), [InPlace("v")]), (T + view(3), [InPlace("v")]))
    pipeline.insert("t", 1)
    pipeline.go("r2")
    two = state(pipeline)
    pipeline.go("r3")
    assert steps(pipeline, "r2")[-1] == f"restore `v` to version {two.version}"
    pipeline.go("r2")
    assert state(pipeline).fingerprint == two.fingerprint
    pipeline.go("r3")
    pipeline.insert("t", 2)
    pipeline.tick()
    assert steps(pipeline, "r2") == ["take in rows for `v`", "continue `v` in place"]
    pipeline.go("r2")
    pipeline.insert("t", 3)
    pipeline.tick()
    assert counted(pipeline) == [(1, 1), (2, 3), (3, 2)]


def test_a_row_that_comes_while_a_way_back_is_planned_counts() -> None:
    pipeline = deployed(T + view(1), (T + view(2), [InPlace("v")]), (T + view(3), [InPlace("v")]))
    pipeline.go("r2")
    pipeline.go("r3")
    plan = pipeline.plan("r2")
    assert steps(pipeline, "r2")[-1].startswith("restore `v`")
    pipeline.insert("t", 1)
    pipeline.executor.run(plan)
    assert counted(pipeline) == [(1, 3)]
    notes = [r.details["note"] for r in pipeline.world.records if r.details.get("note")]
    assert notes[-1] == "in place: rows have passed"


def test_former_rows_that_are_gone_are_computed_and_that_is_said() -> None:
    pipeline = deployed(T + view(1), (T + view(2), [InPlace("v")]), T + view(3))
    pipeline.insert("t", 1)
    pipeline.go("r2")
    pipeline.go("r3")
    pipeline.world.broken["restore v"] = 1
    pipeline.go("r2")
    notes = [r.details["note"] for r in pipeline.world.records if r.details.get("note")]
    assert notes[-1] == "computed: restore v is broken"
    assert counted(pipeline) == [(1, 2)]
    assert not state(pipeline).is_historical


def test_a_view_that_comes_again_goes_on_where_it_stopped() -> None:
    pipeline = deployed(T + view(1), (T + view(2), [InPlace("v")]), T)
    pipeline.insert("t", 1)
    pipeline.go("r2")
    pipeline.go("r3")
    pipeline.insert("t", 2)
    assert steps(pipeline, "r2") == ["attach `v`"]
    pipeline.go("r2")
    pipeline.tick()
    assert counted(pipeline) == [(1, 1), (2, 2)]


def test_a_renamed_input_is_the_same_one() -> None:
    renamed = "CREATE TABLE u (a INT);" + view(2, "u")
    pipeline = deployed(T + view(1), (renamed, [RenameTable("t", "u"), InPlace("v")]))
    pipeline.insert("t", 1)
    pipeline.go("r2")
    pipeline.insert("u", 2)
    pipeline.tick()
    assert counted(pipeline) == [(1, 1), (2, 2)]


def test_another_table_that_comes_and_goes_under_the_old_name_of_the_input_does_not_matter() -> (
    None
):
    renamed, other = "CREATE TABLE u (a INT);" + view(2, "u"), "CREATE TABLE w (a INT);"
    pipeline = deployed(
        T + view(1),
        (renamed, [RenameTable("t", "u"), InPlace("v")]),
        renamed + T,
        (renamed + other, [RenameTable("t", "w")]),
    )
    pipeline.insert("t", 1)
    assert steps(pipeline, "r4") == [
        "take in rows for `v`",
        "rename table `t` to `u`",
        "create table `w`",
        "continue `v` in place",
    ]
    pipeline.go("r4")
    pipeline.insert("u", 2)
    pipeline.tick()
    assert counted(pipeline) == [(1, 1), (2, 2)]


def test_an_emptied_input_whose_sources_begin_again_makes_it_anew() -> None:
    source = "CREATE SOURCE f INTO t USING json OPTIONS (path '/x');"
    other = "CREATE TABLE t (a INT);CREATE TABLE t2 (a INT);"
    pipeline = deployed(
        T + source + view(1),
        (T + source + view(2), [InPlace("v")]),
        other + source + view(2),
    )
    pipeline.world.inputs["/x"] = [1, 2]
    pipeline.tick()
    pipeline.go("r2")
    assert counted(pipeline) == [(1, 1), (2, 1)]
    assert steps(pipeline, "r3") == ["create table `t2`"]


def test_a_query_that_failed_may_be_what_the_change_mends() -> None:
    pipeline = deployed(T + view(1), (T + view(2), [InPlace("v")]))
    pipeline.insert("t", 1)
    pipeline.tick()
    pipeline.insert("t", 2)
    pipeline.world.broken["v"] = 1
    assert pipeline.tick().failures == {"v": "v is broken"}
    plan = pipeline.plan("r2")
    assert steps(pipeline, "r2") == ["continue `v` in place"]
    assert "with the rows that the query deployed so far failed on" in plan.steps[2].cause
    pipeline.executor.run(plan)
    assert counted(pipeline) == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    ("program", "directive", "message", "hint"),
    [
        (
            T + "CREATE MATERIALIZED VIEW v AS SELECT a, avg(a) AS n FROM t GROUP BY a;",
            InPlace("v"),
            "up() of r2: `v` can't go on in place: it has `n`, an average: of two averages, that "
            "of all rows can't be told",
            "write sum(...) and count(...), and divide them in a view over it",
        ),
        (
            T + "CREATE TABLE u (a INT);" + view(2, "u"),
            InPlace("v"),
            "up() of r2: `v` can't go on in place: it reads `u` instead of `t`",
            "take op.in_place out, and it is computed anew",
        ),
        (
            T + view(2),
            Backfill("v", "1", "a"),
            "up() of r2: op.backfill names `v`, which is a materialized view in the program that "
            "is gone to",
            "name a streaming table of it",
        ),
    ],
)
def test_what_can_not_go_on_in_place_stands_in_the_plans_way(
    program: str, directive: Directive, message: str, hint: str
) -> None:
    pipeline = deployed(T + view(1), (program, [directive]))
    (blocker,) = pipeline.plan("r2").blockers
    assert (blocker.message, blocker.hint) == (message, hint)


def test_what_a_later_revision_on_the_way_changes_is_computed_anew() -> None:
    pipeline = deployed(T + view(1), (T + view(2), [InPlace("v")]), T + view(3))
    pipeline.insert("t", 1)
    (step,) = pipeline.plan("r3").steps[2:-1]
    assert step.cause == (
        "`a * 1` became `a * 3`; computed anew: a revision after up() of r2 changes it"
    )
    pipeline.go("r3")
    pipeline.check_views()


def test_a_failed_upgrade_leaves_it_as_it_was_and_a_row_that_it_brought_does_not_count() -> None:
    hook = Execute("INSERT INTO t VALUES (9)")
    other = "CREATE MATERIALIZED VIEW z AS SELECT count(*) AS n FROM t;"
    pipeline = deployed(
        T + view(1), (T + view(2), [InPlace("v")]), (T + view(3) + other, [hook, InPlace("v")])
    )
    pipeline.insert("t", 1)
    pipeline.go("r2")
    pipeline.world.broken["z"] = 1
    with pytest.raises(StepFailed):
        pipeline.go("r3")
    assert counted(pipeline) == [(1, 1)]
    pipeline.insert("t", 2)
    pipeline.tick()
    assert counted(pipeline) == [(1, 1), (2, 2)]
    pipeline.go("r3")
    assert counted(pipeline) == [(1, 1), (2, 2), (9, 3)]


def test_rows_that_are_deleted_later_stay_counted() -> None:
    pipeline = deployed(
        T + view(1), (T + view(2), [InPlace("v")]), (T + view(2), [Execute("DELETE FROM t")])
    )
    pipeline.insert("t", 1)
    pipeline.go("r2")
    pipeline.go("r3")
    pipeline.tick()
    assert pipeline.rows("t") == []
    assert counted(pipeline) == [(1, 1)]


PROGRAMS: tuple[tuple[str, Sequence[Directive]], ...] = (
    (T + S + view(1, "s"), ()),
    (T + S + view(2, "s"), [InPlace("v")]),
    ("CREATE TABLE t (a INT, b INT);" + S + view(2, "s"), ()),
    (T + S + view(3, "s"), [InPlace("v")]),
    (T + S + view(4, "s"), ()),
)


@settings(max_examples=40)
@given(st.data())
def test_over_any_walk_with_kills_every_row_counts_once_under_the_query_in_force(
    data: st.DataObject,
) -> None:
    world = World()
    revisions = [Revision(f"r{n}", sql, tuple(up)) for n, (sql, up) in enumerate(PROGRAMS, 1)]
    in_force: dict[int, int] = {}
    Pipeline(world, revisions).go("r1")
    for value in range(data.draw(st.integers(3, 10))):
        pipeline = whole(world, revisions, data)
        revision = pipeline.deployment.revision
        assert revision is not None
        pipeline.insert("t", *([value, 0] if revision == "r3" else [value]))
        in_force[value] = {"r3": 2, "r4": 3, "r5": 4}.get(revision, int(revision[1:]))
        for _ in range(data.draw(st.integers(0, 2))):
            pipeline = whole(world, revisions, data)
            with maybe_dying(world, data):
                if data.draw(st.booleans()):
                    pipeline.tick()
                else:
                    target = data.draw(st.sampled_from([r.id for r in revisions]))
                    pipeline.executor.run(pipeline.plan(target))
    pipeline = whole(world, revisions, data)
    pipeline.tick()
    found = counted(pipeline)
    assert Counter(value for value, _ in found) == Counter(list(in_force))
    assert state(pipeline).is_historical == state(pipeline).takes_in
    if not state(pipeline).takes_in:
        pipeline.check_views()
    pipeline.go("r1")
    pipeline.tick()
    assert counted(pipeline) == [(value, 1) for value in sorted(in_force)]


@settings(max_examples=30)
@given(st.data())
def test_with_kills_on_the_way_forth_what_counted_stays_counted(data: st.DataObject) -> None:
    programs = [(T + S + view(n, "s"), [InPlace("v")] if n > 1 else []) for n in range(1, 5)]
    revisions = [Revision(f"r{n}", sql, tuple(up)) for n, (sql, up) in enumerate(programs, 1)]
    world, expected = World(), []
    Pipeline(world, revisions).go("r1")
    for value in range(1, 9):
        pipeline = whole(world, revisions, data)
        here = int((pipeline.deployment.revision or "r0")[1:])
        pipeline.insert("t", value)
        expected.append((value, here))
        with maybe_dying(world, data):
            if data.draw(st.booleans()):
                pipeline.tick()
            else:
                pipeline.executor.run(pipeline.plan(f"r{data.draw(st.integers(here, 4))}"))
    pipeline = whole(world, revisions, data)
    pipeline.tick()
    assert counted(pipeline) == expected
