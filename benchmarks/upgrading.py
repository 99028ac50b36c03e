"""An upgrade against a bare PySpark script that runs the same queries and writes the same tables.

Both work in one process, on one Spark session that was started before, and each round on a fresh
copy of the state that revision 1 left.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import school
from measuring import Figure, Spent, Turn, in_turns, measured
from projects import make_project, write_pipeline
from spark_projects import copy_tree, shared_session

from sqlmig import commands

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TITLE = "An upgrade against a bare PySpark script"
# What sqlmig gives a materialized view; without it, there would be no going back for 30 days.
_PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.deletedFileRetentionDuration": "interval 30 days",
    "delta.logRetentionDuration": "interval 30 days",
}


def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """5 of 13 models have to be computed: by sqlmig; by a script told which; all by a script."""
    students, grades = (5_000, 200_000) if quick else (50_000, 5_000_000)
    with shared_session(folder) as spark:
        ours = _deployed(folder / "ours", students, grades)
        first, second = school.models(school.FIRST_END), school.models(school.SECOND_END)
        theirs = folder / "theirs"
        for name in ("students", "grades"):
            copy_tree(ours / "warehouse" / "tables" / name, theirs / name)
        compute(spark, theirs, first)
        write_pipeline(ours, {"marts.sql": school.statements((*second, school.ADDED))})
        commands.revision(commands.open_project(ours), "extend date range")
        wanted = (*second, school.ADDED)
        upgrade, bare, full = "sqlmig upgrade head", "script, the same 5", "script, all 13"
        times = in_turns(
            {
                upgrade: _upgrade(ours),
                bare: _script(spark, theirs, wanted, school.INVALIDATED),
            },
            3,
            warm_up=0,  # the deployments of revision 1 were it
            swap=True,
        )
        rebuild = _script(spark, theirs, wanted, [model.name for model in wanted])
        times |= in_turns({full: rebuild}, 1, warm_up=0)
    return [
        Figure(upgrade, times[upgrade], bare, times[bare], 1.2),
        Figure(upgrade, times[upgrade], full, times[full], None),
    ]


def compute(
    spark: SparkSession,
    folder: Path,
    models: Sequence[school.Model],
    chosen: Collection[str] | None = None,
) -> None:
    """The bare script: overwrite the tables of `chosen`, or of all models, in `folder`."""
    for name in ("students", "grades"):
        spark.read.format("delta").load(str(folder / name)).createOrReplaceTempView(name)
    for model in models:
        path = str(folder / model.name)
        if not model.is_stored:
            spark.sql(model.query).createOrReplaceTempView(model.name)
            continue
        if chosen is None or model.name in chosen:
            writer = spark.sql(model.query).write.format("delta").mode("overwrite")
            writer.option("overwriteSchema", "true").options(**_PROPERTIES).save(path)
        spark.read.format("delta").load(path).createOrReplaceTempView(model.name)


def _deployed(root: Path, students: int, grades: int) -> Path:
    """A project whose revision 1 is deployed."""
    files = {
        "tables.sql": school.TABLES,
        "marts.sql": school.statements(school.models(school.FIRST_END)),
    }
    project = make_project(root, files)
    commands.revision(project, "the school")
    commands.upgrade(project, "head", yes=True)
    commands.execute(project, f"INSERT INTO students {school.students_query(students)}")
    commands.execute(project, f"INSERT INTO grades {school.grades_query(grades, students)}")
    commands.run(project)
    return root


def _upgrade(original: Path) -> Turn:
    numbers = itertools.count()

    def turn() -> Spent:
        root = copy_tree(original, original.with_name(f"ours-{next(numbers)}"))
        took = measured(lambda: commands.upgrade(commands.open_project(root), "head", yes=True))
        shutil.rmtree(root)
        return took

    return turn


def _script(
    spark: SparkSession, original: Path, models: Sequence[school.Model], chosen: Collection[str]
) -> Turn:
    numbers = itertools.count()

    def turn() -> Spent:
        name = f"theirs-{len(chosen)}-{next(numbers)}"
        folder = copy_tree(original, original.with_name(name))
        took = measured(lambda: compute(spark.newSession(), folder, models, chosen))
        shutil.rmtree(folder)
        return took

    return turn
