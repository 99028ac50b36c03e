"""Which kinds of cluster a run of the tests uses, and what a driver beside others takes of one."""

from __future__ import annotations

import os

import pytest

from tests.java import SHORT_LIVED, mapping

CLUSTERS = os.environ.get("SQLMIG_CLUSTERS", "connect").split(",")
"""`make clusters` names all three; the others take a quarter of an hour."""
ON_LOOPBACK = {
    "spark.cores.max": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": f"{SHORT_LIVED} {mapping()}",
    "spark.executor.memory": "512m",
}
"""Half of each worker, so that two applications have room beside each other."""


def leave_out_unused(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of a standalone cluster where a run does not name it."""
    unused = [
        item
        for item in items
        if "standalone" in getattr(item, "fixturenames", ()) and "standalone" not in CLUSTERS
    ]
    if unused:
        config.hook.pytest_deselected(items=unused)
        items[:] = [item for item in items if item not in unused]
