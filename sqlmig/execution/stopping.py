"""Brings a running pipeline to rest: asks its runner through the ledger, or replaces a lost one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from sqlmig.errors import EngineError
from sqlmig.execution import events
from sqlmig.execution.clock import elapsed
from sqlmig.execution.engine import Warehouse
from sqlmig.execution.journal import Journal
from sqlmig.execution.lease import Sleep, is_gone, runner_holder, seems_gone
from sqlmig.execution.process import describe_owner, is_alive
from sqlmig.execution.values import Mark
from sqlmig.ledger.cut import RelationState
from sqlmig.ledger.deployment import Deployment, Runner
from sqlmig.ledger.records import Kind, Status
from sqlmig.planning.request import observe

_POLL = 0.2


def wait_until_stopped(
    journal: Journal,
    warehouse: Warehouse,
    *,
    patience: float,
    check: Callable[[], None],
    sleep: Sleep = time.sleep,
) -> str | None:
    """Wait until nobody ticks the pipeline; that a plan is under way asks the runner to stop.

    Args:
        patience: seconds that a runner that shows signs of life may take to end its tick.
        check: raises when this process may not go on; called while waiting.
        sleep: waits so many seconds.

    Returns:
        What became of the runner, for people; None when there was none.

    Raises:
        EngineError: the runner works on after `patience`.
    """
    began = elapsed()
    heard, since = -1, began
    while True:
        runner = journal.refresh().runner
        if runner is None or runner.is_paused:
            return None if heard < 0 else f"{elapsed() - began:.1f} s until the tick ended"
        if runner.sign != heard:
            heard, since = runner.sign, elapsed()
        is_silent = elapsed() - since > runner.owner.lease
        if is_silent or is_alive(runner.owner) is False:
            replace_runner(journal, warehouse, runner)
            return f"{describe_owner(runner.owner)} was gone, and was replaced"
        if elapsed() - began > patience:
            raise EngineError(
                f"{describe_owner(runner.owner)} did not end its tick within {patience:g} s",
                hint="`sqlmig status` shows what it does; run the command again with a longer "
                "`--stop-timeout`",
            )
        check()
        sleep(_POLL)


def give_way(
    journal: Journal,
    warehouse: Warehouse,
    observer: events.Observer = events.ignore,
    sleep: Sleep = time.sleep,
) -> None:
    """Make sure that no other process ticks the pipeline: replace one whose lease is lost.

    Raises:
        EngineError: another process ticks it.
    """
    holder = runner_holder(journal.refresh())
    if holder is None:
        return
    runner = journal.deployment.runner
    assert runner is not None
    if seems_gone(holder, journal.clock()) and is_gone(journal, runner_holder, observer, sleep):
        replace_runner(journal, warehouse, runner)
        return
    raise EngineError(
        f"the pipeline is ticking in {describe_owner(holder.owner)}",
        hint="run the command again when its tick is over"
        if runner.is_once
        else "`sqlmig status` shows what it does; only one process ticks a pipeline",
    )


def replace_runner(journal: Journal, warehouse: Warehouse, runner: Runner) -> None:
    """End the lease of a runner that is gone, and fence off what it may still be writing.

    First the record: from then on the runner is refused wherever it looks at the ledger. Then a
    commit to each table's metadata: a write that it began before can't be committed any more, for
    Delta refuses a commit whose table changed its metadata meanwhile.
    """

    def check(deployment: Deployment) -> None:
        now = deployment.runner
        if now is None or now.owner.token != runner.owner.token or now.sign != runner.sign:
            raise EngineError(
                f"{describe_owner(runner.owner)} gave a sign of life after all",
                hint="run the command again",
            )

    details = {"released": runner.owner.token, "by": journal.owner.to_dict()}
    journal.append(Kind.RUNNER, Status.TAKEN_OVER, check=check, details=details)
    fenced = fence(journal, warehouse)
    journal.append(
        Kind.RUNNER,
        Status.TAKEN_OVER,
        details=details,
        cut={"relations": {name: state.to_dict() for name, state in sorted(fenced.items())}},
    )


def fence(journal: Journal, warehouse: Warehouse) -> dict[str, RelationState]:
    """Fence all tables off; their states: what each held is known under the version before.

    A table that was written to in this very moment is not among them: what looks at it next finds
    it moved.
    """
    deployment = journal.deployment
    relations = deployment.cut.relations
    observed = warehouse.observe(relations)
    run = f"fence-{journal.owner.token[:8]}"
    states: dict[str, RelationState] = {}
    for name, state in sorted(relations.items()):
        now = observed.get(state.folder)
        if now is None:
            continue
        mark = Mark(  # what was computed stays known as computed
            deployment.pipeline or "",
            run,
            0,
            deployment.revision,
            now.fingerprint,
            now.inputs or {},
        )
        version = warehouse.fence(state.folder, mark)
        if version == now.version + 1:
            states[name] = replace(observe(state, now), version=version)
    return states
