"""The JVMs of the tests: what they are started with, and an archive of classes that they map.

A third of what a Spark that lives seconds costs is loading and verifying some 20,000 classes. Java
can write what one process has loaded into a file (class data sharing), and the next processes map
it. `python -m tests.java` writes the file into the virtual environment, as `make test` does. Java
itself checks that it is of the same Java and the same jars, and goes on without it otherwise: it
decides on speed alone.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that lives minutes: compile quickly rather than well, no threads of a collector."""

SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For a Spark that sees a handful of rows: one partition, no plan that is made anew while it runs,
and no query compiled to Java."""

PROGRAM = """\
CREATE TABLE accounts (id BIGINT, owner STRING, balance DOUBLE, PRIMARY KEY (id));
CREATE TABLE events (id BIGINT, kind STRING, at TIMESTAMP);
CREATE SOURCE files INTO accounts USING json OPTIONS (path 'landing');
CREATE MATERIALIZED VIEW totals AS
SELECT owner, sum(balance) AS balance, count(*) AS n FROM accounts GROUP BY owner;
CREATE MATERIALIZED VIEW known AS
SELECT a.owner, e.kind{more} FROM accounts a JOIN events e ON a.id = e.id WHERE e.id > 0;
CREATE STREAMING TABLE kept AS SELECT id, kind FROM STREAM events WHERE kind <> 'none';
CREATE SINK out FROM totals USING json OPTIONS (path 'out');
"""


def mapping() -> str:
    """What a JVM is started with to map the archive; empty where there is none."""
    if not ARCHIVE.is_file():
        return ""
    return f"-XX:SharedArchiveFile={ARCHIVE} -Xlog:disable -Xlog:all=error:stderr"


def submit_options(conf: Mapping[str, str] | None = None) -> str:
    """`SPARK_SUBMIT_OPTS`: what the JVM of a command is started with.

    Args:
        conf: settings of Spark that hold where a target has none.
    """
    settings = (f"-D{name}={value}" for name, value in (conf or {}).items())
    return " ".join([mapping(), *settings]).strip()


def write() -> None:
    """Run a pipeline in a JVM that writes what it has loaded when it ends."""
    unfinished = ARCHIVE.with_suffix(".new")
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={unfinished}"
    os.environ["JAVA_TOOL_OPTIONS"] = SHORT_LIVED
    with tempfile.TemporaryDirectory() as folder:
        _run_pipeline(Path(folder))
        _end_java()
    unfinished.replace(ARCHIVE)


def _run_pipeline(root: Path) -> None:
    """What most tests do: changes forth and back, and records that come in between."""
    from sqlmig import commands
    from sqlmig.spark.packages import AVRO, KAFKA
    from sqlmig.spark.session import open_session
    from tests.stories.school import make_project, write_pipeline

    open_session({"master": "local[*]"}, log_path=root / "spark.log", packages=(AVRO, KAFKA))
    landing = root / "landing"
    landing.mkdir()
    (landing / "1.json").write_text('{"id": 1, "owner": "Ann", "balance": 1.5}\n')
    project = make_project(root, {"all.sql": PROGRAM.format(more="")})
    commands.revision(project, "first", rev_id="a")
    commands.upgrade(project)
    (landing / "2.json").write_text('{"id": 1, "owner": "Bob", "balance": 2.5}\n')
    commands.execute(project, "INSERT INTO events VALUES (1, 'one', TIMESTAMP '2026-01-01 12:00')")
    commands.run(project)
    write_pipeline(root, {"all.sql": PROGRAM.format(more=", e.at")})
    commands.revision(project, "second", rev_id="b")
    commands.upgrade(project)
    commands.downgrade(project, "-1")
    commands.query(project, "SELECT * FROM totals")


def _end_java() -> None:
    from pyspark import SparkContext

    from sqlmig.spark.session import close_sessions

    close_sessions()
    gateway = SparkContext._gateway
    assert gateway is not None
    process = gateway.proc  # pyspark ends it by closing its input, and does not wait
    process.stdin.close()
    process.wait(timeout=120)


if __name__ == "__main__":
    write()
