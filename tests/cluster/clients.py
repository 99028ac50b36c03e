"""What a machine without Spark and Java has: fixtures of a Python with the client, and no Java."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.servers import ROOT


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new virtual environment with `sqlmig[connect]`: no pyspark but its client.

    Made once for all processes of a run. SQLMIG_TEST_CLIENT names one that is there already, and
    saves the minute that it takes.
    """
    there = os.environ.get("SQLMIG_TEST_CLIENT")
    if there:
        return Path(there)
    is_one_of_many = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if is_one_of_many else base) / "client"
    python = folder / "venv" / "bin" / "python"
    with (folder.with_suffix(".lock")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            _install(folder, python)
            (folder / "ready").touch()
    return python


def _install(folder: Path, python: Path) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, ROOT]
    _done(build)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    _done([python, "-m", "pip", "install", "--quiet", f"{wheel}[connect]"])


@pytest.fixture(scope="session")
def without_java(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """An environment in which no Java is found, nor any of this checkout."""
    hidden = ("JAVA_HOME", "PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME")
    tools = tmp_path_factory.mktemp("tools")
    git = shutil.which("git")
    assert git is not None
    (tools / "git").symlink_to(git)
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PATH": str(tools)}


def _done(command: list[Any]) -> None:
    hidden = ("PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
