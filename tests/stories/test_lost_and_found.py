"""What is lost is noticed, not overwritten: a ledger, old files of a table, rows not yet ticked."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from sqlmig import commands
from sqlmig.errors import BlockedError
from tests.stories.school import as_bag, make_project, rows, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = """\
CREATE TABLE orders (id BIGINT, amount INT);
CREATE TABLE notes (text STRING);
CREATE MATERIALIZED VIEW totals AS SELECT sum(amount) AS total FROM orders;
"""
SECOND = FIRST.replace("sum(amount)", "sum(amount) + 1")


def test_a_query_over_views_and_tables_reads_one_cut_also_after_exec(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project = make_project(tmp_path, {"all.sql": FIRST})
    commands.revision(project, "first", rev_id="a")
    commands.upgrade(project)
    commands.execute(project, "INSERT INTO orders VALUES (1, 10)")
    commands.run(project)

    # when rows come that no tick has taken up
    commands.execute(project, "INSERT INTO orders VALUES (2, 20)")

    # then what is read with a view is as the view saw it, and the answer says it is behind
    both = "SELECT total, (SELECT sum(amount) FROM orders) AS now FROM totals"
    answer = commands.query(project, both)
    assert [dict(row) for row in answer.rows] == [{"total": 10, "now": 10}]
    assert answer.is_behind
    assert commands.query(project, "SELECT total FROM totals").is_behind
    assert rows(project, "SELECT sum(amount) AS now FROM orders") == [{"now": 30}]

    # when a table that no view reads moves, it is new at once
    commands.run(project)
    commands.execute(project, "INSERT INTO notes VALUES ('x')")
    answer = commands.query(project, "SELECT total, (SELECT count(*) FROM notes) AS n FROM totals")
    assert [dict(row) for row in answer.rows] == [{"total": 30, "n": 1}]
    assert not answer.is_behind


def test_a_lost_ledger_blocks_and_stamp_begins_it_anew_with_the_rows(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project = make_project(tmp_path, {"all.sql": FIRST})
    commands.revision(project, "first", rev_id="a")
    commands.upgrade(project)
    commands.execute(project, "INSERT INTO orders VALUES (1, 10)")
    commands.run(project)

    # when
    shutil.rmtree(tmp_path / "warehouse" / "ledger")
    project = commands.open_project(tmp_path)

    # then
    with pytest.raises(BlockedError) as blocked:
        commands.upgrade(project)
    assert "holds a table unknown to the ledger" in blocked.value.message
    assert blocked.value.hint is not None
    assert "sqlmig stamp" in blocked.value.hint

    # when
    commands.stamp(project, "a")

    # then: the rows are there, and the next change is made from them
    assert rows(project, "SELECT total FROM totals") == [{"total": 10}]
    write_pipeline(tmp_path, {"all.sql": SECOND})
    commands.revision(project, "second", rev_id="b")
    plan = commands.upgrade(project).plan
    assert not plan.destructive
    assert rows(project, "SELECT total FROM totals") == [{"total": 11}]


def test_going_back_computes_where_old_files_were_vacuumed(
    tmp_path: Path, spark: SparkSession
) -> None:
    # given
    project = make_project(tmp_path, {"all.sql": FIRST})
    commands.revision(project, "first", rev_id="a")
    commands.upgrade(project)
    commands.execute(project, "INSERT INTO orders VALUES (1, 10)")
    commands.run(project)
    write_pipeline(tmp_path, {"all.sql": SECOND})
    commands.revision(project, "second", rev_id="b")
    commands.upgrade(project)
    table = DeltaTable(str(tmp_path / "warehouse" / "tables" / "totals"))
    vacuumed = table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert vacuumed

    # when
    commands.downgrade(project, "-1")

    # then
    assert as_bag(rows(project, "SELECT total FROM totals")) == as_bag([{"total": 10}])
    assert commands.status(project).revision == "a"
