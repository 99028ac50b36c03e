"""Clusters on loopback, from the Spark that pyspark brings: standalone, and a Connect server.

Each is a context manager: what it started has ended when the block is left, however it is left.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlmig.spark.jars import DELTA, JarCache, cache_folder
from sqlmig.spark.settings import DELTA_CATALOG, DELTA_EXTENSION, LOCAL_LOG_STORE, LOG4J
from tests.java import SHORT_LIVED, mapping

ROOT = Path(__file__).parents[2]
SMALL = {
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.driver.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True)
class Server:
    """A process with an address.

    Args:
        address: what a client is told: `spark://127.0.0.1:7077`, `sc://127.0.0.1:15002`.
    """

    address: str
    process: subprocess.Popen[bytes]
    log: Path


@dataclass(frozen=True)
class Standalone:
    """A master and its workers."""

    master: Server
    workers: tuple[Server, ...]


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    """A standalone cluster: a master, and workers of two cores each."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    words: tuple[str, ...] = ("org.apache.spark.deploy.master.Master", *_PLACE)
    words += ("--port", str(port))
    with ExitStack() as stack:
        master = stack.enter_context(
            _running("spark-class", words, folder / "master.log", address, port, _DAEMON)
        )
        started = [stack.enter_context(worker(master, folder, n)) for n in range(workers)]
        _await(lambda: registered(master) == workers, master, f"{workers} workers registered")
        yield Standalone(master, tuple(started))


_PLACE = ("--host", "127.0.0.1", "--webui-port", "0")
_DAEMON = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": f"{SHORT_LIVED} {mapping()}"}


@contextmanager
def worker(master: Server, folder: Path, number: int) -> Iterator[Server]:
    """One more worker of a standalone cluster, with two cores; its executors die with it.

    Args:
        folder: where its log and its files lie.
        number: tells workers of a folder apart.
    """
    port = free_port()
    words = (
        *("org.apache.spark.deploy.worker.Worker", *_PLACE, "--port", str(port)),
        *("--cores", "2", "--memory", "2g", "--work-dir", str(folder / f"work-{number}")),
        master.address,
    )
    log = folder / f"worker-{number}.log"
    with _running("spark-class", words, log, f"127.0.0.1:{port}", port, _DAEMON) as server:
        yield server


@contextmanager
def connect_server(
    folder: Path, python: Path, conf: Mapping[str, str] | None = None, *, port: int | None = None
) -> Iterator[Server]:
    """A Spark Connect server with Delta.

    Args:
        folder: where its log lies.
        python: runs what a stream does with a batch; it has the client's packages.
        conf: more settings.
        port: a certain one, for a server that comes back.
    """
    port = port or free_port()
    java = f"{SHORT_LIVED} -Dlog4j2.configurationFile={LOG4J.as_uri()}"
    settings = {
        **SMALL,
        **LOCAL_LOG_STORE,
        "spark.driver.extraJavaOptions": java,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.jars": ",".join(map(str, delta_jars())),
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.ui.enabled": "false",
        **(conf or {}),
    }
    words = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    words += ["--master", "local[2]"]
    for name, value in sorted(settings.items()):
        words += ["--conf", f"{name}={value}"]
    log = folder / "connect.log"
    address = f"sc://127.0.0.1:{port}"
    # Whatever is installed beside it, the server's Python has no sqlmig.
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['sqlmig'] = None\n")
    environment = {"PYSPARK_PYTHON": str(python), "PYTHONPATH": str(folder)}
    with _running("spark-submit", words, log, address, port, environment) as server:
        yield server


def delta_jars() -> tuple[Path, ...]:
    """Delta's jars; fetched by a Spark of their own where no test has done it yet."""
    cache = JarCache(cache_folder() / "jars", (DELTA,))
    jars = cache.find()
    if jars is None:
        code = "from sqlmig.spark.session import open_session; open_session({})"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=600)
        jars = cache.find()
    assert jars, "Delta's jars were fetched"
    return jars


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _running(
    program: str,
    words: Sequence[str],
    log: Path,
    address: str,
    port: int,
    environment: Mapping[str, str],
) -> Iterator[Server]:
    """A process of Spark's that listens at `port`; ended, with its children, at the end."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        process = subprocess.Popen(
            [home / "bin" / program, *words],
            cwd=log.parent,
            env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
            | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    server = Server(address, process, log)
    try:
        _await(lambda: _listens(port), server, f"{program} listening at {port}")
        yield server
    finally:
        end(process)


def kill(server: Server) -> None:
    """Kill -9 a server and all that it started: what a machine that is lost looks like."""
    os.killpg(server.process.pid, signal.SIGKILL)
    server.process.wait(timeout=10)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a group of its own, and what it started."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def registered(master: Server) -> int:
    """How many workers have ever come to a master."""
    return master.log.read_text(errors="replace").count("Registering worker")


def _await(ready: object, server: Server, what: str, seconds: float = 90) -> None:
    """Wait until `ready()`; tell the log's end if the process dies, or time runs out."""
    assert callable(ready)
    until = time.monotonic() + seconds
    while not ready():
        dead = server.process.poll() is not None
        if dead or time.monotonic() > until:
            tail = "\n".join(server.log.read_text(errors="replace").splitlines()[-20:])
            raise AssertionError(f"{'died' if dead else 'timed out'} before {what}:\n{tail}")
        time.sleep(0.1)
