"""Processes as the ledger names them: which one this is, and whether one still lives."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from sqlmig.ledger.records import Owner


def this_process(lease: float) -> Owner:
    """This process as an owner with a new token.

    Args:
        lease: seconds that its lease lasts without a sign.
    """
    return Owner(
        uuid.uuid4().hex, socket.gethostname(), os.getpid(), process_start(), machine(), lease
    )


@cache
def machine() -> str:
    """Tells this machine, since it was started, and this container from all others.

    A name does not: a container that is started anew often gets the name of the former one, and
    counts its processes from 1. '' where the system does not say.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def process_start(pid: int | None = None) -> str:
    """When a process of this machine started, as the system counts.

    '' where that isn't known, or it is dead.

    Together with the process id it names a process, although ids are used again.
    """
    try:
        stat = Path(f"/proc/{pid or os.getpid()}/stat").read_text(encoding="utf-8")
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in ("Z", "X") else fields[19]
    except (OSError, IndexError):
        return ""


_at_work: set[str] = set()
"""Tokens of the runs of this process that have not ended."""


@contextmanager
def at_work(owner: Owner) -> Iterator[None]:
    """While this lasts, `owner` counts as alive in this process.

    A run that was broken off must not count as alive because its process goes on with other work.
    """
    _at_work.add(owner.token)
    try:
        yield
    finally:
        _at_work.discard(owner.token)


def is_alive(owner: Owner) -> bool | None:
    """Whether the owner's process still runs; None when it is on another machine.

    One that runs may be stopped, or wait for ever: whether it still acts, its lease says.
    """
    if owner.host != socket.gethostname() or owner.machine != machine():
        return None
    if (owner.pid, owner.started) == (os.getpid(), process_start()):
        return owner.token in _at_work
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return process_start(owner.pid) == owner.started


def describe_owner(owner: Owner) -> str:
    """`process 4711 on host`."""
    return f"process {owner.pid} on {owner.host}"


def with_token(owner: Owner) -> Owner:
    """The same process with a new token, for another run."""
    return replace(owner, token=uuid.uuid4().hex)
