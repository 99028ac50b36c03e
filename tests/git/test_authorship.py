"""Who wrote which file: one walk over real histories."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmig.git.authorship import Authorship, read_authorship
from tests.git.repository import commit, git


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in a folder of a repository, its file `revisions/a.py` in the one commit."""
    folder = tmp_path / "repository" / "school"
    (folder / "revisions").mkdir(parents=True)
    git(tmp_path / "repository", "init", "--quiet", "--initial-branch=main")
    write(folder, "a.py")
    commit(folder, "first")
    return folder


def write(folder: Path, name: str, text: str = "1") -> None:
    (folder / "revisions" / name).write_text(text)


def commits(folder: Path) -> dict[str, str | None]:
    wrote = read_authorship(folder, "revisions")
    assert wrote is not None
    return {path: found.commit if found else None for path, found in wrote.items()}


def test_a_file_has_its_newest_commit(project: Path) -> None:
    write(project, "b.py")
    second = commit(project, "second")
    write(project, "a.py", "2")
    write(project, "é.py")
    third = commit(project, "third")
    (project.parent / "other.txt").write_text("1")
    commit(project.parent, "beside")
    write(project, "new.py")

    assert commits(project) == {
        "revisions/a.py": third,
        "revisions/b.py": second,
        "revisions/é.py": third,
    }
    wrote = read_authorship(project, "revisions/a.py")
    assert wrote is not None
    assert list(wrote) == ["revisions/a.py"]
    found = wrote["revisions/a.py"]
    assert isinstance(found, Authorship)
    assert found.author == "Tést Author <author@example.com>"
    assert found.at[:10] == git(project, "log", "-1", "--format=%as")


def test_a_file_of_either_side_of_a_merge_has_its_own_commit_and_one_made_in_it_the_merges(
    project: Path,
) -> None:
    git(project, "checkout", "--quiet", "-b", "side")
    write(project, "side.py")
    side = commit(project, "side")
    git(project, "checkout", "--quiet", "main")
    write(project, "main.py")
    main = commit(project, "main")
    git(project, "merge", "--quiet", "--no-commit", "side")
    write(project, "merge.py")
    merge = commit(project, "merged")

    assert commits(project) == {
        "revisions/a.py": git(project, "rev-parse", "main~2"),
        "revisions/main.py": main,
        "revisions/merge.py": merge,
        "revisions/side.py": side,
    }


def test_a_shallow_clone_says_only_what_it_knows(project: Path, tmp_path: Path) -> None:
    write(project, "b.py")
    second = commit(project, "second")
    write(project, "c.py")
    third = commit(project, "third")
    git(tmp_path, "clone", "--quiet", "--depth=2", project.parent.as_uri(), "shallow")

    assert commits(tmp_path / "shallow" / "school") == {
        "revisions/a.py": None,
        "revisions/b.py": None,
        "revisions/c.py": third,
    }
    assert second != third


def test_settings_of_the_repository_do_not_change_what_is_read(project: Path) -> None:
    before = commits(project)
    for setting in ("diff.relative=true", "log.showSignature=true", "diff.noprefix=true"):
        git(project, "config", *setting.split("="))

    assert commits(project) == before


def test_without_commits_or_a_repository_nothing_is_known(tmp_path: Path) -> None:
    assert read_authorship(tmp_path, "revisions") is None
    git(tmp_path, "init", "--quiet")
    assert read_authorship(tmp_path, "revisions") is None
