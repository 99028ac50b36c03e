"""What only a Spark Connect server can do to us: it goes on when its client is dead."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlmig import commands
from sqlmig.planning.steps import Bootstrap
from sqlmig.warehouse import DeltaWarehouse
from tests.cluster.desk import ROOT, Desk
from tests.cluster.projects import Site, site
from tests.cluster.servers import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TABLE = "CREATE TABLE numbers (n INT);\n"
SLOW = """\
CREATE MATERIALIZED VIEW pairs AS
SELECT count(*) AS pairs, sum(pmod(hash(a, b), 2)) AS odd
FROM (SELECT explode(sequence(1, 4000)) AS a FROM numbers),
  (SELECT explode(sequence(1, 40000)) AS b FROM numbers);
"""


@pytest.fixture
def here(client: Path, without_java: Mapping[str, str], connect: Server, tmp_path: Path) -> Site:
    """A deployed table with a row, and a slow view over it that is ready to be deployed."""
    desk = Desk(client, {"remote": connect.address}, without_java)
    here = site(desk, tmp_path)
    here.freeze("r1", tables=TABLE)
    here("upgrade", "head")
    here("exec", "INSERT INTO numbers VALUES (1)")
    here.freeze("r2", views=SLOW)
    return here


def test_a_step_that_a_dead_client_left_running_is_done_once(here: Site) -> None:
    # given: a client dies while the server computes for it
    deployer = here.desk.start(here.folder, "sqlmig", "upgrade", "head")
    project = commands.open_project(here.folder)
    until = time.monotonic() + 120
    while not _is_computing(project) and time.monotonic() < until:
        time.sleep(0.05)
    deployer.send_signal(signal.SIGKILL)
    said, _ = deployer.communicate()
    assert deployer.returncode == -signal.SIGKILL, said
    assert _is_computing(project), "and had not finished"

    # when: another client goes on at once
    done = here("upgrade", "head", "--json").json
    here("run", "--once")

    # then: one of both committed, and the contents are right
    assert (done["status"], done["resumed"] is not None) == ("nothing_to_do", True)
    assert here.rows("SELECT pairs FROM pairs") == [{"pairs": 160_000_000}]
    commits = list(DeltaWarehouse(str(here.folder / "warehouse")).commits(_pairs(here)))
    assert len([commit for commit in commits if commit.mark and commit.operation == "WRITE"]) == 1
    here.desk.close()


def test_a_server_that_was_started_anew_is_connected_to_again(here: Site) -> None:
    # a session of the same process that the server has forgotten
    here("query", "SELECT count(*) AS n FROM numbers")
    code = (
        "import sys; from sqlmig.spark.session import open_session, is_alive\n"
        "from sqlmig.spark.connect import release\n"
        "first = open_session({'remote': sys.argv[1]})\n"
        "release(first)\n"
        "second = open_session({'remote': sys.argv[1]})\n"
        "assert second is not first and not is_alive(first) and is_alive(second)\n"
        "print(second.sql('SELECT 7 AS n').collect()[0].n)\n"
    )
    done = subprocess.run(
        [here.desk.python, here.write("script.py", code), here.desk.spark["remote"]],
        env={**here.desk.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stdout.strip()) == (0, "7"), done.stderr
    here.desk.close()


def _is_computing(project: commands.Project) -> bool:
    unfinished = project.deployment().unfinished
    if unfinished is None:
        return False
    wanted = {s["number"] for s in unfinished.plan["steps"] if s["action"] == Bootstrap.__name__}
    return any(
        number in wanted and progress.status.value == "started"
        for number, progress in unfinished.steps.items()
    )


def _pairs(here: Site) -> str:
    return f"{here.folder}/warehouse/tables/pairs"
