"""Large projects: a plan for 1,000 relations, and a history of 2,000 revisions, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from measuring import Figure, command, in_turns
from projects import make_project, write_pipeline, write_revisions

from sqlmig import commands

TITLE = "Large projects, as whole processes"
_VIEWS = (
    """\
SELECT k.id, k.region, k.amount * 1.19 AS gross, upper(k.code) AS code
FROM {one} k
WHERE k.amount > {number} AND k.day >= DATE '2025-01-{day:02d}'""",
    """\
SELECT region, count(*) AS entries, sum(gross) AS total, avg(gross) AS average
FROM {one}
GROUP BY region
HAVING count(*) > {number}""",
    """\
WITH ranked AS (
  SELECT id, region, amount,
         row_number() OVER (PARTITION BY region ORDER BY amount DESC, id) AS place
  FROM {one}
)
SELECT r.id, r.region, r.amount, o.code, CASE WHEN r.place = 1 THEN 'best' ELSE 'other' END AS rank
FROM ranked r
LEFT JOIN {two} o ON r.id = o.id
WHERE r.place <= {number}""",
)


def pipeline(tables: int, views: int, *, limit: int = 10) -> dict[str, str]:
    """The program as files of about fifty statements: file name -> SQL.

    Three kinds of views take turns: a filter and a ranking read tables, a summary reads a filter.
    The summaries are materialized. `limit` stands in one view in the middle.
    """
    statements = list(_tables(tables)) + list(_view_statements(tables, views, limit))
    size = 50
    return {
        f"part_{start // size:03d}.sql": "\n\n".join(statements[start : start + size]) + "\n"
        for start in range(0, len(statements), size)
    }


def _tables(count: int) -> Iterator[str]:
    for number in range(count):
        yield (
            f"-- Entries of source {number}.\n"
            f"CREATE TABLE entries_{number:03d} (\n"
            "  id BIGINT, region STRING, code STRING, amount DECIMAL(12, 2), day DATE\n);"
        )


def _view_statements(tables: int, views: int, limit: int) -> Iterator[str]:
    for number in range(views):
        kind = number % len(_VIEWS)
        one = f"view_{number - 1:03d}" if kind == 1 else f"entries_{number % tables:03d}"
        two = f"entries_{(number * 7 + 1) % tables:03d}"
        changed = number == views // 2
        query = _VIEWS[kind].format(
            one=one, two=two, number=limit if changed else number % 17 + 1, day=number % 28 + 1
        )
        what = "MATERIALIZED VIEW" if kind == 1 else "VIEW"
        yield f"-- View {number}: see the handbook.\nCREATE {what} view_{number:03d} AS\n{query};"


def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """Plan one changed view among many relations; load many revisions."""
    tables, views, revisions = (20, 180, 400) if quick else (100, 900, 2000)
    wide = folder / "wide"
    project = make_project(wide, pipeline(tables, views))
    first = commands.revision(project, "everything")
    assert first.file is not None
    commands.stamp(project, first.file.revision)
    write_pipeline(wide, pipeline(tables, views, limit=99))
    commands.revision(commands.open_project(wide), "another limit in one view")

    long = folder / "long"
    small = {"grades.sql": "CREATE TABLE grades (student_id BIGINT, grade DECIMAL(5, 2));\n"}
    write_revisions(
        make_project(long, small), revisions, {"pipeline/grades.sql": small["grades.sql"]}
    )

    plan, heads = f"plan --offline, {tables + views:,} relations", f"heads, {revisions:,} revisions"
    times = in_turns(
        {
            plan: command("sqlmig", "plan", "--offline", folder=wide),
            heads: command("sqlmig", "heads", folder=long),
        },
        5 if quick else 9,
    )
    return [Figure(f"sqlmig {name}", times[name], "1 s", 1.0, 1.0) for name in (plan, heads)]
