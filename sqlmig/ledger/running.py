"""What the records of runners and of `sqlmig stop` make of the deployment. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlmig.ledger.cut import Cut
from sqlmig.ledger.deployment import Deployment, Runner, State, is_consistent, merge
from sqlmig.ledger.records import Owner, Record, Status
from sqlmig.ledger.sink_state import begun_batches


def after_runner(now: Deployment, record: Record) -> Deployment:
    """A process took the lease on ticking, gave a sign of life, paused, or let go."""
    details = record.details
    match record.status:
        case Status.STARTED:
            runner = Runner(
                owner=Owner.from_dict(details["owner"]),
                is_once=bool(details.get("once")),
                since=record.at,
                at=record.at,
                sign=record.seq,
                interval=details.get("interval"),
            )
            return replace(now, runner=runner)
        case Status.STOPPED | Status.TAKEN_OVER:
            if record.cut is not None:  # the tables were fenced: new versions, old contents
                cut = merge(now.cut, record.cut)
                is_whole = is_consistent(cut)
                now = replace(now, cut=cut, consistent=cut if is_whole else now.consistent)
            return after_release(now, record)
        case Status.PAUSED:
            return _end_ticks(after_sign(now, record, is_paused=True))
        case Status.RESUMED:
            return after_sign(now, record, is_paused=False)
        case Status.RENEWED:
            return after_sign(now, record)
        case _:
            return now


def after_sign(now: Deployment, record: Record, *, is_paused: bool | None = None) -> Deployment:
    """A record that shows that the runner lives, if it is the runner's."""
    runner, details = now.runner, record.details
    if runner is None or runner.owner.token != details.get("token"):
        return now
    runner = replace(
        runner,
        at=record.at,
        sign=record.seq,
        is_paused=runner.is_paused if is_paused is None else is_paused,
        ticks=details.get("ticks", runner.ticks),
        seconds=details.get("seconds", runner.seconds),
    )
    return replace(now, runner=runner)


def after_release(now: Deployment, record: Record) -> Deployment:
    """The runner's lease has ended, if this record says so of the one that holds it."""
    if now.runner is None or record.details.get("released") != now.runner.owner.token:
        return now
    return _end_ticks(replace(now, runner=None))


def after_request(now: Deployment, record: Record) -> Deployment:
    """Somebody asked that the ticks stop, now or at a time, or go on."""
    if record.details["ask"] == "resume":
        state = now.state
        if state is State.STOPPED and now.revision is not None:
            state = State.RUNNING
        return replace(now, stop_at=None, must_stop=False, is_stopped=False, state=state)
    at = record.details.get("at")
    if at is not None:
        return replace(now, stop_at=datetime.fromisoformat(at))
    return _end_ticks(replace(now, stop_at=record.at, must_stop=True))


def after_exec(now: Deployment, record: Record) -> Deployment:
    """A statement changed a table; a tick that ran beside it may know a newer version already."""
    if record.status is not Status.DONE or record.cut is None:
        return now
    cut = now.cut
    for name, state in Cut.from_dict(record.cut).relations.items():
        known = cut.relations.get(name)
        if known is None or known.folder != state.folder or known.version < state.version:
            cut = cut.with_relation(name, state)
    now = replace(now, cut=cut)
    if is_consistent(cut):
        now = replace(now, consistent=cut, consistent_seq=record.seq)
    return now


def checkpoint_details(now: Deployment) -> dict[str, Any]:
    """What a checkpoint's record says besides the cut, so that ticks before it need not be read."""
    is_same = now.consistent == now.cut
    return {
        "consistent": None if is_same else now.consistent.to_dict(),
        "consistent_seq": now.consistent_seq,
        "ticks": now.ticks,
        "last_tick": _text(now.last_tick),
        "failures": dict(now.failures),
        "hints": dict(now.hints),
        "refreshed": {name: _text(at) for name, at in now.refreshed.items()},
        "error": now.error,
        "runner": now.runner.to_dict() if now.runner else None,
        "batches": {name: batch.to_dict() for name, batch in now.sending.items()},
        "stop_at": _text(now.stop_at),
        "must_stop": now.must_stop,
        "is_stopped": now.is_stopped,
    }


def after_checkpoint(now: Deployment, record: Record) -> Deployment:
    """The whole state of the ticks, as `checkpoint_details` told it."""
    details = record.details
    cut = Cut.from_dict(record.cut or {})
    consistent, runner = details["consistent"], details["runner"]
    state = now.state
    if state in (State.RUNNING, State.STOPPED) and now.revision is not None:
        state = State.STOPPED if details["is_stopped"] else State.RUNNING
    return replace(
        now,
        cut=cut,
        consistent=cut if consistent is None else Cut.from_dict(consistent),
        consistent_seq=details["consistent_seq"],
        ticks=details["ticks"],
        last_tick=_time(details["last_tick"]),
        failures=details["failures"],
        hints=details.get("hints", {}),
        refreshed={name: datetime.fromisoformat(at) for name, at in details["refreshed"].items()},
        error=details["error"],
        runner=Runner.from_dict(runner) if runner else None,
        sending=begun_batches(details),
        stop_at=_time(details["stop_at"]),
        must_stop=details["must_stop"],
        is_stopped=details["is_stopped"],
        state=state,
    )


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _end_ticks(now: Deployment) -> Deployment:
    """Whether a stop that was asked for has come about: nobody ticks any more."""
    if now.stop_at is None or (now.runner is not None and not now.runner.is_paused):
        return now
    state = State.STOPPED if now.state is State.RUNNING else now.state
    return replace(now, is_stopped=True, state=state)
