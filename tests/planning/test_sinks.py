"""What a plan does to sinks: started, going on, continued, detached; and what they may not ask."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sqlmig.planning.directives import Directive, RenameTable
from sqlmig.planning.explain import describe_action
from sqlmig.planning.steps import Plan
from tests.fakes import Pipeline, Revision, World

T = "CREATE TABLE t (a INT);\n"
U = "CREATE TABLE u (a INT);\n"
V = "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;\n"
SINK = "CREATE SINK k FROM t USING json OPTIONS (path '/out');\n"
OTHER = SINK.replace("/out", "/other")


def pipeline(*programs: str, **hooks: Sequence[Directive]) -> Pipeline:
    """The first program, applied, with a row in `t`, ticked; `up2=...`, `down2=...` are hooks."""
    revisions = [
        Revision(f"r{n}", sql, tuple(hooks.get(f"up{n}", ())), tuple(hooks.get(f"down{n}", ())))
        for n, sql in enumerate(programs, 1)
    ]
    made = Pipeline(World(), revisions)
    made.go("r1")
    made.insert("t", 7)
    made.tick()
    return made


def steps(plan: Plan) -> list[str]:
    """The plan's steps but those that each has."""
    assert plan.blockers == ()
    return [describe_action(step.action) for step in plan.steps][2:-1]


def test_a_new_sink_is_started_and_its_first_tick_sends_all_rows() -> None:
    made = pipeline(T, T + SINK)
    plan = made.go("r2")
    assert steps(plan) == ["start sink `t.k` with a snapshot"]
    assert plan.steps[2].cause == "it is added"
    assert made.world.sent == {}
    assert made.tick().sent == {"t.k": 1}
    made.check_sinks()


def test_an_unchanged_sink_goes_on_when_its_relation_is_modified_and_sends_what_differs() -> None:
    made = pipeline(
        T + V + SINK.replace("FROM t", "FROM v"),
        T + V.replace("*", "a") + SINK.replace("FROM t", "FROM v"),
    )
    plan = made.go("r2")
    assert steps(plan) == ["bootstrap `v`", "cut over sink `v.k` with the difference"]
    assert plan.steps[3].cause == ("`v` is computed: `*` became `a`; sends the rows that differ")
    assert made.tick().sent == {"v.k": 2}
    made.check_sinks()


def test_a_sink_that_is_removed_and_brought_back_by_a_downgrade_goes_on() -> None:
    made = pipeline(T + SINK, T)
    plan = made.go("r2")
    assert (steps(plan), plan.steps[2].cause) == (["detach sink `t.k`"], "it is removed")
    made.insert("t", 8)
    assert made.tick().sent == {}
    assert steps(made.go("r1")) == ["continue sink `t.k`"]
    assert made.tick().sent == {"t.k": 1}
    made.check_sinks()
    assert made.deployment.cut.detached_sinks == {}


def test_a_sink_that_went_on_under_later_revisions_continues_from_there_and_not_from_before() -> (
    None
):
    """r1 --> r2 (unchanged, sends more) --> r3 (removed) --> r1"""
    made = pipeline(T + SINK, T + U + SINK, T)
    made.go("r2")
    made.insert("t", 8)
    made.tick()
    made.go("r3")
    assert "continue sink `t.k`" in steps(made.go("r1"))
    assert made.tick().sent == {}
    made.check_sinks()


def test_a_sink_that_is_changed_starts_anew_and_goes_on_where_a_downgrade_brings_it_back() -> None:
    made = pipeline(T + SINK, T + OTHER)
    plan = made.go("r2")
    assert steps(plan) == ["start sink `t.k` again with a snapshot"]
    assert plan.steps[2].cause == "option `path` changed"
    made.insert("t", 8)
    assert made.tick().sent == {"t.k": 2}
    made.check_sinks()
    plan = made.go("r1")
    assert steps(plan) == ["continue sink `t.k`"]
    assert plan.steps[2].cause == "it goes on from what it sent last"
    assert made.tick().sent == {"t.k": 1}
    made.check_sinks()
    numbers = [n for place in made.world.sent.values() for n in place]
    assert sorted(numbers) == [1, 2, 3]


def test_a_sink_of_a_renamed_table_goes_on_there_and_back() -> None:
    hooks = {"up2": [RenameTable("t", "u")], "down2": [RenameTable("u", "t")]}
    made = pipeline(T + SINK, U + SINK.replace("FROM t", "FROM u"), **hooks)
    assert steps(made.go("r2")) == [
        "rename table `t` to `u`",
        "continue sink `u.k`",
        "detach sink `t.k`",
    ]
    made.insert("u", 8)
    assert made.tick().sent == {"u.k": 1}
    made.check_sinks()
    assert steps(made.go("r1"))[1:] == ["continue sink `t.k`", "detach sink `u.k`"]
    assert made.tick().sent == {}
    made.check_sinks()
    assert made.deployment.cut.detached_sinks == {}


def test_a_sink_whose_key_comes_from_a_primary_key_that_changes_starts_anew() -> None:
    first = "CREATE TABLE t (a INT PRIMARY KEY, b INT);\n" + SINK
    made = pipeline(first, first.replace("a INT PRIMARY KEY, b INT", "a INT, b INT PRIMARY KEY"))
    plan = made.plan("r2")
    assert steps(plan)[-1] == "start sink `t.k` again with a snapshot"
    assert plan.steps[-2].cause == "its relation's key changed"


def test_going_to_base_detaches_sinks_and_going_up_again_continues_them() -> None:
    made = pipeline(T + SINK)
    made.go(None)
    assert made.deployment.cut.sinks == {}
    assert "continue sink `t.k`" in steps(made.go("r1"))
    assert made.tick().sent == {}
    made.check_sinks()


def test_a_plan_that_is_taken_back_leaves_sinks_as_they_were() -> None:
    made = pipeline(T + SINK, T + V + OTHER)
    before = made.deployment.cut.sinks
    made.world.broken["v"] = 1
    with pytest.raises(Exception, match="v is broken"):
        made.go("r2")
    assert made.deployment.cut.sinks == before
    made.insert("t", 8)
    assert made.tick().sent == {"t.k": 1}
    made.check_sinks()


def test_what_a_sink_asks_wrongly_blocks_the_plan_at_its_place() -> None:
    (blocker,) = pipeline(T, T + "CREATE SINK k FROM t USING jsn;").plan("r2").blockers
    assert str(blocker.location) == "pipeline/p.sql:2:1"
    assert blocker.message == "sink `t.k`: there is no sink format `jsn`"
    assert blocker.hint == "did you mean `json`?"
