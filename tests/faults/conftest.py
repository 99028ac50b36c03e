"""What tests of killed servers share with the stories on clusters."""

from __future__ import annotations

import pytest

from tests.cluster import clients
from tests.cluster.clusters import leave_out_unused

client, without_java = clients.client, clients.without_java


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a cluster that this run does not name."""
    leave_out_unused(config, items)
