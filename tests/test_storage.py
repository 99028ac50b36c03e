"""A warehouse in an object store, as far as it goes without Spark: the ledger, its lock, secrets.

The store is a small one of the tests' own, over HTTP; the client is the real delta-rs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import pytest

from sqlmig.errors import EngineError, LedgerConflict, LedgerError
from sqlmig.ledger.delta import DeltaLedger
from sqlmig.ledger.records import Kind, Record, Status
from sqlmig.warehouse import DeltaWarehouse
from tests.cli.shell import Shell
from tests.object_store import ObjectStore, object_store

KEY = "t0p-s3cret"
NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ObjectStore]:
    """An empty object store."""
    with object_store(tmp_path / "store") as running:
        yield running


def project(folder: Path, store: ObjectStore) -> Shell:
    """A project whose warehouse lies in the store, with a secret in the environment."""
    options = {**store.options, "aws_secret_access_key": "${env:LAKE_KEY}", "max_retries": "0"}
    target = {"warehouse": "s3a://lake/school", "storage_options": options}
    shell = Shell(folder)
    shell.write("sqlmig.yml", json.dumps({"targets": {"lake": target}, "pipeline": "school"}))
    shell.write("pipeline/tables.sql", "CREATE TABLE students (id BIGINT);\n")
    return shell


def test_every_commit_of_the_ledger_is_a_write_that_the_store_may_refuse(
    store: ObjectStore,
) -> None:
    # given
    ledger = DeltaLedger("s3a://lake/ledger", store.options | {"aws_secret_access_key": KEY})

    # when
    version = -1
    for number in range(3):
        version = ledger.append([record(number)], version)[0].seq

    # then
    commits = [f"lake/ledger/_delta_log/{n:020}.json" for n in range(4)]
    assert [key for key in store.conditional if "_delta_log" in key] == commits
    assert [row.step for row in ledger.read()[1]] == [0, 1, 2]


def test_of_writers_that_race_in_a_store_each_record_has_a_seq_of_its_own(
    store: ObjectStore,
) -> None:
    # given
    options = store.options | {"aws_secret_access_key": KEY}
    DeltaLedger("s3://lake/ledger", options).append([record(0)], -1)

    def write(number: int) -> int:
        ledger, conflicts = DeltaLedger("s3://lake/ledger", options), 0
        for _ in range(3):
            while True:
                try:
                    ledger.append([record(number)], ledger.version())
                    break
                except LedgerConflict:
                    conflicts += 1
        return conflicts

    # when
    with ThreadPoolExecutor(3) as pool:
        conflicts = sum(pool.map(write, range(1, 4)))

    # then
    records = DeltaLedger("s3://lake/ledger", options).read()[1]
    assert [row.seq for row in records] == list(range(1, 11))
    assert sorted(row.step or 0 for row in records) == [0, *sorted([1, 2, 3] * 3)]
    assert conflicts > 0, "they did meet"


def test_commands_that_need_no_spark_work_on_a_store(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given
    monkeypatch.setenv("LAKE_KEY", KEY)
    shell = project(tmp_path / "project", store)
    shell.freeze("r1")

    # when
    shell("stamp", "r1")

    # then
    assert shell("current", "--json").json["revision"] == "r1"
    files = [path for path in store.folder.rglob("*") if path.is_file()]
    assert store.folder / "lake/school/ledger/_delta_log/00000000000000000000.json" in files
    held = b"".join(path.read_bytes() for path in files)
    assert KEY.encode() not in held
    assert b"LAKE_KEY" not in held


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_the_secret_of_a_store_is_in_no_error(
    store: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    debug: tuple[str, ...],
) -> None:
    # given: the secret stands where delta-rs will repeat it
    shell = project(tmp_path / "project", store)
    shell.freeze("r1")
    text = shell.read("sqlmig.yml").replace(store.url, "http://127.0.0.1:9/${env:LAKE_KEY}")
    shell.write("sqlmig.yml", text)
    unset = shell(*debug, "current", code=1).err

    # when
    monkeypatch.setenv("LAKE_KEY", KEY)
    said = shell(*debug, "current", code=1)

    # then
    assert "the environment variable LAKE_KEY is not set" in unset
    assert "error: the ledger at s3a://lake/school/ledger can't be opened: " in said.err
    assert "***" in said.err
    assert KEY not in said.err + said.out
    assert ("Traceback" in said.err) is bool(debug)


def test_a_store_that_does_not_answer_is_an_error_in_one_line(store: ObjectStore) -> None:
    # given
    options = store.options | {"aws_secret_access_key": KEY, "max_retries": "0"}
    options["aws_endpoint"] = "http://127.0.0.1:9"

    # when
    with pytest.raises(LedgerError) as ledger:
        DeltaLedger("s3://lake/ledger", options).read()
    with pytest.raises(EngineError) as table:
        DeltaWarehouse("s3://lake", options).version("grades")

    # then
    for error in (ledger.value, table.value):
        assert "\n" not in error.message
        assert "tcp connect error" in error.message, "what is the matter stands at the chain's end"


def record(step: int) -> Record:
    """A record of a tick."""
    return Record("school", Kind.TICK, Status.DONE, NOON, step=step)
