"""Raw records in plans: columns that are filled, tables that are made again, what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlmig.planning.directives import Execute
from sqlmig.planning.explain import describe_action
from sqlmig.planning.planner import make_plan
from sqlmig.planning.request import RawRecords
from sqlmig.planning.steps import Plan
from sqlmig.planning.strategies import explain_relations
from tests.fakes import Died, Pipeline, Revision, World

T = "CREATE TABLE t (a INT);\n"
WIDER = "CREATE TABLE t (a INT, b INT);\n"
OTHER = "CREATE TABLE t (a STRING);\n"
S = "CREATE SOURCE s INTO t USING json OPTIONS (path '/in') RETAIN RAW;\n"
V = "CREATE MATERIALIZED VIEW v AS SELECT * FROM t;\n"
STREAM = "CREATE STREAMING TABLE st AS SELECT a FROM STREAM t;\n"
MISFIT = {"t": "`t.a` can't be cast in 1 row"}


def pipeline(*programs: str, world: World | None = None) -> Pipeline:
    """The first program, applied; its source has brought two rows."""
    made = Pipeline(world or World(), [Revision(f"r{n}", sql) for n, sql in enumerate(programs, 1)])
    made.world.inputs.update({"/in": [1, 2], "/other": [3]})
    made.go("r1")
    made.tick()
    return made


def steps(plan: Plan) -> list[str]:
    """The plan's steps but those that each has."""
    assert plan.blockers == ()
    return [describe_action(step.action) for step in plan.steps][2:-1]


def test_a_column_without_a_default_is_filled_before_views_are_computed() -> None:
    made = pipeline(T + S + V, WIDER + S + V)
    plan = made.plan("r2")
    assert steps(plan) == [
        "alter table `t`: add column `b int`",
        "fill `b` of `t` from raw records",
        "bootstrap `v`",
    ]
    fill = plan.steps[3]
    assert fill.cause == "from the raw records of `t.s`"
    assert [(v.relation, v.rows) for v in fill.reads] == [("raw records of t.s", 2)]
    assert fill.cost == "rewrites 2 rows, 16 B"
    assert plan.warnings == ()
    made.executor.run(plan)
    assert made.rows("t") == [(1, -1), (2, -1)]
    made.check_views()
    before = made.deployment.cut.relations["t"]
    assert steps(made.plan("r1"))[0].startswith("restore `t` to version"), "no row has moved"
    made.go("r1")
    made.go("r2")
    assert made.deployment.cut.relations["t"].content == before.content


def test_what_a_default_fills_or_nothing_was_kept_of_is_left_alone() -> None:
    default = WIDER.replace("b INT", "b INT DEFAULT 7")
    made = pipeline(T + S, default + S)
    assert steps(made.plan("r2")) == ["alter table `t`: add column `b int`"]
    unkept = S.replace(" RETAIN RAW", "")
    assert steps(pipeline(T + unkept, WIDER + unkept).plan("r2")) == [
        "alter table `t`: add column `b int`"
    ]
    both = pipeline(T + unkept, WIDER + S).plan("r2")
    assert steps(both) == ["alter table `t`: add column `b int`", "continue source `t.s`"]


def test_a_column_of_a_table_that_is_gone_in_the_end_is_not_filled() -> None:
    hook = Execute("INSERT INTO t VALUES (7, 8)")
    made = pipeline(T + S, WIDER + S, "CREATE TABLE u (a INT);")
    made.revisions["r2"] = replace(made.revisions["r2"], up=(hook,))
    assert steps(made.plan("r3")) == [
        "alter table `t`: add column `b int`",
        "execute: INSERT INTO t VALUES (7, 8)",
        "create table `u`",
        "detach source `t.s`",
        "detach `t`",
    ]


def test_rows_that_came_before_raw_records_were_kept_stay_null_and_the_plan_says_since_when() -> (
    None
):
    other = "CREATE SOURCE o INTO t USING json OPTIONS (path '/other');\n"
    made = pipeline(T + S + other, WIDER + S + other)
    request = made.request("r2")
    kept = {1: RawRecords(3, 9, True, 40, 400, "2026-06-11T08:00:00+00:00")}
    plan = make_plan(replace(request, raw={"t.s": kept}))
    assert "fill `b` of `t` from raw records" in steps(plan)
    assert plan.warnings == (
        "`b` of `t` stay NULL in the rows of `t.o`",
        "`b` of `t` stay NULL in rows that came before 2026-06-11T08:00:00+00:00: since then "
        "`t.s` keeps its raw records",
    )


def test_an_emptied_table_is_made_again_and_its_sources_go_on() -> None:
    made = pipeline(T + S + V + STREAM, OTHER + S + V + STREAM)
    made.insert("t", 9)
    made.tick()
    plan = make_plan(replace(made.request("r2"), emptied=MISFIT))
    assert steps(plan) == [
        "take in rows for `st`",
        "empty table `t`",
        "rebuild table `t` from raw records",
        "bootstrap `st`",
        "bootstrap `v`",
    ]
    assert plan.steps[4].cause == (
        "its sources have kept all their raw records, and go on where they are"
    )
    before, after = (made.revisions[name].program for name in ("r1", "r2"))
    table = next(r for r in explain_relations(before, after, plan) if r.name == "t")
    assert table.taken is not None
    assert table.taken.name == "rebuild"
    assert all(promise.is_kept for promise in table.promises)
    made.executor.run(plan)
    assert made.rows("t") == [(1,), (2,)], "what was inserted by hand is gone, as the plan says"
    assert "3 rows of `t`" in (plan.steps[3].destructive or "")
    assert len(made.contents()["st"][1]) == 2
    made.world.inputs["/in"].append(3)
    made.tick()
    assert made.rows("t") == [(1,), (2,), (3,)]
    assert len(made.contents()["st"][1]) == 3, "each row passes once"
    made.check_views()


@pytest.mark.parametrize(
    ("records", "warns"),
    [
        ({}, False),
        ({1: RawRecords(1, 2, True, 1, 9)}, True),
        ({1: RawRecords(0, 2, False, 1, 9)}, True),
        ({1: RawRecords(0, 1, True, 1, 9)}, True),
    ],
)
def test_a_source_whose_raw_records_lack_something_is_read_again(
    records: dict[int, RawRecords], *, warns: bool
) -> None:
    made = pipeline(T + S, OTHER + S)
    request = replace(made.request("r2"), emptied=MISFIT)
    plan = make_plan(replace(request, raw={"t.s": records}))
    assert steps(plan) == ["empty table `t`", "start source `t.s` again"]
    warning = "`t.s` is read again from the beginning: its raw records don't have all that it gave"
    assert plan.warnings == ((warning,) if warns else ())


def test_a_source_that_reads_something_else_is_read_from_the_beginning() -> None:
    made = pipeline(T + S, OTHER + S.replace("/in", "/other"))
    plan = make_plan(replace(made.request("r2"), emptied=MISFIT))
    assert steps(plan) == ["empty table `t`", "start source `t.s` again"]


def test_a_plan_that_dies_anywhere_is_finished_with_the_same_rows() -> None:
    programs = (T + S + V, OTHER + S + V, OTHER.replace(")", ", b INT)") + S + V)
    start = pipeline(*programs).world
    revisions = list(pipeline(*programs).revisions.values())

    def deploy(made: Pipeline, target: str) -> None:
        request = made.request(target)
        emptied = MISFIT if target == "r2" else {}
        made.executor.run(make_plan(replace(request, emptied=emptied)))

    for target in ("r2", "r3"):
        whole = Pipeline(start.copy(), revisions)
        whole.world.revive()
        deploy(whole, target)
        beats = whole.world.beats
        expected = whole.rows("t")
        assert len(expected) == 2
        for beat in range(beats):
            world = start.copy()
            world.revive(dies_at=beat)
            with pytest.raises(Died):
                deploy(Pipeline(world, revisions), target)
            world.revive()
            again = Pipeline(world, revisions)
            if again.deployment.unfinished is not None:
                again.executor.resume()
            elif again.deployment.revision != target:
                deploy(again, target)
            assert again.rows("t") == expected
            again.tick()
            assert again.rows("t") == expected, "nothing comes twice"
            again.check_views()
        start = whole.world
