"""What Git says of merges, edits and the main branch: real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmig.git.merging import edited_files, names_on_main, sides_of_merge
from tests.git.repository import git


def test_edited_files_are_those_that_people_touched_and_did_not_commit(repository: Path) -> None:
    project = repository / "pipelines" / "school"
    assert edited_files(project) == frozenset()

    (project / "b c.sql").write_text("1")
    (project / "sub").mkdir()
    (project / "sub" / "d.sql").write_text("1")
    git(repository, "add", str(project / "sub"))
    (project / "a.sql").write_text("2")
    (repository / "other.txt").write_text("2")

    assert edited_files(project) == frozenset({"a.sql", "b c.sql", "sub/d.sql"})
    assert edited_files(project / "nowhere") is None
    assert sides_of_merge(project) == sides_of_merge(project / "nowhere") == ()


def test_what_git_merged_by_itself_is_no_edit_until_it_is_touched(repository: Path) -> None:
    project = repository / "pipelines" / "school"
    (project / "lock").write_text("1")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "lock")
    git(repository, "switch", "--quiet", "-c", "feature")
    for name, text in (("lock", "2"), ("b.sql", "1")):
        (project / name).write_text(text)
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "theirs")
    git(repository, "switch", "--quiet", "main")
    (project / "lock").write_text("3")
    git(repository, "commit", "--quiet", "-am", "ours")
    with pytest.raises(AssertionError, match="CONFLICT"):
        git(repository, "merge", "feature")

    assert edited_files(project) == frozenset({"lock"}), "it is unmerged"
    ours, theirs = sides_of_merge(project)
    assert (ours.same, ours.former) == (frozenset({"a.sql"}), {"lock": "3"})
    assert (theirs.same, theirs.former) == (frozenset({"a.sql", "b.sql"}), {"lock": "2"})

    (project / "b.sql").write_text("2")
    assert edited_files(project) == frozenset({"lock", "b.sql"})


def test_without_a_repository_nobody_knows_what_was_edited(tmp_path: Path) -> None:
    assert edited_files(tmp_path) is None


def test_the_remotes_main_branch_says_what_a_folder_holds_there(
    repository: Path, tmp_path: Path
) -> None:
    project = repository / "pipelines" / "school"
    assert names_on_main(project) is None, "there is no remote"
    git(repository, "branch", "--quiet", "-m", "main", "master")
    git(repository, "clone", "--quiet", "--bare", str(repository), str(tmp_path / "remote"))
    git(repository, "remote", "add", "origin", str(tmp_path / "remote"))
    git(repository, "fetch", "--quiet")
    (project / "b.sql").write_text("1")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "not pushed")

    assert names_on_main(project) == ("origin/master", frozenset({"a.sql"}))

    git(repository, "push", "--quiet", "origin", "master:trunk")
    git(repository, "fetch", "--quiet")
    git(repository, "remote", "set-head", "origin", "trunk")
    assert names_on_main(project) == ("origin/trunk", frozenset({"a.sql", "b.sql"}))
    (project / "new").mkdir()
    assert names_on_main(project / "new") == ("origin/trunk", frozenset())
    assert names_on_main(project / "nowhere") is None
