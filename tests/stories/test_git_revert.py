"""The history in Git moves the pipeline: a merge, its revert, that one's revert, another branch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.commands.deploy import Deployed
from sqlmig.errors import BlockedError
from sqlmig.planning.steps import Bootstrap
from tests.git.repository import alone, commit, git
from tests.stories.school import make_project, rows, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = """\
CREATE TABLE orders (id BIGINT, amount INT);
CREATE MATERIALIZED VIEW totals AS SELECT sum(amount) AS total FROM orders;
"""
SECOND = FIRST.replace("amount INT", "amount INT, note STRING").replace(
    "sum(amount)", "sum(amount) + 1"
)
THIRD = FIRST + "CREATE MATERIALIZED VIEW counts AS SELECT count(*) AS n FROM orders;\n"
FOURTH = FIRST + "CREATE MATERIALIZED VIEW highest AS SELECT max(amount) AS top FROM orders;\n"


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spark: SparkSession) -> Path:
    """A project in a repository: `FIRST` is deployed from `main` as aaaa1111, and has two rows."""
    alone(monkeypatch, tmp_path)
    root = tmp_path / "shop"
    project = make_project(root, {"all.sql": FIRST})
    (root / ".gitignore").write_text("warehouse/\n.sqlmig/\n")
    git(root, "init", "--quiet", "--initial-branch=main")
    commands.revision(project, "first", rev_id="aaaa1111")
    commit(root, "first")
    commands.upgrade(project)
    commands.execute(project, "INSERT INTO orders VALUES (1, 10), (2, 20)")
    return root


def test_reverting_a_merge_and_deploying_takes_the_pipeline_back(root: Path) -> None:
    # given a change on a branch that was merged and deployed
    commands.run(opened(root))
    branch(root, "second", "bbbb2222", SECOND)
    git(root, "merge", "--quiet", "--no-ff", "-m", "merge second", "second")
    merged = git(root, "rev-parse", "HEAD")
    assert deploy(root).plan.target == "bbbb2222"
    assert totals(root) == 31

    # then the ledger tells who did it, and that undoing it computes nothing
    (newest, *_), count = commands.deployed_history(opened(root))
    assert count == 2
    assert newest.undoing is not None
    assert newest.undoing.is_free
    assert (newest.deploy.commit, newest.deploy.branch) == (merged, "main")
    assert newest.deploy.is_dirty is False
    assert newest.deploy.rows == 1

    # when the merge is reverted and deployed
    git(root, "revert", "--no-edit", "-m", "1", "HEAD")
    back = deploy(root)

    # then the pipeline is back, without computing anything
    assert (back.plan.direction, back.plan.target) == ("downgrade", "aaaa1111")
    assert 'Revert "merge second"' in back.plan.warnings[0]
    assert not computed(back)
    assert totals(root) == 30
    assert rows(opened(root), "SELECT * FROM orders WHERE id = 1") == [{"id": 1, "amount": 10}]

    # and stays so; when the revert is reverted, it goes up again without computing anything
    assert deploy(root).status == "nothing_to_do"
    git(root, "revert", "--no-edit", "HEAD")
    again = deploy(root)
    assert (again.plan.target, computed(again)) == ("bbbb2222", [])
    assert totals(root) == 31


def test_a_branch_that_was_deployed_is_left_for_another_one(root: Path) -> None:
    # given a branch that is deployed, and another change on main
    branch(root, "third", "cccc3333", THIRD)
    git(root, "checkout", "--quiet", "third")
    deploy(root)
    assert rows(opened(root), "SELECT n FROM counts") == [{"n": 2}]
    git(root, "checkout", "--quiet", "main")
    write_pipeline(root, {"all.sql": FOURTH})
    commands.revision(opened(root), "fourth", rev_id="dddd4444")
    commit(root, "fourth")

    # when main is deployed, it is refused, for the branch would be taken back
    with pytest.raises(BlockedError) as caught:
        deploy(root)
    assert "cccc3333 (cccc3333) has no file here: `third` has it" in caught.value.message
    assert "--allow-unknown-revision" in str(caught.value.hint)

    # when that is meant, one plan leads down to the common ancestor and up again
    moved = commands.upgrade(opened(root), allow_unknown=True)

    # then only what differs is computed, and the rows of the table are untouched
    assert (moved.plan.downs, [up.revision for up in moved.plan.ups]) == (
        ("cccc3333",),
        ["dddd4444"],
    )
    assert computed(moved) == ["highest"]
    assert rows(opened(root), "SELECT top, total FROM highest, totals") == [
        {"top": 20, "total": 30}
    ]
    assert sorted(opened(root).deployment().applied) == ["aaaa1111", "dddd4444"]
    assert "counts" not in opened(root).deployment().cut.relations

    # and the branch can be deployed again, its view put back
    git(root, "checkout", "--quiet", "third")
    there = commands.upgrade(opened(root), allow_unknown=True)
    assert computed(there) == []
    assert rows(opened(root), "SELECT n FROM counts") == [{"n": 2}]


def opened(root: Path) -> Project:
    """The project as it lies there now, as a new process would open it."""
    return commands.open_project(root)


def deploy(root: Path) -> Deployed:
    """What a job does after a merge: `sqlmig upgrade head`."""
    return commands.upgrade(opened(root))


def branch(root: Path, name: str, revision: str, text: str) -> None:
    """Freeze and commit `text` on a new branch, and go back to `main`."""
    git(root, "checkout", "--quiet", "-b", name)
    write_pipeline(root, {"all.sql": text})
    commands.revision(opened(root), revision, rev_id=revision)
    commit(root, name)
    git(root, "checkout", "--quiet", "main")


def computed(result: Deployed) -> list[str]:
    """The views that the plan computed."""
    actions = [step.action for step in result.plan.steps]
    return [action.relation for action in actions if isinstance(action, Bootstrap)]


def totals(root: Path) -> int:
    """What the view `totals` holds."""
    (row,) = rows(opened(root), "SELECT total FROM totals")
    return int(row["total"])
