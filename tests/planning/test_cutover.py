"""Cutovers of sinks: what they send when their relation is made anew or is another one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sqlmig.errors import StepFailed
from sqlmig.execution import events
from sqlmig.planning.directives import Cutover, Directive, Operations, RenameTable
from sqlmig.planning.explain import describe_action, to_text
from sqlmig.planning.sink_steps import CutOverSink
from sqlmig.planning.steps import Plan, action_from_dict, action_to_dict
from tests.fakes import Died, Pipeline, Revision, World

T = "CREATE TABLE t (a INT);\n"
U = "CREATE TABLE u (a INT);\n"
V = "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;\n"
OF_T = "CREATE SINK k FROM t USING json OPTIONS (path '/out');\n"
OF_U = OF_T.replace("FROM t", "FROM u")
OF_V = OF_T.replace("FROM t", "FROM v")


def with_mode(sink: str, mode: str) -> str:
    """The sink's statement with the option."""
    return sink.replace("'/out'", f"'/out', cutover '{mode}'")


def pipeline(*programs: str, **hooks: Sequence[Directive]) -> Pipeline:
    """The first program, applied; 1 and 2 are in `t`, 2 and 3 in `u`; ticked."""
    revisions = [
        Revision(f"r{n}", sql, tuple(hooks.get(f"up{n}", ())), tuple(hooks.get(f"down{n}", ())))
        for n, sql in enumerate(programs, 1)
    ]
    made = Pipeline(World(), revisions)
    made.go("r1")
    for table, value in (("t", 1), ("t", 2), ("u", 2), ("u", 3)):
        if table in made.deployment.cut.relations:
            made.insert(table, value)
    made.tick()
    return made


def steps(plan: Plan) -> list[str]:
    """The plan's steps but those that each has."""
    assert plan.blockers == ()
    return [describe_action(step.action) for step in plan.steps][2:-1]


def cutovers(plan: Plan) -> list[tuple[str, str]]:
    """What the plan's cutovers send, and why."""
    return [
        (step.action.sends, step.cause)
        for step in plan.steps
        if isinstance(step.action, CutOverSink)
    ]


def batches(made: Pipeline, path: str = "/out") -> list[list[tuple[int, int]]]:
    """What lies at a path: of each batch, (value of `a`, how often it came or went)."""
    return [
        [(int(row.partition(": ")[2].rstrip("}")), count) for row, count in batch.rows]
        for _, batch in sorted(made.world.sent[path].items())
    ]


def test_a_sink_that_is_moved_sends_just_the_rows_that_differ_there_and_back() -> None:
    made = pipeline(T + U + OF_T, T + U + OF_U)
    plan = made.go("r2")
    assert steps(plan) == ["cut over sink `u.k` with the difference", "detach sink `t.k`"]
    assert cutovers(plan) == [("difference", "moved from `t` to `u`; sends the rows that differ")]
    assert plan.steps[3].cause == "goes on as `u.k`"
    assert made.tick().sent == {"u.k": 2}
    made.check_sinks()
    made.insert("t", 9)
    assert made.tick().sent == {}, "the former relation's rows are sent no more"
    assert steps(made.go("r1")) == [
        "cut over sink `t.k` with the difference",
        "detach sink `u.k`",
    ]
    assert made.tick().sent == {"t.k": 3}
    made.check_sinks()
    assert batches(made) == [[(1, 1), (2, 1)], [(1, -1), (3, 1)], [(1, 1), (3, -1), (9, 1)]]
    assert made.deployment.cut.detached_sinks == {}
    state = made.deployment.cut.sinks["t.k"]
    assert (state.offsets, state.rows) == ("t.k/1", 7)


def test_the_program_diff_of_a_moved_sink_has_it_removed_and_added() -> None:
    made = pipeline(T + U + OF_T, T + U + OF_U)
    diff = made.plan("r2").diff.to_json()
    assert diff == {
        "added_input_connectors": [],
        "added_output_connectors": ["u.k"],
        "modified_input_connectors": [],
        "modified_output_connectors": [],
        "program_diff": {
            "added_tables": [],
            "added_views": [],
            "modified_tables": [],
            "modified_views": [],
            "removed_tables": [],
            "removed_views": [],
        },
        "program_diff_error": None,
        "removed_input_connectors": [],
        "removed_output_connectors": ["t.k"],
    }


def test_a_sink_that_is_moved_while_its_former_relation_is_removed_still_knows_its_rows() -> None:
    made = pipeline(T + U + OF_T, U + OF_U)
    made.insert("t", 4)  # is not sent: it differs by nothing that a reader has
    assert steps(made.go("r2")) == [
        "cut over sink `u.k` with the difference",
        "detach sink `t.k`",
        "detach `t`",
    ]
    assert made.tick().sent == {"u.k": 2}
    made.check_sinks()


def test_changes_that_were_due_before_a_difference_are_part_of_it() -> None:
    made = pipeline(T + U + OF_T, T + U + OF_U)
    made.insert("t", 3)
    made.go("r2")
    assert made.tick().sent == {"u.k": 2}
    assert batches(made)[1:] == [[(1, -1), (3, 1)]]
    made.check_sinks()


def test_a_key_that_a_table_has_and_a_view_is_told_is_the_same_key() -> None:
    keyed = "CREATE TABLE t (a INT PRIMARY KEY);\n"
    view = "CREATE MATERIALIZED VIEW v AS SELECT a FROM t;\n"
    sink = OF_V.replace("'/out'", "'/out', key 'A'")
    made = pipeline(keyed + view + OF_T, keyed + view + sink)
    assert steps(made.go("r2")) == [
        "cut over sink `v.k` with the difference",
        "detach sink `t.k`",
    ]
    with_key = OF_T.replace("'/out'", "'/out', key 'a'")
    assert steps(pipeline(keyed + OF_T, keyed + with_key).go("r2")) == []


@pytest.mark.parametrize(
    "after",
    [
        OF_U.replace("/out", "/other"),
        OF_U.replace("SINK k", "SINK m"),
        OF_U.replace("'/out'", "'/out', key 'a'"),
    ],
    ids=["place", "name", "key"],
)
def test_a_moved_sink_of_another_definition_or_name_starts_anew(after: str) -> None:
    plan = pipeline(T + U + OF_T, T + U + after).plan("r2")
    start, detach = steps(plan)
    assert start.endswith("with a snapshot")
    assert detach == "detach sink `t.k`"


def test_of_two_sinks_with_one_name_none_is_taken_for_the_other() -> None:
    both = T + U + OF_T + OF_U.replace("/out", "/u")
    plan = pipeline(both, T + U + V + OF_V).plan("r2")
    assert "cut over sink `v.k` with the difference" in steps(plan)
    same = T + U + OF_T.replace("json", "delta") + OF_U.replace("json", "delta")
    plan = pipeline(same, T + U + V + OF_V.replace("json", "delta")).plan("r2")
    assert "start sink `v.k` with a snapshot" in steps(plan)


def test_a_snapshot_sends_all_rows_and_what_is_gone() -> None:
    made = pipeline(T + U + OF_T, T + U + with_mode(OF_U, "snapshot"))
    plan = made.go("r2")
    assert cutovers(plan) == [
        ("snapshot", "moved from `t` to `u`; sends all 2 rows, and what is gone")
    ]
    assert plan.steps[2].writes is not None
    assert plan.steps[2].writes.rows == 2
    made.insert("u", 7)
    assert made.tick().sent == {"u.k": 5}
    assert batches(made)[1:] == [[(1, -1), (2, -1), (2, 1), (3, 1), (7, 1)]]
    made.check_sinks()
    made.insert("u", 8)
    assert made.tick().sent == {"u.k": 1}, "only the cutover sends all"
    made.check_sinks()


def test_a_snapshot_is_sent_though_the_contents_are_equal() -> None:
    altered = T.replace("INT", "INT COMMENT 'number'")
    made = pipeline(T + OF_T, altered + OF_T, up2=[Cutover("t.k", "snapshot")])
    assert cutovers(made.go("r2")) == [
        (
            "snapshot",
            "`t` is altered: change the comment of `a`; sends all 2 rows, and what is gone",
        )
    ]
    assert made.tick().sent == {"t.k": 4}
    made.check_sinks()


def test_continuing_sends_what_was_due_and_then_only_what_changes() -> None:
    made = pipeline(T + U + OF_T, T + U + with_mode(OF_U, "continue"))
    assert cutovers(made.plan("r2")) == [
        ("continue", "moved from `t` to `u`; sends only what changes from here on")
    ]
    made.insert("t", 4)
    plan = made.go("r2")
    assert cutovers(plan) == [
        (
            "continue",
            "moved from `t` to `u`; sends what was due before, "
            "and then only what changes from here on",
        )
    ]
    assert steps(plan)[0] == "cut over sink `u.k` without sending"
    made.insert("u", 5)
    assert made.tick().sent == {"u.k": 2}
    assert batches(made)[1:] == [[(4, 1)], [(5, 1)]]
    made.check_sinks()
    state = made.deployment.cut.sinks["u.k"]
    assert (state.is_continued, state.owed, state.mode) == (True, (), "continue")


def test_continuing_twice_before_a_tick_owes_the_changes_of_both() -> None:
    made = pipeline(T + U + with_mode(OF_T, "continue"), T + U + with_mode(OF_U, "continue"))
    made.insert("t", 4)
    made.go("r2")
    made.insert("u", 5)
    made.go("r1")
    made.insert("t", 6)
    assert [o.after.folder for o in made.deployment.cut.sinks["t.k"].owed] == ["t", "u"]
    assert made.tick().sent == {"t.k": 3}
    assert batches(made)[1:] == [[(4, 1)], [(5, 1)], [(6, 1)]]
    made.check_sinks()


def test_continuing_owes_the_batch_that_a_tick_died_over_and_what_came_behind_it() -> None:
    programs = (T + U + OF_T, T + U + with_mode(OF_U, "continue"))
    made = pipeline(*programs)
    made.insert("t", 4)

    def die_behind(event: events.Event) -> None:
        if isinstance(event, events.Sending):
            raise Died

    revisions = list(made.revisions.values())
    with pytest.raises(Died):
        Pipeline(made.world, revisions, die_behind).tick()
    made.insert("t", 5)
    made.go("r2")
    assert len(made.deployment.cut.sinks["u.k"].owed) == 2
    assert made.tick().sent == {"u.k": 2}
    assert batches(made)[1:] == [[(4, 1)], [(5, 1)]]
    made.check_sinks()


def test_a_tick_behind_a_cutover_that_dies_anywhere_is_made_good_by_the_next() -> None:
    """There are two batches for one sink: what was due, and what came since."""
    start = pipeline(T + U + OF_T, T + U + with_mode(OF_U, "continue"), T + U + OF_T)
    start.insert("t", 4)
    start.go("r2")
    start.insert("u", 5)
    revisions = list(start.revisions.values())
    for then in ("r2", "r3"):
        at = 0
        while True:
            made = Pipeline(start.world.copy(), revisions)
            made.world.revive(at)
            try:
                made.tick()
            except Died:
                made.world.revive()
            else:
                break
            if then != made.deployment.revision:
                made.go(then)
            made.insert("t", 6)
            assert made.tick().failures == {}
            made.check_sinks()
            at += 1
        assert at > 10


def test_continuing_owes_the_snapshot_that_was_never_sent() -> None:
    made = Pipeline(
        World(), [Revision("r1", T + U + OF_T), Revision("r2", T + U + with_mode(OF_U, "continue"))]
    )
    made.go("r1")
    made.insert("t", 1)
    made.insert("u", 2)
    made.go("r2")
    assert made.tick().sent == {"u.k": 1}
    assert batches(made) == [[(1, 1)]]
    made.check_sinks()


def test_continuing_from_a_view_that_is_not_computed_from_the_newest_rows_is_refused() -> None:
    made = pipeline(T + V + OF_V, T + V.replace("*", "a") + OF_V, up2=[Cutover("v.k", "continue")])
    made.insert("t", 3)
    message = (
        "sink `v.k` can't continue: `v` was not computed from the newest rows, "
        "whose changes it would never send"
    )
    (blocker,) = made.plan("r2").blockers
    assert (blocker.message, str(blocker.location)) == (message, "pipeline/p.sql:3:1")
    assert blocker.hint == ("`sqlmig run --once` computes it and sends them; then upgrade")
    made.tick()
    plan = made.plan("r2")
    assert plan.blockers == ()

    # when: rows come between the plan and the run
    made.insert("t", 4)
    with pytest.raises(StepFailed, match="can't continue"):
        made.executor.run(plan)
    assert made.deployment.revision == "r1"
    made.tick()
    made.check_sinks()
    made.go("r2")
    assert made.tick().sent == {}
    made.check_sinks()


def test_a_plan_that_is_taken_back_leaves_a_moved_sink_where_it_was() -> None:
    made = pipeline(T + U + OF_T, T + U + V + with_mode(OF_U, "continue") + "\n")
    before = made.deployment.cut.sinks
    made.world.broken["v"] = 1
    with pytest.raises(StepFailed, match="v is broken"):
        made.go("r2")
    assert made.deployment.cut.sinks == before


def test_a_hook_goes_before_the_option_and_the_later_of_two_hooks_counts() -> None:
    made = pipeline(
        T + U + OF_T,
        T + U + with_mode(OF_U, "continue"),
        T + U + with_mode(OF_U, "continue") + V,
        up2=[Cutover("u.k", "difference")],
        down2=[Cutover("t.k", "continue")],
        up3=[Cutover("u.k", "snapshot")],
    )
    assert [mode for mode, _ in cutovers(made.plan("r3"))] == ["snapshot"]
    assert [mode for mode, _ in cutovers(made.go("r2"))] == ["difference"]
    assert made.deployment.cut.sinks["u.k"].mode == "continue", "what its definition says"
    made.tick()
    assert [mode for mode, _ in cutovers(made.go("r1"))] == ["continue"]
    made.tick()
    made.check_sinks()


def test_a_hook_that_names_no_sink_of_its_program_blocks_and_one_that_changes_nothing_warns() -> (
    None
):
    programs = (T + U + OF_T, T + U + OF_U)
    (blocker,) = pipeline(*programs, up2=[Cutover("t.k", "snapshot")]).plan("r2").blockers
    assert blocker.message == (
        "up() of r2: op.cutover: the program that is gone to has no sink `t.k`"
    )
    assert blocker.hint == "did you mean `u.k`?"
    (blocker,) = (
        pipeline(T + OF_T, T + U, up2=[Cutover("orders.x", "snapshot")]).plan("r2").blockers
    )
    assert blocker.hint == "its sinks: none"
    plan = pipeline(T + OF_T, T + U + OF_T, up2=[Cutover("t.k", "continue")]).plan("r2")
    assert plan.warnings == (
        "up() of r2: op.cutover of `t.k` to `continue` has no effect: "
        "this plan does not cut that sink over",
    )


def test_a_changed_cutover_option_alone_starts_nothing_anew() -> None:
    made = pipeline(T + OF_T, T + with_mode(OF_T, "snapshot"))
    plan = made.go("r2")
    assert steps(plan) == ["continue sink `t.k`"]
    assert plan.steps[2].cause == "option `cutover` added"
    assert made.tick().sent == {}
    assert made.deployment.cut.sinks["t.k"].mode == "snapshot"
    assert steps(made.go("r1")) == ["continue sink `t.k`"]
    assert made.deployment.cut.sinks["t.k"].mode == "difference"


def test_a_sink_of_a_renamed_table_that_is_altered_is_cut_over() -> None:
    wide = U.replace("a INT", "a INT, b INT")
    hooks = {"up2": [RenameTable("t", "u")], "down2": [RenameTable("u", "t")]}
    made = pipeline(T + OF_T, wide + OF_U, **hooks)
    plan = made.go("r2")
    assert cutovers(plan) == [
        ("difference", "`u` is altered: add column `b int`; sends the rows that differ")
    ]
    assert made.tick().sent == {"u.k": 4}
    made.check_sinks()


def test_a_view_that_gets_back_the_contents_that_were_sent_sends_nothing() -> None:
    made = pipeline(T + V + OF_V, T + V.replace("*", "a") + OF_V)
    made.go("r2")
    plan = made.go("r1")
    assert cutovers(plan) == [
        ("difference", "`v` is put back: `a` became `*`; its readers have these rows")
    ]
    assert plan.steps[-2].writes is not None
    assert plan.steps[-2].writes.rows == 0
    assert made.tick().sent == {}
    made.check_sinks()


def test_the_plan_tells_of_a_cutover() -> None:
    text = to_text(pipeline(T + U + OF_T, T + U + with_mode(OF_U, "snapshot")).plan("r2"))
    assert (
        "    3  cut over sink `u.k` with a snapshot  moved from `t` to `u`; sends all 2\n"
        "                                            rows, and what is gone\n"
        "    4  detach sink `t.k`                    goes on as `u.k`\n"
    ) in text
    action = CutOverSink("u.k", "t.k", 1, "f", "continue", "t", "snapshot")
    assert action_from_dict(action_to_dict(action)) == action


def test_what_op_cutover_takes() -> None:
    operations = Operations()
    operations.cutover(" `Orders`.K ", "Snapshot")
    assert operations.directives == (Cutover("orders.k", "snapshot"),)
    with pytest.raises(ValueError, match="knows difference, snapshot, continue, not 'all'"):
        operations.cutover("orders.k", "all")
    with pytest.raises(ValueError, match=r"takes relation\.sink, not 'k'"):
        operations.cutover("k", "snapshot")
    with pytest.raises(TypeError, match="name of a sink and a mode"):
        operations.cutover("orders.k", "")
