"""The ledger's records, and the fold that makes the deployment's state of them. Pure: it reads and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any

Json = Mapping[str, Any]


class Kind(str, Enum):
    """What a record is about."""

    PLAN = "plan"
    STEP = "step"
    TICK = "tick"
    EXEC = "exec"
    STAMP = "stamp"


class Status(str, Enum):
    """What happened to it."""

    AWAITING = "awaiting_approval"
    REJECTED = "rejected"
    STARTED = "started"
    RESUMED = "resumed"
    DONE = "done"
    FAILED = "failed"
    APPLIED = "applied"
    ROLLING_BACK = "rolling_back"
    ROLLED_BACK = "rolled_back"


class State(str, Enum):
    """The pipeline's state as shown to people."""

    STOPPED = "Stopped"
    RUNNING = "Running"
    AWAITING_APPROVAL = "AwaitingApproval"
    BOOTSTRAPPING = "Bootstrapping"
    FAILED = "Failed"


@dataclass(frozen=True)
class RelationState:
    """A stored relation at a cut.

    Args:
        folder: name of its folder below the warehouse's `tables`.
        kind: the words of its CREATE statement.
        version: its Delta version.
        content: `folder@version` of the commit that first held these contents; a restore keeps it,
            so that equal ids mean equal contents.
        fingerprint: the table's or the materialization's fingerprint.
        inputs: for a materialized view: input -> content id that it was computed from.
        rows, bytes: as Delta's statistics have them.
        altered_from: for a table: the state that the last upgrade altered to get here.
        is_emptied: that alteration emptied the table.
    """

    folder: str
    kind: str
    version: int
    content: str
    fingerprint: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    bytes: int | None = None
    altered_from: RelationState | None = None
    is_emptied: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON; empty fields are left out."""
        data: dict[str, Any] = {
            "folder": self.folder,
            "kind": self.kind,
            "version": self.version,
            "content": self.content,
            "fingerprint": self.fingerprint,
            "rows": self.rows,
            "bytes": self.bytes,
        }
        if self.inputs:
            data["inputs"] = dict(sorted(self.inputs.items()))
        if self.altered_from is not None:
            data["altered_from"] = self.altered_from.to_dict()
        if self.is_emptied:
            data["is_emptied"] = True
        return data

    @staticmethod
    def from_dict(data: Json) -> RelationState:
        """The inverse of `to_dict`."""
        origin = data.get("altered_from")
        return RelationState(
            folder=data["folder"],
            kind=data["kind"],
            version=data["version"],
            content=data["content"],
            fingerprint=data["fingerprint"],
            inputs=data.get("inputs", {}),
            rows=data.get("rows"),
            bytes=data.get("bytes"),
            altered_from=RelationState.from_dict(origin) if origin else None,
            is_emptied=data.get("is_emptied", False),
        )


@dataclass(frozen=True)
class ConnectorState:
    """A connector at a cut: which generation of its checkpoint is in use.

    Args:
        folder: its folder below the warehouse's `checkpoints`.
        generation: counts resets, from 1.
        fingerprint: of the connector's definition, without secrets.
        rows, rejected: read so far by this generation; bad records kept aside.
    """

    folder: str
    generation: int
    fingerprint: str
    rows: int = 0
    rejected: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "folder": self.folder,
            "generation": self.generation,
            "fingerprint": self.fingerprint,
            "rows": self.rows,
            "rejected": self.rejected,
        }

    @staticmethod
    def from_dict(data: Json) -> ConnectorState:
        """The inverse of `to_dict`."""
        return ConnectorState(**data)


@dataclass(frozen=True)
class Cut:
    """A consistent point: the state of every stored relation and connector.

    `detached` holds what no revision uses any more and a downgrade may need again.
    In a step's record a cut is partial: it holds what the step changed; None stands for removed.
    """

    relations: Mapping[str, RelationState] = field(default_factory=dict)
    connectors: Mapping[str, ConnectorState] = field(default_factory=dict)
    detached: Mapping[str, RelationState] = field(default_factory=dict)
    detached_connectors: Mapping[str, ConnectorState] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON, sorted by name; empty parts are left out."""
        parts = {
            "relations": self.relations,
            "connectors": self.connectors,
            "detached": self.detached,
            "detached_connectors": self.detached_connectors,
        }
        return {
            key: {name: part[name].to_dict() for name in sorted(part)}
            for key, part in parts.items()
            if part
        }

    @staticmethod
    def from_dict(data: Json) -> Cut:
        """The inverse of `to_dict`."""
        return Cut(
            relations={n: RelationState.from_dict(s) for n, s in data.get("relations", {}).items()},
            connectors={
                n: ConnectorState.from_dict(s) for n, s in data.get("connectors", {}).items()
            },
            detached={n: RelationState.from_dict(s) for n, s in data.get("detached", {}).items()},
            detached_connectors={
                n: ConnectorState.from_dict(s)
                for n, s in data.get("detached_connectors", {}).items()
            },
        )

    def with_relation(self, name: str, state: RelationState) -> Cut:
        """This cut with one relation's state set; what it had in another folder is detached."""
        detached = {f: s for f, s in self.detached.items() if f != state.folder}
        was = self.relations.get(name)
        if was is not None and was.folder != state.folder:
            detached[was.folder] = was
        return replace(self, relations={**self.relations, name: state}, detached=detached)

    def without_relation(self, name: str) -> Cut:
        """This cut with one relation detached."""
        if name not in self.relations:
            return self
        state = self.relations[name]
        rest = {n: s for n, s in self.relations.items() if n != name}
        return replace(self, relations=rest, detached={**self.detached, state.folder: state})

    def with_connector(self, name: str, state: ConnectorState) -> Cut:
        """This cut with one connector's state set."""
        return replace(self, connectors={**self.connectors, name: state})

    def without_connector(self, name: str) -> Cut:
        """This cut with one connector detached."""
        if name not in self.connectors:
            return self
        state = self.connectors[name]
        rest = {n: s for n, s in self.connectors.items() if n != name}
        key = f"{state.folder}/{state.generation}"
        return replace(
            self, connectors=rest, detached_connectors={**self.detached_connectors, key: state}
        )


@dataclass(frozen=True)
class AppliedRevision:
    """A revision that was applied, with the whole text of its file: the file may be gone by now."""

    revision: str
    down_revisions: tuple[str, ...]
    depends_on: tuple[str, ...]
    branch_labels: tuple[str, ...]
    message: str
    path: str
    text: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "revision": self.revision,
            "down_revisions": list(self.down_revisions),
            "depends_on": list(self.depends_on),
            "branch_labels": list(self.branch_labels),
            "message": self.message,
            "path": self.path,
            "text": self.text,
        }

    @staticmethod
    def from_dict(data: Json) -> AppliedRevision:
        """The inverse of `to_dict`."""
        return AppliedRevision(
            revision=data["revision"],
            down_revisions=tuple(data["down_revisions"]),
            depends_on=tuple(data["depends_on"]),
            branch_labels=tuple(data["branch_labels"]),
            message=data["message"],
            path=data["path"],
            text=data["text"],
        )


@dataclass(frozen=True)
class Owner:
    """The process that runs a plan or a tick. `token` is new for each run and fences its writes."""

    token: str
    host: str
    pid: int
    started: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"token": self.token, "host": self.host, "pid": self.pid, "started": self.started}

    @staticmethod
    def from_dict(data: Json) -> Owner:
        """The inverse of `to_dict`."""
        return Owner(**data)


@dataclass(frozen=True)
class Record:
    """One row of the ledger. `seq` is the ledger's Delta version that holds it; -1 before."""

    pipeline: str
    kind: Kind
    status: Status
    at: datetime
    plan: str | None = None
    step: int | None = None
    revision: str | None = None
    program: Mapping[str, str] | None = None
    program_diff: Json | None = None
    cut: Json | None = None
    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None
    author: str | None = None
    actor: str | None = None
    versions: Json | None = None
    error: str | None = None
    details: Json = field(default_factory=dict)
    seq: int = -1


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
        run: `id-seq` of the record that started it; names its effects, differs for each attempt.
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
        return frozenset(
            {s.folder for s in self.cut.relations.values()} | set(self.cut.detached)
        )


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


class Folding:
    """A fold under way: takes records one by one. Mutable, so that a long ledger folds in linear time."""

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
                    error=record.error if failed else now.unfinished.error,
                )
                self._set(unfinished=plan, state=State.FAILED if failed else State.BOOTSTRAPPING)
                if failed:
                    self._set(error=record.error)
            case Status.ROLLED_BACK if now.unfinished:
                # contents that the attempt published stay in Delta's history, but are not offered
                # again: the files of an attempt that was taken back are no promise of anything.
                base = now.unfinished.checkpoint or now.cut
                changed = Cut.from_dict(record.cut) if record.cut else base
                self._set(
                    unfinished=None,
                    cut=changed,
                    state=self._rest_state(),
                    error=record.error or now.unfinished.error,
                )
            case Status.APPLIED if now.unfinished:
                self._applied(record, now.unfinished)
            case _:
                pass

    def _rest_state(self) -> State:
        return State.RUNNING if self.deployment.deployed_seq >= 0 else State.STOPPED

    def _set(self, **changes: Any) -> None:
        self.deployment = replace(self.deployment, **changes)

    def _begin(self, record: Record) -> PlanInProgress:
        owner = record.details.get("owner")
        return PlanInProgress(
            id=record.plan or "",
            run=f"{record.plan}-{record.seq}",
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
        plan = replace(
            plan, steps={**plan.steps, record.step: progress}, last_sign=record.at
        )
        if record.status is Status.DONE and record.cut is not None:
            cut = Cut.from_dict(record.cut)
            is_checkpoint = bool(record.details.get("is_checkpoint"))
            plan = replace(
                plan,
                cut=cut if is_checkpoint else merge(plan.cut, record.cut),
                checkpoint=cut if is_checkpoint else plan.checkpoint,
            )
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
            since=record.at,
            state=State.RUNNING,
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

    def _remember(self) -> None:
        now = self.deployment
        revision = now.revision or "base"
        for name, state in now.cut.relations.items():
            self.relations[(revision, name)] = state
        for name, connector in now.cut.connectors.items():
            self.connectors[(revision, name)] = connector

    def _stamp(self, record: Record) -> None:
        if record.details.get("purge"):
            self.applied.clear()
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
            since=record.at,
            state=State.RUNNING,
            awaiting=None,
            unfinished=None,
            error=None,
        )

    def _tick(self, record: Record) -> None:
        owner = record.details.get("owner")
        if record.kind is Kind.TICK:
            starts = record.status is Status.STARTED and owner
            self._set(ticking=Owner.from_dict(owner) if starts else None)
        if record.status is Status.DONE:
            if record.cut is not None:
                self._set(cut=merge(self.deployment.cut, record.cut))
                self._publish(Cut.from_dict(record.cut))
                self._remember()
            if record.kind is Kind.TICK:
                self._set(
                    last_tick=record.at, ticks=self.deployment.ticks + 1, error=record.error
                )
        elif record.status is Status.FAILED:
            self._set(error=record.error)


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
        cut = replace(
            cut, relations={n: s for n, s in cut.relations.items() if n != name}
        )
    return cut
