"""Deployers that are killed, paused, or many, where going back and forth needs no JVM."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.errors import LedgerError
from sqlmig.execution import clock
from sqlmig.execution.journal import Journal
from sqlmig.ledger.records import Kind, Status
from tests.faults.processes import (
    RUNS,
    everything,
    finish,
    kill_at_random,
    run,
    seconds,
    start,
    three_revisions,
)
from tests.faults.small_disk import SmallDisk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_JAVA = {"JAVA_HOME": "/nowhere"}
MARGIN = 80 * 1024
"""Bytes that have to be free beside what a downgrade writes: some runs then find enough."""


@dataclass(frozen=True)
class Undisturbed:
    """The pipeline at r3, what it holds at r1, and how long going there takes."""

    root: Path
    at_r1: Mapping[str, list[str]]
    at_r3: Mapping[str, list[str]]
    seconds: float


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Undisturbed:
    """Made once; every run works on a copy."""
    folder = tmp_path_factory.mktemp("undisturbed")
    three_revisions(folder / "at_r3")
    shutil.copytree(folder / "at_r3", folder / "at_r1")
    took = seconds(folder / "at_r1", "downgrade", "r1")
    at_r1, at_r3 = everything(folder / "at_r1"), everything(folder / "at_r3")
    assert at_r1 != at_r3
    return Undisturbed(folder / "at_r3", at_r1, at_r3, took)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_downgrade_killed_at_a_random_point_is_ended_by_the_next_command(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    killed = 0
    for seed in range(RUNS):
        # given
        root = shutil.copytree(undisturbed.root, tmp_path / str(seed))

        # when
        killed += kill_at_random(
            root, ("downgrade", "r1"), seed, earliest=0.2, latest=undisturbed.seconds * 1.1
        )
        code, said = run(root, "downgrade", "r1", **NO_JAVA)

        # then: going back needed no JVM, the contents are those of an undisturbed run
        assert code == 0, f"seed {seed}: {said}"
        project = commands.open_project(root)
        assert commands.status(project).state == "Running"
        assert commands.status(project).revision == "r1"
        versions = {n: r["version"] for n, r in commands.status(project).relations.items()}
        observed = project.warehouse.observe(project.deployment().cut.relations)
        assert {n: observed[n].version for n in versions} == versions, f"seed {seed}"
        if seed % 5 == 0:
            assert everything(root) == undisturbed.at_r1, f"seed {seed}"
        # and the ledger tells what happened
        told = [r.status for r in project.ledger.read(is_whole=True)[1] if r.kind is Kind.PLAN]
        assert told[-1] is Status.APPLIED
        shutil.rmtree(root)
    assert killed > RUNS / 4, "most runs were killed on the way"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_downgrade_whose_disk_fills_up_is_ended_by_the_next_command(
    undisturbed: Undisturbed, disk: SmallDisk
) -> None:
    root = disk.folder / "school"
    shutil.copytree(undisturbed.root, root)
    before = disk.free
    seconds(root, "downgrade", "r1")
    needed = before - disk.free + MARGIN
    failed = 0
    for seed in range(RUNS):
        # given: a disk on which some kilobytes are left
        shutil.rmtree(root)
        shutil.copytree(undisturbed.root, root)
        disk.fill(random.Random(seed).randrange(0, needed))

        # when
        code, said = run(root, "downgrade", "r1", **NO_JAVA)
        disk.clear()
        again, told = run(root, "downgrade", "r1", **NO_JAVA)

        # then: it was said what is to be done, and the next command ended it without a JVM
        if code != 0:
            failed += 1
            assert "no space is left on the disk" in said, f"seed {seed}: {said}"
            assert f"free some space in {root}/warehouse" in said, f"seed {seed}: {said}"
            assert "then run the command again" in said
        assert again == 0, f"seed {seed}: {said}\n{told}"
        project = commands.open_project(root)
        assert commands.status(project).state == "Running"
        assert commands.status(project).revision == "r1"
        if seed % 5 == 0:
            assert everything(root) == undisturbed.at_r1, f"seed {seed}"
        plans = [r for r in project.ledger.read(is_whole=True)[1] if r.kind is Kind.PLAN]
        assert plans[-1].status is Status.APPLIED, f"seed {seed}"
    assert failed > RUNS / 4, "most runs found the disk full"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_of_five_deployers_at_once_one_applies_and_four_are_told(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    # given
    root = shutil.copytree(undisturbed.root, tmp_path / "five")

    # when
    deployers = [start(root, "downgrade", "r1", **NO_JAVA) for _ in range(5)]
    ended = [finish(process) for process in deployers]

    # then: each that came too late either was refused, or found the work done
    applied = [
        said
        for code, said in ended
        if code == 0 and "is deployed.\n" in said and "Nothing to do" not in said
    ]
    refused = [said for code, said in ended if code != 0]
    assert len(applied) == 1, ended
    for said in refused:
        assert "is being run by process" in said or "has moved since plan" in said, said
        assert "\nhint: " in said
    project = commands.open_project(root)
    plans = [r.status for r in project.ledger.read(is_whole=True)[1] if r.kind is Kind.PLAN]
    assert plans.count(Status.APPLIED) == 4, "three upgrades before, and one downgrade"
    assert everything(root) == undisturbed.at_r1


def paused_on_the_way(undisturbed: Undisturbed, folder: Path) -> tuple[Path, subprocess.Popen[str]]:
    """A project with a lease of two seconds, whose downgrade was stopped before it had ended.

    It lasts a second or so: on a busy machine it may be over before anyone sees it begin.
    """
    for attempt in range(20):
        root = shutil.copytree(undisturbed.root, folder / f"paused-{attempt}")
        with (root / "sqlmig.yml").open("a", encoding="utf-8") as config:
            config.write("\n    runner: {lease: 2s}\n")
        project = commands.open_project(root)
        process = start(root, "downgrade", "r1", **NO_JAVA)
        while project.deployment().unfinished is None and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)
        if process.poll() is None and project.deployment().unfinished is not None:
            return root, process
        process.kill()
        finish(process)
    raise AssertionError("no downgrade was seen on its way")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_deployer_that_is_paused_for_longer_than_its_lease_is_replaced_and_fenced_off(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    # given
    root, paused = paused_on_the_way(undisturbed, tmp_path)

    # when
    time.sleep(2.2)
    code, said = run(root, "downgrade", "r1", **NO_JAVA)
    paused.send_signal(signal.SIGCONT)
    late = finish(paused)

    # then
    assert code == 0, said
    assert "it is replaced if it gives none for 2 s" in said
    assert late[0] == 1
    assert "this run was fenced off" in late[1], late[1]
    assert everything(root) == undisturbed.at_r1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_clock_that_is_set_back_changes_nothing(undisturbed: Undisturbed, tmp_path: Path) -> None:
    # given
    root = shutil.copytree(undisturbed.root, tmp_path / "clock")
    project = commands.open_project(root)
    assert isinstance(project.journal, Journal)
    project.journal._clock = lambda: clock.utc_now() - timedelta(hours=5)

    # when
    commands.downgrade(project, "r1")
    commands.upgrade(commands.open_project(root), "head", yes=True)

    # then
    records = project.ledger.read(is_whole=True)[1]
    assert [r.seq for r in records] == sorted(r.seq for r in records)
    assert any(b.at < a.at for a, b in pairwise(records))
    assert commands.status(commands.open_project(root)).revision == "r3"
    assert everything(root) == undisturbed.at_r3


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_truncated_file_of_the_ledger_is_told_and_bringing_it_back_is_enough(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    # given
    root = shutil.copytree(undisturbed.root, tmp_path / "truncated")
    newest = max((root / "warehouse" / "ledger").glob("*.parquet"), key=lambda p: p.stat().st_mtime)
    whole = newest.read_bytes()
    newest.write_bytes(whole[: len(whole) // 2])

    # when
    with pytest.raises(LedgerError) as caught:
        commands.downgrade(commands.open_project(root), "r1")
    newest.write_bytes(whole)
    commands.downgrade(commands.open_project(root), "r1")

    # then
    assert "can't be read" in caught.value.message
    assert "restore it from the object store's versions or a backup" in (caught.value.hint or "")
    assert everything(root) == undisturbed.at_r1
