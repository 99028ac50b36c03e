"""A disk that fills up under Spark: while a statement, a tick, an upgrade, a runner are at work."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.errors import SqlmigError
from sqlmig.execution import events
from sqlmig.ledger.records import Kind, Status
from tests.faults.processes import RUNS, everything, run
from tests.faults.small_disk import SmallDisk
from tests.stories import running
from tests.stories.school import make_project, rows, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FULL = "no space is left on the disk"
SQL = """\
CREATE TABLE readings (id BIGINT, value DOUBLE);
CREATE SOURCE files INTO readings USING json OPTIONS (path '{landing}');
CREATE MATERIALIZED VIEW scaled AS SELECT id, value * {scale} AS value FROM readings;
CREATE MATERIALIZED VIEW summed AS SELECT sum(value) AS total, count(*) AS n FROM scaled;
"""
INSERT = "INSERT INTO readings SELECT 1000 + id, 0.5 FROM range(2000)"
FILE = "".join(f'{{"id": {number}, "value": 2.5}}\n' for number in range(500))


@dataclass
class Filler:
    """Fills the disk up at a certain event of a command; at once where `at` is 0.

    Args:
        leave: bytes that stay free.
    """

    disk: SmallDisk
    at: int
    leave: int
    seen: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.at == 0:
            self.disk.fill(self.leave)

    def __call__(self, event: events.Event) -> None:
        """Count an event."""
        self.seen += 1
        if self.seen == self.at:
            self.disk.fill(self.leave)


def test_what_a_full_disk_ended_is_ended_by_the_next_command(
    disk: SmallDisk, tmp_path: Path, spark: SparkSession
) -> None:
    # given: r1 is deployed, r2 is ready
    base, landing = tmp_path / "base", tmp_path / "landing"
    landing.mkdir()
    project = make_project(base, {"all.sql": SQL.format(landing=landing, scale=1)})
    commands.revision(project, "one", rev_id="r1")
    commands.upgrade(project, "head")
    write_pipeline(base, {"all.sql": SQL.format(landing=landing, scale=4)})
    commands.revision(commands.open_project(base), "two", rev_id="r2")
    told: list[str] = []
    for seed in range(max(1, RUNS // 20)):
        root = shutil.copytree(base, disk.folder / str(seed))
        chance = random.Random(seed)

        # when: the disk fills up in a statement, a tick and an upgrade; the next command follows
        filler = Filler(disk, 0, chance.randrange(60_000, 120_000))
        told += disturbed(disk, lambda: execute(root), filler)  # noqa: B023
        (landing / f"{seed}.json").write_text(FILE, encoding="utf-8")
        filler = Filler(disk, chance.randrange(0, 3), chance.randrange(0, 120_000))
        told += disturbed(disk, lambda: tick(root, filler), filler)  # noqa: B023
        filler = Filler(disk, chance.randrange(3, 14), chance.randrange(0, 60_000))
        told += disturbed(disk, lambda: upgrade(root, filler), filler)  # noqa: B023

        # then
        count = 500 * (seed + 1) + 2000
        total = 4 * (2.5 * 500 * (seed + 1) + 0.5 * 2000)
        project = commands.open_project(root)
        assert rows(project, "SELECT * FROM summed") == [{"total": total, "n": count}]
        assert len(everything(root)["readings"]) == count
        assert commands.status(project).revision == "r2"
        assert commands.status(project).failures == {}
        plans = [r.status for r in project.ledger.read(is_whole=True)[1] if r.kind is Kind.PLAN]
        assert plans[-1] is Status.APPLIED, f"seed {seed}"
        shutil.rmtree(root)
    assert told, "the disk was full for some of them"


def disturbed(disk: SmallDisk, command: Callable[[], list[str]], filler: Filler) -> list[str]:
    """Run a command on a disk that fills up, then once more on one that has space.

    Returns:
        What the first said of the full disk; nothing where it had enough.
    """
    said = command()
    disk.clear()
    for text in said:
        assert FULL in text, f"{filler}: {text}"
    if not any("do not run it again" in text for text in said):
        filler.at = -1
        if said:
            assert command() == [], f"{filler}"
    return said


def execute(root: Path) -> list[str]:
    """Insert rows; what went wrong."""
    return caught(lambda: commands.execute(commands.open_project(root), INSERT))


def tick(root: Path, observer: events.Observer) -> list[str]:
    """Make a tick; what went wrong."""
    failures: dict[str, str] = {}

    def made() -> None:
        ticked = commands.run(commands.open_project(root), observer=observer)
        failures.update(ticked.failures)

    return [*caught(made), *failures.values()]


def upgrade(root: Path, observer: events.Observer) -> list[str]:
    """Upgrade to the head; what went wrong."""
    failures: dict[str, str] = {}

    def made() -> None:
        done = commands.upgrade(commands.open_project(root), "head", observer=observer)
        failures.update(done.tick.failures if done.tick else {})

    return [*caught(made), *failures.values()]


def caught(command: Callable[[], object]) -> list[str]:
    """The error that a command ends with, as it is shown; it names what to do."""
    try:
        command()
    except SqlmigError as error:
        text = error.render()
        assert "free some space" in text or "do not run it again" in text, text
        return [text]
    return []


def test_a_runner_outlives_a_disk_that_is_full_for_longer_than_its_lease(
    disk: SmallDisk, tmp_path: Path, spark: SparkSession
) -> None:
    # given: the warehouse is on the disk, what comes in is not
    root = tmp_path / "events"
    running.make_project(root, lease="3s")
    config = root / "sqlmig.yml"
    text = config.read_text(encoding="utf-8")
    place = disk.folder / "warehouse"
    config.write_text(text.replace("warehouse: warehouse", f"warehouse: {place}"), encoding="utf-8")
    project = commands.open_project(root)
    commands.upgrade(project, "head")

    with running.Producer(root / "landing", every=0.3) as producer, running.runner(root) as process:
        running.await_records(project, 0, within=400)

        # when
        disk.fill(0)
        running.eventually(lambda: FULL in running.log(root))
        time.sleep(4)
        assert process.poll() is None
        disk.clear()
        begun = producer.count
        running.await_records(project, begun, within=400)
        process.terminate()
        assert process.wait(timeout=120) == 0

    # then: each record counts once, and the ledger tells of one runner
    commands.run(commands.open_project(root))
    project = commands.open_project(root)
    expected = {"events": producer.count, "ids": producer.count}
    assert rows(project, "SELECT * FROM totals") == [expected]
    records = project.ledger.read(is_whole=True)[1]
    assert not [r for r in records if r.status is Status.TAKEN_OVER]


def test_spark_without_space_for_its_own_files_says_so(
    disk: SmallDisk, tmp_path: Path, spark: SparkSession
) -> None:
    # given
    root = tmp_path / "school"
    project = make_project(root, {"all.sql": "CREATE TABLE t (id BIGINT);\n"})
    commands.revision(project, "one", rev_id="r1")
    disk.fill(0)

    # when
    code, said = run(root, "upgrade", "head", "--yes", SPARK_LOCAL_DIRS=str(disk.folder))
    disk.clear()
    done = commands.upgrade(commands.open_project(root), "head")

    # then
    assert code == 1
    assert FULL in said
    assert "`spark.local.dir`" in said
    assert "Traceback" not in said
    assert done.status == "applied"
