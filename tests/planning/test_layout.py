"""PARTITIONED BY: what a plan does about it, and what it leaves alone."""

from __future__ import annotations

from sqlmig.planning.explain import describe_action
from sqlmig.planning.steps import Plan
from sqlmig.planning.strategies import explain_relations
from tests.fakes import FILE, Pipeline, Revision, World, parse

T = "CREATE TABLE t (a INT, b INT);\n"
P = "CREATE TABLE t (a INT, b INT) PARTITIONED BY (b);\n"
V = "CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t;\n"
PV = "CREATE MATERIALIZED VIEW v PARTITIONED BY (a) AS SELECT a, b FROM t;\n"
W = "CREATE MATERIALIZED VIEW w AS SELECT a FROM v;\n"
K = "CREATE SINK k FROM t USING json OPTIONS (path '/out');\n"


def pipeline(*programs: str) -> Pipeline:
    """The first program, applied, with a row in `t`, ticked."""
    made = Pipeline(World(), [Revision(f"r{n}", sql) for n, sql in enumerate(programs, 1)])
    made.go("r1")
    made.insert("t", 7, 8)
    made.tick()
    return made


def steps(plan: Plan) -> list[str]:
    """The plan's steps but those that each has."""
    assert plan.blockers == ()
    return [describe_action(step.action) for step in plan.steps][2:-1]


def test_a_table_is_partitioned_and_nothing_that_reads_it_is_computed_or_sent() -> None:
    made = pipeline(T + V + K, P + V + K)
    plan = made.go("r2")
    assert steps(plan) == ["rewrite `t`: partitioned by (b)"]
    assert (plan.steps[2].cause, plan.steps[2].cost) == (
        "partitioned by (b)",
        "rewrites 1 row, 8 B",
    )
    assert plan.diff.names("table", "modified") == ("t",)
    assert plan.diff.names("view", "modified", "affected") == ()
    tick = made.tick()
    assert (tick.refreshed, tick.sent) == ({}, {})
    made.check_views()
    made.check_sinks()
    assert made.rows("t") == [(7, 8)]
    assert steps(made.go("r1")) == ["rewrite `t`: not partitioned"]
    assert made.tick().refreshed == {}


def test_a_view_is_partitioned_from_its_own_rows() -> None:
    made = pipeline(T + V + W, T + PV + W)
    plan = made.go("r2")
    assert steps(plan) == ["rewrite `v`: partitioned by (a)"]
    assert made.tick().refreshed == {}
    made.check_views()


def test_a_table_that_changes_too_is_altered_and_then_partitioned() -> None:
    after = "CREATE TABLE t (a INT, b INT, c INT) PARTITIONED BY (c);"
    assert steps(pipeline(T, after).go("r2")) == [
        "alter table `t`: add column `c int`",
        "rewrite `t`: partitioned by (c)",
    ]


def test_a_column_that_parts_the_files_is_let_go_before_it_changes() -> None:
    dropped = "CREATE TABLE t (a INT);"
    cast = P.replace("b INT", "b STRING")
    other = P.replace("b INT", "b INT, c INT")
    made = pipeline(P, dropped, P, cast, other)
    assert steps(made.plan("r2")) == [
        "rewrite `t`: not partitioned",
        "alter table `t`: drop column `b`",
    ]
    made.go("r2")
    made.insert("t", 9)
    assert steps(made.go("r3")) == [
        "alter table `t`: add column `b int`",
        "rewrite `t`: partitioned by (b)",
    ]
    assert steps(made.go("r4")) == [
        "rewrite `t`: not partitioned",
        "rewrite table `t`: cast `b` from int to string",
        "rewrite `t`: partitioned by (b)",
    ]
    assert made.rows("t") == [(7, None), (9, None)]


def test_what_is_made_or_computed_anew_needs_no_step_of_its_own() -> None:
    made = pipeline(T, P.replace(" t ", " u ") + T + PV)
    assert steps(made.go("r2")) == ["create table `u`", "bootstrap `v`"]
    assert made.deployment.cut.relations["u"].layout == ("b",)
    assert made.deployment.cut.relations["v"].layout == ("a",)


def test_contents_that_are_restored_with_an_older_layout_are_laid_out_again() -> None:
    other = PV.replace("a, b FROM", "a, b + 1 AS b FROM")
    made = pipeline(T + V, T + PV, T + other, T + PV)
    for name in ("r2", "r3"):
        made.go(name)
    assert steps(made.go("r4"))[0].startswith("restore `v` to version ")
    assert made.deployment.cut.relations["v"].layout == ("a",)
    made.check_views()


def test_a_view_downstream_of_a_change_is_computed_though_it_is_partitioned_too() -> None:
    made = pipeline(T + V + W, T.replace("b INT", "b INT, c INT") + PV + W)
    plan = made.go("r2")
    assert steps(plan)[1:] == ["bootstrap `v`", "bootstrap `w`"]
    assert plan.diff.change("v").reasons == (  # type: ignore[union-attr]
        "partitioned by (a)",
        "reads `t`, which changed",
    )


def test_what_came_passes_before_a_stream_is_laid_out_anew() -> None:
    s = "CREATE STREAMING TABLE s AS SELECT a, b FROM STREAM t;\n"
    other = "CREATE STREAMING TABLE o AS SELECT * FROM STREAM u;\n"
    u = T.replace(" t ", " u ")
    made = pipeline(T + u + s + other + V, P + u + s + other + V)
    made.insert("t", 9, 9)  # no tick has seen it
    plan = made.plan("r2")
    assert steps(plan) == ["take in rows for `s`", "rewrite `t`: partitioned by (b)"]
    assert plan.steps[2].cause == "what came so far passes before `t` is laid out anew"
    made.executor.run(plan)
    assert len(made.contents()["s"][1]) == 2
    assert made.tick().refreshed == {"v": 1}, "the row that came; nothing passes twice"
    assert len(made.contents()["s"][1]) == 2
    assert steps(made.plan("r1")) == [
        "take in rows for `s`",
        "rewrite `t`: not partitioned",
    ]


def test_a_view_whose_function_can_tell_files_apart_is_affected_by_a_layout() -> None:
    f = "CREATE FUNCTION f() RETURNS INT RETURN (SELECT max(_metadata.file_size) FROM t);\n"
    w = "CREATE MATERIALIZED VIEW w AS SELECT f() AS n;\n"
    plan = pipeline(T + f + w + V, P + f + w + V).plan("r2")
    assert plan.diff.names("view", "modified", "affected") == ("w",)


def test_a_change_of_the_layout_alone_is_scaling_and_other_strategies_go_first() -> None:
    made = pipeline(T + V, P + PV, P.replace("b INT", "b INT, c INT").replace("(b)", "(c)") + PV)
    plan = made.plan("r2")
    found = explain_relations(parse({FILE: T + V}), parse({FILE: P + PV}), plan)
    assert [(r.name, r.change) for r in found] == [("t", ("scaling",)), ("v", ("scaling",))]
    assert [[(s.name, s.reason) for s in r.strategies] for r in found] == [
        [("lay out", "partitioned by (b)")],
        [("lay out", "partitioned by (a)")],
    ]
    made.executor.run(plan)
    deployed, target = (made.revisions[name].program for name in ("r2", "r3"))
    table = explain_relations(deployed, target, made.plan("r3"))[0]
    assert table.change == ("schema evolution", "scaling")
    assert [s.name for s in table.strategies if s.is_taken] == ["alter"]
