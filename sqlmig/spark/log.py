"""The log of a starting Spark: a file that the JVM inherits, and what it says of a failure."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlmig.errors import EngineError, NoSpaceError
from sqlmig.free_space import FULL, SPARK_ADVICE, is_full

_LIMIT = 10_000_000


@contextmanager
def output_into(log_path: Path) -> Iterator[None]:
    """Send file descriptors 1 and 2 to the log, so that a JVM started now inherits them."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [(number, os.dup(number)) for number in (1, 2) if _is_open(number)]
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for number, _ in saved:
            os.dup2(log, number)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in saved:
            os.dup2(copy, number)
            os.close(copy)
        os.close(log)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def prepare_log(log_path: Path) -> int:
    """Make the log's folder, put a large old log aside, and return where ours begins."""
    try:
        log_path.parent.mkdir(parents=True, exist_ok=True)
        size = log_path.stat().st_size if log_path.exists() else 0
        if size <= _LIMIT:
            return size
        log_path.replace(log_path.with_name(log_path.name + ".1"))
    except OSError as error:
        raise EngineError(f"the log {log_path} can't be written: {error.strerror}") from error
    return 0


def start_error(error: Exception, log_path: Path, position: int) -> EngineError:
    with log_path.open("rb") as file:
        file.seek(position)
        text = file.read().decode("utf-8", "replace")
    if "UNRESOLVED DEPENDENCIES" in text or "unresolved dependency" in text:
        missing = sorted(set(re.findall(r"unresolved dependency: ([^\s:]+)", text)))
        return EngineError(
            f"Spark's packages can't be downloaded: {', '.join(missing) or 'see the log'}",
            hint="the first start needs a Maven repository: check the network, or set "
            f"spark.jars.repositories or spark.jars.ivySettings; the log is {log_path}",
        )
    if is_full(f"{error}\n{text}"):
        hint = f"{SPARK_ADVICE}; the log is {log_path}"
        return NoSpaceError(f"Spark did not start: {FULL}", hint=hint)
    lines = [line.strip() for line in text.splitlines()]
    telling = [line for line in lines if line and not line.startswith(("at ", "::", "... "))]
    last = "\n".join(f"      {line[:300]}" for line in telling[-5:])
    said = f"the last lines of {log_path}:\n{last}" if last else f"the log is {log_path}"
    return EngineError(f"Spark did not start: {first_line(error)}", hint=said)


def first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
