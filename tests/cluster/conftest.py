"""Clusters for the tests that ask for one; each is started once in a run, and ended with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sqlmig.spark.fetching import fetch
from sqlmig.spark.packages import KAFKA
from tests.cluster import clients
from tests.cluster.clusters import CLUSTERS, ON_LOOPBACK, leave_out_unused
from tests.cluster.desk import Desk
from tests.cluster.servers import SMALL, Server, Standalone, connect_server, delta_jars
from tests.cluster.servers import standalone as started_standalone

client, without_java = clients.client, clients.without_java


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what looks at a cluster that no story of this run uses."""
    leave_out_unused(config, items)


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A standalone cluster: master and two workers."""
    with started_standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def connect(client: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Spark Connect server with Delta and Spark's connector for Kafka."""
    jars = ",".join(map(str, (*delta_jars(), *fetch(KAFKA))))
    folder = tmp_path_factory.mktemp("connect")
    with connect_server(folder, client, {"spark.jars": jars}) as server:
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
