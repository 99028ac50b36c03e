"""Leases: who may act on the pipeline, and when one that fell silent may be replaced.

A lease is the holder's newest record in the ledger. Nobody trusts anybody's clock: the holder
counts the seconds since its own last record, a watcher those since it last saw a new one. The token
in the records fences: each append says which version of the ledger it has read, so a holder that
was replaced can't append, and looks before each commit whether it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from threading import Event, Thread
from types import TracebackType

from sqlmig.errors import LedgerError, SqlmigError
from sqlmig.execution import events
from sqlmig.execution.clock import elapsed
from sqlmig.execution.journal import Journal
from sqlmig.execution.process import at_work, describe_owner, is_alive
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.records import Owner

Sleep = Callable[[float], None]
_POLL = 0.2
"""Seconds between two looks at the ledger: a look takes about a millisecond."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lease, when it was last heard of, and in which record of the ledger."""

    owner: Owner
    at: datetime
    sign: int


HolderOf = Callable[[Deployment], Holder | None]


def plan_holder(deployment: Deployment) -> Holder | None:
    """Who carries out the unfinished plan."""
    plan = deployment.unfinished
    if plan is None or plan.owner is None:
        return None
    return Holder(plan.owner, plan.last_sign, plan.sign)


def runner_holder(deployment: Deployment) -> Holder | None:
    """Who ticks the pipeline."""
    runner = deployment.runner
    return None if runner is None else Holder(runner.owner, runner.at, runner.sign)


def seems_gone(holder: Holder, now: datetime) -> bool:
    """Whether it is worth watching: dead, silent for its lease, or heard of in the future."""
    if is_alive(holder.owner) is False:
        return True
    return not 0 <= (now - holder.at).total_seconds() <= holder.owner.lease


def is_gone(
    journal: Journal,
    holder_of: HolderOf,
    observer: events.Observer = events.ignore,
    sleep: Sleep = time.sleep,
) -> bool:
    """Whether the holder acts no more: dead on this machine, or silent for a whole lease.

    Args:
        holder_of: whose lease it is about.
        observer: told if this takes time.
        sleep: waits so many seconds.

    Returns:
        False as soon as it gives a sign, or somebody else holds the lease; this takes up to a
        lease's time, unless the process ran on this machine and is dead.
    """
    holder = holder_of(journal.refresh())
    if holder is None:
        return False
    ends = elapsed() + holder.owner.lease
    if is_alive(holder.owner) is not False:
        observer(events.LeaseWatched(describe_owner(holder.owner), holder.owner.lease))
    while is_alive(holder.owner) is not False:
        if elapsed() >= ends:
            return True
        sleep(_POLL)
        if holder_of(journal.refresh()) != holder:
            return False
    return True


class Lease:
    """This process's lease, renewed in the background while the block lasts.

    So long the process counts as alive to itself, too.

    Args:
        journal: where it is renewed.
        renew: appends a sign of life; raises when the lease is lost.
    """

    def __init__(self, journal: Journal, renew: Callable[[], None]) -> None:
        self._journal = journal
        self._renew = renew
        self._work = at_work(journal.owner)
        self._over = Event()
        self._thread = Thread(target=self._keep, name="sqlmig lease", daemon=True)

    def __enter__(self) -> Lease:
        self._work.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._work.__exit__(kind, error, trace)

    def check(self) -> None:
        """Raise unless this process holds the lease; to be called before each commit.

        After half a lease without a sign it is renewed first: a process that was stopped for
        longer than its lease finds out here, whatever the clocks say.
        """
        if self._journal.silence > self._journal.owner.lease / 2:
            self._renew()
        else:
            self._journal.refresh()

    def _keep(self) -> None:
        pause = self._journal.owner.lease / 3
        while not self._over.wait(max(pause - self._journal.silence, pause / 10)):
            if self._journal.silence < pause:
                continue
            try:
                with suppress(LedgerError):  # a full disk: what is to be written next will say so
                    self._renew()
            except SqlmigError:
                return  # lost: the work finds it out before its next commit
