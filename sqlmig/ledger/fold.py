"""The fold: what the ledger's records, one after another, make of the deployment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any

from sqlmig.ledger.records import (
    AppliedRevision,
    ConnectorState,
    Cut,
    Json,
    Kind,
    Owner,
    Record,
    RelationState,
    Status,
)


class State(str, Enum):
    """The pipeline's state as shown to people."""

    STOPPED = "Stopped"
    RUNNING = "Running"
    AWAITING_APPROVAL = "AwaitingApproval"
    BOOTSTRAPPING = "Bootstrapping"
    FAILED = "Failed"


@dataclass(frozen=True)
class StepProgress:
    """How far a step of an unfinished plan got."""

    status: Status
    at: datetime
    details: Json = field(default_factory=dict)


@dataclass(frozen=True)
class PlanInProgress:
    """A plan that waits for approval, or was started and is neither applied nor taken back.

    Args:
        id: the plan's id.
        run: names its effects: the plan, the `seq` and the owner's token of the record that started
            it; so it differs for each attempt, also after a ledger was lost and begun anew.
        plan: the whole plan as JSON.
        program: the target program, path -> text.
        steps: step number -> how far it got.
        cut: the deployed cut with the effects of the finished steps.
        checkpoint: the cut at the checkpoint; None before it.
    """

    id: str
    run: str
    seq: int
    at: datetime
    plan: Json
    program: Mapping[str, str]
    program_diff: Json
    target: str | None
    owner: Owner | None
    is_rolling_back: bool
    steps: Mapping[int, StepProgress]
    cut: Cut
    checkpoint: Cut | None
    last_sign: datetime
    error: str | None = None


@dataclass(frozen=True)
class Deployment:
    """What the ledger says: the fold of its records.

    Args:
        seq: version of the ledger that was read; -1 for none.
        deployed_seq: seq of the record that made the deployed revision what it is; -1 for none.
        revision: the deployed revision; None for base.
        program: the deployed program, path -> text.
        applied: revision -> what was applied, for the deployed revision and all below it.
        known: every revision that was ever applied.
        cut: the last cut.
        consistent: the newest cut at which every stored view was computed from the tables in it.
        aborted: folders that plans which were taken back may have left on disk.
        materializations: states of stored views that were published, newest last.
        relation_history: (revision, relation) -> its state when that revision was last deployed.
        connector_history: (revision, connector) -> the same for connectors.
    """

    pipeline: str | None = None
    seq: int = -1
    deployed_seq: int = -1
    revision: str | None = None
    program: Mapping[str, str] = field(default_factory=dict)
    applied: Mapping[str, AppliedRevision] = field(default_factory=dict)
    known: Mapping[str, AppliedRevision] = field(default_factory=dict)
    cut: Cut = field(default_factory=Cut)
    consistent: Cut = field(default_factory=Cut)
    aborted: frozenset[str] = frozenset()
    materializations: Mapping[tuple[str, str, tuple[tuple[str, str], ...]], RelationState] = field(
        default_factory=dict
    )
    relation_history: Mapping[tuple[str, str], RelationState] = field(default_factory=dict)
    connector_history: Mapping[tuple[str, str], ConnectorState] = field(default_factory=dict)
    state: State = State.STOPPED
    since: datetime | None = None
    awaiting: PlanInProgress | None = None
    unfinished: PlanInProgress | None = None
    ticking: Owner | None = None
    last_tick: datetime | None = None
    ticks: int = 0
    error: str | None = None
    last_applied: Record | None = None

    @property
    def folders(self) -> frozenset[str]:
        """Every folder that an attached or detached relation has."""
        return frozenset({s.folder for s in self.cut.relations.values()} | set(self.cut.detached))


def materialization_key(
    state_folder: str, fingerprint: str, inputs: Mapping[str, str]
) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """The key under which published contents are found again.

    Equal keys mean equal contents (up to volatile functions): the fingerprint covers the query and
    the logical views below it, the content ids cover every stored input.
    """
    return (state_folder, fingerprint, tuple(sorted(inputs.items())))


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
        self.published: dict[tuple[str, str, tuple[tuple[str, str], ...]], RelationState] = {}
        self.relations: dict[tuple[str, str], RelationState] = {}
        self.connectors: dict[tuple[str, str], ConnectorState] = {}

    def result(self) -> Deployment:
        """The state after the records taken so far."""
        return replace(
            self.deployment,
            applied=dict(self.applied),
            known=dict(self.known),
            materializations=dict(self.published),
            relation_history=dict(self.relations),
            connector_history=dict(self.connectors),
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
        elif record.kind in (Kind.TICK, Kind.EXEC):
            self._tick(record)

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
                    ticking=None,  # a tick that still runs somewhere is fenced off
                    state=State.BOOTSTRAPPING,
                    error=None,
                )
            case Status.RESUMED | Status.ROLLING_BACK | Status.FAILED if now.unfinished:
                owner = record.details.get("owner")
                failed = record.status is Status.FAILED
                plan = replace(
                    now.unfinished,
                    owner=Owner.from_dict(owner) if owner else now.unfinished.owner,
                    is_rolling_back=now.unfinished.is_rolling_back
                    or record.status is Status.ROLLING_BACK,
                    last_sign=record.at,
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

    def _rest_state(self) -> State:
        return State.RUNNING if self.deployment.revision is not None else State.STOPPED

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
        )

    def _step(self, record: Record) -> None:
        plan = self.deployment.unfinished
        if plan is None or record.step is None:
            return
        progress = StepProgress(record.status, record.at, record.details)
        plan = replace(plan, steps={**plan.steps, record.step: progress}, last_sign=record.at)
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
            since=record.at,
            state=State.RUNNING if record.revision is not None else State.STOPPED,
            error=None,
            last_applied=replace(record, program_diff=plan.program_diff),
        )
        self._remember()

    def _publish(self, cut: Cut) -> None:
        for state in cut.relations.values():
            if state.kind != "table":
                key = materialization_key(state.folder, state.fingerprint, state.inputs)
                self.published.pop(key, None)
                self.published[key] = state

    def _remember(self, cut: Cut | None = None) -> None:
        revision = self.deployment.revision or "base"
        cut = cut or self.deployment.cut
        for name, state in cut.relations.items():
            self.relations[(revision, name)] = state
        for name, connector in cut.connectors.items():
            self.connectors[(revision, name)] = connector

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
            since=record.at,
            state=State.RUNNING if record.revision is not None else State.STOPPED,
            awaiting=None,
            unfinished=None,
            error=None,
            last_applied=record,
        )

    def _tick(self, record: Record) -> None:
        owner = record.details.get("owner")
        if record.kind is Kind.TICK:
            starts = record.status is Status.STARTED
            self._set(ticking=Owner.from_dict(owner) if starts and owner else None)
        if record.status is Status.DONE:
            if record.cut is not None:
                self._set(cut=merge(self.deployment.cut, record.cut))
                self._publish(Cut.from_dict(record.cut))
                self._remember()
            if is_consistent(self.deployment.cut):
                self._set(consistent=self.deployment.cut)
            if record.kind is Kind.TICK:
                self._set(last_tick=record.at, ticks=self.deployment.ticks + 1, error=record.error)
        elif record.status is Status.FAILED:
            self._set(error=record.error)


def is_consistent(cut: Cut) -> bool:
    """Whether every stored view was computed from the contents that its inputs have in `cut`."""
    return all(
        cut.relations[name].content == content
        for state in cut.relations.values()
        for name, content in state.inputs.items()
        if name in cut.relations
    )


def merge(cut: Cut, change: Json) -> Cut:
    """`cut` with the partial cut `change` (JSON) laid over it; `removed*` lists are detached."""
    for name, state in change.get("relations", {}).items():
        cut = cut.with_relation(name, RelationState.from_dict(state))
    for name, connector in change.get("connectors", {}).items():
        cut = cut.with_connector(name, ConnectorState.from_dict(connector))
    for name in change.get("removed", ()):
        cut = cut.without_relation(name)
    for name in change.get("removed_connectors", ()):
        cut = cut.without_connector(name)
    for name in change.get("forgotten", ()):
        cut = replace(cut, relations={n: s for n, s in cut.relations.items() if n != name})
    return cut
