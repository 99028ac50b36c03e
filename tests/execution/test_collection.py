"""What gc and the runner's vacuum remove, and that nothing which can be needed is among it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sqlmig.errors import DeployedMovedError, UnfinishedPlanError
from sqlmig.execution import events
from sqlmig.execution.runner import PipelineRunner, RunnerSettings
from sqlmig.ledger.fold import fold
from sqlmig.ledger.records import Kind, Status
from sqlmig.planning.steps import Attach, Plan, RestoreTable
from tests.execution.collecting import DAY, GONE, Calendar, collect, collector, process
from tests.execution.histories import histories
from tests.fakes import Died, Pipeline, Revision, World, parse

TABLES = "CREATE TABLE t (a INT);\nCREATE SOURCE s INTO t USING json OPTIONS (path '/t');\n"
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;\n"
OLD = "CREATE TABLE old (a INT);\nCREATE SOURCE o INTO old USING json OPTIONS (path '/o');\n"
REVISIONS = [
    Revision("r1", TABLES + VIEW + OLD),
    Revision("r2", TABLES + VIEW),
    Revision("r3", TABLES + VIEW.replace("COUNT(*)", "COUNT(*) + 1")),
]


class Life:
    """A pipeline that was deployed, ticked and left alone; since when each revision was left."""

    def __init__(self, revisions: Sequence[Revision], world: World | None = None) -> None:
        self.revisions = revisions
        self.world = world or World()
        self.calendar = Calendar()
        self.left: dict[str, datetime] = {}

    @property
    def pipeline(self) -> Pipeline:
        """A new process."""
        return process(self.world, self.revisions, self.calendar)

    def go(self, target: str) -> Plan:
        """Deploy a revision."""
        pipeline = self.pipeline
        was, plan = pipeline.deployment.revision, pipeline.plan(target)
        pipeline.executor.run(plan)
        if was is not None and was != target:
            self.left[was] = self.calendar.now
        return plan

    def copy(self) -> Life:
        """Another life in the same state."""
        other = Life(self.revisions, self.world.copy())
        other.calendar.now, other.left = self.calendar.now, dict(self.left)
        return other


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """Revisions are deployed forth and back, with rows, ticks and days in between."""
    revisions = draw(histories(with_effects=True))
    life = Life(revisions, World(inputs={"/x": [1, 2], "/y": [3]}))
    life.go("r1")
    for number in range(draw(st.integers(2, 7))):
        life.calendar.wait(draw(st.sampled_from((0, 0.5, 3, 6, 12, 20))))
        match draw(st.sampled_from(("go", "go", "insert", "tick"))):
            case "go":
                names = [r.id for r in revisions if r.id != life.pipeline.deployment.revision]
                target = draw(st.sampled_from(names))
                assume(not life.pipeline.plan(target).blockers)
                life.go(target)
            case "insert":
                tables = sorted(parse(life.pipeline.deployment.program).tables)
                if tables:
                    life.pipeline.insert(draw(st.sampled_from(tables)), number)
            case _:
                life.pipeline.tick()
    life.calendar.wait(draw(st.sampled_from((0, 1, 8, 25))))
    return life


@pytest.mark.parametrize("days", [0, 20])
def test_a_table_goes_back_to_the_version_at_which_it_was_left_last(days: int) -> None:
    """It held the same at an older one, which is not kept as long."""
    # given: forth and back, and forth again; the third revision is on top of the second
    wider = "CREATE TABLE t (a INT, b INT);"
    widest = "CREATE TABLE t (a INT, b INT, c INT);"
    programs = ("CREATE TABLE t (a INT);", wider, widest)
    life = Life([Revision(f"r{n}", sql) for n, sql in enumerate(programs, 1)])
    for target in ("r1", "r2", "r3", "r2", "r1", "r3", "r1", "r2"):
        life.go(target)
        life.calendar.wait(days)
    cut = life.pipeline.deployment.cut.relations["t"]

    # when
    collect(life.pipeline, older_than=30 * DAY)
    plan = life.pipeline.plan("r1")

    # then
    (step,) = plan.steps[2:-1]
    assert isinstance(step.action, RestoreTable)
    assert step.action.version == cut.version - 1, "what the last step but one had left"
    life.go("r1")
    assert life.world.newest("t").columns == ("a",)


def versions_read(pipeline: Pipeline, since: datetime) -> dict[int, dict[str, tuple[str, ...]]]:
    """Number of a record -> what `query --at` it reads: the contents of each relation."""
    records, found = pipeline.world.records, {}
    for seq in sorted({r.seq for r in records if r.at >= since}):
        cut = fold([r for r in records if r.seq <= seq]).consistent
        found[seq] = {
            name: pipeline.world.tables[state.folder][state.version].contents
            for name, state in cut.relations.items()
        }
    return found


@settings(max_examples=20)
@given(lives(), st.booleans())
def test_nothing_that_a_way_back_within_the_retention_needs_is_removed(
    life: Life, twice: bool
) -> None:
    # given
    other = life.copy()
    since = life.calendar.now - timedelta(days=30)

    # when
    collect(life.pipeline)
    if twice:
        collect(life.pipeline)

    # then
    assert life.pipeline.contents() == other.pipeline.contents()
    for target in sorted(name for name, left in life.left.items() if left >= since):
        with_gc, without = life.copy(), other.copy()
        if with_gc.pipeline.deployment.revision == target or without.pipeline.plan(target).blockers:
            continue
        plans = with_gc.go(target), without.go(target)
        assert [s.action for s in plans[0].steps] == [s.action for s in plans[1].steps]
        assert not [warning for warning in plans[0].warnings if "`sqlmig gc`" in warning]
        assert with_gc.pipeline.contents() == without.pipeline.contents()
        assert with_gc.world.computed == without.world.computed
        for each in (with_gc, without):
            each.pipeline.tick()
            each.pipeline.check_views()
            each.pipeline.check_sinks()
        assert with_gc.world.sent == without.world.sent


@settings(max_examples=20)
@given(lives())
def test_every_cut_that_is_kept_can_be_read(life: Life) -> None:
    since = life.calendar.now - timedelta(days=7)
    before = versions_read(life.pipeline, since)
    collect(life.pipeline)
    assert before == {n: v for n, v in versions_read(life.pipeline, since).items() if n in before}
    runner = life.copy()
    chosen = collector(runner.pipeline)
    chosen.remove(chosen.find())
    assert before == {n: v for n, v in versions_read(runner.pipeline, since).items() if n in before}


@settings(max_examples=10)
@given(lives(), st.sampled_from([0.0, DAY, 30 * DAY]))
def test_whatever_was_removed_every_revision_can_still_be_deployed(
    life: Life, older_than: float
) -> None:
    collect(life.pipeline, older_than)
    for revision in life.revisions:
        each = life.copy()
        is_there = each.pipeline.deployment.revision == revision.id
        if not is_there and not each.pipeline.plan(revision.id).blockers:
            each.go(revision.id)
        each.pipeline.tick()
        each.pipeline.check_views()
        each.pipeline.check_sinks()


@settings(max_examples=4)
@given(lives())
def test_a_collection_that_dies_anywhere_is_ended_by_the_next(life: Life) -> None:
    whole = life.copy()
    collect(whole.pipeline, 0.0, 0.0)
    at = 0
    while True:
        broken = life.copy()
        broken.world.revive(at)
        try:
            collect(broken.pipeline, 0.0, 0.0)
        except Died:
            pass
        else:
            break
        finally:
            broken.world.revive()
        collect(broken.pipeline, 0.0, 0.0)
        assert broken.world.tables.keys() == whole.world.tables.keys(), f"died at beat {at}"
        assert broken.world.offsets.keys() == whole.world.offsets.keys()
        assert broken.pipeline.contents() == whole.pipeline.contents()
        broken.pipeline.tick()
        broken.pipeline.check_views()
        at += 1


def dropped() -> Life:
    """r1's table `old` was dropped by r2, forty days ago; r3 is deployed."""
    life = Life(REVISIONS, World(inputs={"/t": [1, 2], "/o": [7]}))
    life.go("r1")
    life.pipeline.tick()
    life.go("r2")
    life.calendar.wait(40)
    life.go("r3")
    life.pipeline.tick()
    return life


def test_what_a_revision_had_that_was_left_longer_ago_is_removed_and_told_of() -> None:
    # given
    life = dropped()

    # when
    found = collector(life.pipeline).find(30 * DAY)
    assert "old" in life.world.tables, "it was only looked"
    collect(life.pipeline)

    # then
    told = [(r.place.kind, r.place.name, r.is_whole) for r in found.removed]
    assert ("tables", "old", True) in told
    assert ("checkpoints", "old.o/1", True) in told
    assert ("tables", "t", False) in told
    assert "old" not in life.world.tables
    assert ("old.o", 1) not in life.world.offsets
    assert ("t.s", 1) in life.world.offsets
    assert [r.status for r in life.world.records if r.kind is Kind.GC] == [
        Status.STARTED,
        Status.DONE,
    ]
    assert collector(life.pipeline).find(30 * DAY).removed == ()


def test_a_downgrade_past_it_says_since_when_it_is_gone_and_begins_anew() -> None:
    life = dropped()
    collect(life.pipeline)
    at = next(r.at for r in life.world.records if r.kind is Kind.GC)
    plan = life.go("r1")
    assert not any(isinstance(step.action, Attach) for step in plan.steps)
    assert plan.warnings == (
        "`old` begins empty: `sqlmig gc` removed the rows it had at this revision on "
        f"{at:%Y-%m-%d (%H:%M:%S UTC)}",
    )
    assert life.pipeline.deployment.cut.relations["old"].folder == "old__2"
    assert life.pipeline.deployment.cut.connectors["old.o"].generation == 2
    life.pipeline.tick()
    assert life.pipeline.rows("old") == [(7,)]


def test_a_plan_that_was_made_before_and_needs_it_is_refused() -> None:
    # given
    life = dropped()
    plan = life.pipeline.plan("r1")
    assert any(isinstance(step.action, Attach) for step in plan.steps)

    # when
    collect(life.pipeline)

    # then
    with pytest.raises(DeployedMovedError) as caught:
        life.pipeline.executor.run(plan)
    assert "`sqlmig gc` removed the rows of `old` on 2026-07-20" in caught.value.message
    assert caught.value.hint == "run the command again: it makes a new plan"


def test_while_a_plan_is_under_way_nothing_is_removed() -> None:
    life = dropped()
    findings = collector(life.pipeline).find(30 * DAY)
    life.world.revive(5)
    with pytest.raises(Died):
        life.go("r2")
    life.world.revive()
    with pytest.raises(UnfinishedPlanError):
        collector(life.pipeline).remove(findings)
    assert "old" in life.world.tables


def test_the_runner_removes_old_versions_now_and_then_and_no_way_back() -> None:
    # given
    life = Life(REVISIONS, World(inputs={"/t": [], "/o": []}))
    life.go("r1")
    life.pipeline.tick()
    life.go("r3")
    pipeline = life.pipeline
    told: list[events.Event] = []
    rounds = iter(range(60))

    def is_over() -> bool:
        number = next(rounds, None)
        if number is None:
            return True
        life.world.inputs["/t"].append(number)
        life.calendar.wait(1)
        return False

    # when
    runner = PipelineRunner(
        pipeline.engine,
        pipeline.warehouse,
        pipeline.journal,
        parse,
        told.append,
        lambda seconds: None,
        collector(pipeline),
    )
    runner.run(RunnerSettings(interval=0, workers=1, vacuum_every=1e-9), is_over)

    # then: each day wrote a version of `t` and of `v`, and seven days of them are kept
    left = [version for version in life.world.tables["t"] if version.contents != GONE]
    assert 7 <= len(left) <= 12, "those of seven days, and those that go back to r1"
    assert len(life.world.tables["t"]) > 60
    assert any(isinstance(event, events.Vacuumed) for event in told)
    assert "old" in life.world.tables
    assert any(isinstance(s.action, Attach) for s in life.go("r1").steps)
    life.pipeline.tick()
    life.pipeline.check_views()
