"""Git refs and the files of their commits, in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmig.errors import GitError
from sqlmig.git.reference import common_ancestor, find_reference, reference
from tests.git.repository import commit, git


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in a folder of a repository, with two commits on `main`, the first one `v1.0`."""
    folder = tmp_path / "repository" / "pipelines" / "school"
    (folder / "pipeline" / "more").mkdir(parents=True)
    (folder / "pipeline" / "a.sql").write_text("one\r\ntwo\n", newline="")
    (folder / "pipeline" / "more" / "ö.sql").write_text("\ufeffthree")
    (folder / "pipeline" / "README.md").write_text("no SQL")
    (folder.parent / "other.sql").write_text("another's")
    git(tmp_path / "repository", "init", "--quiet", "--initial-branch=main")
    commit(tmp_path / "repository", "first")
    git(folder, "tag", "v1.0")
    (folder / "pipeline" / "a.sql").write_text("changed\n")
    commit(tmp_path / "repository", "second")
    return folder


def is_sql(path: str) -> bool:
    return path.endswith(".sql")


def error_of(folder: Path, name: str) -> str:
    with pytest.raises(GitError) as caught:
        reference(folder, name)
    return caught.value.render()


@pytest.mark.parametrize("name", ["v1.0", "HEAD~1", "main^", "git:v1.0"])
def test_the_files_of_a_commit_are_read_as_a_checkout_has_them(project: Path, name: str) -> None:
    (project / "pipeline" / "a.sql").unlink()

    found = reference(project, name)

    assert found.texts("pipeline", is_sql) == {
        "pipeline/a.sql": "one\ntwo\n",
        "pipeline/more/ö.sql": "three",
    }
    assert found.commit == git(project, "rev-parse", "v1.0")
    assert found.texts("missing", is_sql) == {}
    assert found.has_project
    assert found.place("pipeline/a.sql") == f"{name.removeprefix('git:')}:pipeline/a.sql"


def test_reading_a_commit_changes_nothing_and_runs_nothing(project: Path) -> None:
    (project / ".gitattributes").write_text("*.sql filter=evil\n")
    commit(project, "a filter")
    git(project, "config", "filter.evil.smudge", "touch evil; cat")
    before = {path: path.stat().st_mtime_ns for path in project.parents[1].rglob("*")}

    reference(project, "HEAD").texts("pipeline", is_sql)

    assert {path: path.stat().st_mtime_ns for path in project.parents[1].rglob("*")} == before


def test_an_unknown_ref_is_told_with_what_is_near(project: Path) -> None:
    git(project, "update-ref", "refs/remotes/origin/feature", "HEAD")

    assert error_of(project, "feature") == (
        "error: no commit, branch or tag `feature`\n\nhint: did you mean `origin/feature`?"
    )
    assert error_of(project, "v1.1").endswith("hint: did you mean `v1.0`?")
    assert error_of(project, "q" * 40).endswith("hint: `git fetch` brings what the remote has")
    assert find_reference(project, "--help") is None
    assert find_reference(project, "") is None


def test_a_shallow_clone_that_lacks_a_commit_says_how_to_bring_it(
    project: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=1", project.parents[1].as_uri(), "shallow")
    clone = tmp_path / "shallow" / "pipelines" / "school"

    assert reference(clone, "HEAD").texts("pipeline", is_sql)["pipeline/a.sql"] == "changed\n"
    assert error_of(clone, "HEAD~1") == (
        "error: no commit, branch or tag `HEAD~1`\n\n"
        "hint: this clone is shallow and may lack it: `git fetch --unshallow`, or "
        "`fetch-depth: 0` in GitHub's checkout action"
    )
    git(clone, "fetch", "--quiet", "--unshallow")
    assert reference(clone, "HEAD~1").texts("pipeline", is_sql)["pipeline/a.sql"] == "one\ntwo\n"


def test_a_commit_without_the_project_is_told_so(project: Path) -> None:
    git(project, "checkout", "--quiet", "--orphan", "empty")
    git(project, "rm", "-r", "--quiet", "--cached", ".")
    (project.parent / "only.txt").write_text("1")
    git(project.parent, "add", "only.txt")
    git(project.parent, "commit", "--quiet", "-m", "no project")

    found = reference(project, "empty")

    assert not found.has_project
    assert found.without_project().render() == (
        "error: `empty` has no folder `pipelines/school`: the project is not there at commit "
        f"{found.commit[:12]}\n\nhint: `git log --oneline -- .` lists the commits that have it"
    )


def test_links_and_texts_that_are_not_utf_8_are_refused_with_their_place(project: Path) -> None:
    (project / "pipeline" / "latin.sql").write_bytes(b"caf\xe9")
    latin = reference_at(project, "latin")
    (project / "pipeline" / "latin.sql").unlink()
    (project / "pipeline" / "link.sql").symlink_to("a.sql")
    link = reference_at(project, "link")

    assert latin == "HEAD:pipeline/latin.sql: byte 4 is not UTF-8"
    assert link == "HEAD:pipeline/link.sql: it is a symbolic link, which is not followed in Git"


def reference_at(project: Path, message: str) -> str:
    """What is wrong with the files of a new commit of everything."""
    commit(project, message)
    with pytest.raises(GitError) as caught:
        reference(project, "HEAD").texts("pipeline", is_sql)
    return str(caught.value)


def test_the_common_ancestor_of_two_branches(project: Path) -> None:
    git(project, "checkout", "--quiet", "-b", "side", "v1.0")
    commit(project, "aside")

    assert common_ancestor(project, "main", "side").commit == git(project, "rev-parse", "v1.0")
    git(project, "checkout", "--quiet", "--orphan", "alone")
    commit(project, "alone")
    with pytest.raises(GitError) as caught:
        common_ancestor(project, "main", "alone")
    assert caught.value.render() == (
        "error: `main` and `alone` have no common commit\n\n"
        "hint: compare them as they are: `main..alone`"
    )


def test_without_a_repository_no_ref_is_known(tmp_path: Path) -> None:
    assert find_reference(tmp_path, "main") is None
    assert error_of(tmp_path, "main") == (
        "error: `main` is to be a Git ref, and the project is in no Git repository\n\n"
        "hint: `git init` makes one; `sqlmig history` lists the revisions, which need none"
    )
    (tmp_path / ".git").write_text("gitdir: nowhere")
    assert error_of(tmp_path, "main").startswith("error: Git can't be asked for `main`: fatal: not")
