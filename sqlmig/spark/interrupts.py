"""Ctrl-C and Spark: who handles SIGINT after Spark has started. It knows nothing of sessions."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def keeping_interrupts() -> Iterator[None]:
    """Keep the handler of SIGINT that the program has set, whatever the block sets.

    Spark puts one in its place that raises `KeyboardInterrupt` at once: the runner would no more
    end its tick first. Where the program has none, Spark's stays, since it cancels the jobs.
    """
    former = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        is_own = former not in (None, signal.default_int_handler)
        if is_own and current_thread() is main_thread():  # Spark sets none in another thread
            signal.signal(signal.SIGINT, former)
