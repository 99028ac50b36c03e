"""A pipeline that runs: rows through a source into a keyed table, idle ticks, downtime, memory."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from measuring import Figure, Spent, Times, Turn, in_turns, measured
from projects import make_project, write_pipeline
from spark_projects import copy_tree, shared_session

from sqlmig import commands
from sqlmig.execution.runner import RunnerSettings
from sqlmig.ledger.records import Kind, Status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sqlmig.commands import Project

TITLE = "A pipeline that runs"
_KEYED = """\
CREATE TABLE accounts (id BIGINT, owner STRING, balance DOUBLE, PRIMARY KEY (id));
CREATE SOURCE files INTO accounts USING json OPTIONS (path 'landing');
"""
_SCHEMA = "id BIGINT, owner STRING, balance DOUBLE"
_FILES = 8
_BAD = "_corrupt_record"
_ARRIVAL = ("file_modification_time", "file_block_start")
"""What tells, with the place in the block, which record came last: no two files are of one time."""


def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """All six; each on pipelines of its own, in one Spark session."""
    with shared_session(folder) as spark:
        figures = _through_a_source(folder, spark, 20_000 if quick else 500_000)
        figures += _through_a_source(folder, spark, _FILES)
        figures += _idle(folder, 10 if quick else 50, 20 if quick else 200)
        figures += _downtime(folder, 20_000 if quick else 2_000_000)
        figures += _memory(folder, 100 if quick else 1_000)
        figures += _heap(folder, spark, 40 if quick else 200)
    return figures


# rows through a source


def _through_a_source(folder: Path, spark: SparkSession, rows: int) -> list[Figure]:
    """Each turn reads the same files into an empty keyed table: by a tick, by a bare script."""
    root = folder / f"accounts-{rows}"
    project = make_project(root, {"accounts.sql": _KEYED})
    (root / "landing").mkdir()
    commands.revision(project, "accounts")
    commands.upgrade(project, "head", yes=True)
    _write_records(root / "landing", rows)
    ours = "sqlmig run --once"
    scripts = {
        "a script that does the same": _script(spark, root, is_careful=True),
        "a script that takes no record for a bad one": _script(spark, root, is_careful=False),
    }
    # Both run for long in practice: a JVM needs some rounds until it has compiled what they do.
    times = in_turns({ours: _tick(root), **scripts}, 9, warm_up=3, swap=True)
    what = f"{ours}, {rows:,} rows into a keyed table"
    same, other = scripts
    return [
        Figure(what, times[ours], same, times[same], 1.3),
        Figure(what, times[ours], other, times[other], None),
    ]


def _write_records(landing: Path, rows: int) -> None:
    chance = random.Random(7)
    for number in range(_FILES):
        with (landing / f"{number}.json").open("w", encoding="utf-8") as file:
            for _ in range(rows // _FILES):
                key = chance.randrange(rows)
                record = {"id": key, "owner": f"owner {key}", "balance": chance.random()}
                file.write(json.dumps(record) + "\n")


def _tick(original: Path) -> Turn:
    numbers = itertools.count()

    def turn() -> Spent:
        root = copy_tree(original, original.with_name(f"{original.name}-{next(numbers)}"))
        took = measured(lambda: commands.run(commands.open_project(root)))
        shutil.rmtree(root)
        return took

    return turn


def _last(batch: DataFrame) -> DataFrame:
    """Of the records with one key the one that came last, as a tick keeps it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    order = F.struct(*_ARRIVAL, F.monotonically_increasing_id())
    rank = F.row_number().over(Window.partitionBy("id").orderBy(order.desc()))
    return batch.withColumn("rank", rank).where("rank = 1").drop("rank", *_ARRIVAL)


def _script(spark: SparkSession, original: Path, *, is_careful: bool) -> Turn:
    """The least that reads the same records, and merges the last one of each key.

    Args:
        is_careful: it counts the records, and puts those aside that can't be read.
    """
    numbers = itertools.count()

    def turn() -> Spent:
        folder = original.with_name(f"bare-{next(numbers)}")
        table = copy_tree(original / "warehouse" / "tables" / "accounts", folder / "accounts")
        session = spark.newSession()

        def merge(batch: DataFrame) -> None:
            _last(batch).createOrReplaceTempView("batch")
            batch.sparkSession.sql(
                f"MERGE INTO delta.`{table}` t USING batch s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )

        def sort_out(batch: DataFrame) -> None:
            records = batch.persist()
            count, bad = records.selectExpr("count(*)", f"count({_BAD})").collect()[0]
            told = json.dumps({"rows": count - bad, "rejected": bad})
            batch.sparkSession.conf.set("spark.databricks.delta.commitInfo.userMetadata", told)
            if bad:
                rejected = records.where(f"{_BAD} IS NOT NULL")
                rejected.write.format("delta").mode("append").save(str(folder / "rejected"))
            merge(records.where(f"{_BAD} IS NULL").drop(_BAD))
            records.unpersist()

        def write(batch: DataFrame, number: int) -> None:
            (sort_out if is_careful else merge)(batch)

        def work() -> None:
            schema = f"{_SCHEMA}, {_BAD} STRING" if is_careful else _SCHEMA
            files = session.readStream.schema(schema).json(str(original / "landing"))
            stream = files.select("*", *(f"_metadata.{name}" for name in _ARRIVAL))
            query = (
                stream.writeStream.foreachBatch(write)
                .option("checkpointLocation", str(folder / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()

        took = measured(work)
        shutil.rmtree(folder)
        return took

    return turn


# idle ticks


def _idle(folder: Path, relations: int, ticks: int) -> list[Figure]:
    """Seconds of CPU of a tick in which nothing has come, with so many relations."""
    root = folder / "idle"
    statements = []
    for number in range(relations // 2):
        statements.append(f"CREATE TABLE t{number} (id BIGINT);")
        statements.append(
            f"CREATE MATERIALIZED VIEW v{number} AS SELECT count(*) AS n FROM t{number};"
        )
    project = make_project(root, {"all.sql": "\n".join(statements)})
    commands.revision(project, "many")
    commands.upgrade(project, "head", yes=True)
    commands.run(project)
    took = measured(lambda: _run(project, ticks))
    spent = Times((Spent(took.cpu / ticks, took.cpu / ticks),))
    return [Figure(f"an idle tick, {relations} relations, of CPU", spent, "0.1 s", 0.1, 1.0)]


def _run(project: Project, ticks: int, before: Callable[[int], object] = lambda tick: None) -> None:
    """So many rounds of the runner, one after the other without a pause."""
    from sqlmig.commands.running import runner

    made = itertools.count()

    def is_over() -> bool:
        number = next(made)
        before(number)
        return number >= ticks

    runner(project, lambda event: None).run(RunnerSettings(interval=0), is_over)


# downtime


def _downtime(folder: Path, rows: int) -> list[Figure]:
    """From the end of the tick to the new revision: one view of ten changed, against all ten."""
    root = folder / "ten"
    project = make_project(root, {"all.sql": _ten(1, 1)})
    commands.revision(project, "ten")
    commands.upgrade(project, "head", yes=True)
    commands.execute(project, f"INSERT INTO readings SELECT id, id % 1000 FROM range({rows})")
    commands.run(project)
    spent: dict[str, list[Spent]] = {"one": [], "all": []}
    for number in range(2, 5):
        one_changed, all_changed = _ten(number, number - 1), _ten(number + 100, number)
        for name, program in (("one", one_changed), ("all", all_changed)):
            write_pipeline(root, {"all.sql": program})
            commands.revision(commands.open_project(root), f"{name} {number}")
            upgraded = commands.open_project(root)
            commands.upgrade(upgraded, "head", yes=True)
            seconds = _stopped(upgraded)
            spent[name].append(Spent(seconds, seconds))
    one, every = Times(tuple(spent["one"])), Times(tuple(spent["all"]))
    return [Figure("downtime, one view of ten", one, "all ten", every, None)]


def _ten(first: int, others: int) -> str:
    """Ten views over one table; `first` stands in one of them, `others` in the rest."""
    views = [
        f"CREATE MATERIALIZED VIEW v{n} AS SELECT sensor + {others if n else first} AS sensor, "
        f"count(*) AS n, sum(id) AS total FROM readings WHERE id % {n + 2} = 0 GROUP BY sensor;"
        for n in range(10)
    ]
    return "CREATE TABLE readings (id BIGINT, sensor BIGINT);\n" + "\n".join(views)


def _stopped(project: Project) -> float:
    """Seconds from the end of the step `stop` to the record that applied the last plan."""
    stopped = applied = None
    for record in project.ledger.read(is_whole=True)[1]:
        if record.kind is Kind.STEP and record.step == 1 and record.status is Status.DONE:
            stopped = record.at
        if record.kind is Kind.PLAN and record.status is Status.APPLIED:
            applied = record.at
    assert stopped is not None
    assert applied is not None
    return (applied - stopped).total_seconds()


# memory


def _memory(folder: Path, ticks: int) -> list[Figure]:
    """Megabytes of this process in the last quarter of so many ticks, against the second quarter.

    In the first one its native threads still come, and its memory grows with them.
    """
    sizes: list[float] = []

    def before(tick: int) -> None:
        sizes.append(_resident())

    _run_long(folder / "long", ticks, before, every=20)
    return [_growth(f"memory, the last quarter of {ticks:,} ticks", sizes)]


def _heap(folder: Path, spark: SparkSession, ticks: int) -> list[Figure]:
    """Megabytes that the JVM's heap holds after a collection, over ticks that all read a record."""
    sizes: list[float] = []

    def before(tick: int) -> None:
        if tick % 5 == 0:
            sizes.append(_live(spark))

    _run_long(folder / "busy", ticks, before, every=1)
    return [_growth(f"heap of the JVM, the last quarter of {ticks:,} ticks with data", sizes)]


def _run_long(root: Path, ticks: int, before: Callable[[int], object], *, every: int) -> None:
    """So many ticks of a keyed table and a sum over it; a record comes each `every` ticks."""
    total = "CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS total FROM accounts;"
    project = make_project(root, {"all.sql": _KEYED + total})
    landing = root / "landing"
    landing.mkdir()
    commands.revision(project, "long")
    commands.upgrade(project, "head", yes=True)

    def with_record(tick: int) -> None:
        if tick % every == 0:
            record = {"id": tick % 7, "owner": "o", "balance": tick}
            (landing / f"{tick}.json").write_text(json.dumps(record), encoding="utf-8")
        before(tick)

    _run(project, ticks, with_record)


def _growth(what: str, sizes: list[float]) -> Figure:
    """The last quarter's median against that of the second."""
    first, second, third = (len(sizes) * n // 4 for n in (1, 2, 3))
    early, late = median(sizes[first:second]), median(sizes[third:])
    return Figure(what, Times((Spent(late, late),)), "the second quarter", early, 1.1, "MB")


def _live(spark: SparkSession) -> float:
    """Megabytes of the heap of Spark's JVM that something still names."""
    jvm = spark._jvm
    for _ in range(2):  # what the first finds dead, Spark lets go of in the background
        jvm.java.lang.System.gc()
        time.sleep(0.5)
    bean = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    return bean.getHeapMemoryUsage().getUsed() / 2**20


def _resident() -> float:
    """Megabytes of memory of this process (the JVM, whose heap has a fixed limit, is another)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
