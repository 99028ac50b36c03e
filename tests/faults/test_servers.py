"""Spark on other machines that are lost under way: a Connect server, workers of a cluster."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from sqlmig import commands
from sqlmig.ledger.records import Kind, Status
from sqlmig.planning.steps import Bootstrap
from sqlmig.warehouse import DeltaWarehouse
from tests.cluster.clusters import ON_LOOPBACK
from tests.cluster.desk import Desk
from tests.cluster.projects import Site, site
from tests.cluster.servers import (
    SMALL,
    Standalone,
    connect_server,
    free_port,
    kill,
    registered,
    worker,
)
from tests.cluster.servers import standalone as started_standalone
from tests.faults.processes import RUNS
from tests.stories.running import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SEEDS = range(max(1, RUNS // 40))
PAIRS = 4000 * 5000
"""Some seconds of work: long enough to be killed in the middle of it."""
SQL = """\
CREATE TABLE numbers (n INT);
CREATE SOURCE files INTO numbers USING json OPTIONS (path 'landing');
CREATE MATERIALIZED VIEW pairs AS
SELECT count(*) AS pairs, sum(pmod(hash(a, b), 2)) >= 0 AS is_hashed,
  (SELECT sum(n) FROM numbers) AS total
FROM (SELECT /*+ REPARTITION(4) */ explode(sequence(1, 4000)) AS a),
  (SELECT explode(sequence(1, 5000)) AS b);
"""
AFTER = SQL.replace("sum(n)", "sum(n) * 10")


def produce(here: Site, number: int) -> None:
    """One more file, with one number."""
    here.write(f"landing/.{number}", f'{{"n": {number}}}\n')
    (here.folder / "landing" / f".{number}").rename(here.folder / "landing" / f"{number}.json")


def await_tick(here: Site, rows: int) -> None:
    """Wait until a tick has read so many numbers; it computes the view then."""
    warehouse = DeltaWarehouse(str(here.folder / "warehouse"))
    eventually(lambda: warehouse.written("numbers").rows == rows)


def await_ticked(here: Site, rows: int) -> None:
    """Wait until so many numbers were read, and the view was computed from them."""

    def is_over() -> bool:
        deployment = commands.open_project(here.folder).deployment()
        numbers, pairs = (deployment.cut.relations[name] for name in ("numbers", "pairs"))
        is_current = dict(pairs.inputs) == {"numbers": numbers.content}
        return numbers.rows == rows and is_current and not deployment.failures

    eventually(is_over, within=400)


def await_bootstrap(here: Site) -> None:
    """Wait until an upgrade computes its view."""
    project = commands.open_project(here.folder)

    def is_computing() -> bool:
        plan = project.deployment().unfinished
        steps = [] if plan is None else plan.plan["steps"]
        wanted = {s["number"] for s in steps if s["action"] == Bootstrap.__name__}
        return any(
            number in wanted and progress.status is Status.STARTED
            for number, progress in (plan.steps.items() if plan else ())
        )

    eventually(is_computing)


def plans(here: Site) -> list[Status]:
    """What the ledger tells of plans, without signs of life."""
    records = commands.open_project(here.folder).ledger.read(is_whole=True)[1]
    return [r.status for r in records if r.kind is Kind.PLAN and r.status is not Status.RENEWED]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pipeline_goes_on_with_the_server_that_takes_a_killed_ones_place(
    client: Path, without_java: Mapping[str, str], tmp_path: Path, seed: int
) -> None:
    chance, port = random.Random(seed), free_port()
    with ExitStack() as stack:
        # given: a runner on the first server
        first = stack.enter_context(connect_server(tmp_path / "a", client, port=port))
        desk = Desk(client, {"remote": first.address}, without_java)
        stack.callback(desk.close)
        here = site(desk, tmp_path / "numbers")
        (here.folder / "landing").mkdir()
        here.freeze("r1", all=SQL)
        here("upgrade", "head")
        produce(here, 1)
        runner = desk.start(here.folder, "sqlmig", "run", "--interval", "0.5s")
        stack.callback(runner.kill)
        await_ticked(here, 1)

        # when: the server is killed in the middle of a tick, and another one comes
        produce(here, 2)
        await_tick(here, 2)
        time.sleep(chance.uniform(0, 0.5))
        kill(first)
        second = stack.enter_context(connect_server(tmp_path / "b", client, port=port))
        produce(here, 3)

        # then: the same runner goes on
        await_ticked(here, 3)
        assert runner.poll() is None

        # when: the second one is killed in the middle of an upgrade, and a third one comes
        here.freeze("r2", all=AFTER)
        deployer = desk.start(here.folder, "sqlmig", "upgrade", "head", "--yes")
        stack.callback(deployer.kill)
        await_bootstrap(here)
        time.sleep(chance.uniform(0, 0.5))
        kill(second)
        stack.enter_context(connect_server(tmp_path / "c", client, port=port))
        said, _ = deployer.communicate(timeout=300)
        produce(here, 4)
        done = here("upgrade", "head", "--json").json
        await_ticked(here, 4)
        runner.send_signal(signal.SIGTERM)
        heard, _ = runner.communicate(timeout=300)

        # then: it was taken back, said so, and the next command ended it; each number counts once
        assert deployer.returncode == 1, said
        assert "the pipeline is back at revision r1, its data as before" in said
        assert "the Spark Connect server is gone" in said
        assert "Traceback" not in said + heard
        assert done["status"] == "applied"
        assert runner.returncode == 0, heard
        assert here.rows("SELECT pairs, total FROM pairs") == [{"pairs": PAIRS, "total": 100}]
        told = [Status.STARTED, Status.APPLIED]
        taken_back = [Status.STARTED, Status.ROLLING_BACK, Status.ROLLED_BACK]
        assert plans(here) == [*told, *taken_back, *told]


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Standalone]:
    """A cluster of the test's own, whose workers it may kill."""
    with started_standalone(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.mark.parametrize("seed", SEEDS)
def test_work_that_a_killed_worker_had_is_done_by_another(
    standalone: Standalone, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    workers = list(standalone.workers)
    chance.shuffle(workers)
    conf = SMALL | ON_LOOPBACK
    with ExitStack() as stack:
        # given
        desk = Desk(
            Path(sys.executable), {"master": standalone.master.address, "conf": conf}, os.environ
        )
        stack.callback(desk.close)
        pool = stack.enter_context(ThreadPoolExecutor(1))
        here = site(desk, tmp_path / "numbers")
        produce(here, 1)
        here.freeze("r1", all=SQL)
        here("upgrade", "head")

        # when: one worker is killed in the middle of an upgrade, with what ran on it
        here.freeze("r2", all=AFTER)
        upgrading = pool.submit(here, "upgrade", "head", "--json")
        await_bootstrap(here)
        time.sleep(chance.uniform(0, 0.5))
        kill(workers[0])
        upgraded = upgrading.result(timeout=300).json

        # and the other one in the middle of a tick, when a third has come
        third = stack.enter_context(worker(standalone.master, tmp_path / "cluster", 2))
        eventually(lambda: registered(standalone.master) == 3)
        produce(here, 2)
        ticking = pool.submit(here, "run", "--once", "--json")
        await_tick(here, 2)
        time.sleep(chance.uniform(0, 0.5))
        kill(workers[1])
        ticked = ticking.result(timeout=300).json

        # then: both ended by themselves
        assert third.process.poll() is None
        assert upgraded["status"] == "applied"
        assert ticked["failures"] == {}
        assert here.rows("SELECT pairs, total FROM pairs") == [{"pairs": PAIRS, "total": 30}]
        assert plans(here) == [Status.STARTED, Status.APPLIED] * 2
