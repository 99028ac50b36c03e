"""Every change of the fixture on real Spark and Delta: its diff, and the rows it leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlmig import commands
from tests.stories.school import as_bag, contents, make_project, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.example

Json = Mapping[str, Any]
CHANGES: list[Json] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "changes.json").read_text(encoding="utf-8")
)
# Those that expect a diff and no rows are tested with the other diffs, without Spark.
RUNNABLE = [
    change
    for change in CHANGES
    if change["expect"].get("contents")
    and not any(v.get("streaming") for r in change["revisions"] for v in r["program"]["views"])
]


def sql_of(program: Json) -> str:
    """The neutral form as a pipeline's SQL; views are materialized."""
    statements = []
    for table in program["tables"]:
        columns = [f"{name} {kind}" for name, kind in table["cols"]]
        if table.get("pk"):
            columns.append(f"PRIMARY KEY ({', '.join(table['pk'])})")
        statements.append(f"CREATE TABLE {table['name']} ({', '.join(columns)});")
    for view in program["views"]:
        statements.append(f"CREATE MATERIALIZED VIEW {view['name']} AS {view['sql']};")
    return "\n".join(statements) + "\n"


def insert_of(table: str, row: Json) -> str:
    """One row as an INSERT."""
    values = ", ".join(_literal(value) for value in row.values())
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


def inserts_of(load: list[Json]) -> list[str]:
    """The rows of a load, those in a row for one table in one statement."""
    found: list[tuple[str, tuple[str, ...], list[str]]] = []
    for entry in load:
        key = (entry["table"], tuple(entry["row"]))
        values = f"({', '.join(_literal(v) for v in entry['row'].values())})"
        if found and (found[-1][0], found[-1][1]) == key:
            found[-1][2].append(values)
        else:
            found.append((*key, [values]))
    return [
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join(values)}"
        for table, columns, values in found
    ]


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Iterator[Mapping[str, Future[None]]]:
    """The changes that are to be tested, two at a time: Spark plans each with one thread."""
    chosen: list[Json] = [
        item.callspec.params["change"]  # type: ignore[misc]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module
    ]
    with ThreadPoolExecutor(2) as pool:
        yield {
            change["id"]: pool.submit(play, change, tmp_path_factory.mktemp("change"))
            for change in chosen
        }


@pytest.mark.timeout(900)
@pytest.mark.parametrize("change", RUNNABLE, ids=lambda change: change["id"])
def test_a_change_gives_the_expected_diff_and_rows(
    change: Json, played: Mapping[str, Future[None]], spark: SparkSession
) -> None:
    played[change["id"]].result()


def play(change: Json, root: Path) -> None:
    """Deploy one revision after the other, each with its rows; asserts what is expected."""
    project = make_project(root, {"all.sql": ""}, name="case")
    expected = change["expect"]
    for number, step in enumerate(change["revisions"]):
        # given
        write_pipeline(root, {"all.sql": sql_of(step["program"])})

        # when
        new = commands.revision(project, f"revision {number}", rev_id=f"r{number}")
        if new.file is not None:
            commands.upgrade(project, "head")

        # then
        key = str(number)
        if key in expected.get("diff", {}):
            assert new.diff.to_json()["program_diff"] == expected["diff"][key]
        _assert_contents(project, expected.get("after_bootstrap", {}).get(key, {}))
        for insert in inserts_of(step["load"]):
            commands.execute(project, insert)
        if step["load"]:
            commands.run(project)
        _assert_contents(project, expected.get("contents", {}).get(key, {}))


def _assert_contents(project: commands.Project, wanted: Json) -> None:
    expected = {relation: as_bag(rows) for relation, rows in wanted.items()}
    assert contents(project, wanted) == expected
