"""A pipeline whose disk is kept small: by its runner, and by `sqlmig gc`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.errors import EngineError
from sqlmig.execution.clock import utc_now
from tests.cli.shell import Shell
from tests.stories.running import Producer
from tests.stories.school import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = """\
pipeline: events
targets:
  local:
    spark: {master: "local[*]"}
    warehouse: warehouse
    bootstrap_policy: allow
    runner: {interval: 0s, keep_checkpoints: 1s, vacuum_every: 1ms}
"""
KEPT = """\
CREATE TABLE events (id BIGINT, kind STRING);
CREATE SOURCE files INTO events USING json OPTIONS (path 'landing');
CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS events FROM events;
"""
DROPPED = """\
CREATE TABLE names (id BIGINT, name STRING);
CREATE SOURCE roll INTO names USING json OPTIONS (path 'roll');
"""
TICKS = 8


def data_files(project: Project, folder: str) -> int:
    """How many data files lie in a table's folder."""
    return len(list(Path(project.warehouse.table_path(folder)).rglob("*.parquet")))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_runner_bounds_its_files_and_gc_removes_what_was_dropped(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    root = tmp_path / "events"
    for name in ("pipeline", "revisions", "landing", "roll"):
        (root / name).mkdir(parents=True)
    (root / "sqlmig.yml").write_text(CONFIG, encoding="utf-8")
    sql = root / "pipeline" / "all.sql"
    sql.write_text(KEPT + DROPPED, encoding="utf-8")
    (root / "roll" / "1.json").write_text('{"id": 1, "name": "Ann"}\n{bad\n')
    commands.revision(commands.open_project(root), "first", rev_id="r1")
    project = commands.open_project(root)
    commands.upgrade(project, "head")
    producer = Producer(root / "landing")
    counts: list[int] = []

    def is_over() -> bool:
        counts.append(data_files(project, "totals"))
        producer.produce()
        return len(counts) > TICKS

    # when: each tick replaces the whole view
    commands.keep_running(project, interval=0, is_over=is_over)

    # then: files of a second or two are kept, not those of all ticks
    assert commands.status(project).relations["totals"]["version"] >= TICKS
    assert max(counts[TICKS // 2 :]) < TICKS / 2, counts
    assert rows(project, "SELECT events FROM totals") == [{"events": TICKS}]
    with pytest.raises(EngineError) as caught:
        commands.query(project, "SELECT events FROM totals", at="-20m")
    assert "checkpoint `-20m`" in caught.value.message or "nothing" in caught.value.message
    assert commands.status(project).collected_at is not None

    # when: a stop is asked for later, and a revision drops a table
    commands.stop(project, at=utc_now() + timedelta(hours=1))
    sql.write_text(KEPT, encoding="utf-8")
    commands.revision(commands.open_project(root), "without names", rev_id="r2")
    project = commands.open_project(root)
    upgraded = commands.upgrade(project, "head", yes=True, allow_destructive=True)

    # then: until then there are ticks, and the dropped table is kept
    assert upgraded.tick is not None
    assert upgraded.tick.ingested == {"events.files": (1, 0)}
    shell = Shell(root)
    kept = shell("gc", "--json")
    assert not [each for each in kept.json["removed"] if each["is_whole"]]
    assert data_files(project, "names") == 1

    # when
    told = shell("gc", "--dry-run", "--older-than", "0s")
    listed = shell("gc", "--dry-run", "--older-than", "0s", "--json").json
    assert data_files(project, "names") == 1
    done = shell("gc", "--older-than", "0s", "--json").json

    # then
    whole = [(each["kind"], each["name"]) for each in done["removed"] if each["is_whole"]]
    assert whole == [
        ("checkpoints", "names.roll/1"),
        ("rejected", "names.roll"),
        ("tables", "names"),
    ]
    assert [e["name"] for e in listed["removed"]] == [e["name"] for e in done["removed"]]
    assert done["bytes"] > 0
    assert "all  tables/names  " in told.out
    assert "Would remove " in told.err
    assert not Path(project.warehouse.table_path("names")).exists()
    assert shell("gc", "--older-than", "0s").err == "Nothing to remove.\n"
    assert rows(commands.open_project(root), "SELECT events FROM totals") == [{"events": TICKS + 1}]

    # when
    plan = shell("plan", "-1", "--offline")
    commands.downgrade(commands.open_project(root), "-1", allow_destructive=True)

    # then: it says since when the rows are gone, and reads them again
    assert "`names` begins empty: `sqlmig gc` removed the rows it had at this revision" in plan.out
    project = commands.open_project(root)
    commands.run(project)
    assert rows(project, "SELECT name FROM names") == [{"name": "Ann"}]
    assert commands.status(project).relations["names"]["folder"] == "names__2"
    assert commands.status(project).connectors["names.roll"]["generation"] == 2
