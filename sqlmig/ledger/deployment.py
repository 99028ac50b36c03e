"""What the ledger says, folded: the deployment and its parts. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any

from sqlmig.ledger.cut import ConnectorState, Cut, RelationState
from sqlmig.ledger.records import AppliedRevision, Json, Owner, Record, Status
from sqlmig.ledger.sink_state import Batch, SinkState


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
class Runner:
    """The process that ticks the pipeline, as its records have it.

    Args:
        owner: the process, and the lease that it holds.
        is_once: it makes a single tick.
        since: when it began. at: its newest sign of life. sign: that record's `seq`.
        is_paused: it answered that it ticks no more until it is told to go on.
        ticks: rounds that it made, idle ones included.
        seconds: what a round took lately, on average.
        interval: seconds from the begin of one round to the next.
    """

    owner: Owner
    is_once: bool
    since: datetime
    at: datetime
    sign: int
    is_paused: bool = False
    ticks: int = 0
    seconds: float | None = None
    interval: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "owner": self.owner.to_dict(),
            "is_once": self.is_once,
            "since": self.since.isoformat(),
            "at": self.at.isoformat(),
            "sign": self.sign,
            "is_paused": self.is_paused,
            "ticks": self.ticks,
            "seconds": self.seconds,
            "interval": self.interval,
        }

    @staticmethod
    def from_dict(data: Json) -> Runner:
        """The inverse of `to_dict`."""
        return Runner(
            **{
                **data,
                "owner": Owner.from_dict(data["owner"]),
                "since": datetime.fromisoformat(data["since"]),
                "at": datetime.fromisoformat(data["at"]),
            }
        )


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
        last_sign: when its owner was last heard of. sign: that record's `seq`.
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
    sign: int
    error: str | None = None


@dataclass(frozen=True)
class Collected:
    """What `sqlmig gc` and the runner's vacuum removed: the ledger offers none of it again.

    Args:
        at: when something was removed last, or looked for; None for never.
        before: cuts that ended before it can't be read any more; None if nothing was removed.
        folders: of tables, `folder/generation` of sources and sinks, and `folder@version` of tables
            whose files are gone: each -> when it was removed.
    """

    at: datetime | None = None
    before: datetime | None = None
    folders: Mapping[str, datetime] = field(default_factory=dict)
    connectors: Mapping[str, datetime] = field(default_factory=dict)
    sinks: Mapping[str, datetime] = field(default_factory=dict)
    versions: Mapping[str, datetime] = field(default_factory=dict)


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
        sink_history: (revision, sink) -> the same for sinks.
        collected: what was removed because nothing needed it any more.
        sending: `folder/generation` of a sink -> the last batch that it began to send; it is sent
            when the sink's state has its number.
        runner: the process that ticks the pipeline; None where there is none, or it let go.
        stop_at: from when on nobody may tick, if somebody asked for that.
        must_stop: that is now, whatever a clock says.
        is_stopped: the ticks have ended because of that.
        failures: connector or relation -> what went wrong in the last tick that tried it.
        hints: of these -> what to do about it, where that is known.
        refreshed: connector or relation -> when a tick last brought it rows.
        consistent_seq: seq of the record that `consistent` is of.
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
    materializations: Mapping[Contents, RelationState] = field(default_factory=dict)
    relation_history: Mapping[tuple[str, str], RelationState] = field(default_factory=dict)
    connector_history: Mapping[tuple[str, str], ConnectorState] = field(default_factory=dict)
    sink_history: Mapping[tuple[str, str], SinkState] = field(default_factory=dict)
    collected: Collected = field(default_factory=Collected)
    sending: Mapping[str, Batch] = field(default_factory=dict)
    state: State = State.STOPPED
    since: datetime | None = None
    awaiting: PlanInProgress | None = None
    unfinished: PlanInProgress | None = None
    runner: Runner | None = None
    stop_at: datetime | None = None
    must_stop: bool = False
    is_stopped: bool = False
    failures: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)
    refreshed: Mapping[str, datetime] = field(default_factory=dict)
    consistent_seq: int = -1
    last_tick: datetime | None = None
    ticks: int = 0
    error: str | None = None
    last_applied: Record | None = None

    @property
    def folders(self) -> frozenset[str]:
        """Every folder that an attached or detached relation has."""
        return frozenset({s.folder for s in self.cut.relations.values()} | set(self.cut.detached))


Contents = tuple[str, str, tuple[tuple[str, str], ...]]
"""The key of published contents: folder, fingerprint, (input, content id) of each input."""


def materialization_key(state_folder: str, fingerprint: str, inputs: Mapping[str, str]) -> Contents:
    """The key under which published contents are found again.

    Equal keys mean equal contents (up to volatile functions): the fingerprint covers the query and
    the logical views below it, the content ids cover every stored input.
    """
    return (state_folder, fingerprint, tuple(sorted(inputs.items())))


def is_consistent(cut: Cut) -> bool:
    """Whether every stored view was computed from the contents that its inputs have in `cut`."""
    return all(
        cut.relations[name].content == content
        for state in cut.relations.values()
        for name, content in state.inputs.items()
        if name in cut.relations
    )


def is_current(relations: Mapping[str, RelationState], name: str) -> bool:
    """Whether a stored relation was computed from the contents that its inputs have, they as well.

    A table always is. What is not in `relations` is not looked at.
    """
    state = relations.get(name)
    if state is None or state.kind == "table":
        return True
    return bool(state.fingerprint) and all(
        (read not in relations or relations[read].content == content)
        and is_current(relations, read)
        for read, content in state.inputs.items()
    )


def merge(cut: Cut, change: Json) -> Cut:
    """`cut` with the partial cut `change` (JSON) laid over it; `removed*` lists are detached."""
    for name, state in change.get("relations", {}).items():
        cut = cut.with_relation(name, RelationState.from_dict(state))
    for name, connector in change.get("connectors", {}).items():
        cut = cut.with_connector(name, ConnectorState.from_dict(connector))
    for name, sink in change.get("sinks", {}).items():
        cut = cut.with_sink(name, SinkState.from_dict(sink))
    for name in change.get("removed", ()):
        cut = cut.without_relation(name)
    for name in change.get("removed_connectors", ()):
        cut = cut.without_connector(name)
    for name in change.get("removed_sinks", ()):
        cut = cut.without_sink(name)
    for name in change.get("forgotten", ()):
        cut = replace(cut, relations={n: s for n, s in cut.relations.items() if n != name})
    return cut
