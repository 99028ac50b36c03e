"""Git's state, read from real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sqlmig.git import GitState, read_git_state, without_credentials
from tests.git.repository import git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def test_a_clean_project_names_commit_branch_and_author(repository: Path) -> None:
    state = read_git_state(repository / "pipelines" / "school")

    assert state == GitState(
        commit=git(repository, "rev-parse", "HEAD"),
        branch="main",
        is_dirty=False,
        author_name="Tést Author",
        author_email="author@example.com",
        remote=None,
    )
    assert state.author == "Tést Author <author@example.com>"


def test_outside_of_a_repository_there_is_no_state(tmp_path: Path) -> None:
    assert read_git_state(tmp_path) is None
    assert read_git_state(tmp_path / "missing") is None


def test_a_folder_with_a_broken_repository_has_no_state(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere")

    assert read_git_state(tmp_path) is None


def test_without_the_git_command_there_is_no_state(repository: Path) -> None:
    # In a process of its own: GitPython remembers what it found.
    code = (
        "import pathlib, sqlmig.git as g;"
        f"assert g.read_git_state(pathlib.Path({str(repository)!r})) is None"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("change", ["edit", "stage", "delete", "new"])
def test_a_change_in_the_project_makes_it_dirty(repository: Path, change: str) -> None:
    project = repository / "pipelines" / "school"
    if change == "delete":
        (project / "a.sql").unlink()
    elif change == "new":
        (project / "b.sql").write_text("2")
    else:
        (project / "a.sql").write_text("2")
    if change == "stage":
        git(repository, "add", ".")

    state = read_git_state(project)

    assert state is not None
    assert state.is_dirty


def test_a_change_beside_the_project_does_not_make_it_dirty(repository: Path) -> None:
    (repository / "other.txt").write_text("2")
    (repository / "new.txt").write_text("2")
    project = repository / "pipelines" / "school"
    (project / ".gitignore").write_text("warehouse/\n")
    git(repository, "add", str(project))
    git(repository, "commit", "--quiet", "-m", "second")
    (project / "warehouse").mkdir()
    (project / "warehouse" / "part.parquet").write_text("1")

    beside, whole = read_git_state(project), read_git_state(repository)

    assert beside is not None
    assert not beside.is_dirty
    assert whole is not None
    assert whole.is_dirty


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--detach")

    state = read_git_state(repository)

    assert state is not None
    assert state.branch is None
    assert state.commit == git(repository, "rev-parse", "HEAD")


def test_before_the_first_commit_there_is_only_a_branch(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=trunk")
    (tmp_path / "a.sql").write_text("1")

    state = read_git_state(tmp_path)

    assert state == GitState(commit=None, branch="trunk", is_dirty=True)
    assert state.author is None


def test_a_worktree_has_its_own_branch(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "feature/x", str(tmp_path / "worktree"))

    state = read_git_state(tmp_path / "worktree" / "pipelines")

    assert state is not None
    assert state.branch == "feature/x"
    assert not state.is_dirty


def test_a_shallow_clone_is_enough(repository: Path, tmp_path: Path) -> None:
    (repository / "other.txt").write_text("2")
    git(repository, "commit", "--quiet", "-am", "second")
    git(tmp_path, "clone", "--quiet", "--depth=1", repository.as_uri(), "shallow")

    state = read_git_state(tmp_path / "shallow")

    assert state is not None
    assert state.commit == git(repository, "rev-parse", "HEAD")
    assert state.author_email == "author@example.com"
    assert state.remote == repository.as_uri()


def test_the_remote_is_the_branchs_own_and_shows_no_password(repository: Path) -> None:
    git(repository, "remote", "add", "backup", "https://backup.example.com/b.git")
    git(repository, "remote", "add", "origin", "https://me:secret@example.com/a.git")
    first = read_git_state(repository)
    git(repository, "config", "branch.main.remote", "backup")

    second = read_git_state(repository)

    assert first is not None
    assert first.remote == "https://example.com/a.git"
    assert second is not None
    assert second.remote == "https://backup.example.com/b.git"


def test_reading_changes_nothing(repository: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    variable = os.environ.get("GIT_PYTHON_REFRESH")

    read_git_state(repository)

    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before
    assert os.environ.get("GIT_PYTHON_REFRESH") == variable


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://user:token@example.com/a.git", "https://example.com/a.git"),
        ("https://token@example.com:8443/a.git", "https://example.com:8443/a.git"),
        ("https://us%40er:p@ss@example.com/a", "https://example.com/a"),
        ("https://example.com/a?private_token=x#y", "https://example.com/a"),
        ("ssh://git@example.com:22/a.git", "ssh://git@example.com:22/a.git"),
        ("ssh://git:secret@example.com/a.git", "ssh://git@example.com/a.git"),
        ("git@example.com:org/a.git", "git@example.com:org/a.git"),
        ("http://u:p@[broken/a?token=x", "http://[broken/a"),
        ("../a", "../a"),
    ],
)
def test_an_address_is_shown_without_credentials(address: str, shown: str) -> None:
    assert without_credentials(address) == shown


def test_gitpython_is_not_imported_where_there_is_no_repository(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, sqlmig.git as g;"
        f"g.read_git_state(pathlib.Path({str(tmp_path)!r}));"
        "assert 'git' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
