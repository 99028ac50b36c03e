"""The Spark session: one per process, quiet, its jars fetched once, its failures told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig.errors import EngineError
from sqlmig.spark.jars import DELTA, JarCache, cache_folder
from sqlmig.spark.log import output_into, prepare_log, start_error
from sqlmig.spark.session import is_alive, open_session
from sqlmig.spark.sessions import Sessions
from sqlmig.spark.settings import (
    DELTA_EXTENSION,
    LOCAL_CHECKPOINTS,
    LOCAL_LOG_STORE,
    LOG_STORE,
    UNSEEN,
    settings_for,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process of its own: the tests' own Spark must not be there."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def cache_with(folder: Path, *names: str) -> JarCache:
    """A cache into which the named jars were resolved, and not recorded yet."""
    cache = JarCache(folder, (DELTA,))
    (cache.home / "jars").mkdir(parents=True)
    for name in names:
        (cache.home / "jars" / name).write_bytes(b"jar")
    return cache


# --- one session ---------------------------------------------------------------------------------


def test_several_commands_in_one_process_share_its_session(spark: SparkSession) -> None:
    first = open_session({"master": "local[*]"})
    second = open_session({"master": "local[*]", "conf": {}})

    assert second is first
    assert first.conf.get("spark.app.id") == spark.conf.get("spark.app.id"), "no second Spark"


def test_a_session_that_is_there_is_used_with_settings_of_ones_own(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")

    mine = open_session({"conf": {"spark.sql.shuffle.partitions": 7}})

    assert mine is not spark
    assert mine.conf.get("spark.sql.shuffle.partitions") == "7"
    assert mine.conf.get("spark.app.id") == spark.conf.get("spark.app.id"), "no second Spark"
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_what_decides_on_results_is_as_asked_or_refused(spark: SparkSession) -> None:
    assert spark is not None

    with pytest.raises(EngineError) as caught:
        open_session({"conf": {"spark.sql.warehouse.dir": "/elsewhere"}})

    assert "`spark.sql.warehouse.dir` can't be changed" in caught.value.message
    assert caught.value.hint == "run this command in a process of its own"


def test_threads_that_open_a_session_at_once_get_the_same(spark: SparkSession) -> None:
    found: list[SparkSession] = []
    threads = [threading.Thread(target=lambda: found.append(open_session({}))) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert len({id(session) for session in found}) == 1
    assert found[0].conf.get("spark.app.id") == spark.conf.get("spark.app.id")


def test_the_session_reads_and_writes_delta_and_is_in_utc(
    spark: SparkSession, tmp_warehouse: Path
) -> None:
    path = str(tmp_warehouse / "t")

    spark.range(3).write.format("delta").save(path)

    assert spark.read.format("delta").load(path).count() == 3
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true", "ANSI is left as Spark has it"
    assert is_alive(spark)


def test_a_query_that_fails_to_analyse_prints_nothing(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException):
        spark.sql("SELECT grades FROM VALUES (1) AS t(grade)")

    assert capfd.readouterr() == ("", "")


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("master", "partitions"),
    [
        ("local", "1"),
        ("local[3]", "3"),
        ("local[3, 2]", "3"),
        ("local[*]", str(os.cpu_count())),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_a_local_spark_has_as_many_partitions_as_cores(master: str, partitions: str | None) -> None:
    assert settings_for(master, {}).get("spark.sql.shuffle.partitions") == partitions


def test_the_users_settings_go_before_ours_and_lists_are_joined() -> None:
    settings = settings_for(
        "local[*]",
        {
            "spark.ui.enabled": "true",
            "spark.driver.memory": "8g",
            "spark.sql.extensions": "org.Mine",
            "spark.driver.extraJavaOptions": "-Dmine=1",
        },
    )

    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.driver.memory"] == "8g"
    assert settings["spark.sql.extensions"] == f"org.Mine,{DELTA_EXTENSION}"
    assert settings["spark.driver.extraJavaOptions"].startswith("-Dmine=1 -Dlog4j2.")


def test_few_former_jobs_are_kept_for_pages_that_are_not_served(spark: SparkSession) -> None:
    kept = {name: spark.conf.get(name) for name in UNSEEN}

    assert kept == dict(UNSEEN)
    assert not UNSEEN.keys() & settings_for("local", {"spark.ui.enabled": "true"}).keys()
    mine = {"spark.ui.retainedJobs": "7"}
    assert settings_for("local", mine).items() >= {**UNSEEN, **mine}.items()


def test_a_listing_of_a_sources_folder_is_not_kept(spark: SparkSession) -> None:
    session = Sessions(lambda: spark).fresh()
    caches = session._jvm.org.apache.spark.sql.execution.datasources.FileStatusCache  # type: ignore[union-attr]

    kept = caches.getOrCreate(session._jsparkSession)

    assert kept.getClass().getSimpleName() == "NoopCache$"


def test_commits_to_a_local_disk_are_renamed_in_java(spark: SparkSession) -> None:
    [(name, ours)] = LOCAL_LOG_STORE.items()

    assert spark.conf.get(name) == ours


def test_an_operations_session_has_settings_of_ours_unless_the_user_has_other_ones(
    spark: SparkSession,
) -> None:
    [(name, ours)] = LOCAL_CHECKPOINTS.items()
    theirs = spark.newSession()
    theirs.conf.set(name, "org.Mine")

    assert Sessions(lambda: spark, LOCAL_CHECKPOINTS).fresh().conf.get(name) == ours
    assert name not in Sessions(lambda: theirs, LOCAL_CHECKPOINTS).fresh().conf.getAll
    assert name not in Sessions(lambda: spark).fresh().conf.getAll


@pytest.mark.parametrize(
    ("line", "is_set"),
    [
        ("spark.delta.logStore.class  org.Mine\n", True),
        ("  spark.delta.logStore.class=org.Mine\n", True),
        ("spark.delta.logStore.file.impl org.Mine\n", True),
        ("# spark.delta.logStore.class org.Mine\n", False),
        ("spark.delta.logStore.classes org.Mine\n", False),
    ],
)
@pytest.mark.parametrize("is_home", [False, True])
def test_a_log_store_of_the_user_is_not_joined_by_ours_which_delta_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, is_set: bool, is_home: bool
) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(f"spark.ui.enabled true\n{line}", "utf-8")
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv(
        *(("SPARK_HOME", str(tmp_path)) if is_home else ("SPARK_CONF_DIR", str(folder)))
    )

    assert (LOCAL_LOG_STORE.keys() <= settings_for("yarn", {}).keys()) is not is_set
    assert not LOCAL_LOG_STORE.keys() & settings_for("yarn", {LOG_STORE: "org.Mine"}).keys()


# --- jars ----------------------------------------------------------------------------------------


def test_recorded_jars_are_found_again(tmp_path: Path) -> None:
    cache = cache_with(tmp_path, "b.jar", "a.jar")
    assert cache.find() is None, "nothing is recorded yet"

    recorded = cache.record()

    assert [jar.name for jar in recorded] == ["a.jar", "b.jar"]
    assert JarCache(tmp_path, (DELTA,)).find() == recorded
    manifest = json.loads((cache.home / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["coordinates"] == [DELTA]


@pytest.mark.parametrize("harm", ["removed", "cut short", "manifest broken"])
def test_jars_that_were_harmed_are_fetched_again(harm: str, tmp_path: Path) -> None:
    cache = cache_with(tmp_path, "a.jar", "b.jar")
    first, _ = cache.record()

    if harm == "removed":
        first.unlink()
    elif harm == "cut short":
        first.write_bytes(b"j")
    else:
        (cache.home / "manifest.json").write_text('{"jars": [{', encoding="utf-8")

    assert cache.find() is None


def test_other_coordinates_have_a_folder_of_their_own(tmp_path: Path) -> None:
    kafka = JarCache(tmp_path, (DELTA, "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"))

    assert kafka.home != JarCache(tmp_path, (DELTA,)).home


def test_a_start_that_fetched_no_jar_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="fetched no jars"):
        cache_with(tmp_path).record()


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache = JarCache(tmp_path / "file", (DELTA,))

    with pytest.raises(EngineError) as caught, cache.lock():
        pass

    assert "can't be written" in caught.value.message
    assert caught.value.hint == "set SQLMIG_CACHE to a folder that can"


def test_a_second_process_waits_for_the_one_that_resolves(tmp_path: Path) -> None:
    cache = JarCache(tmp_path, (DELTA,))
    code = (
        "from pathlib import Path; from sqlmig.spark.jars import *;"
        f"c = JarCache(Path({str(tmp_path)!r}), (DELTA,));\n"
        "with c.lock(): print(c.find() is not None)"
    )
    with cache.lock():
        other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=1)
        (cache.home / "jars").mkdir()
        (cache.home / "jars" / "a.jar").write_bytes(b"jar")
        cache.record()
    said, _ = other.communicate(timeout=30)

    assert said.strip() == "True", "it finds what the first one fetched"


def test_the_cache_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("SQLMIG_CACHE", raising=False)
    assert cache_folder() == tmp_path / "xdg" / "sqlmig"

    monkeypatch.setenv("SQLMIG_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


@pytest.mark.slow
def test_a_later_start_neither_resolves_nor_downloads_and_prints_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert spark is not None, "the jars have been fetched by now"
    code = f"""
from pathlib import Path
from sqlmig.spark.session import open_session
nowhere = {{"spark.jars.repositories": "http://127.0.0.1:9/", "spark.jars.ivySettings": "/nowhere"}}
spark = open_session({{"conf": nowhere}}, log_path=Path({str(tmp_path / "spark.log")!r}))
spark.range(3).write.format("delta").save({str(tmp_path / "t")!r})
print(spark.conf.get("spark.jars.packages", None), spark.conf.get("spark.jars").count(".jar"))
"""

    done = run_python(code, PYTHONWARNINGS="error")

    log = (tmp_path / "spark.log").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr + log
    packages, jars = done.stdout.split()
    assert packages == "None"
    assert int(jars) >= 6, "Delta's own jars"
    assert done.stderr == "", "the terminal stays clean"
    assert "resolving" not in log, log


@pytest.mark.slow
def test_a_package_that_does_not_exist_is_named(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from sqlmig.errors import EngineError
from sqlmig.spark.session import open_session
try:
    open_session(
        {{"conf": {{"spark.jars.packages": "org.nowhere:nothing:1.0"}}}},
        log_path=Path({str(tmp_path / "spark.log")!r}),
    )
except EngineError as error:
    print(error.render())
"""

    done = run_python(code, SQLMIG_CACHE=str(tmp_path / "cache"))

    assert done.stdout.startswith(
        "error: Spark's packages can't be downloaded: org.nowhere#nothing"
    )
    assert str(tmp_path / "spark.log") in done.stdout
    assert done.stderr == ""


# --- what is missing -----------------------------------------------------------------------------


def test_without_pyspark_the_error_says_what_to_install() -> None:
    code = """
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "pyspark" else real(name, *rest)
from sqlmig.errors import EngineError
from sqlmig.spark.session import open_session
try:
    open_session({})
except EngineError as error:
    print(error.render())
"""

    done = run_python(code)

    assert done.stdout == (
        "error: this command needs Spark\n\nhint: pip install 'sqlmig[spark]'\n"
    ), done.stderr


def test_a_java_that_is_too_old_is_told_before_spark_is_started(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    code = """
from sqlmig.errors import EngineError
from sqlmig.spark.session import open_session
try:
    open_session({})
except EngineError as error:
    print(error.message)
"""

    done = run_python(code, JAVA_HOME=str(tmp_path))

    assert done.stdout.startswith("Java 17 or 21 is needed, found 11"), done.stderr


# --- the log -------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / "spark.log"
    prepare_log(path)
    return path


def test_what_a_process_started_meanwhile_prints_goes_to_the_log(
    log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with output_into(log):
        subprocess.run(["sh", "-c", "echo out; echo err >&2"], check=True)
    print("after")  # noqa: T201

    assert sorted(log.read_text(encoding="utf-8").split()) == ["err", "out"]
    assert capfd.readouterr() == ("after\n", "")


def test_a_failed_start_shows_the_last_lines_of_the_log(log: Path) -> None:
    log.write_text("an older start\nboom\n", encoding="utf-8")
    position = prepare_log(log)
    with log.open("a", encoding="utf-8") as file:
        file.write("Error: out of memory\n\tat org.apache.Spark(Spark.java:1)\n")

    error = start_error(RuntimeError("[JAVA_GATEWAY_EXITED] gone.\nmore"), log, position)

    assert error.message == "Spark did not start: [JAVA_GATEWAY_EXITED] gone."
    assert error.hint == f"the last lines of {log}:\n      Error: out of memory"


def test_a_large_log_is_put_aside(log: Path) -> None:
    log.write_bytes(b"x" * 10_000_001)

    assert prepare_log(log) == 0
    assert log.with_name("spark.log.1").stat().st_size == 10_000_001
