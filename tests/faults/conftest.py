"""A disk to fill up, and what tests of killed servers share with the stories on clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import clients
from tests.cluster.clusters import leave_out_unused
from tests.faults.small_disk import (
    SmallDisk,
    has_small_memory,
    run_in_name_space,
    small_disk,
    way_to_mount,
)

client, without_java = clients.client, clients.without_java


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a cluster that this run does not name."""
    leave_out_unused(config, items)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Sixteen megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    with small_disk(place, 16) as disk:
        yield disk


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that needs a disk where it can have one; True where that was elsewhere."""
    if "disk" not in pyfuncitem.fixturenames or way_to_mount() is not None or has_small_memory():
        return None
    run_in_name_space(pyfuncitem.nodeid)
    return True
