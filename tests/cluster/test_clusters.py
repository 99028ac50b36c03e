"""The same stories on a Spark of our own, on a standalone cluster, and over Spark Connect."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.desk import Desk
from tests.cluster.projects import Site, site
from tests.cluster.servers import Standalone
from tests.stories.running import eventually
from tests.stories.school import FIRST, GRADES, SECOND, STUDENTS, TABLES
from tests.stories.test_worked_example import AFTER, BEFORE, DETAILS, ENRICHED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SCHOOL = """\
CREATE TABLE students (id BIGINT, name STRING NOT NULL, PRIMARY KEY (id));
CREATE TABLE grades (
  student_id BIGINT, class VARCHAR(10), grade DECIMAL(5, 2),
  at TIMESTAMP DEFAULT TIMESTAMP '2026-01-01'
);
CREATE SOURCE student_files INTO students USING json OPTIONS (path 'landing/students');
CREATE SOURCE grade_files INTO grades USING csv OPTIONS (path 'landing/grades', header 'true');
CREATE MATERIALIZED VIEW averages AS
SELECT name, avg(grade) AS average FROM grades JOIN students ON id = student_id GROUP BY name;
"""
SCHOOL_AFTER = (
    SCHOOL.replace("name STRING NOT NULL", "name STRING NOT NULL, year INT")
    .replace("grades (", "marks (")
    .replace("INTO grades", "INTO marks")
    .replace("FROM grades", "FROM marks")
    .replace("GROUP BY name", "GROUP BY name HAVING count(*) > 0")
)
HOOKS = '''

def check(context):
    """Called by a step of its own."""
    assert context.sql("SELECT count(*) AS n FROM students WHERE year = 2026")[0]["n"] == 3
    context.execute("INSERT INTO marks (student_id, class, grade) VALUES (3, 'music', 10)")


def up(op):
    op.rename_table("grades", "marks")
    op.execute("UPDATE students SET year = 2026")
    op.run(check)


def down(op):
    op.rename_table("marks", "grades")
'''
NAMES = """\
CREATE TABLE students (id BIGINT, name STRING);
CREATE FUNCTION loud(name STRING, times INT DEFAULT 1) RETURNS STRING
RETURN mark(repeat(upper(name), times));
CREATE MATERIALIZED VIEW louder AS SELECT id, loud(name) AS loud FROM students;
"""
MARKS = """\
from sqlmig import function


def _marked(text):
    return text + '!'


@function
def mark(text: str) -> str | None:
    return None if text is None else _marked(text)
"""
AVERAGES = "SELECT * FROM averages ORDER BY name"


def test_the_worked_example_comes_out_exactly(desk: Desk, tmp_path: Path) -> None:
    # given: revision 1 with its rows
    here = site(desk, tmp_path)
    here.freeze("r1", tables=TABLES, marts=FIRST)
    here("upgrade", "head")
    here("exec", STUDENTS)
    here("exec", GRADES)
    here("run", "--once")
    assert here.rows(ENRICHED) == BEFORE

    # when: the date range is extended and a view added
    here.freeze("r2", marts=SECOND)
    waiting = here("upgrade", "head", "--bootstrap-policy", "await_approval", code=3)

    # then: nothing has changed, and the plan says what would
    assert "AwaitingApproval" in waiting.err
    assert here("diff", "--json").json == DETAILS
    assert here.rows(ENRICHED) == BEFORE

    # when it is approved
    here("approve")

    # then
    assert here.rows(ENRICHED) == AFTER
    assert here.rows("SELECT * FROM avg_grade_all_courses ORDER BY student_id") == [
        {"student_id": 1, "avg": 92.0},
        {"student_id": 2, "avg": 91.75},
    ]

    # when it is taken back, then the contents are restored and not computed
    back = here("downgrade", "-1").err
    assert "restore `avg_grade_enriched`" in back
    assert "bootstrap" not in back
    assert here.rows(ENRICHED) == BEFORE
    assert "bootstrap" not in here("upgrade", "head").err
    assert here.rows(ENRICHED) == AFTER


def test_an_upgrade_of_a_pipeline_in_use_loses_no_row(desk: Desk, tmp_path: Path) -> None:
    # given: files have come, one record of which is bad
    here, tick = school(desk, tmp_path)
    assert tick["ingested"] == {
        "grades.grade_files": {"rows": 2, "rejected": 0},
        "students.student_files": {"rows": 2, "rejected": 1},
    }
    assert here.rows(AVERAGES) == [
        {"name": "Alice", "average": 90.0},
        {"name": "Bob", "average": 80.0},
    ]

    # when: rows come before the upgrade and after it, files before and after it
    here("exec", "INSERT INTO students VALUES (3, 'Cy'), (2, 'Bea')")
    here("exec", "INSERT INTO grades (student_id, grade) VALUES (1, 100)")
    here.write("landing/grades/2.csv", "student_id,class,grade,at\n2,logic,60,\n")
    revision = here.freeze("r2", school=SCHOOL_AFTER)
    revision.write_text(revision.read_text().split("\n\ndef up(op)")[0] + HOOKS)
    upgraded = here("upgrade", "head", "--json").json
    here("exec", "INSERT INTO marks (student_id, grade) VALUES (3, 20)")
    here.write("landing/grades/3.csv", "student_id,class,grade,at\n2,logic,70,\n")
    here("run", "--once")

    # then: each row counts once, an upsert is one row, and a default fills what was left out
    assert (upgraded["status"], upgraded["tick"]["failures"]) == ("applied", {})
    assert here.rows(AVERAGES) == [
        {"name": "Alice", "average": 95.0},
        {"name": "Bea", "average": 70.0},
        {"name": "Cy", "average": 15.0},
    ]
    assert here.rows("SELECT DISTINCT at FROM marks") == [{"at": "2026-01-01T00:00:00Z"}]

    # when it is taken back, then nothing that came meanwhile is lost
    here("downgrade", "-1")
    here("run", "--once")
    assert here.rows("SELECT count(*) AS n FROM grades") == [{"n": 7}]
    assert [row["average"] for row in here.rows(AVERAGES)] == [95.0, 70.0, 15.0]


def test_a_running_pipeline_is_upgraded_by_another_process(desk: Desk, tmp_path: Path) -> None:
    # given: a runner in a process of its own
    here, _ = school(desk, tmp_path)
    runner = desk.start(tmp_path, "sqlmig", "run", "--interval", "0.5s")
    try:
        here.write("landing/grades/2.csv", "student_id,class,grade,at\n2,logic,60,\n")
        eventually(lambda: read(here, "grades.grade_files") == 3)

        # when
        revision = here.freeze("r2", school=SCHOOL_AFTER)
        revision.write_text(
            revision.read_text().split("\n\ndef up(op)")[0] + HOOKS.replace("== 3", "== 2")
        )
        upgraded = here("upgrade", "head", "--json").json
        here.write("landing/grades/3.csv", "student_id,class,grade,at\n2,logic,70,\n")
        eventually(lambda: read(here, "marks.grade_files") == 4)
        runner.send_signal(signal.SIGTERM)
        said, _ = runner.communicate(timeout=120)
    finally:
        runner.kill()

    # then: the same process went on with the new revision, and every record counts once
    assert upgraded["tick"] is None
    assert runner.returncode == 0, said
    assert [line for line in said.splitlines() if line.startswith("Running revision")] == [
        "Running revision r1",
        "Running revision r2",
    ]
    here("run", "--once")
    assert here.rows(AVERAGES) == [
        {"name": "Alice", "average": 90.0},
        {"name": "Bob", "average": 70.0},
    ]


def read(here: Site, connector: str) -> int | None:
    """How many rows the ledger says that a connector has read."""
    known = here("status", "--json").json["connectors"].get(connector)
    return known and int(known["rows"])


@pytest.mark.parametrize("phase", ["started", "effected"])
def test_the_next_upgrade_finishes_what_a_killed_one_began(
    desk: Desk, tmp_path: Path, phase: str
) -> None:
    # given: revision 2 is ready, and its deployer dies at the third step
    here, _ = school(desk, tmp_path)
    revision = here.freeze("r2", school=SCHOOL_AFTER)
    revision.write_text(
        revision.read_text().split("\n\ndef up(op)")[0]
        + HOOKS.replace("== 3", "== 2").replace("VALUES (3,", "VALUES (2,")
    )
    plan = here("plan", "--json").json
    step = next(s["number"] for s in plan["steps"] if s["action"] == "Bootstrap")

    # when
    deployer = desk.start(tmp_path, "tests.stories.killed", str(tmp_path), str(step), phase)
    said, _ = deployer.communicate(timeout=600)
    assert deployer.returncode == -signal.SIGKILL, said
    refused = here("exec", "INSERT INTO students VALUES (9, 'no')", code=1)
    done = here("upgrade", "head", "--json").json

    # then
    assert "unfinished" in refused.err
    assert done["resumed"] == plan["id"]
    assert here.rows(AVERAGES) == [
        {"name": "Alice", "average": 90.0},
        {"name": "Bob", "average": 45.0},
    ]
    assert here("current", "--json").json["revision"] == "r2"


def test_values_and_mistakes_read_the_same(desk: Desk, tmp_path: Path) -> None:
    # given
    from tests.spark.test_query import VALUES

    here, _ = school(desk, tmp_path)

    # when
    (row,) = here.rows(VALUES)
    wrong = here("query", "SELECT nam FROM students", code=1).err
    zero = here("query", "SELECT raise_error('told')", code=1).err
    insert = here("exec", "INSERT INTO grades (student_id, grade) VALUES ('x', 1)", code=1).err
    null = here("exec", "INSERT INTO students VALUES (7, NULL)", code=1).err
    here.write(
        "pipeline/more.sql",
        "CREATE MATERIALIZED VIEW m AS\nSELECT length(name, 2) FROM students;\n",
    )
    here("revision", "-m", "wrong")
    plan = here("plan", code=4)
    here.write("landing/grades/3.csv", "student_id,grade,class,at\n2,70,logic,\n")
    header = here("run", "--once", code=1).err

    # then
    assert (row["d"], row["at"]) == (1.10, "2025-09-15T10:00:00.500000Z")
    assert (row["local"], row["day"]) == ("2025-09-15T10:00:00", "2025-09-15")
    assert (row["n"], row["bin"]) == ([{"key": 2, "value": "v"}], "YWJj")
    assert (row["s"], row["period"], row["i_2"]) == ({"x": 1, "day": "2026-01-01"}, "PT86400S", 7)
    assert wrong.startswith("error: there is no column `nam`")
    assert "hint: did you mean `name` or `id`?" in wrong
    assert "told" in zero
    assert insert.startswith("error: `grades.student_id`: 'x' is no bigint")
    assert null.startswith("error: `students`: `name` may not be NULL")
    assert "pipeline/more.sql:2:8" in plan.out + plan.err
    assert "its header is (student_id, grade, class, at)" in header


def test_functions_in_sql_and_in_python_go_where_the_rows_are(desk: Desk, tmp_path: Path) -> None:
    # given
    here = site(desk, tmp_path)
    file = here.write("pipeline/functions/names.py", MARKS)
    here.freeze("r1", names=NAMES)
    here("upgrade", "head")
    here("exec", "INSERT INTO students SELECT 1, mark('Alice') UNION ALL SELECT 2, 'Bob'")
    here("run", "--once")
    before = here.rows("SELECT loud FROM louder ORDER BY loud")

    # when
    file.write_text(MARKS.replace("'!'", "'?'"), encoding="utf-8")
    plan = here("diff").out
    here.freeze("r2")
    here("upgrade", "head")
    after = here.rows("SELECT loud, mark(NULL) AS nothing FROM louder ORDER BY loud")
    file.write_text("raise SystemExit", encoding="utf-8")
    back = here("downgrade", "-1").err

    # then
    assert before == [{"loud": "ALICE!!"}, {"loud": "BOB!"}]
    assert "~ materialized view louder: calls `loud`, which calls `mark`, whose body" in plan
    assert after == [{"loud": "ALICE!?", "nothing": None}, {"loud": "BOB?", "nothing": None}]
    assert "restore `louder`" in back
    assert here.rows("SELECT loud FROM louder ORDER BY loud") == before


def test_both_workers_take_part(standalone: Standalone) -> None:
    for worker in standalone.workers:
        assert "Asked to launch executor" in worker.log.read_text(errors="replace")


def school(desk: Desk, folder: Path) -> tuple[Site, Any]:
    """Revision r1 is deployed, and its first tick has read the files that were there."""
    here = site(desk, folder)
    here.write(
        "landing/students/1.json",
        '{"id": 1, "name": "Alice"}\n{"id": 2, "name": "Bob"}\n{"id": 5}\n',
    )
    here.write(
        "landing/grades/1.csv",
        "student_id,class,grade,at\n1,logic,90,\n2,logic,80,2026-01-01T00:00:00Z\n",
    )
    here.freeze("r1", school=SCHOOL)
    return here, here("upgrade", "head", "--json").json["tick"]
