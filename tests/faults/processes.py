"""Processes to be killed, and a pipeline for them: three revisions, each deployed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sqlmig import commands
from sqlmig.commands import Project
from tests.stories.school import QUICK_JAVA, contents, make_project, write_pipeline

RUNS = int(os.environ.get("SQLMIG_FAULT_RUNS", "20"))
"""Seeded runs of each kind that needs no JVM; those that need one are a tenth as many."""
SQL = """\
CREATE TABLE readings (id BIGINT, value DOUBLE);
CREATE MATERIALIZED VIEW scaled AS SELECT id, value * {scale} AS value FROM readings;
CREATE MATERIALIZED VIEW summed AS SELECT sum(value) AS total FROM scaled;
CREATE MATERIALIZED VIEW counted AS SELECT count(*) + {scale} AS rows FROM readings;
"""


def three_revisions(root: Path) -> Project:
    """r1, r2 and r3 were deployed in this order, with rows; r3 is deployed."""
    project = make_project(root, {"all.sql": SQL.format(scale=1)})
    commands.revision(project, "one", rev_id="r1")
    commands.upgrade(project, "head")
    commands.execute(project, "INSERT INTO readings SELECT id, id * 0.5 FROM range(100)")
    commands.run(project)
    for scale in (2, 3):
        write_pipeline(root, {"all.sql": SQL.format(scale=scale)})
        project = commands.open_project(root)
        commands.revision(project, str(scale), rev_id=f"r{scale}")
        commands.upgrade(commands.open_project(root), "head")
    return commands.open_project(root)


def everything(root: Path) -> dict[str, list[str]]:
    """All rows of all deployed relations."""
    project = commands.open_project(root)
    return contents(project, commands.status(project).relations)


def start(root: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """`sqlmig WORDS` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "sqlmig", *words],
        cwd=root,
        env={**QUICK_JAVA, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str], *, within: float = 300) -> tuple[int, str]:
    """Its exit code, and what it said."""
    said = process.communicate(timeout=within)[0]
    return process.returncode, said


def run(root: Path, *words: str, **environment: str) -> tuple[int, str]:
    """Run `sqlmig WORDS` to its end."""
    return finish(start(root, *words, **environment))


def kill_at_random(
    root: Path, words: Sequence[str], seed: int, *, earliest: float, latest: float
) -> bool:
    """Start `sqlmig WORDS` and kill -9 it at a random time; False if it ended before."""
    delay = random.Random(seed).uniform(earliest, latest)
    process = start(root, *words)
    try:
        process.wait(timeout=delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def seconds(root: Path, *words: str) -> float:
    """How long `sqlmig WORDS` takes here and now."""
    began = time.monotonic()
    code, said = run(root, *words)
    assert code == 0, said
    return time.monotonic() - began
