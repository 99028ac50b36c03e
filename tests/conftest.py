"""What all tests share: one Spark for the whole run, a warehouse each, hypothesis's settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.kafka.broker import Broker

settings.register_profile(
    "local", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile(
    "ci", parent=settings.get_profile("local"), derandomize=True, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "local")


# Every JVM that pyspark or `spark-submit` starts, in this process and in those it starts.
os.environ["SPARK_SUBMIT_OPTS"] = java.submit_options()

LONGEST_FIRST = ("stories", "cluster", "faults", "kafka", "spark")
"""Folders whose files begin before all others, which then fill what is left of the processes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that asks for Spark, for `make test-fast` to leave it out, and order all."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    folder = item.path.parent.name
    return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own environment decides nothing in a test."""
    for name in ("GITHUB_ACTIONS", "SQLMIG_CONFIG", "SQLMIG_TARGET"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark with Delta for all tests: starting one takes seconds."""
    from sqlmig.spark.packages import AVRO, KAFKA
    from sqlmig.spark.session import close_sessions, open_session

    log = tmp_path_factory.mktemp("spark") / "spark.log"
    # It lives long enough for its own compiler to pay.
    conf = {**java.SMALL, "spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}
    target = {"master": "local[*]", "conf": conf}
    yield open_session(target, app_name="sqlmig tests", log_path=log, packages=(AVRO, KAFKA))
    close_sessions()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One Kafka broker for all tests; each makes topics of its own."""
    from tests.kafka.broker import Broker

    broker = Broker(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def tmp_warehouse(tmp_path: Path) -> Path:
    """An empty folder for a target's tables, checkpoints and ledger."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    return warehouse
