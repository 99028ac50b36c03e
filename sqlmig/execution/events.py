"""What an observer of a run is told. Values only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlmig.planning.steps import Plan, Step


@dataclass(frozen=True)
class PlanStarted:
    """A plan begins, or goes on after a process died."""

    plan: Plan
    is_resumed: bool


@dataclass(frozen=True)
class StepStarted:
    """The step's STARTED record is in the ledger."""

    step: Step


@dataclass(frozen=True)
class StepEffected:
    """The step's effect is made; its DONE record is not yet written."""

    step: Step


@dataclass(frozen=True)
class StepFinished:
    """The step's DONE record is in the ledger. `seconds` is what it took; `rows` what it wrote."""

    step: Step
    seconds: float
    rows: int | None
    note: str | None = None


@dataclass(frozen=True)
class StepFailedEvent:
    """The step raised; the pipeline is taken back next."""

    step: Step
    seconds: float
    message: str


@dataclass(frozen=True)
class PlanApplied:
    """The commit point: the target revision is deployed."""

    plan: Plan


@dataclass(frozen=True)
class PlanRolledBack:
    """The pipeline is as it was before the plan."""

    plan: Plan


@dataclass(frozen=True)
class Ingestion:
    """A source brought rows in a tick."""

    connector: str
    rows: int
    rejected: int
    seconds: float


@dataclass(frozen=True)
class Refresh:
    """A view was computed again in a tick."""

    relation: str
    rows: int | None
    seconds: float


@dataclass(frozen=True)
class LateRows:
    """Rows came into a streaming table when their window had been emitted: they are in none."""

    relation: str
    rows: int


@dataclass(frozen=True)
class Sending:
    """A sink sent change rows in a tick."""

    connector: str
    rows: int
    seconds: float


@dataclass(frozen=True)
class TickFailure:
    """A source, a view or a sink failed in a tick; the others went on."""

    name: str
    message: str
    hint: str | None = None


@dataclass(frozen=True)
class Vacuumed:
    """The runner removed files that no kept cut needs."""

    files: int
    bytes: int


@dataclass(frozen=True)
class RunnerTicks:
    """The runner ticks this revision from now on."""

    revision: str | None


@dataclass(frozen=True)
class RunnerPauses:
    """The runner makes way for a plan; `plan` is None when the pipeline was stopped."""

    plan: str | None


@dataclass(frozen=True)
class LeaseWatched:
    """A process that was silent for long is watched for `seconds`, before it is taken for gone."""

    process: str
    seconds: float


@dataclass(frozen=True)
class TimeAwaited:
    """A plan is not begun before `at`, which parts the rows that pass under its queries."""

    at: datetime


Event = (
    PlanStarted
    | StepStarted
    | StepEffected
    | StepFinished
    | StepFailedEvent
    | PlanApplied
    | PlanRolledBack
    | Ingestion
    | Refresh
    | LateRows
    | Sending
    | TickFailure
    | Vacuumed
    | RunnerTicks
    | RunnerPauses
    | LeaseWatched
    | TimeAwaited
)
Observer = Callable[[Event], None]


def ignore(event: Event) -> None:
    """An observer that does nothing."""
