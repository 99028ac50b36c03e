"""All that sqlmig asks Git, in every kind of checkout, and in a folder that is none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.shell import VIEWS, Shell, new_project
from tests.git.repository import alone, commit, git

STRICTER = VIEWS.replace("> 90", "> 95")
STRICTEST = VIEWS.replace("> 90", "> 99")
CHANGE = "~ materialized view honours: `a.class_avg > 90` became `95`\n"


@dataclass(frozen=True)
class Checkout:
    """A checkout of `main`, whose revisions are aaaa1111 (tag `v1`) and bbbb2222.

    Args:
        shell: in the project's folder.
        branch: what is checked out; None for a detached head.
        feature: how the branch with cccc3333 is called here; None where it isn't there.
        has_git: there is a repository.
        is_shallow: there is the newest commit only.
    """

    shell: Shell
    branch: str | None = "main"
    feature: str | None = "origin/feature"
    has_git: bool = True
    is_shallow: bool = False


def clone(origin: Path, place: Path) -> Checkout:
    git(place, "clone", "--quiet", origin.as_uri(), "clone")
    return Checkout(Shell(place / "clone" / "pipelines" / "school"))


def shallow_clone(origin: Path, place: Path) -> Checkout:
    git(place, "clone", "--quiet", "--depth=1", origin.as_uri(), "clone")
    folder = place / "clone" / "pipelines" / "school"
    return Checkout(Shell(folder), feature=None, is_shallow=True)


def worktree(origin: Path, place: Path) -> Checkout:
    git(origin, "worktree", "add", "--quiet", "-b", "tree", str(place / "tree"), "main")
    return Checkout(Shell(place / "tree" / "pipelines" / "school"), "tree", "feature")


def submodule(origin: Path, place: Path) -> Checkout:
    outer = place / "outer"
    git(place, "init", "--quiet", "--initial-branch=trunk", "outer")
    git(outer, "submodule", "--quiet", "add", origin.as_uri(), "inner")
    commit(outer, "outer")
    (outer / "note.txt").write_text("dirty, outside")
    return Checkout(Shell(outer / "inner" / "pipelines" / "school"))


def monorepo(origin: Path, place: Path) -> Checkout:
    checkout = clone(origin, place)
    beside = checkout.shell.folder.parent / "shop"
    shutil.copytree(checkout.shell.folder, beside)
    (beside / "sqlmig.yml").write_text(
        checkout.shell.read("sqlmig.yml").replace("pipeline: school", "pipeline: shop")
    )
    (beside / "pipeline" / "views.sql").write_text(STRICTEST)
    Shell(beside)("revision", "-m", "of the shop", "--rev-id", "dddd4444")
    return checkout


def detached_head(origin: Path, place: Path) -> Checkout:
    checkout = clone(origin, place)
    git(checkout.shell.folder, "checkout", "--quiet", "--detach")
    git(checkout.shell.folder, "branch", "--quiet", "-D", "main")
    return Checkout(checkout.shell, None)


def separate_git_folder(origin: Path, place: Path) -> Checkout:
    apart = f"--separate-git-dir={place / 'apart'}"
    git(place, "clone", "--quiet", apart, origin.as_uri(), "clone")
    return Checkout(Shell(place / "clone" / "pipelines" / "school"))


def linked_folder(origin: Path, place: Path) -> Checkout:
    checkout = clone(origin, place)
    (place / "link").symlink_to(checkout.shell.folder)
    return Checkout(Shell(place / "link"))


def without_git(origin: Path, place: Path) -> Checkout:
    shutil.copytree(origin / "pipelines" / "school", place / "school")
    return Checkout(Shell(place / "school"), None, None, has_git=False)


KINDS: Mapping[str, Callable[[Path, Path], Checkout]] = {
    "a clone": clone,
    "a shallow clone": shallow_clone,
    "a worktree": worktree,
    "a submodule": submodule,
    "a monorepo with several pipelines": monorepo,
    "a detached head": detached_head,
    "a separate git folder": separate_git_folder,
    "a linked folder": linked_folder,
    "no git": without_git,
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that all are checkouts of; `feature` has cccc3333, too."""
    origin = tmp_path_factory.mktemp("origin")
    with pytest.MonkeyPatch.context() as monkeypatch:
        alone(monkeypatch, origin)
        shell = new_project(origin / "pipelines" / "school")
        shell.write(".gitignore", "warehouse/\n")
        git(origin, "init", "--quiet", "--initial-branch=main")
        shell.freeze("aaaa1111", message="first")
        commit(origin, "first")
        git(origin, "tag", "v1")
        shell.write("pipeline/views.sql", STRICTER)
        shell.freeze("bbbb2222", message="stricter")
        commit(origin, "second")
        git(origin, "checkout", "--quiet", "-b", "feature")
        shell.write("pipeline/views.sql", STRICTEST)
        shell.freeze("cccc3333", message="strictest")
        commit(origin, "third")
        git(origin, "checkout", "--quiet", "main")
    return origin


@pytest.fixture(params=KINDS)
def checkout(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    repository: Path,
    tmp_path: Path,
) -> Checkout:
    """Each kind of checkout of one repository."""
    alone(monkeypatch, tmp_path)
    origin = tmp_path / "origin"
    shutil.copytree(repository, origin)
    return KINDS[request.param](origin, tmp_path)


def test_history_has_the_commits_that_are_known(checkout: Checkout) -> None:
    newest, first = checkout.shell("history", "--json").json

    assert [entry["revision"] for entry in (newest, first)] == ["bbbb2222", "aaaa1111"]
    if not checkout.has_git or checkout.is_shallow:
        assert newest["commit"] == first["commit"] is None
        assert "[" not in checkout.shell("history").out
    else:
        folder = checkout.shell.folder
        assert newest["commit"] == git(folder, "rev-parse", "HEAD")
        assert first["commit"] == git(folder, "rev-parse", "v1")
        assert "stricter  [" in checkout.shell("history").out


def test_the_ledger_has_commit_and_branch_and_no_change_from_outside(checkout: Checkout) -> None:
    shell = checkout.shell
    shell("stamp", "head")

    (told,) = shell("history", "--deployed", "--json").json
    assert told["revision"] == "bbbb2222"
    assert told["branch"] == checkout.branch
    if checkout.has_git:
        assert told["commit"] == git(shell.folder, "rev-parse", "HEAD")
        assert (told["is_dirty"], told["author"]) == (False, "Tést Author <author@example.com>")
    else:
        assert told["commit"] == told["is_dirty"] is None
        assert "commit" not in shell("history", "--deployed").out


def test_refs_that_are_there_are_programs(checkout: Checkout) -> None:
    shell = checkout.shell
    if not checkout.has_git:
        assert "error: no revision or branch `v1`" in shell("diff", "v1", code=1).err
        assert "is in no Git repository" in shell("diff", "git:v1", code=1).err
        assert "is in no Git repository" in shell("plan", "--ref", "v1", code=1).err
        return
    assert shell("diff", "HEAD", "working").out == ""
    assert shell("plan", "--ref", "HEAD", "--offline", "--json").json["target"] == "bbbb2222"
    if checkout.is_shallow:
        for words in (["diff", "HEAD~1"], ["plan", "--ref", "v1"]):
            assert "hint: this clone is shallow and may lack it" in shell(*words, code=1).err
    else:
        assert shell("diff", "v1..HEAD").out == shell("diff", "v1...HEAD").out == CHANGE
        assert checkout.feature is not None
        told = shell("plan", "--ref", checkout.feature, "--offline", "--json").json
        assert told["target"] == "cccc3333"


def test_a_policy_looks_at_this_checkout_alone(checkout: Checkout) -> None:
    shell = checkout.shell
    text = shell.read("sqlmig.yml")
    asked = ", require_clean: true, require_branch: main}"
    shell.write("sqlmig.yml", text.replace("}", asked))
    if not checkout.has_git:
        assert "is in no Git repository" in shell("stamp", "head", code=4).err
        return
    dirty = shell("stamp", "head", code=4).err
    git(shell.folder, "update-index", "--assume-unchanged", "sqlmig.yml")

    assert "(require_clean)" in dirty
    if checkout.branch in ("main", None):
        shell("stamp", "head")
    else:
        assert "branch `tree` is not `main`" in shell("stamp", "head", code=4).err


def test_a_revision_that_was_reverted_is_told_where_the_history_is_there(
    checkout: Checkout,
) -> None:
    shell = checkout.shell
    shell("stamp", "head")
    if not checkout.has_git:
        shell.file_of("bbbb2222").unlink()
        told = shell("plan", "--offline", "--json", code=4).json["blockers"][0]["message"]
        assert "has no file here: only the ledger has it; it is taken back" in told
        return
    if checkout.is_shallow:
        shell.file_of("bbbb2222").unlink()
    else:
        git(shell.folder, "revert", "--no-edit", "HEAD")
    head = commit(shell.folder, "without it")

    by = head if checkout.is_shallow else git(shell.folder, "rev-parse", "HEAD~1")
    (told,) = shell("plan", "--offline", "--json").json["warnings"]
    assert f"has no file here: commit {by[:12]} (" in told
