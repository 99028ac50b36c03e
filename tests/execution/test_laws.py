"""Laws of deploying: no death changes the end, going back gives back, and views are never wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sqlmig.planning.steps import Plan
from tests.execution.histories import histories
from tests.fakes import Died, Pipeline, Revision, World


def deploy(world: World, revisions: Sequence[Revision], rows: Sequence[int]) -> Pipeline:
    """The first revision, with rows in its tables, ticked."""
    pipeline = Pipeline(world, revisions)
    pipeline.go("r1")
    for value in rows:
        pipeline.insert("t1", value)
    pipeline.tick()
    return pipeline


def to_the_last(world: World, revisions: Sequence[Revision], rows: Sequence[int]) -> Plan:
    """The plan from the first revision to the last, which must be one that can run."""
    pipeline = deploy(world, revisions, rows)
    plan = pipeline.plan(revisions[-1].id)
    assume(not plan.blockers)
    return plan


def dies(world: World, at: int, action: Callable[[], object]) -> bool:
    """Whether a process that does this dies at beat `at`."""
    world.revive(at)
    try:
        action()
    except Died:
        return True
    finally:
        world.revive()
    return False


@settings(max_examples=15)
@given(histories(with_effects=True), st.lists(st.integers(1, 9), max_size=3))
def test_a_run_that_dies_anywhere_and_is_resumed_ends_as_an_undisturbed_one(
    revisions: Sequence[Revision], rows: Sequence[int]
) -> None:
    world = World(inputs={"/x": [1, 2], "/y": [3]})
    plan = to_the_last(world, revisions, rows)
    whole = world.copy()
    Pipeline(whole, revisions).executor.run(plan)
    expected = Pipeline(whole, revisions).summary()
    at = 0
    while True:
        broken = world.copy()
        if not dies(broken, at, partial(_run, broken, revisions, plan)):
            break
        pipeline = Pipeline(broken, revisions)
        if pipeline.deployment.unfinished is not None:
            pipeline.executor.resume()
        elif pipeline.deployment.revision == "r1" and plan.target != "r1":
            pipeline.executor.run(plan)
        assert pipeline.summary() == expected, f"died at beat {at}"
        at += 1


@settings(max_examples=40)
@given(histories(size=3, with_effects=True), st.lists(st.integers(1, 9), max_size=2), st.data())
def test_a_resume_may_die_as_well(
    revisions: Sequence[Revision], rows: Sequence[int], data: st.DataObject
) -> None:
    world = World()
    plan = to_the_last(world, revisions, rows)
    whole = world.copy()
    Pipeline(whole, revisions).executor.run(plan)
    expected = Pipeline(whole, revisions).summary()
    if not dies(world, data.draw(st.integers(2, 60)), lambda: _run(world, revisions, plan)):
        return
    for _ in range(data.draw(st.integers(1, 4))):
        if Pipeline(world, revisions).deployment.unfinished is not None:
            dies(world, data.draw(st.integers(0, 20)), lambda: _resume(world, revisions))
    pipeline = Pipeline(world, revisions)
    if pipeline.deployment.unfinished is not None:
        pipeline.executor.resume()
    assert pipeline.summary() == expected


@pytest.mark.parametrize("with_spark", [False, True])
@settings(max_examples=15)
@given(histories(with_effects=True), st.lists(st.integers(1, 9), max_size=3))
def test_a_run_that_dies_anywhere_and_is_taken_back_leaves_all_as_it_was(
    with_spark: bool, revisions: Sequence[Revision], rows: Sequence[int]
) -> None:
    world = World(restores_with_spark=with_spark)
    plan = to_the_last(world, revisions, rows)
    expected = Pipeline(world, revisions).summary()
    at = 0
    while True:
        broken = world.copy()
        if not dies(broken, at, partial(_run, broken, revisions, plan)):
            break
        pipeline = Pipeline(broken, revisions)
        if pipeline.deployment.unfinished is not None:
            pipeline.executor.roll_back()
            assert pipeline.summary() == expected, f"died at beat {at}"
            pipeline.tick()
            pipeline.check_views()
        at += 1


@settings(max_examples=40)
@given(histories(size=3, with_effects=True), st.lists(st.integers(1, 9), max_size=2), st.data())
def test_taking_back_may_die_as_well(
    revisions: Sequence[Revision], rows: Sequence[int], data: st.DataObject
) -> None:
    world = World()
    plan = to_the_last(world, revisions, rows)
    expected = Pipeline(world, revisions).summary()
    dies(world, data.draw(st.integers(2, 60)), lambda: _run(world, revisions, plan))
    if Pipeline(world, revisions).deployment.unfinished is None:
        return
    for _ in range(data.draw(st.integers(1, 4))):
        if Pipeline(world, revisions).deployment.unfinished is not None:
            dies(world, data.draw(st.integers(0, 12)), lambda: _roll_back(world, revisions))
    pipeline = Pipeline(world, revisions)
    if pipeline.deployment.unfinished is not None:
        pipeline.executor.resume()  # a plan that was going back goes on going back, if it began to
    if pipeline.deployment.revision == "r1":
        assert pipeline.summary() == expected


@settings(max_examples=40)
@given(histories(), st.lists(st.integers(1, 9), max_size=3))
def test_going_back_gives_the_old_contents_and_forth_the_new_and_computes_nothing(
    revisions: Sequence[Revision], rows: Sequence[int]
) -> None:
    world = World()
    pipeline = deploy(world, revisions, rows)
    before = pipeline.summary()
    plan = pipeline.plan(revisions[-1].id)
    assume(not plan.blockers)
    pipeline.executor.run(plan)
    pipeline.tick(with_sources=False)
    pipeline.check_views()
    after = pipeline.summary()
    computed = len(world.computed)
    assume(not pipeline.plan("r1").blockers)  # a column's new name may have been another's
    pipeline.go("r1")
    assert pipeline.contents() == before["contents"]
    assert pipeline.summary()["relations"] == before["relations"]
    assert pipeline.summary()["connectors"] == before["connectors"]
    pipeline.go(revisions[-1].id)
    assert pipeline.contents() == after["contents"]
    assert pipeline.summary()["relations"] == after["relations"]
    assert pipeline.summary()["connectors"] == after["connectors"]
    assert world.computed[computed:] == []


@settings(max_examples=40)
@given(histories(), st.lists(st.integers(1, 9), max_size=3), st.data())
def test_a_walk_without_new_rows_gives_each_revision_its_own_contents(
    revisions: Sequence[Revision], rows: Sequence[int], data: st.DataObject
) -> None:
    pipeline = deploy(World(), revisions, rows)
    names = [revision.id for revision in revisions]
    seen = {"r1": pipeline.contents()}
    for name in names[1:]:
        assume(not pipeline.plan(name).blockers)
        pipeline.go(name)
        pipeline.check_views()
        seen[name] = pipeline.contents()
    computed = len(pipeline.world.computed)
    for _ in range(6):
        name = data.draw(st.sampled_from(names))
        assume(not pipeline.plan(name).blockers)
        pipeline.go(name)
        assert pipeline.contents() == seen[name], name
    assert pipeline.world.computed[computed:] == []


@settings(max_examples=40)
@given(histories(size=5, with_effects=True), st.data())
def test_after_any_walk_and_a_tick_every_view_equals_its_query_and_every_sink_its_relation(
    revisions: Sequence[Revision], data: st.DataObject
) -> None:
    world = World(inputs={"/x": [1, 2], "/y": [3]})
    pipeline = deploy(world, revisions, [7])
    names: list[str | None] = [revision.id for revision in revisions]
    for number in range(8):
        plan = pipeline.plan(data.draw(st.sampled_from([*names, None])))
        if not plan.blockers:
            if data.draw(st.booleans()):
                _fill(pipeline, 100 + number)  # rows come between planning and running
            try:
                pipeline.executor.run(plan)
            except Exception as error:
                known = ("have moved since the plan was made", "can't continue")
                assert any(words in str(error) for words in known), error  # noqa: PT017
        world.inputs["/x"].append(200 + number)
        if data.draw(st.booleans()):
            _fill(pipeline, 300 + number)
        if data.draw(st.booleans()):
            dies(world, data.draw(st.integers(0, 12)), lambda: _tick(world, revisions))
        if data.draw(st.booleans()):
            assert pipeline.tick().failures == {}
            pipeline.check_views()
            pipeline.check_sinks()
    assert pipeline.tick().failures == {}
    pipeline.check_views()
    pipeline.check_sinks()


@settings(max_examples=40)
@given(histories(size=5), st.data())
def test_the_plan_shown_is_the_plan_executed(
    revisions: Sequence[Revision], data: st.DataObject
) -> None:
    world = World()
    pipeline = deploy(world, revisions, [1])
    plan = pipeline.plan(data.draw(st.sampled_from([r.id for r in revisions[1:]])))
    assume(not plan.blockers)
    begin = len(world.records)
    pipeline.executor.run(plan)
    records = [r for r in world.records[begin:] if r.kind.value == "step"]
    assert [r.step for r in records if r.status.value == "done"] == [s.number for s in plan.steps]
    assert [r.step for r in records if r.status.value == "started"] == [
        s.number for s in plan.steps
    ]
    assert Plan.from_dict(world.records[begin].details["plan"]) == plan


def _run(world: World, revisions: Sequence[Revision], plan: Plan) -> None:
    Pipeline(world, revisions).executor.run(plan)


def _resume(world: World, revisions: Sequence[Revision]) -> None:
    Pipeline(world, revisions).executor.resume()


def _roll_back(world: World, revisions: Sequence[Revision]) -> None:
    Pipeline(world, revisions).executor.roll_back()


def _tick(world: World, revisions: Sequence[Revision]) -> None:
    Pipeline(world, revisions).tick()


def _fill(pipeline: Pipeline, value: int) -> None:
    tables = [n for n, s in pipeline.deployment.cut.relations.items() if s.kind == "table"]
    if tables:
        pipeline.insert(sorted(tables)[value % len(tables)], value)


def test_equal_programs_whose_tables_were_others_in_between_have_each_its_own_contents() -> None:
    # given: r1 and r3 are equal, but r2 took the rows' column away
    view = "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t1;"
    texts = [
        f"CREATE TABLE t1 (a INT); {view}",
        f"CREATE TABLE t1 (b INT); {view}",
        f"CREATE TABLE t1 (a INT); {view}",
        "CREATE TABLE t2 (a INT);",
    ]
    revisions = [Revision(f"r{number}", sql) for number, sql in enumerate(texts, 1)]
    pipeline = deploy(World(), revisions, [7])
    seen = {"r1": pipeline.contents()}
    for name in ("r2", "r3", "r4", "r1"):
        pipeline.go(name)
        seen.setdefault(name, pipeline.contents())

    # when
    plan = pipeline.plan("r3")
    pipeline.go("r3")

    # then
    assert not plan.diff.changes
    assert pipeline.contents() == seen["r3"]
    pipeline.check_views()
    causes = {getattr(step.action, "relation", ""): step.cause for step in plan.steps}
    assert causes["v"] == "`t1` gets other rows"
