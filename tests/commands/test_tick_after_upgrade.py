"""The tick after an upgrade, where another process is faster: the upgrade has been applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.errors import EngineError
from sqlmig.execution.journal import Journal
from sqlmig.execution.process import with_token
from sqlmig.ledger.delta import DeltaLedger
from sqlmig.ledger.records import Kind, Record, Status
from tests.commands.ledgers import living_process
from tests.fakes import FakeEngine, World

SQL = """
CREATE TABLE t (a INT);
CREATE SOURCE s INTO t USING json OPTIONS (path 'landing');
CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;
"""


class Engine(FakeEngine):
    """The fake one, with what a project asks its warehouse besides."""

    is_local = False

    def folders(self) -> frozenset[str]:
        """The tables of the world."""
        return frozenset(self._world.tables)


def make_project(root: Path, world: World) -> Project:
    """One revision, on the world's tables."""
    for name in ("pipeline", "revisions", "landing"):
        (root / name).mkdir()
    (root / "sqlmig.yml").write_text("pipeline: p\ntargets: {local: {warehouse: w}}\n")
    (root / "pipeline" / "all.sql").write_text(SQL)
    project = commands.open_project(root)
    for name in ("engine", "warehouse"):
        project.__dict__[name] = Engine(world)
    commands.revision(project, "first")
    return project


def runs(journal: Journal) -> None:
    """Another process begins to tick the pipeline."""
    details = {"owner": journal.owner.to_dict(), "once": False, "interval": 5}
    journal.append(Kind.RUNNER, Status.STARTED, details=details)


def stops(journal: Journal) -> None:
    """Somebody asks that nothing ticks."""
    journal.append(Kind.REQUEST, Status.ASKED, details={"ask": "stop", "at": None})


def moves(journal: Journal) -> None:
    """Another process deploys something else."""
    details = {"plan": {"id": "other"}}
    journal.append(Kind.PLAN, Status.STARTED, plan="other", revision="other", details=details)


@pytest.mark.parametrize("act", [runs, stops, moves])
def test_it_is_left_to_who_was_faster(
    act: Callable[[Journal], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given: between the end of the plan and the tick, another process writes to the ledger
    world = World(inputs={str(tmp_path / "landing"): [1]})
    project = make_project(tmp_path, world)
    other = Journal(project.ledger, "p")
    other.owner = with_token(living_process())
    append = DeltaLedger.append
    acted: list[int] = []

    def in_between(ledger: DeltaLedger, records: Sequence[Record], expected: int) -> object:
        first = records[0]
        if (first.kind, first.status) == (Kind.RUNNER, Status.STARTED) and not acted:
            acted.append(expected)
            other.refresh()
            act(other)
        return append(ledger, records, expected)

    monkeypatch.setattr(DeltaLedger, "append", in_between)

    # when
    result = commands.upgrade(project, "head", yes=True)

    # then
    assert acted
    assert (result.status, result.tick) == ("applied", None)
    assert project.journal.refresh().revision == result.plan.target


def test_its_own_failure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(inputs={str(tmp_path / "landing"): [1]})
    project = make_project(tmp_path, world)

    def fails(*args: object, **values: object) -> None:
        raise EngineError("Spark is gone")

    monkeypatch.setattr("sqlmig.execution.tick.Ticker.tick", fails)
    with pytest.raises(EngineError, match="Spark is gone"):
        commands.upgrade(project, "head", yes=True)
