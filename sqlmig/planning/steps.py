"""The plan as data: its steps, what they cost, what blocks them. It decides and does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NoReturn, get_args

from sqlmig.errors import Location
from sqlmig.ledger.records import AppliedRevision
from sqlmig.planning.relation_plan import RelationPlan
from sqlmig.planning.sink_steps import SinkAction
from sqlmig.planning.stream_steps import StreamAction
from sqlmig.planning.table_steps import TableAction
from sqlmig.program.diff import ProgramDiff


@dataclass(frozen=True)
class Stop:
    """Stop the pipeline at a tick boundary."""


@dataclass(frozen=True)
class Checkpoint:
    """Record the cut: version of every relation, generation of every connector."""


@dataclass(frozen=True)
class RenameTable:
    """Let a table go on under another name. Only the ledger changes."""

    before: str
    after: str


@dataclass(frozen=True)
class CreateTable:
    """Make an empty Delta table, as the program of `stage` declares it."""

    relation: str
    folder: str
    stage: int = -1


@dataclass(frozen=True)
class AlterTable:
    """Bring a table to its new definition and keep its rows.

    `renamed` holds (column before, column after); `stage` says which program defines the table.
    """

    relation: str
    operations: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...] = ()
    stage: int = -1


@dataclass(frozen=True)
class EmptyTable:
    """Bring a table to its new definition and drop its rows."""

    relation: str
    stage: int = -1


@dataclass(frozen=True)
class Attach:
    """Take up a detached relation again, as it was."""

    relation: str
    folder: str


@dataclass(frozen=True)
class RestoreTable:
    """Put a table back to how a revision left it, rows and definition.

    If its rows have moved by the time the step runs, it is altered instead where that is possible
    (`can_alter`; `renamed` as in `AlterTable`), or converted (`is_converted`, `has_new_key` as in
    `ConvertTable`); else the plan is refused and taken back.
    """

    relation: str
    folder: str
    version: int
    content: str
    can_alter: bool = False
    renamed: tuple[tuple[str, str], ...] = ()
    stage: int = -1
    is_converted: bool = False
    has_new_key: bool = False


@dataclass(frozen=True)
class Restore:
    """Put a view back to a Delta version that holds just what is wanted; nothing is computed.

    If the inputs have moved by the time the step runs, the view is computed instead.
    """

    relation: str
    folder: str
    version: int
    content: str


@dataclass(frozen=True)
class Execute:
    """Run one statement of a hook, over the program of `stage`."""

    revision: str
    hook: str
    index: int
    sql: str
    stage: int = -1


@dataclass(frozen=True)
class RunFunction:
    """Call one Python function of a hook, over the program of `stage`."""

    revision: str
    hook: str
    index: int
    name: str
    stage: int = -1


@dataclass(frozen=True)
class StartSource:
    """Start a source as configured, with a new checkpoint."""

    connector: str
    folder: str
    generation: int
    fingerprint: str


@dataclass(frozen=True)
class ContinueSource:
    """Let a source go on from the offsets that this definition of it had reached."""

    connector: str
    folder: str
    generation: int
    fingerprint: str


@dataclass(frozen=True)
class DetachSource:
    """Take a source off; its offsets are kept, and so are the rows it brought."""

    connector: str


@dataclass(frozen=True)
class Bootstrap:
    """Compute a stored view from the cut, in one atomic Delta commit."""

    relation: str
    folder: str


@dataclass(frozen=True)
class Detach:
    """Take a relation off; its data is kept."""

    relation: str


@dataclass(frozen=True)
class Resume:
    """Let the pipeline tick again, under the target revision."""


Action = (
    Stop
    | Checkpoint
    | RenameTable
    | CreateTable
    | AlterTable
    | TableAction
    | EmptyTable
    | Attach
    | RestoreTable
    | Restore
    | Execute
    | RunFunction
    | StartSource
    | ContinueSource
    | DetachSource
    | SinkAction
    | Bootstrap
    | StreamAction
    | Detach
    | Resume
)
_ACTIONS: Mapping[str, type[Any]] = {action.__name__: action for action in get_args(Action)}


@dataclass(frozen=True)
class Volume:
    """Rows and bytes of a relation, from Delta's statistics; None where they aren't known."""

    relation: str
    rows: int | None
    bytes: int | None


@dataclass(frozen=True)
class Step:
    """One step of a plan.

    Args:
        number: counts from 1.
        action: what is done.
        cause: why, in words.
        reads: what it reads.
        writes: what it replaces or writes, as far as known before.
        destructive: what is lost by it, or None.
        cost: of a change of a table: whether it rewrites rows; '' for other steps.
    """

    number: int
    action: Action
    cause: str
    reads: tuple[Volume, ...] = ()
    writes: Volume | None = None
    destructive: str | None = None
    cost: str = ""


@dataclass(frozen=True)
class Blocker:
    """Why a plan can't run."""

    message: str
    location: Location | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Plan:
    """The ordered steps that take the deployed program to the target.

    Args:
        id: digest of all that the plan decides; equal plans have equal ids.
        direction: `upgrade` or `downgrade`.
        deployed, target: revisions; None for base.
        deployed_seq: ledger record that made the deployed state what it is; a plan is good only
            while that stays so.
        ups: the revisions that will be applied, in order. downs: those taken back, in order.
        stages: the revisions whose programs are passed through; the last is the target's.
        relations: what is done to each relation that changes, and why so, for those who read it.
    """

    id: str
    pipeline: str
    direction: str
    deployed: str | None
    target: str | None
    deployed_seq: int
    diff: ProgramDiff
    steps: tuple[Step, ...]
    blockers: tuple[Blocker, ...] = ()
    warnings: tuple[str, ...] = ()
    ups: tuple[AppliedRevision, ...] = ()
    downs: tuple[str, ...] = ()
    stages: tuple[Mapping[str, str], ...] = field(default=())
    relations: tuple[RelationPlan, ...] = field(default=())

    @property
    def destructive(self) -> tuple[Step, ...]:
        """The steps that lose something."""
        return tuple(step for step in self.steps if step.destructive)

    @property
    def needs_approval(self) -> bool:
        """False when nothing is computed, changed or run: only the revision's name moves on."""
        quiet = (Stop, Checkpoint, Resume)
        return any(not isinstance(step.action, quiet) for step in self.steps)

    @property
    def is_noop(self) -> bool:
        """True when the target is what is deployed and nothing is missing."""
        return not self.ups and not self.downs and not self.needs_approval

    def to_dict(self) -> dict[str, Any]:
        """As JSON; `diff` is the program diff, `changes` holds its reasons."""
        return {
            "id": self.id,
            "pipeline": self.pipeline,
            "direction": self.direction,
            "deployed": self.deployed,
            "target": self.target,
            "deployed_seq": self.deployed_seq,
            "diff": self.diff.to_json(),
            "changes": self.diff.to_dict()["changes"],
            "relations": [asdict(relation) for relation in self.relations],
            "steps": [_step_to_dict(step) for step in self.steps],
            "blockers": [_plain(b) for b in self.blockers],
            "warnings": list(self.warnings),
            "ups": [revision.to_dict() for revision in self.ups],
            "downs": list(self.downs),
            "stages": [dict(stage) for stage in self.stages],
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Plan:
        """The inverse of `to_dict`."""
        return Plan(
            id=data["id"],
            pipeline=data["pipeline"],
            direction=data["direction"],
            deployed=data["deployed"],
            target=data["target"],
            deployed_seq=data["deployed_seq"],
            diff=ProgramDiff.from_dict({"changes": data["changes"]}),
            steps=tuple(_step_from_dict(step) for step in data["steps"]),
            blockers=tuple(
                Blocker(
                    b["message"],
                    Location(**b["location"]) if b["location"] else None,
                    b["hint"],
                )
                for b in data["blockers"]
            ),
            warnings=tuple(data["warnings"]),
            ups=tuple(AppliedRevision.from_dict(r) for r in data["ups"]),
            downs=tuple(data["downs"]),
            stages=tuple(data["stages"]),
            relations=tuple(map(RelationPlan.from_dict, data.get("relations", ()))),
        )


def assert_never(action: NoReturn) -> NoReturn:
    """Let mypy find the reader that forgot an action (`typing.assert_never` needs Python 3.11)."""
    raise AssertionError(f"no such action: {action!r}")


def action_to_dict(action: Action) -> dict[str, Any]:
    """An action as JSON, with its name under `action`."""
    return {"action": type(action).__name__, **_plain(action)}


def action_from_dict(data: Mapping[str, Any]) -> Action:
    """The inverse of `action_to_dict`."""
    kind = _ACTIONS[data["action"]]
    values = {f.name: _frozen(data[f.name]) for f in fields(kind) if f.name in data}
    action: Action = kind(**values)
    return action


def _step_to_dict(step: Step) -> dict[str, Any]:
    return {
        "number": step.number,
        **action_to_dict(step.action),
        "cause": step.cause,
        "reads": [_plain(volume) for volume in step.reads],
        "writes": _plain(step.writes) if step.writes else None,
        "destructive": step.destructive,
        "cost": step.cost,
    }


def _step_from_dict(data: Mapping[str, Any]) -> Step:
    return Step(
        number=data["number"],
        action=action_from_dict(data),
        cause=data["cause"],
        reads=tuple(Volume(**volume) for volume in data["reads"]),
        writes=Volume(**data["writes"]) if data["writes"] else None,
        destructive=data["destructive"],
        cost=data.get("cost", ""),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, (str, int, type(None))):
        return value
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
