"""A runner in a process of its own, and records that keep coming, for stories."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from sqlmig import commands
from sqlmig.commands import Project
from tests.stories.school import QUICK_JAVA

CONFIG = """\
pipeline: events
targets:
  local:
    spark: {{master: "local[*]"}}
    warehouse: warehouse
    bootstrap_policy: allow
    runner: {{lease: {lease}, interval: 1s}}
"""
TABLES = """\
CREATE TABLE events (id BIGINT, kind STRING);
CREATE SOURCE files INTO events USING json OPTIONS (path 'landing');
CREATE MATERIALIZED VIEW totals AS
SELECT count(*) AS events, count(DISTINCT id) AS ids FROM events;
"""


def view(number: int) -> str:
    """A program whose second view is the number's own."""
    return TABLES + (
        "CREATE MATERIALIZED VIEW kinds AS\n"
        f"SELECT kind, count(*) + {number} AS n FROM events GROUP BY kind;\n"
    )


def make_project(root: Path, *, lease: str = "60s") -> Project:
    """Revision r0 is frozen; nothing is deployed."""
    for name in ("pipeline", "revisions", "landing"):
        (root / name).mkdir(parents=True)
    (root / "sqlmig.yml").write_text(CONFIG.format(lease=lease), encoding="utf-8")
    freeze(root, 0)
    return commands.open_project(root)


def freeze(root: Path, number: int) -> None:
    """Freeze the number's program as its revision."""
    (root / "pipeline" / "all.sql").write_text(view(number), encoding="utf-8")
    commands.revision(commands.open_project(root), f"number {number}", rev_id=f"r{number}")


@contextmanager
def runner(root: Path, programs: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """`sqlmig run` in a process of its own; killed at the end if it still runs.

    Args:
        programs: a folder of programs that it finds before those of the machine.
    """
    command = [sys.executable, "-m", "sqlmig", "run"]
    environment = dict(QUICK_JAVA)
    if programs is not None:
        environment["PATH"] = os.pathsep.join((str(programs), environment["PATH"]))
    with (root / "run.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, cwd=root, env=environment, stdout=log, stderr=subprocess.STDOUT, text=True
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(timeout=60)


def counted_program(folder: Path, name: str) -> Path:
    """A program in `folder` that does as the real one, and adds a line to the file returned."""
    real, calls = shutil.which(name), folder / f"{name}.calls"
    folder.mkdir()
    calls.touch()
    program = folder / name
    program.write_text(f'#!/bin/sh\necho "$*" >> {calls}\nexec {real} "$@"\n')
    program.chmod(0o755)
    return calls


def log(root: Path) -> str:
    """What the runner said."""
    return (root / "run.log").read_text(encoding="utf-8")


def eventually(what: Callable[[], bool], *, within: float = 180) -> None:
    """Wait until it holds."""
    ends = time.monotonic() + within
    while not what():
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.1)


def taken_in(project: Project) -> int:
    """How many records the runner has taken in, as `status` tells."""
    return int(commands.status(project).relations["events"]["rows"])


def await_records(project: Project, count: int, *, within: float = 180) -> None:
    """Wait until the runner has taken in more than `count` records."""
    eventually(lambda: taken_in(project) > count, within=within)


class Producer:
    """Writes a file with one record again and again, while the block lasts.

    Args:
        every: seconds between two records.
    """

    def __init__(self, landing: Path, every: float = 0.5) -> None:
        self._landing = landing
        self._every = every
        self._over = Event()
        self._thread = Thread(target=self._produce, daemon=True)
        self.count = 0

    def __enter__(self) -> Producer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def produce(self) -> None:
        """One more record; its file appears at once, whole."""
        written = self._landing / f".{self.count}.json"
        written.write_text(f'{{"id": {self.count}, "kind": "k{self.count % 3}"}}\n')
        written.rename(self._landing / f"{self.count}.json")
        self.count += 1

    def _produce(self) -> None:
        while not self._over.wait(self._every):
            self.produce()
