"""The fold: each record changes the state as the design says."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sqlmig.ledger.cut import ConnectorState, Cut, RelationState
from sqlmig.ledger.deployment import Deployment, State, materialization_key
from sqlmig.ledger.fold import fold
from sqlmig.ledger.records import Kind, Status
from sqlmig.ledger.running import checkpoint_details
from sqlmig.ledger.sink_state import Batch, PinnedContents, SinkState
from tests.ledger.samples import NOON, OWNER, Story, revision, state


def test_an_empty_ledger_is_stopped_at_base() -> None:
    assert fold([]) == Deployment()
    assert fold([]).state is State.STOPPED
    assert fold([]).revision is None


def test_a_plan_that_waits_awaits_approval() -> None:
    now = Story().plan(Status.AWAITING).fold()
    assert now.state is State.AWAITING_APPROVAL
    assert now.awaiting is not None
    assert now.awaiting.target == "r1"
    assert now.unfinished is None


def test_a_rejected_plan_leaves_what_was() -> None:
    assert Story().plan(Status.AWAITING).plan(Status.REJECTED).fold().state is State.STOPPED
    story = Story().applied("r1", t=state("t")).plan(Status.AWAITING, "r2")
    now = story.plan(Status.REJECTED, "r2").fold()
    assert (now.state, now.awaiting, now.revision) == (State.RUNNING, None, "r1")


def test_a_plan_that_started_is_bootstrapping_and_waits_no_more() -> None:
    now = Story().plan(Status.AWAITING).plan(Status.STARTED).fold()
    assert now.state is State.BOOTSTRAPPING
    assert now.awaiting is None
    assert now.unfinished is not None
    assert now.unfinished.run == "p-2-token"
    assert now.unfinished.owner == OWNER


def test_each_attempt_of_a_plan_has_a_run_of_its_own() -> None:
    story = Story().plan(Status.STARTED).plan(Status.ROLLED_BACK, None).plan(Status.STARTED)
    unfinished = story.fold().unfinished
    assert unfinished is not None
    assert unfinished.run == "p-3-token"


def test_steps_change_the_plans_cut_and_not_the_deployed_one() -> None:
    story = Story().plan(Status.STARTED).checkpoint(Cut())
    now = story.changed(3, relations={"t": state("t").to_dict()}).fold()
    assert now.cut == Cut()
    assert now.unfinished is not None
    assert now.unfinished.cut.relations == {"t": state("t")}
    assert now.unfinished.checkpoint == Cut()
    assert now.unfinished.steps[3].status is Status.DONE


def test_an_applied_plan_is_running_with_its_cut_program_and_revision() -> None:
    now = Story().applied("r1", t=state("t")).fold()
    assert (now.state, now.revision, now.unfinished) == (State.RUNNING, "r1", None)
    assert now.program == {"p.sql": "-- r1"}
    assert now.cut.relations == {"t": state("t")}
    assert now.applied == {"r1": revision("r1")}
    assert now.deployed_seq == now.seq
    assert now.since == NOON.replace(second=now.seq)


def test_a_downgrade_takes_revisions_from_applied_and_leaves_them_known() -> None:
    story = Story().applied("r1", t=state("t")).applied("r2", t=state("t", 1))
    story.plan(Status.STARTED, None, downs=["r2", "r1"]).checkpoint(Cut())
    now = story.plan(Status.APPLIED, None).fold()
    assert now.applied == {}
    assert sorted(now.known) == ["r1", "r2"]
    assert now.revision is None


def test_a_merge_lays_a_steps_change_over_the_cut() -> None:
    story = Story().applied("r1", t=state("t"), u=state("u"))
    story.plan(Status.STARTED, "r2").checkpoint(story.fold().cut)
    story.changed(3, relations={"t": state("t", 1).to_dict()})
    now = story.plan(Status.APPLIED, "r2").fold()
    assert now.cut.relations == {"t": state("t", 1), "u": state("u")}


def test_a_detached_relation_stays_in_the_cut_as_detached() -> None:
    story = Story().applied("r1", t=state("t"), u=state("u"))
    story.plan(Status.STARTED, "r2").checkpoint(story.fold().cut).changed(3, removed=["t"])
    now = story.plan(Status.APPLIED, "r2").fold()
    assert now.cut.relations == {"u": state("u")}
    assert now.cut.detached == {"t": state("t")}
    assert now.folders == {"t", "u"}


def test_a_renamed_table_is_forgotten_under_its_old_name_and_not_detached() -> None:
    story = Story().applied("r1", t=state("t"))
    story.plan(Status.STARTED, "r2").checkpoint(story.fold().cut)
    story.changed(3, relations={"u": state("t").to_dict()}, forgotten=["t"])
    now = story.plan(Status.APPLIED, "r2").fold()
    assert now.cut.relations == {"u": state("t")}
    assert now.cut.detached == {}


def test_a_connector_that_was_removed_is_kept_with_its_offsets() -> None:
    offsets = ConnectorState("t.s", 1, "f")
    story = Story().plan(Status.STARTED).checkpoint(Cut())
    story.changed(3, connectors={"t.s": offsets.to_dict()}).plan(Status.APPLIED)
    story.plan(Status.STARTED, "r2").checkpoint(story.fold().cut)
    now = story.changed(3, removed_connectors=["t.s"]).plan(Status.APPLIED, "r2").fold()
    assert now.cut.connectors == {}
    assert now.cut.detached_connectors == {"t.s/1": offsets}
    assert now.connector_history[("r1", "t.s")] == offsets


def test_a_plan_taken_back_leaves_the_cut_that_it_restored() -> None:
    story = Story().applied("r1", t=state("t"))
    story.plan(Status.STARTED, "r2").checkpoint(story.fold().cut)
    story.changed(3, relations={"t": state("t", 1).to_dict()})
    restored = Cut({"t": state("t", 2, content="t@0")})
    now = story.plan(Status.ROLLED_BACK, "r1", cut=restored.to_dict(), error="boom").fold()
    assert (now.state, now.revision, now.unfinished) == (State.RUNNING, "r1", None)
    assert now.cut == restored
    assert now.error == "boom"


def test_a_first_plan_taken_back_is_stopped_with_nothing() -> None:
    story = Story().plan(Status.STARTED).checkpoint(Cut())
    now = story.plan(Status.ROLLED_BACK, None, cut={}).fold()
    assert (now.state, now.cut) == (State.STOPPED, Cut())


def test_a_plan_that_could_not_be_taken_back_has_failed_until_it_is() -> None:
    story = Story().plan(Status.STARTED).plan(Status.ROLLING_BACK, error="boom")
    assert story.fold().state is State.BOOTSTRAPPING
    now = story.plan(Status.FAILED, error="boom; taking it back failed: disk").fold()
    assert now.state is State.FAILED
    assert now.error == "boom; taking it back failed: disk"
    assert now.unfinished is not None
    assert now.unfinished.is_rolling_back
    resumed = story.plan(Status.RESUMED).fold()
    assert resumed.state is State.BOOTSTRAPPING
    assert resumed.unfinished is not None
    assert resumed.unfinished.is_rolling_back


def test_why_a_plan_is_taken_back_is_kept_though_the_process_dies() -> None:
    unfinished = Story().plan(Status.STARTED).plan(Status.ROLLING_BACK, error="boom").fold()
    assert unfinished.unfinished is not None
    assert unfinished.unfinished.error == "boom"


def test_a_stamp_sets_revision_and_program_and_leaves_the_data() -> None:
    story = Story().applied("r1", t=state("t"))
    details = {"ups": [revision("r1").to_dict(), revision("r2").to_dict()]}
    now = story.add(
        Kind.STAMP, Status.DONE, revision="r2", program={"p.sql": "-- r2"}, details=details
    ).fold()
    assert (now.revision, now.program) == ("r2", {"p.sql": "-- r2"})
    assert sorted(now.applied) == ["r1", "r2"]
    assert now.cut.relations == {"t": state("t")}
    assert now.deployed_seq == now.seq


def test_a_stamp_with_purge_ends_what_is_unfinished() -> None:
    story = Story().plan(Status.STARTED)
    now = story.add(Kind.STAMP, Status.DONE, details={"purge": True, "ups": []}).fold()
    assert (now.unfinished, now.revision, now.state) == (None, None, State.STOPPED)


def test_a_tick_records_what_it_changed_and_lets_its_lease_go() -> None:
    story = Story().applied("r1", t=state("t"))
    story.runs()
    runner = story.fold().runner
    assert runner is not None
    assert (runner.owner, runner.is_once, runner.is_paused) == (OWNER, False, False)
    now = story.add(
        Kind.TICK,
        Status.DONE,
        cut={"relations": {"t": state("t", 1).to_dict()}},
        error="t.s: x",
        details={"failures": {"t.s": "x"}, "released": OWNER.token},
    ).fold()
    assert (now.runner, now.ticks, now.error) == (None, 1, "t.s: x")
    assert now.failures == {"t.s": "x"}
    assert now.cut.relations == {"t": state("t", 1)}
    assert now.refreshed == {"t": now.last_tick}
    assert now.relation_history[("r1", "t")] == state("t", 1)


def test_a_tick_that_failed_says_why() -> None:
    story = Story().applied("r1", t=state("t")).runs()
    now = story.add(
        Kind.TICK, Status.FAILED, error="boom", details={"released": OWNER.token}
    ).fold()
    assert (now.runner, now.ticks, now.error) == (None, 0, "boom")


def test_a_sign_of_life_is_the_runners_only_with_its_token() -> None:
    story = Story().applied("r1").runs()
    before = story.fold().runner
    assert before is not None
    story.runner(Status.RENEWED, token="another", ticks=9)
    assert story.fold().runner == before
    after = story.runner(Status.RENEWED, ticks=9, seconds=0.5).fold().runner
    assert after is not None
    assert (after.sign, after.ticks, after.seconds) == (len(story.records), 9, 0.5)


def test_a_stop_comes_about_when_nobody_ticks() -> None:
    story = Story().applied("r1").runs()
    now = story.add(Kind.REQUEST, Status.ASKED, details={"ask": "stop", "at": None}).fold()
    assert (now.is_stopped, now.state) == (False, State.RUNNING)
    now = story.runner(Status.PAUSED).fold()
    assert (now.is_stopped, now.state) == (True, State.STOPPED)
    now = story.add(Kind.REQUEST, Status.ASKED, details={"ask": "resume"}).fold()
    assert (now.is_stopped, now.stop_at, now.state) == (False, None, State.RUNNING)
    story.runner(Status.STOPPED, released=OWNER.token)
    now = story.add(Kind.REQUEST, Status.ASKED, details={"ask": "stop", "at": None}).fold()
    assert (now.is_stopped, now.state) == (True, State.STOPPED)


def test_a_stopped_pipeline_stays_stopped_over_an_upgrade() -> None:
    story = Story().applied("r1")
    story.add(Kind.REQUEST, Status.ASKED, details={"ask": "stop", "at": None})
    assert story.applied("r2").fold().state is State.STOPPED


def test_a_tick_that_ends_while_a_plan_waits_for_it_is_in_the_plans_cut() -> None:
    story = Story().applied("r1", t=state("t")).runs().plan(Status.STARTED, "r2")
    story.add(Kind.TICK, Status.DONE, cut={"relations": {"t": state("t", 1).to_dict()}})
    plan = story.fold().unfinished
    assert plan is not None
    assert plan.cut.relations == {"t": state("t", 1)}


def test_tables_that_were_fenced_off_have_new_versions_and_old_contents() -> None:
    story = Story().applied("r1", t=state("t")).runs()
    fenced = replace(state("t"), version=1)
    now = story.runner(
        Status.TAKEN_OVER,
        cut={"relations": {"t": fenced.to_dict()}},
        released=OWNER.token,
    ).fold()
    assert now.runner is None
    assert now.cut.relations == now.consistent.relations == {"t": fenced}


def test_of_a_views_ticks_only_the_newest_contents_are_offered_again() -> None:
    def view(version: int) -> RelationState:
        return state("v", version, kind="materialized view", inputs={"t": f"t@{version}"})

    def tick(story: Story, version: int) -> None:
        tables = {"t": state("t", version).to_dict(), "v": view(version).to_dict()}
        story.add(Kind.TICK, Status.DONE, cut={"relations": tables})

    story = Story().applied("r1", t=state("t"), v=view(0))
    for version in (1, 2, 3):
        tick(story, version)
    offered = [s.version for s in story.fold().materializations.values()]
    assert offered == [0, 3], "what a plan published, and the newest tick's"
    story.applied("r2", t=state("t", 3), v=view(3))
    tick(story, 4)
    assert [s.version for s in story.fold().materializations.values()] == [0, 3, 4]


@given(st.lists(st.sampled_from(["tick", "exec", "run", "sign", "stop", "resume"]), max_size=12))
def test_what_lies_before_a_checkpoint_need_not_be_read(kinds: list[str]) -> None:
    story = Story().applied("r1", t=state("t"), v=state("v", kind="materialized view"))
    for number, kind in enumerate(kinds, 1):
        relations = {"t": state("t", number).to_dict()}
        match kind:
            case "tick":
                details = {"failures": {"t.s": "x"} if number % 2 else {}, "token": OWNER.token}
                cut = {"relations": relations}
                story.add(Kind.TICK, Status.DONE, cut=cut, details=details)
            case "exec":
                story.add(Kind.EXEC, Status.DONE, cut={"relations": relations})
            case "run":
                story.runs()
            case "sign":
                story.runner(Status.RENEWED, ticks=number)
            case ask:
                story.add(Kind.REQUEST, Status.ASKED, details={"ask": ask, "at": None})
    now = story.fold()
    details = checkpoint_details(now)
    assert json.loads(json.dumps(details)) == details
    story.add(Kind.CHECKPOINT, Status.DONE, cut=now.cut.to_dict(), details=details)
    story.plan(Status.STARTED, "r2").add(
        Kind.TICK, Status.DONE, cut={"relations": {"t": state("t", 99).to_dict()}}
    )
    whole = story.fold()
    running = {Kind.TICK, Kind.EXEC, Kind.RUNNER, Kind.REQUEST, Kind.CHECKPOINT}
    last = max(r.seq for r in story.records if r.kind is Kind.CHECKPOINT)
    assert fold(r for r in story.records if r.kind not in running or r.seq >= last) == whole


def test_an_exec_changes_its_table() -> None:
    story = Story().applied("r1", t=state("t"))
    now = story.add(
        Kind.EXEC, Status.DONE, cut={"relations": {"t": state("t", 1).to_dict()}}
    ).fold()
    assert now.cut.relations == {"t": state("t", 1)}
    assert now.ticks == 0


def test_published_contents_of_views_are_found_by_what_they_were_computed_from() -> None:
    view = state("v", 3, kind="materialized view", inputs={"t": "t@0"})
    now = Story().applied("r1", t=state("t"), v=view).fold()
    key = materialization_key("v", "f", {"t": "t@0"})
    assert now.materializations == {key: view}


def test_what_a_dead_tick_wrote_is_remembered_from_the_checkpoint_on() -> None:
    story = Story().applied("r1", t=state("t"))
    story.plan(Status.STARTED, "r2").checkpoint(Cut({"t": state("t", 5)}))
    now = story.fold()
    assert now.relation_history[("r1", "t")] == state("t", 5)
    assert now.cut.relations == {"t": state("t")}


def test_each_revision_remembers_the_states_that_it_was_left_with() -> None:
    story = Story().applied("r1", t=state("t")).applied("r2", t=state("t", 1))
    assert story.fold().relation_history == {
        ("r1", "t"): state("t"),
        ("r2", "t"): state("t", 1),
    }


def test_a_batch_that_was_begun_is_known_until_the_sink_has_its_number() -> None:
    story = Story().applied("r1", t=state("t"))
    sink = SinkState("t.k", 1, "f", "a")
    story.plan(Status.STARTED, "r2").checkpoint(story.fold().cut)
    story.changed(3, sinks={"t.k": sink.to_dict()}).plan(Status.APPLIED, "r2")
    batch = Batch(1, None, PinnedContents("t", 0, "t@0"))
    begun = story.add(
        Kind.SEND, Status.STARTED, details={"batches": {"t.k/1": batch.to_dict()}}
    ).fold()
    assert begun.sending["t.k/1"].at == story.records[-1].at
    assert begun.cut.sinks == {"t.k": sink}
    sent = sink.after(begun.sending["t.k/1"], 1)
    now = story.add(Kind.TICK, Status.DONE, cut={"sinks": {"t.k": sent.to_dict()}}).fold()
    assert now.cut.sinks["t.k"].sent == batch.after
    assert (now.cut.sinks["t.k"].batch, now.cut.sinks["t.k"].rows) == (1, 1)
    assert now.sink_history[("r2", "t.k")] == sent


def test_a_sink_that_a_step_removed_is_detached_with_what_it_sent() -> None:
    sink = SinkState("t.k", 1, "f", "a", PinnedContents("t", 0, "t@0"), 4, 9)
    story = Story().plan(Status.STARTED).checkpoint(Cut(sinks={"t.k": sink}))
    now = story.changed(3, removed_sinks=["t.k"]).plan(Status.APPLIED).fold()
    assert (now.cut.sinks, now.cut.detached_sinks) == ({}, {"t.k/1": sink})


def test_a_batch_that_was_begun_is_known_to_who_reads_from_a_checkpoint_on() -> None:
    batch = Batch(7, PinnedContents("t", 0, "t@0"), PinnedContents("t", 1, "t@1"))
    story = Story().applied("r1", t=state("t"))
    begun = story.add(
        Kind.SEND, Status.STARTED, details={"batches": {"t.k/1": batch.to_dict()}}
    ).fold()
    assert begun.sending["t.k/1"] == replace(batch, at=story.records[-1].at)
    details = json.loads(json.dumps(checkpoint_details(begun)))
    story.add(Kind.CHECKPOINT, Status.DONE, cut=begun.cut.to_dict(), details=details)
    kept = [record for record in story.records if record.kind is not Kind.SEND]
    assert fold(kept).sending == begun.sending
