"""`sqlmig run` in the background: a process of its own. It knows the process and what it says."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from pathlib import Path

PATIENCE = 300.0
"""Seconds."""
_SHOWN = 3


class Runner:
    """The process, from the begin of the block to its end, however that comes.

    Args:
        log: the file that gets what it says.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._told = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Runner:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sqlmig", "run"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us: we end it, before Kafka
            )
        return self

    def __exit__(self, *error: object) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)
        finally:
            process.kill()
            process.wait()

    def interrupt(self) -> None:
        """Interrupt it as Ctrl-C does, and wait until it has ended its tick and itself."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                code = self._process.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                raise SystemExit(
                    f"error: waited {PATIENCE:g} s for the end of its tick; {self._last_words()}"
                ) from None
            if code != 0:
                raise SystemExit(self._ended())

    def said(self) -> list[str]:
        """Its lines since it was asked last; where many ticks follow each other, not all."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        new, self._told = lines[self._told :], len(lines)
        told: list[str] = []
        for is_tick, some in groupby(new, lambda line: line.startswith("  tick ")):
            block = list(some)
            if is_tick and len(block) > _SHOWN + 1:
                block[_SHOWN:] = [f"  ... and {len(block) - _SHOWN} more lines of ticks"]
            told += block
        return told

    def wait(self, is_there: Callable[[], bool], what: str) -> None:
        """Wait until `is_there()`; end here if the process ends, or after five minutes."""
        end = time.monotonic() + PATIENCE
        while not is_there():
            if self._process is None or self._process.poll() is not None:
                raise SystemExit(self._ended())
            if time.monotonic() > end:
                raise SystemExit(f"error: waited {PATIENCE:g} s for {what}; {self._last_words()}")
            time.sleep(1.0)

    def _ended(self) -> str:
        return f"error: `sqlmig run` has ended; {self._last_words()}"

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8").rstrip().splitlines()[-20:]
        return "\n".join(("the last that it said:", *(f"  {line}" for line in lines)))
