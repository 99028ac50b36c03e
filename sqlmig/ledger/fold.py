"""The fold: what the ledger's records, one after another, make of the deployment. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlmig.ledger import running
from sqlmig.ledger.collection import after_collection
from sqlmig.ledger.cut import ConnectorState, Cut, RelationState
from sqlmig.ledger.deployment import (
    Contents,
    Deployment,
    PlanInProgress,
    State,
    StepProgress,
    is_consistent,
    materialization_key,
    merge,
)
from sqlmig.ledger.records import AppliedRevision, Kind, Owner, Record, Status
from sqlmig.ledger.sink_state import SinkState, begun_batches


def fold(records: Iterable[Record]) -> Deployment:
    """The deployment's state after `records`, in the order of `seq`.

    Args:
        records: all records of one ledger, sorted by `seq`.

    Returns:
        The state; that of an empty ledger for no records.
    """
    folding = Folding()
    for record in records:
        folding.take(record)
    return folding.result()


_MAKING = ("CreateTable", "Bootstrap")
"""Names of the plan's actions that make a folder."""


class Folding:
    """A fold under way: takes records one by one; mutable, so that it takes linear time."""

    def __init__(self) -> None:
        self.deployment = Deployment()
        self.applied: dict[str, AppliedRevision] = {}
        self.known: dict[str, AppliedRevision] = {}
        self.published: dict[Contents, RelationState] = {}
        self.relations: dict[tuple[str, str], RelationState] = {}
        self.connectors: dict[tuple[str, str], ConnectorState] = {}
        self._of_ticks: dict[tuple[str, str], Contents] = {}
        self.sinks: dict[tuple[str, str], SinkState] = {}

    def result(self) -> Deployment:
        """The state after the records taken so far."""
        return replace(
            self.deployment,
            applied=dict(self.applied),
            known=dict(self.known),
            materializations=dict(self.published),
            relation_history=dict(self.relations),
            connector_history=dict(self.connectors),
            sink_history=dict(self.sinks),
        )

    def take(self, record: Record) -> None:
        """Take the next record, in the order of `seq`."""
        self.deployment = replace(self.deployment, pipeline=record.pipeline, seq=record.seq)
        if record.kind is Kind.PLAN:
            self._plan(record)
        elif record.kind is Kind.STEP:
            self._step(record)
        elif record.kind is Kind.STAMP:
            self._stamp(record)
        elif record.kind is Kind.TICK:
            self._tick(record)
        elif record.kind is Kind.EXEC:
            self.deployment = running.after_exec(self.deployment, record)
            if record.cut is not None:
                now = self.deployment.cut.relations
                names = record.cut.get("relations", {})
                self._remember(Cut(relations={n: now[n] for n in names if n in now}))
        elif record.kind is Kind.RUNNER:
            self.deployment = running.after_runner(self.deployment, record)
            self._lay_under(record)
        elif record.kind is Kind.REQUEST:
            self.deployment = running.after_request(self.deployment, record)
        elif record.kind is Kind.CHECKPOINT:
            self.deployment = running.after_checkpoint(self.deployment, record)
            self._take_up(Cut.from_dict(record.cut or {}))
        elif record.kind is Kind.SEND:
            begun = begun_batches(record.details, record.at)
            self._set(sending={**self.deployment.sending, **begun})
        elif record.kind is Kind.GC:
            self.deployment = after_collection(self.deployment, record)
            gone = self.deployment.collected
            for key, state in list(self.published.items()):
                if state.folder in gone.folders or state.place in gone.versions:
                    del self.published[key]

    def _plan(self, record: Record) -> None:
        now = self.deployment
        match record.status:
            case Status.AWAITING:
                self._set(awaiting=self._begin(record), state=State.AWAITING_APPROVAL)
            case Status.REJECTED:
                self._set(awaiting=None, state=self._rest_state())
            case Status.STARTED:
                self._set(
                    awaiting=None,
                    unfinished=self._begin(record),
                    state=State.BOOTSTRAPPING,
                    error=None,
                )
            case Status.RENEWED if now.unfinished:
                plan = replace(now.unfinished, last_sign=record.at, sign=record.seq)
                self._set(unfinished=plan)
            case Status.RESUMED | Status.ROLLING_BACK | Status.FAILED if now.unfinished:
                owner = record.details.get("owner")
                failed = record.status is Status.FAILED
                plan = replace(
                    now.unfinished,
                    owner=Owner.from_dict(owner) if owner else now.unfinished.owner,
                    is_rolling_back=now.unfinished.is_rolling_back
                    or record.status is Status.ROLLING_BACK,
                    last_sign=record.at,
                    sign=record.seq,
                    error=record.error or now.unfinished.error,
                )
                self._set(unfinished=plan, state=State.FAILED if failed else State.BOOTSTRAPPING)
                if failed:
                    self._set(error=record.error)
            case Status.ROLLED_BACK if now.unfinished:
                # contents that the attempt published stay in Delta's history, but are not offered
                # again: the files of an attempt that was taken back are no promise of anything.
                base = now.unfinished.checkpoint or now.cut
                changed = base if record.cut is None else Cut.from_dict(record.cut)
                self._abort(now.unfinished)
                self._set(
                    unfinished=None,
                    cut=changed,
                    state=self._rest_state(),
                    error=record.error or now.unfinished.error,
                )
                self._remember()
            case Status.APPLIED if now.unfinished:
                self._applied(record, now.unfinished)
            case _:
                pass

    def _abort(self, plan: PlanInProgress) -> None:
        steps = plan.plan.get("steps", ())
        made = {s["folder"] for s in steps if s["action"] in _MAKING}
        self._set(aborted=self.deployment.aborted | made)

    def _rest_state(self, *, is_deployed: bool | None = None) -> State:
        if is_deployed is None:
            is_deployed = self.deployment.revision is not None
        stopped = self.deployment.is_stopped or not is_deployed
        return State.STOPPED if stopped else State.RUNNING

    def _set(self, **changes: Any) -> None:
        self.deployment = replace(self.deployment, **changes)

    def _begin(self, record: Record) -> PlanInProgress:
        owner = record.details.get("owner")
        return PlanInProgress(
            id=record.plan or "",
            run=f"{record.plan}-{record.seq}-{owner['token'][:8] if owner else ''}",
            seq=record.seq,
            at=record.at,
            plan=record.details["plan"],
            program=record.program or {},
            program_diff=record.program_diff or {},
            target=record.revision,
            owner=Owner.from_dict(owner) if owner else None,
            is_rolling_back=False,
            steps={},
            cut=self.deployment.cut,
            checkpoint=None,
            last_sign=record.at,
            sign=record.seq,
        )

    def _step(self, record: Record) -> None:
        plan = self.deployment.unfinished
        if plan is None or record.step is None:
            return
        progress = StepProgress(record.status, record.at, record.details)
        plan = replace(
            plan,
            steps={**plan.steps, record.step: progress},
            last_sign=record.at,
            sign=record.seq,
        )
        if record.status is Status.DONE and record.cut is not None:
            cut = Cut.from_dict(record.cut)
            is_checkpoint = bool(record.details.get("is_checkpoint"))
            plan = replace(
                plan,
                cut=cut if is_checkpoint else merge(plan.cut, record.cut),
                checkpoint=cut if is_checkpoint else plan.checkpoint,
            )
            if is_checkpoint:  # what a tick that died had written is known from here on
                self._publish(cut)
                self._remember(cut)
        self._set(unfinished=plan)

    def _applied(self, record: Record, plan: PlanInProgress) -> None:
        for entry in plan.plan["ups"]:
            revision = AppliedRevision.from_dict(entry)
            self.applied[revision.revision] = revision
            self.known[revision.revision] = revision
        for gone in plan.plan["downs"]:
            self.applied.pop(gone, None)
        self._publish(plan.cut)
        self._set(
            unfinished=None,
            revision=record.revision,
            program=plan.program,
            deployed_seq=record.seq,
            cut=plan.cut,
            consistent=plan.cut,
            consistent_seq=record.seq,
            failures={},
            hints={},
            since=record.at,
            state=self._rest_state(is_deployed=record.revision is not None),
            error=None,
            last_applied=replace(record, program_diff=plan.program_diff),
        )
        self._remember()

    def _publish(self, cut: Cut) -> None:
        for state in cut.relations.values():
            if _equals_its_query(state):
                key = materialization_key(state.folder, state.fingerprint, state.inputs)
                self.published.pop(key, None)
                self.published[key] = state
                self._of_ticks.pop((state.folder, state.fingerprint), None)

    def _remember(self, cut: Cut | None = None) -> None:
        revision = self.deployment.revision or "base"
        cut = cut or self.deployment.cut
        for name, state in cut.relations.items():
            self.relations[(revision, name)] = state
        for name, connector in cut.connectors.items():
            self.connectors[(revision, name)] = connector
        for name, sink in cut.sinks.items():
            self.sinks[(revision, name)] = sink

    def _stamp(self, record: Record) -> None:
        if record.details.get("purge"):
            self.applied.clear()
        if self.deployment.unfinished is not None:
            self._abort(self.deployment.unfinished)
        cut = merge(self.deployment.cut, record.cut or {})
        ups = [AppliedRevision.from_dict(entry) for entry in record.details.get("ups", ())]
        keep = {r.revision for r in ups}
        for gone in [r for r in self.applied if r not in keep]:
            del self.applied[gone]
        for revision in ups:
            self.applied[revision.revision] = revision
            self.known[revision.revision] = revision
        self._set(
            revision=record.revision,
            program=record.program or {},
            deployed_seq=record.seq,
            cut=cut,
            consistent=cut,
            consistent_seq=record.seq,
            failures={},
            hints={},
            since=record.at,
            state=self._rest_state(is_deployed=record.revision is not None),
            awaiting=None,
            unfinished=None,
            error=None,
            last_applied=record,
        )

    def _tick(self, record: Record) -> None:
        if record.status is Status.FAILED:
            self._set(error=record.error)
        elif record.status is Status.DONE:
            moved: set[str] = set()
            if record.cut is not None:
                change = Cut.from_dict(record.cut)
                self._set(cut=merge(self.deployment.cut, record.cut))
                self._lay_under(record)
                self._take_up(change)
                moved = {*change.relations, *change.connectors, *change.sinks}
            if is_consistent(self.deployment.cut):
                self._set(consistent=self.deployment.cut, consistent_seq=record.seq)
            self._set(
                last_tick=record.at,
                ticks=self.deployment.ticks + 1,
                error=record.error,
                failures=record.details.get("failures", {}),
                hints=record.details.get("hints", {}),
                refreshed={**self.deployment.refreshed, **dict.fromkeys(moved, record.at)},
            )
            self.deployment = running.after_sign(self.deployment, record)
        self.deployment = running.after_release(self.deployment, record)

    def _lay_under(self, record: Record) -> None:
        """A plan that waits for the ticks to end begins where they end."""
        plan = self.deployment.unfinished
        if record.cut is not None and plan is not None and plan.checkpoint is None:
            self._set(unfinished=replace(plan, cut=merge(plan.cut, record.cut)))

    def _take_up(self, cut: Cut) -> None:
        self._publish_tick(cut)
        self._remember(cut)

    def _publish_tick(self, cut: Cut) -> None:
        """Offer a tick's contents again later; of each view only those of its newest tick.

        Inputs that moved on in a tick do not come back by themselves, only by a plan, and a plan's
        checkpoint publishes what was current at it. To forget contents is always right: they are
        computed.
        """
        for state in cut.relations.values():
            if not _equals_its_query(state):
                continue
            key = materialization_key(state.folder, state.fingerprint, state.inputs)
            place = (state.folder, state.fingerprint)
            earlier = self._of_ticks.get(place)
            if earlier is not None and earlier != key:
                self.published.pop(earlier, None)
            if key not in self.published or earlier == key:
                self._of_ticks[place] = key
            else:
                self._of_ticks.pop(place, None)
            self.published.pop(key, None)
            self.published[key] = state


def _equals_its_query(state: RelationState) -> bool:
    """Whether the same query over the same inputs would give these contents again: not where some
    of them were taken in under an earlier query."""
    return state.kind != "table" and not (state.takes_in and state.kind != "streaming table")
