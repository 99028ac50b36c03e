"""Sinks of a whole project: a killed tick, an upgrade that modifies what they read, and back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig import commands
from tests.stories.school import QUICK_JAVA, make_project, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """\
CREATE TABLE orders (id BIGINT PRIMARY KEY, amount INT);
CREATE MATERIALIZED VIEW large AS SELECT id, amount FROM orders WHERE amount > 10;
CREATE SINK copy FROM orders USING delta OPTIONS (path 'out/copy');
CREATE SINK files FROM orders USING json OPTIONS (path 'out/files');
CREATE SINK large FROM large USING json OPTIONS (path '${env:SQLMIG_TEST_OUT}/large', key 'id');
"""


def lines(file: Path) -> list[str]:
    """The lines of a file."""
    return file.read_text(encoding="utf-8").splitlines()


def complete(path: Path) -> list[list[dict[str, Any]]]:
    """The rows of the complete batches, in their order."""
    folders = sorted(path.glob("batch=*"), key=lambda folder: int(folder.name.split("=")[1]))
    return [
        sorted(
            (json.loads(line) for file in folder.glob("*.json") for line in lines(file)),
            key=lambda row: int(row["id"]),
        )
        for folder in folders
        if (folder / "_SUCCESS").exists()
    ]


def readers(path: Path) -> dict[int, int]:
    """What a reader has that applied the complete batches: id -> amount."""
    has: dict[int, int] = {}
    for batch in complete(path):
        for row in batch:
            has.pop(row["id"], None)
            if row["_op"] == "upsert":
                has[row["id"]] = row["amount"]
    return has


def run_killed(root: Path, sink: str) -> None:
    """Tick in another process that kills itself behind a sink's batch."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.stories.killed_tick", str(root), sink],
        cwd=Path(__file__).parents[2],
        env=QUICK_JAVA,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sinks_get_each_change_once_through_a_kill_an_upgrade_and_a_downgrade(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given: rows that were sent by a process that was killed before it could record it
    out = tmp_path / "out-s3cret"
    monkeypatch.setenv("SQLMIG_TEST_OUT", str(out))
    monkeypatch.setitem(QUICK_JAVA, "SQLMIG_TEST_OUT", str(out))
    project = make_project(tmp_path, {"all.sql": SQL})
    commands.revision(project, "first", rev_id="a")
    commands.upgrade(project, "head")
    commands.execute(project, "INSERT INTO orders VALUES (1, 5), (2, 8), (3, 20)")
    run_killed(tmp_path, "orders.files")
    [snapshot] = complete(tmp_path / "out" / "files")
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.json")}

    # when: the rows are others by the time of the next tick
    commands.execute(project, "INSERT INTO orders VALUES (1, 6), (4, 30)")
    tick = commands.run(project)

    # then: the same batches again, which change nothing, and then the rest
    assert tick.failures == {}
    assert tick.sent == {"large.large": 2, "orders.copy": 5, "orders.files": 5}
    assert complete(tmp_path / "out" / "files") == [
        snapshot,
        [
            {"_op": "upsert", "id": 1, "amount": 6},
            {"_op": "upsert", "id": 4, "amount": 30},
        ],
    ]
    assert {path: path.stat().st_mtime_ns for path in files} == files
    copy = str(tmp_path / "out" / "copy")
    rows = spark.read.format("delta").load(copy).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(1, 6), (2, 8), (3, 20), (4, 30)]
    merges = spark.sql(f"DESCRIBE HISTORY delta.`{copy}`").where("operation = 'MERGE'").count()
    assert merges == 2

    # when: a revision modifies what a sink reads
    write_pipeline(tmp_path, {"all.sql": SQL.replace("> 10", "> 7")})
    commands.revision(commands.open_project(tmp_path), "second", rev_id="b")
    project = commands.open_project(tmp_path)
    done = commands.upgrade(project, "head")

    # then: it goes on, and sends the row that differs
    assert done.tick is not None
    assert done.tick.sent == {"large.large": 1}
    assert complete(out / "large")[-1] == [{"_op": "upsert", "id": 2, "amount": 8}]

    # when: back again
    project = commands.open_project(tmp_path)
    back = commands.downgrade(project, "-1")
    assert back.tick is None
    assert commands.status(project).sinks["large.large"]["is_behind"]
    assert commands.run(project).sent == {"large.large": 1}

    # then
    assert readers(out / "large") == {3: 20, 4: 30}
    status = commands.status(project).sinks
    assert {name: sink["is_behind"] for name, sink in status.items()} == {
        "large.large": False,
        "orders.copy": False,
        "orders.files": False,
    }
    assert (status["large.large"]["rows"], status["orders.copy"]["rows"]) == (4, 5)
    assert status["large.large"]["sent_at"] is not None
    assert commands.run(project).sent == {}

    # then: the secret is nowhere in the warehouse
    for path in (tmp_path / "warehouse").rglob("*"):
        assert not path.is_file() or b"s3cret" not in path.read_bytes(), path
