"""Going back: `downgrade -1` of large materialized views, and `upgrade head` after it."""

from __future__ import annotations

from pathlib import Path

from measuring import Figure, command, in_turns
from projects import commit_all, make_project, write_pipeline
from spark_projects import shared_session

from sqlmig import commands

TITLE = "Going back without a JVM"
_TABLE = "CREATE TABLE readings (id BIGINT, sensor INT, value DOUBLE, day DATE);\n"
_VIEWS = """\
CREATE MATERIALIZED VIEW celsius AS SELECT id, sensor, value / {scale} AS degrees FROM readings;
CREATE MATERIALIZED VIEW by_day AS SELECT day, id, value * {scale} AS value FROM readings;
CREATE MATERIALIZED VIEW flagged AS SELECT id, value > 50 * {scale} AS is_high FROM readings;
CREATE MATERIALIZED VIEW doubled AS SELECT id, degrees * 2 AS twice FROM celsius;
CREATE MATERIALIZED VIEW rounded AS SELECT id, round(twice, 1) AS twice FROM doubled;
"""


def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """Five materialized views, each with as many rows as the table, were changed."""
    rows = 100_000 if quick else 3_000_000
    root = folder / "readings"
    with shared_session(folder):
        project = make_project(root, {"readings.sql": _TABLE + _VIEWS.format(scale=10)})
        commands.revision(project, "first scale")
        commands.upgrade(project, "head", yes=True)
        commands.execute(
            project,
            "INSERT INTO readings SELECT id, CAST(id % 1000 AS INT), id * 0.7 % 100, "
            f"date_add(DATE '2025-09-01', CAST(id % 280 AS INT)) FROM range({rows})",
        )
        commands.run(project)
        write_pipeline(root, {"readings.sql": _TABLE + _VIEWS.format(scale=100)})
        commands.revision(commands.open_project(root), "another scale")
        commands.upgrade(commands.open_project(root), "head", yes=True)
    commit_all(root)
    back, again = "sqlmig downgrade -1", "sqlmig upgrade head, after it"
    times = in_turns(
        {
            back: command("sqlmig", "downgrade", "-1", folder=root),
            again: command("sqlmig", "upgrade", "head", "--yes", folder=root),
        },
        5 if quick else 9,
    )
    what = f"5 views of {rows:,} rows"
    return [Figure(f"{name}, {what}", times[name], "1 s", 1.0, 1.0) for name in (back, again)]
