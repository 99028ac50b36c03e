"""The ledger's records. Values only; `fold` adds them up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    SEND = "send"
    STAMP = "stamp"
    RUNNER = "runner"
    REQUEST = "request"
    CHECKPOINT = "checkpoint"
    GC = "gc"


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
    ASKED = "asked"
    RENEWED = "renewed"
    PAUSED = "paused"
    STOPPED = "stopped"
    TAKEN_OVER = "taken_over"


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
    """The process that runs a plan or ticks the pipeline, and holds a lease on doing so.

    Args:
        token: new for each run; fences its writes.
        host: name of its machine, for people.
        pid, started: the process, and when the system started it.
        machine: tells machines (and containers) with one name apart; '' where that isn't known.
        lease: seconds without a sign of it after which others may take its place.
    """

    token: str
    host: str
    pid: int
    started: str
    machine: str = ""
    lease: float = 60.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "token": self.token,
            "host": self.host,
            "pid": self.pid,
            "started": self.started,
            "machine": self.machine,
            "lease": self.lease,
        }

    @staticmethod
    def from_dict(data: Json) -> Owner:
        """The inverse of `to_dict`."""
        return Owner(**data)


@dataclass(frozen=True)
class Record:
    """One row of the ledger.

    `seq` is the ledger's Delta version that holds it, -1 before; `part` counts the records of one
    commit, from 0.
    """

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
    remote: str | None = None
    seq: int = -1
    part: int = 0
