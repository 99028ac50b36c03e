"""Clusters for the tests that ask for one; each is started once in a run, and ended with it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.desk import Desk
from tests.cluster.servers import ROOT, SHORT_LIVED, SMALL, Server, Standalone, connect_server
from tests.cluster.servers import standalone as started_standalone

CLUSTERS = os.environ.get("SQLMIG_CLUSTERS", "connect").split(",")
"""`make clusters` names all three; the others take a quarter of an hour."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what looks at a cluster that no story of this run uses."""
    unused = [
        item
        for item in items
        if "standalone" in getattr(item, "fixturenames", ()) and "standalone" not in CLUSTERS
    ]
    if unused:
        config.hook.pytest_deselected(items=unused)
        items[:] = [item for item in items if item not in unused]


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


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A standalone cluster: master and two workers."""
    with started_standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def connect(client: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Spark Connect server with Delta."""
    with connect_server(tmp_path_factory.mktemp("connect"), client) as server:
        yield server


@pytest.fixture(scope="module", params=CLUSTERS)
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """Commands on one cluster after the other."""
    python = Path(sys.executable)
    environment: Mapping[str, str] = os.environ
    spark: dict[str, Any]
    match request.param:
        case "local":
            spark = {"master": "local[2]", "conf": SMALL}
        case "standalone":
            cluster: Standalone = request.getfixturevalue("standalone")
            spark = {"master": cluster.master.address, "conf": SMALL | ON_LOOPBACK}
        case _:
            server: Server = request.getfixturevalue("connect")
            spark = {"remote": server.address, "conf": {"spark.sql.shuffle.partitions": "2"}}
            python = request.getfixturevalue("client")
            environment = request.getfixturevalue("without_java")
    # The client's own time zone decides nothing.
    desk = Desk(python, spark, {**environment, "TZ": "America/St_Johns"})
    yield desk
    desk.close()


ON_LOOPBACK = {
    "spark.cores.max": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.executor.memory": "512m",
}
"""Half of each worker, so that two applications have room beside each other."""


def _done(command: list[Any]) -> None:
    hidden = ("PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
