"""The rules for each kind of change: what the plan does to tables, views and sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sqlmig.errors import StepFailed
from sqlmig.planning.directives import Directive, Execute, RenameColumn, RenameTable
from sqlmig.planning.explain import describe_action
from sqlmig.planning.planner import make_plan
from sqlmig.planning.steps import (
    Attach,
    Bootstrap,
    CreateTable,
    Detach,
    EmptyTable,
    Plan,
    Restore,
    RestoreTable,
)
from sqlmig.planning.table_steps import ConvertTable
from tests.fakes import Pipeline, Revision, World

META = "metadata only"
T = "CREATE TABLE t (a INT);\n"
U = "CREATE TABLE u (a INT);\n"
SOURCE = "CREATE SOURCE s INTO t USING json OPTIONS (path '/in');\n"
V = "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;\n"
W = "CREATE MATERIALIZED VIEW w AS SELECT n + 1 AS m FROM v;\n"


def pipeline(*programs: str, **hooks: Sequence[Directive]) -> Pipeline:
    """The first program, applied, with a row in `t`, ticked; `up2=...`, `down2=...` are hooks."""
    revisions = [
        Revision(f"r{n}", sql, tuple(hooks.get(f"up{n}", ())), tuple(hooks.get(f"down{n}", ())))
        for n, sql in enumerate(programs, 1)
    ]
    made = Pipeline(World(inputs={"/in": [1]}), revisions)
    made.go("r1")
    if "CREATE TABLE t " in programs[0]:
        made.insert("t", 7)
    made.tick()
    return made


def steps(plan: Plan) -> list[str]:
    """The plan's steps but those that each has."""
    assert plan.blockers == ()
    words = [describe_action(step.action) for step in plan.steps]
    assert (words[:2], words[-1]) == (["stop", "checkpoint"], "resume")
    assert [step.number for step in plan.steps] == list(range(1, len(words) + 1))
    return words[2:-1]


def emptying(made: Pipeline, target: str) -> Plan:
    """The plan where the rows of `t` can't be kept, and may be lost."""
    return make_plan(replace(made.request(target), emptied={"t": "they can't be cast"}))


def change(before: str, after: str, **hooks: Sequence[Directive]) -> list[str]:
    """The steps from one program to another."""
    return steps(pipeline(before, after, **hooks).plan("r2"))


# views


def test_an_added_view_is_computed_from_what_is_stored() -> None:
    made = pipeline(T, T + V)
    plan = made.plan("r2")
    assert steps(plan) == ["bootstrap `v`"]
    (step,) = [s for s in plan.steps if isinstance(s.action, Bootstrap)]
    assert [(v.relation, v.rows) for v in step.reads] == [("t", 1)]


def test_a_modified_view_and_what_is_downstream_are_computed_in_order() -> None:
    after = T + V.replace("COUNT(*)", "SUM(a)") + W
    assert change(T + V + W, after) == ["bootstrap `v`", "bootstrap `w`"]


def test_an_unchanged_view_is_left_alone() -> None:
    assert change(T + V, T + V + "CREATE TABLE u (a INT);") == ["create table `u`"]


def test_a_change_of_a_logical_view_computes_the_views_that_read_it() -> None:
    before = T + "CREATE VIEW l AS SELECT a FROM t;" + V.replace("FROM t", "FROM l")
    assert change(before, before.replace("SELECT a FROM t", "SELECT a FROM t WHERE a > 1")) == [
        "bootstrap `v`"
    ]


def test_a_removed_view_is_detached() -> None:
    assert change(T + V, T) == ["detach `v`"]


def test_a_view_that_becomes_logical_is_detached_and_bootstrapped_when_it_is_stored_again() -> None:
    logical = T + V.replace("MATERIALIZED ", "")
    assert change(T + V, logical) == ["detach `v`"]
    assert change(logical, T + V) == ["bootstrap `v`"]


def test_layout_changes_nothing() -> None:
    assert change(T + V, T + V.replace(" FROM", "\n  from")) == []


# tables


def test_an_added_table_is_created_empty() -> None:
    assert change(T, T + U) == ["create table `u`"]


def test_a_removed_table_is_detached() -> None:
    assert change(T + U, T) == ["detach `u`"]


def test_a_table_renamed_without_a_directive_is_removed_and_added() -> None:
    assert change(T, U) == ["create table `u`", "detach `t`"]


def test_a_table_renamed_by_a_hook_goes_on() -> None:
    hooks = [RenameTable("t", "u")]
    assert change(T, U, up2=hooks) == ["rename table `t` to `u`"]


def test_a_renamed_table_can_be_altered_in_the_same_step() -> None:
    after = "CREATE TABLE u (b INT, c INT);"
    assert change(T, after, up2=[RenameTable("t", "u"), RenameColumn("u", "a", "b")]) == [
        "rename table `t` to `u`",
        "alter table `u`: rename column `a` to `b`, add column `c int`",
    ]


def test_a_column_that_delta_can_change_keeps_the_rows_and_computes_what_reads_the_table() -> None:
    plan = pipeline(T + V, T.replace("INT", "BIGINT") + V).plan("r2")
    assert steps(plan) == [
        "alter table `t`: widen `a` from int to bigint",
        "bootstrap `v`",
    ]
    assert plan.destructive == ()


def test_any_other_change_of_a_type_casts_the_rows_and_says_what_that_costs() -> None:
    made = pipeline(T + V, T.replace("INT", "STRING") + V)
    plan = made.plan("r2")
    assert steps(plan) == ["rewrite table `t`: cast `a` from int to string", "bootstrap `v`"]
    assert plan.destructive == ()
    step = plan.steps[2]
    assert isinstance(step.action, ConvertTable)
    assert step.cost == "rewrites 1 row, 8 B"
    assert [(v.relation, v.rows) for v in step.reads] == [("t", 1)]
    made.executor.run(plan)
    assert made.rows("t") == [(7,)]


@pytest.mark.parametrize(
    ("after", "words", "cost"),
    [
        ("CREATE TABLE t (a BIGINT);", "alter table `t`: widen `a` from int to bigint", META),
        ("CREATE TABLE t (a INT, b INT);", "alter table `t`: add column `b int`", META),
        (
            "CREATE TABLE t (a INT, b INT DEFAULT 1);",
            "alter table `t`: add column `b int`",
            "rewrites 1 row, 8 B",
        ),
        ("CREATE TABLE t (a INT NOT NULL);", "alter table `t`: require a value in `a`", META),
        (
            "CREATE TABLE t (a INT PRIMARY KEY);",
            "alter table `t`: require a value in `a`, add the primary key (a)",
            META,
        ),
    ],
)
def test_every_change_of_a_table_keeps_the_rows_and_tells_its_cost(
    after: str, words: str, cost: str
) -> None:
    made = pipeline(T, after)
    plan = made.go("r2")
    assert steps(plan) == [words]
    assert plan.steps[2].cost == cost
    assert [row[0] for row in made.rows("t")] == [7]


def test_rows_that_can_not_be_kept_fail_the_step_and_all_is_as_it_was() -> None:
    made = pipeline(T, "CREATE TABLE t (a INT PRIMARY KEY);")
    plan = made.plan("r2")
    made.insert("t", 7)  # it came in between
    with pytest.raises(StepFailed) as caught:
        made.executor.run(plan)
    assert "`t` has a key twice" in str(caught.value)
    assert made.deployment.revision == "r1"
    assert made.rows("t") == [(7,), (7,)]


def test_rows_that_can_not_be_kept_are_lost_where_that_is_allowed() -> None:
    made = pipeline(T + V, T.replace("INT", "STRING") + V)
    plan = make_plan(replace(made.request("r2"), emptied={"t": "`t.a` can't be cast"}))
    assert steps(plan) == ["empty table `t`", "bootstrap `v`"]
    (step,) = plan.destructive
    assert isinstance(step.action, EmptyTable)
    assert step.destructive == "1 row of `t`: `t.a` can't be cast"


def test_going_back_casts_back_what_has_moved_since() -> None:
    made = pipeline(T, T.replace("INT", "STRING"))
    made.go("r2")
    assert steps(made.plan("r1")) == ["restore `t` to version 1"]
    made.insert("t", 9)
    assert steps(made.go("r1")) == ["rewrite table `t`: cast `a` from string to int"]
    assert made.rows("t") == [(7,), (9,)]


def test_a_dropped_column_is_warned_of() -> None:
    plan = pipeline("CREATE TABLE t (a INT, b INT);", T).plan("r2")
    assert plan.warnings == ("`t`: drop column `b`: its values are lost",)
    assert plan.destructive == ()


def test_a_table_that_becomes_a_view_is_detached_by_it() -> None:
    after = U + "CREATE MATERIALIZED VIEW t AS SELECT a FROM u;"
    made = pipeline(T + U, after)
    assert steps(made.plan("r2")) == ["bootstrap `t`"]
    made.go("r2")
    made.check_views()
    assert sorted(made.deployment.cut.detached) == ["t"]


def test_a_view_that_becomes_a_table_is_detached_by_it_and_comes_back() -> None:
    before = U + "CREATE MATERIALIZED VIEW t AS SELECT a FROM u;"
    made = Pipeline(World(), [Revision("r1", before), Revision("r2", T + U)])
    made.go("r1")
    plan = made.go("r2")
    assert steps(plan) == ["create table `t`"]
    assert isinstance(plan.steps[2].action, CreateTable)
    assert plan.steps[2].action.folder == "t__2"
    back = made.go("r1")
    assert steps(back) == ["restore `t` to version 0"]
    made.check_views()
    forth = made.go("r2")
    assert steps(forth) == ["attach `t`"]
    assert made.rows("t") == []


# sources


def test_an_added_source_starts_as_configured() -> None:
    assert change(T, T + SOURCE) == ["start source `t.s`"]


def test_an_unchanged_source_goes_on_without_a_step() -> None:
    assert change(T + SOURCE, T + SOURCE + U) == ["create table `u`"]


def test_a_modified_source_starts_again_and_rows_stay() -> None:
    made = pipeline(T + SOURCE, T + SOURCE.replace("/in", "/other"))
    assert steps(made.go("r2")) == ["start source `t.s` again"]
    assert made.rows("t") == [(1,), (7,)]


def test_a_removed_source_is_detached_and_rows_stay() -> None:
    made = pipeline(T + SOURCE, T)
    assert steps(made.go("r2")) == ["detach source `t.s`"]
    assert made.rows("t") == [(1,), (7,)]
    assert sorted(made.deployment.cut.detached_connectors) == ["t.s/1"]


def test_a_source_of_an_emptied_table_starts_again() -> None:
    made = pipeline(T + SOURCE, T.replace("INT", "STRING") + SOURCE)
    plan = emptying(made, "r2")
    made.executor.run(plan)
    assert steps(plan) == ["empty table `t`", "start source `t.s` again"]
    assert plan.steps[3].cause == "its table is emptied"
    made.tick()
    assert made.rows("t") == [(1,)]


@pytest.mark.parametrize("kind", ["BIGINT", "STRING", "INT NOT NULL", "INT PRIMARY KEY"])
def test_a_source_of_a_table_that_keeps_its_rows_goes_on(kind: str) -> None:
    made = pipeline(T + SOURCE, T.replace("INT", kind) + SOURCE)
    assert len(steps(made.go("r2"))) == 1
    made.tick()
    assert made.rows("t") == [(1,), (7,)]


def test_a_source_that_remembers_deleted_keys_starts_again_where_the_key_is_another() -> None:
    source = (
        "CREATE SOURCE s INTO t USING json OPTIONS "
        "(path '/in', sequence_by 'n', delete_when 'a = 1');"
    )
    before = "CREATE TABLE t (a INT PRIMARY KEY, n INT, x INT);" + source
    made = pipeline(before, before.replace("a INT", "a STRING"), before.replace("x INT", "x DATE"))
    plan = made.plan("r2")
    assert steps(plan) == [
        "rewrite table `t`: cast `a` from int to string",
        "start source `t.s` again",
    ]
    assert plan.steps[3].cause == "its table has another key: what it deleted is not known by it"
    assert steps(made.plan("r3"))[-1].startswith("rewrite table `t`: cast `x`"), "it goes on"


def test_a_source_of_a_renamed_table_goes_on_there_and_back() -> None:
    hooks = {"up2": [RenameTable("t", "u")], "down2": [RenameTable("u", "t")]}
    made = pipeline(T + SOURCE, U + SOURCE.replace("INTO t", "INTO u"), **hooks)
    assert steps(made.go("r2")) == [
        "rename table `t` to `u`",
        "continue source `u.s`",
        "detach source `t.s`",
    ]
    made.world.inputs["/in"].append(2)
    made.tick()
    assert made.rows("u") == [(1,), (2,), (7,)]
    assert steps(made.go("r1")) == [
        "rename table `u` to `t`",
        "continue source `t.s`",
        "detach source `u.s`",
    ]
    made.tick()
    assert made.rows("t") == [(1,), (2,), (7,)]
    assert made.deployment.cut.detached_connectors == {}


def test_a_source_that_is_changed_while_its_table_is_renamed_starts_as_configured() -> None:
    after = U + SOURCE.replace("INTO t", "INTO u").replace("/in", "/other")
    assert change(T + SOURCE, after, up2=[RenameTable("t", "u")]) == [
        "rename table `t` to `u`",
        "start source `u.s`",
        "detach source `t.s`",
    ]


def test_a_source_removed_and_brought_back_goes_on_where_it_was() -> None:
    made = pipeline(T + SOURCE, T)
    made.go("r2")
    made.world.inputs["/in"].append(2)
    assert steps(made.go("r1")) == ["continue source `t.s`"]
    made.tick()
    assert made.rows("t") == [(1,), (2,), (7,)]


def test_a_new_source_under_a_name_whose_offsets_are_in_use_has_its_own() -> None:
    """t is renamed to u with its source; then another t gets a source of the same name."""
    second = U + SOURCE.replace("INTO t", "INTO u")
    third = second + T + SOURCE.replace("SOURCE s", "SOURCE s2").replace("s2", "s")
    third = third.replace("SOURCE s INTO u", "SOURCE su INTO u")
    made = pipeline(T + SOURCE, second, U + T + SOURCE, up2=[RenameTable("t", "u")])
    made.go("r2")
    assert steps(made.go("r3")) == [
        "create table `t`",
        "start source `t.s` again",
        "detach source `u.s`",
    ]
    made.tick()
    assert (made.rows("t"), made.rows("u")) == ([(1,)], [(1,), (7,)])


# what can't run


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "CREATE STREAMING TABLE x AS SELECT a FROM t;",
            "streaming table `x` reads no stream",
        ),
        ("CREATE SINK k FROM t USING json;", "sink `t.k`: it has no `path`"),
    ],
)
def test_what_can_not_be_run_is_a_blocker(sql: str, message: str) -> None:
    (blocker,) = pipeline(T, T + sql).plan("r2").blockers
    assert blocker.message == message
    assert blocker.hint
    assert blocker.location is not None
    assert str(blocker.location).startswith("pipeline/p.sql:2:")


def test_a_directive_that_names_nothing_is_a_blocker() -> None:
    (blocker,) = pipeline(T, U, up2=[RenameTable("x", "u")]).plan("r2").blockers
    assert blocker.message == (
        "up() of r2: rename of table `x`: the program that is left has no table `x`"
    )


# back, and forth again


def test_going_back_restores_what_has_not_moved() -> None:
    made = pipeline(T + V, T.replace("INT", "BIGINT") + V)
    made.go("r2")
    plan = made.plan("r1")
    assert steps(plan) == ["restore `t` to version 1", "restore `v` to version 1"]
    assert [v.rows for s in plan.steps for v in s.reads] == []


def test_going_back_computes_what_has_moved_and_alters_its_tables() -> None:
    made = pipeline(T + V, "CREATE TABLE t (a INT, b INT);" + V)
    made.go("r2")
    made.insert("t", 8, 9)
    assert steps(made.plan("r1")) == ["alter table `t`: drop column `b`", "bootstrap `v`"]


def test_going_back_takes_up_what_was_detached() -> None:
    made = pipeline(T + U + V, T)
    made.go("r2")
    plan = made.plan("r1")
    assert steps(plan) == ["attach `u`", "restore `v` to version 1"]
    assert isinstance(plan.steps[2].action, Attach)


def test_going_back_to_an_emptied_table_restores_its_rows_and_says_what_that_loses() -> None:
    made = pipeline(T, T.replace("INT", "STRING"))
    made.executor.run(emptying(made, "r2"))
    assert made.plan("r1").destructive == ()
    made.insert("t", 9)
    plan = made.go("r1")
    assert steps(plan) == ["restore `t` to version 1"]
    assert [s.destructive for s in plan.destructive] == [
        "the rows written to `t` since it was emptied"
    ]
    assert made.rows("t") == [(7,)]


def test_a_new_revision_does_not_bring_back_dropped_values() -> None:
    """A column that is dropped and added again is a new one, though no rows have moved."""
    wide = "CREATE TABLE t (a INT, b INT);"
    made = Pipeline(World(), [Revision("r1", wide), Revision("r2", T), Revision("r3", wide)])
    made.go("r1")
    made.insert("t", 1, 2)
    made.go("r2")
    assert steps(made.go("r3")) == ["alter table `t`: add column `b int`"]
    assert made.rows("t") == [(1, None)]
    assert steps(made.go("r1")) == ["restore `t` to version 1"]
    assert made.rows("t") == [(1, 2)]


def test_two_steps_back_at_once_go_where_two_single_ones_go() -> None:
    narrow, wide = T, "CREATE TABLE t (a INT, b INT);"
    at_once = pipeline(T, wide, wide.replace("b INT", "c INT"))
    for name in ("r2", "r3", "r1"):
        at_once.go(name)
    single = pipeline(narrow, wide, wide.replace("b INT", "c INT"))
    for name in ("r2", "r3", "r2", "r1"):
        single.go(name)
    assert at_once.contents() == single.contents()


def test_a_table_dropped_and_made_again_is_not_taken_for_the_old_one_on_the_way_back() -> None:
    made = pipeline(T + U, U, T + U)
    made.go("r2")
    made.go("r3")
    made.insert("t", 99)
    assert steps(made.go("r1")) == ["attach `t`"]
    assert made.rows("t") == [(7,)]
    assert steps(made.go("r3")) == ["attach `t`"]
    assert made.rows("t") == [(99,)]


def test_a_detached_table_of_another_definition_is_warned_of() -> None:
    wide = "CREATE TABLE t (a INT, b INT);"
    made = pipeline(T + U, wide + U, U)
    made.go("r2")
    made.insert("t", 1, 2)
    made.go("r3")
    plan = made.plan("r1")
    assert steps(plan) == ["create table `t`"]
    assert plan.warnings == (
        "`t` begins empty: folder `t` keeps its rows under another definition",
    )


def test_renames_that_cross_are_made_one_by_one() -> None:
    """t becomes x, u becomes t, x becomes u, each in a revision of its own."""
    sql = [
        T + U,
        "CREATE TABLE x (a INT);" + U,
        "CREATE TABLE x (a INT);" + T,
        U + T,
    ]
    made = pipeline(
        *sql,
        up2=[RenameTable("t", "x")],
        up3=[RenameTable("u", "t")],
        up4=[RenameTable("x", "u")],
        down4=[RenameTable("u", "x")],
        down3=[RenameTable("t", "u")],
        down2=[RenameTable("x", "t")],
    )
    made.insert("u", 5)
    plan = made.go("r4")
    assert steps(plan) == [
        "rename table `t` to `t__renamed`",
        "rename table `u` to `t`",
        "rename table `t__renamed` to `u`",
    ]
    assert (made.rows("t"), made.rows("u")) == ([(5,)], [(7,)])
    made.go("r1")
    assert (made.rows("t"), made.rows("u")) == ([(7,)], [(5,)])


def test_a_chain_of_renames_frees_each_name_first() -> None:
    """u becomes x, then t becomes u: in the other order u's rows would be lost."""
    x = "CREATE TABLE x (a INT);"
    made = pipeline(T + U, T + x, U + x, up2=[RenameTable("u", "x")], up3=[RenameTable("t", "u")])
    made.insert("u", 5)
    made.go("r3")
    assert (made.rows("u"), made.rows("x")) == ([(7,)], [(5,)])


def test_a_hook_sees_the_table_of_its_own_revision() -> None:
    """r2 widens the table and inserts; r3 drops it again. Both stages are made."""
    wide = "CREATE TABLE t (a INT, b INT);"
    made = pipeline(T + U, wide + U, U, up2=[Execute("INSERT INTO t VALUES (1, 2)")])
    plan = made.go("r3")
    assert steps(plan) == [
        "alter table `t`: add column `b int`",
        "execute: INSERT INTO t VALUES (1, 2)",
        "detach `t`",
    ]


def test_a_table_put_back_at_a_middle_stage_is_that_revisions_and_not_the_targets() -> None:
    """Down from r3 over r2, whose hook needs its own table, to r1: three definitions."""
    two, three = "CREATE TABLE t (a INT, b INT);", "CREATE TABLE t (a INT, b INT, c INT);"
    made = pipeline(T, two, three, down2=[Execute("INSERT INTO t VALUES (1, 2)")])
    made.go("r2")
    made.go("r3")
    plan = made.go("r1")
    assert steps(plan) == [
        "restore `t` to version 3",
        "execute: INSERT INTO t VALUES (1, 2)",
        "alter table `t`: drop column `b`",
    ]
    assert made.rows("t") == [(1,), (7,)]


def test_an_emptied_table_that_a_hook_wrote_to_goes_back_to_its_rows() -> None:
    two = T.replace("INT", "STRING")
    made = pipeline(T + U, two + U, down2=[Execute("INSERT INTO t VALUES (1)")])
    made.executor.run(emptying(made, "r2"))
    plan = made.plan("r1")
    assert steps(plan) == ["execute: INSERT INTO t VALUES (1)", "restore `t` to version 1"]
    assert len(plan.destructive) == 1
    made.executor.run(plan)
    assert made.rows("t") == [(7,)]


def test_a_cast_table_that_a_hook_wrote_to_is_cast_back_with_the_new_row() -> None:
    two = T.replace("INT", "STRING")
    made = pipeline(T + U, two + U, down2=[Execute("INSERT INTO t VALUES (1)")])
    made.go("r2")
    plan = made.go("r1")
    assert steps(plan) == [
        "execute: INSERT INTO t VALUES (1)",
        "rewrite table `t`: cast `a` from string to int",
    ]
    assert made.rows("t") == [(1,), (7,)]


def test_a_view_over_a_table_that_a_hook_writes_to_is_expected_to_be_computed() -> None:
    two = T + V.replace("COUNT(*)", "SUM(a)")
    made = pipeline(T + V, two, down2=[Execute("INSERT INTO t VALUES (1)")])
    made.go("r2")
    assert steps(made.plan("r1")) == ["execute: INSERT INTO t VALUES (1)", "bootstrap `v`"]


def test_after_a_stamp_tables_that_are_as_wanted_keep_their_rows() -> None:
    from sqlmig.ledger.records import Kind, Status

    made = pipeline(T + V, T + V)
    made.journal.append(Kind.STAMP, Status.DONE, revision=None, program={}, details={"ups": []})
    plan = made.plan("r1")
    assert plan.destructive == ()
    made.go("r1")
    assert made.rows("t") == [(7,)]
    made.check_views()


# the plan as a value


def test_the_same_request_makes_the_same_plan_to_the_byte() -> None:
    import json

    made = pipeline(T + V, T.replace("INT", "STRING") + V + SOURCE)
    one, two = make_plan(made.request("r2")), make_plan(made.request("r2"))
    assert json.dumps(one.to_dict()) == json.dumps(two.to_dict())


def test_plans_that_do_something_else_have_another_id() -> None:
    made = pipeline(T + V, T.replace("INT", "BIGINT") + V, T + V)
    ids = {made.plan(name).id for name in ("r1", "r2", "r3")}
    made.go("r2")
    made.go("r1")
    ids.add(made.plan("r2").id)  # the way is another one now: it restores
    assert len(ids) == 4


def test_a_plan_comes_back_from_json() -> None:
    import json

    made = pipeline(T + V + SOURCE, U, up2=[RenameTable("t", "u"), Execute("DELETE FROM u")])
    plan = made.plan("r2")
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    made.go("r2")
    back = made.plan("r1")
    assert Plan.from_dict(json.loads(json.dumps(back.to_dict()))) == back


def test_to_go_where_one_is_is_nothing_to_do() -> None:
    assert pipeline(T + V, T + V).plan("r1").is_noop


def test_a_revision_that_changes_nothing_needs_no_approval_but_is_applied() -> None:
    plan = pipeline(T + V, T + V + "-- a comment").plan("r2")
    assert not plan.is_noop
    assert not plan.needs_approval


def test_a_plan_from_the_ledger_alone_has_the_same_steps() -> None:
    made = pipeline(T + V, T.replace("INT", "BIGINT") + V)
    assert steps(made.plan("r2", offline=True)) == steps(made.plan("r2"))


def test_what_something_else_wrote_to_a_view_is_replaced() -> None:
    from tests.fakes import Version

    made = pipeline(T + "CREATE MATERIALIZED VIEW one AS SELECT 1 AS n;", T)
    made.world.tables["one"].append(Version((), ("scribble",)))
    made.tick()
    made.check_views()


def test_restores_name_where_they_go_back_to() -> None:
    made = pipeline(T + V, T.replace("INT", "BIGINT") + V)
    made.go("r2")
    table, view = made.plan("r1").steps[2:4]
    assert table.action == RestoreTable(
        "t", "t", 1, "t@1", can_alter=True, stage=0, is_converted=True
    )
    assert view.action == Restore("v", "v", 1, "v@1")
    assert made.plan(None).steps[2].action == Detach("t")


def test_a_cast_table_whose_rows_move_before_it_is_put_back_is_cast_back() -> None:
    made = pipeline(T, T.replace("INT", "STRING"))
    made.go("r2")
    plan = made.plan("r1")
    made.insert("t", 9)
    made.executor.run(plan)
    assert made.rows("t") == [(7,), (9,)]
    assert made.deployment.revision == "r1"


def test_a_plan_of_an_older_version_is_read_with_what_it_has() -> None:
    plan = pipeline(T, T.replace("INT", "BIGINT")).plan("r2")
    data = plan.to_dict()
    for step in data["steps"]:
        del step["cost"]
    assert Plan.from_dict(data).steps[2].cost == ""
