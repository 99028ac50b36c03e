"""Former cuts: found by number, by name and by time; too old ones are refused."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.commands.cuts import find_cut
from sqlmig.errors import EngineError
from sqlmig.ledger.cut import RelationState
from sqlmig.ledger.records import Kind, Status
from tests.stories.school import make_project

NOON = datetime(2026, 6, 10, 12, tzinfo=timezone.utc)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Deployed at noon; a tick each minute, which brings the table to its number's version."""
    project = make_project(tmp_path, {"all.sql": "CREATE TABLE t (a INT);"})
    commands.revision(project, "first", rev_id="r1")
    now = [NOON]
    project.journal._clock = lambda: now[0]
    commands.stamp(project, "head")
    for minute in range(1, 6):
        now[0] = NOON + timedelta(minutes=minute)
        state = RelationState("t", "table", minute, f"t@{minute}", "f", rows=minute, bytes=8)
        project.journal.append(Kind.TICK, Status.DONE, cut={"relations": {"t": state.to_dict()}})
        if minute == 3:
            commands.checkpoint(project, "third")
    return project


def version(project: Project, name: str) -> int:
    """The table's version at a former cut."""
    return find_cut(project, name).cut.relations["t"].version


def test_a_cut_is_found_by_its_checkpoints_name_or_number(project: Project) -> None:
    number = next(r.seq for r in project.ledger.read(is_whole=True)[1] if r.kind is Kind.CHECKPOINT)
    assert version(project, "third") == version(project, str(number)) == 3
    assert dict(find_cut(project, "third").program) == {
        "pipeline/all.sql": "CREATE TABLE t (a INT);"
    }


@pytest.mark.parametrize(
    ("at", "expected"),
    [("2026-06-10T12:02:30", 2), ("2026-06-10T14:04:00+02:00", 4), ("-2m", 3), ("-0s", 5)],
)
def test_a_time_names_the_newest_cut_at_it(project: Project, at: str, expected: int) -> None:
    assert version(project, at) == expected


@pytest.mark.parametrize("name", ["never", "99", "2026-06-10T11:59:59"])
def test_a_cut_that_there_is_not_is_an_error(project: Project, name: str) -> None:
    with pytest.raises(EngineError) as caught:
        find_cut(project, name)
    assert caught.value.message == f"there is no checkpoint `{name}`"


def test_a_cut_that_is_too_old_is_refused_with_its_date(project: Project) -> None:
    project.journal._clock = lambda: NOON + timedelta(days=8)
    with pytest.raises(EngineError) as caught:
        find_cut(project, "third")
    assert caught.value.message == (
        "checkpoint `third` is of 2026-06-10 12:03:00 UTC, and they are kept for 7 days"
    )
    assert "`keep_checkpoints` in sqlmig.yml" in (caught.value.hint or "")
