"""What connectors need beyond Spark and Delta: named, fetched once, given to a running Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sqlmig.errors import EngineError
from sqlmig.program.parse import parse_program
from sqlmig.spark.fetching import fetch
from sqlmig.spark.packages import AVRO, KAFKA, Package, missing_packages, needed_packages


def test_only_what_a_program_uses_is_needed() -> None:
    table = "CREATE TABLE t (a INT);\n"
    json = "CREATE SOURCE s INTO t USING json OPTIONS (path 'x');"
    files = parse_program({"p.sql": table + json})
    kafka = parse_program({"p.sql": table + "CREATE SOURCE s INTO t USING KAFKA;"})
    avro = "CREATE SINK s FROM t USING kafka OPTIONS (format 'avro');"
    sinks = parse_program({"p.sql": table + avro})

    assert needed_packages([files]) == ()
    assert needed_packages([files, kafka]) == (KAFKA,)
    assert needed_packages([kafka, sinks]) == (AVRO, KAFKA)


def test_a_version_of_the_users_own_goes_first() -> None:
    theirs = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"

    assert missing_packages((AVRO, KAFKA), [theirs]) == (AVRO,)
    assert missing_packages((AVRO, KAFKA), ["io.delta:delta-spark_2.13:4.4.0"]) == (AVRO, KAFKA)


def test_a_package_that_can_not_be_fetched_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given
    monkeypatch.setenv("SQLMIG_CACHE", str(tmp_path))
    nowhere = Package("nothing", ("org.nowhere:nothing:1.0",))

    # when
    with pytest.raises(EngineError) as caught:
        fetch(nowhere)

    # then
    assert caught.value.message.startswith("Spark's packages can't be downloaded: org.nowhere")
    assert "spark.jars.repositories" in (caught.value.hint or "")
    assert not list(tmp_path.rglob("manifest.json"))


@pytest.mark.slow
def test_a_spark_that_runs_takes_up_a_format_that_a_later_revision_needs(tmp_path: Path) -> None:
    # given: a process whose Spark was started for files alone
    code = f"""
import threading
from pathlib import Path
from sqlmig.errors import EngineError
from sqlmig.spark.failures import told
from sqlmig.spark.packages import AVRO, KAFKA
from sqlmig.spark.session import open_session

conf = {{"conf": {{"spark.driver.memory": "1g"}}}}
spark = open_session(conf, log_path=Path({str(tmp_path / "spark.log")!r}))
def read(session):
    options = {{"kafka.bootstrap.servers": "localhost:9", "subscribe": "t"}}
    return session.readStream.format("kafka").options(**options).load().columns
try:
    with told("source"):
        read(spark)
except EngineError as error:
    print(error.render())

def later(folder):
    session = open_session(conf, packages=(AVRO, KAFKA)).newSession()
    print(read(session)[:2])
    session.range(3).write.format("avro").save(folder)
    print(session.read.format("avro").load(folder).count())

later({str(tmp_path / "one")!r})
other = threading.Thread(target=later, args=({str(tmp_path / "two")!r},))
other.start()
other.join()
"""

    # when
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )

    # then
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "error: source: Spark has no format `kafka`",
        "",
        "hint: start it with the package org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "['key', 'value']",
        "3",
        "['key', 'value']",
        "3",
    ]
