"""A deployed revision that has no file here: reverted, on another branch, squashed, deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import VIEWS, Shell, new_project
from tests.git.repository import alone, commit, git

STRICTER = VIEWS.replace("> 90", "> 95")
CONFIG = "pipeline: school\ntargets:\n  local: {warehouse: warehouse%s}\n"


@pytest.fixture
def school(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    """A repository whose `main` has aaaa1111; on `feature` follows bbbb2222, which is deployed."""
    alone(monkeypatch, tmp_path)
    shell = new_project(tmp_path / "repository" / "school")
    shell.write(".gitignore", "warehouse/\n")
    git(tmp_path / "repository", "init", "--quiet", "--initial-branch=main")
    shell.freeze("aaaa1111", message="first")
    commit(shell.folder, "first")
    git(shell.folder, "checkout", "--quiet", "-b", "feature")
    shell.write("pipeline/views.sql", STRICTER)
    shell.freeze("bbbb2222", message="stricter\nwith a body")
    commit(shell.folder, "stricter")
    shell("stamp", "head")
    git(shell.folder, "checkout", "--quiet", "main")
    return shell


def policy(shell: Shell, answer: str) -> None:
    """Write `allow_unknown_revision: ANSWER` into sqlmig.yml."""
    shell.write("sqlmig.yml", CONFIG % f", allow_unknown_revision: {answer}")


def plan(shell: Shell, *words: str, code: int = 0) -> Any:
    return shell("plan", *words, "--offline", "--json", code=code).json


def revert_the_merge(shell: Shell) -> str:
    """Merge `feature` into `main`, and revert the merge; the reverting commit."""
    git(shell.folder, "merge", "--quiet", "--no-ff", "-m", "merge feature", "feature")
    git(shell.folder, "revert", "--no-edit", "-m", "1", "HEAD")
    return git(shell.folder, "rev-parse", "HEAD")


def test_a_reverted_merge_is_planned_back_without_being_allowed_by_name(school: Shell) -> None:
    by = revert_the_merge(school)

    told = plan(school)

    assert (told["direction"], told["deployed"], told["target"]) == (
        "downgrade",
        "bbbb2222",
        "aaaa1111",
    )
    assert told["downs"] == ["bbbb2222"]
    assert told["ups"] == told["blockers"] == []
    assert told["diff"]["program_diff"]["modified_views"] == ["honours"]
    assert told["warnings"] == [
        f"the deployed revision bbbb2222 (stricter) has no file here: commit {by[:12]} (Revert "
        '"merge feature") removed it; it is taken back, to aaaa1111'
    ]
    assert f"commit {by[:12]}" in school("plan", "--offline").out
    policy(school, "false")
    assert plan(school, code=4)["blockers"][0]["message"] == told["warnings"][0]


def test_who_removed_it_is_found_behind_a_merge_with_a_branch_that_never_had_it(
    school: Shell,
) -> None:
    git(school.folder, "branch", "old", "main")
    by = revert_the_merge(school)
    git(school.folder, "checkout", "--quiet", "old")
    school.write("note.txt", "another")
    commit(school.folder, "beside")
    git(school.folder, "merge", "--quiet", "--no-edit", "main")

    assert f"commit {by[:12]} " in plan(school)["warnings"][0]


def test_after_it_was_taken_back_the_next_deploy_leaves_it_so(school: Shell) -> None:
    revert_the_merge(school)
    school("stamp", "head")

    told = plan(school)

    assert (told["deployed"], told["target"]) == ("aaaa1111", "aaaa1111")
    assert told["downs"] == told["ups"] == told["warnings"] == []
    assert plan(school, "bbbb2222")["target"] == "bbbb2222"


def test_a_revision_of_another_branch_blocks_and_says_which_branch_has_it(school: Shell) -> None:
    school.write("pipeline/more.sql", "CREATE VIEW more AS SELECT id FROM students;")
    school.freeze("cccc3333", message="more")
    commit(school.folder, "more")

    for words in (["plan", "--offline"], ["upgrade", "head", "-y"]):
        said = school(*words, code=4)
        text = " ".join((said.out + said.err).split())
        assert (
            "the deployed revision bbbb2222 (stricter) has no file here: `feature` has it; it is "
            "taken back to aaaa1111, and from there the way goes up to cccc3333"
        ) in text
        assert (
            "hint: `git merge feature` brings it here; if it is to be taken back: "
            "`--allow-unknown-revision`, or `allow_unknown_revision: true` for target `local` in "
            "sqlmig.yml"
        ) in text

    told = plan(school, "--allow-unknown-revision")
    assert (told["direction"], told["deployed"], told["target"]) == (
        "upgrade",
        "bbbb2222",
        "cccc3333",
    )
    assert told["downs"] == ["bbbb2222"]
    assert [up["revision"] for up in told["ups"]] == ["cccc3333"]
    assert told["blockers"] == []
    assert told["diff"]["program_diff"]["added_views"] == ["more"]
    assert told["diff"]["program_diff"]["modified_views"] == ["honours"]
    policy(school, "true")
    assert plan(school)["id"] == told["id"]
    assert plan(school, "cccc3333")["id"] == told["id"]


def test_the_hooks_on_the_way_are_down_first_and_then_up(school: Shell) -> None:
    git(school.folder, "checkout", "--quiet", "feature")
    file = school.file_of("bbbb2222")
    text = file.read_text().replace(
        "def down(op):\n    pass", "def down(op):\n    op.execute('DELETE FROM grades')"
    )
    file.write_text(text)
    school("stamp", "head", "--purge")
    git(school.folder, "checkout", "--quiet", "--force", "main")
    school.freeze("cccc3333", "--empty", message="hooks")
    file = school.file_of("cccc3333")
    file.write_text(file.read_text().replace("pass", "op.execute('DELETE FROM students')", 1))

    steps = plan(school, "--allow-unknown-revision")["steps"]

    hooks = [(s["hook"], s["revision"], s["sql"]) for s in steps if s["action"] == "Execute"]
    assert hooks == [
        ("down", "bbbb2222", "DELETE FROM grades"),
        ("up", "cccc3333", "DELETE FROM students"),
    ]


def test_a_squashed_branch_is_left_for_its_one_revision(school: Shell) -> None:
    school.write("pipeline/views.sql", STRICTER)
    school.freeze("dddd4444", message="squashed")
    commit(school.folder, "stricter (#7)")
    git(school.folder, "branch", "--quiet", "-D", "feature")
    deployed = school("current", "--json").json["commit"]

    blocker = plan(school, code=4)["blockers"][0]
    told = plan(school, "--allow-unknown-revision")

    assert blocker["message"] == (
        "the deployed revision bbbb2222 (stricter) has no file here: nothing in this clone has it; "
        f"it was deployed from commit {deployed[:12]} on `feature`; it is taken back to aaaa1111, "
        "and from there the way goes up to dddd4444"
    )
    assert blocker["hint"].startswith("`git fetch`, and merge the branch that has it; ")
    assert told["changes"] == [], "the program is the same"


def test_several_revisions_that_have_no_file_are_all_named(school: Shell) -> None:
    git(school.folder, "checkout", "--quiet", "feature")
    school.freeze("eeee5555", "--empty", message="again")
    commit(school.folder, "again")
    school("stamp", "head")
    git(school.folder, "checkout", "--quiet", "main")

    message = plan(school, code=4)["blockers"][0]["message"]

    assert message == (
        "the deployed revision eeee5555 (again) has no file here: `feature` has it; it is taken "
        "back, to aaaa1111; with it bbbb2222 (stricter) goes back"
    )


def test_a_file_that_was_deleted_and_not_committed_is_to_be_restored(school: Shell) -> None:
    git(school.folder, "checkout", "--quiet", "feature")
    path = school.file_of("bbbb2222")
    path.unlink()

    blocker = plan(school, code=4)["blockers"][0]

    assert "has no file here: it was deleted, which is in no commit yet; " in blocker["message"]
    assert blocker["hint"].startswith(f"`git restore revisions/{path.name}`; if it is to be taken")
    git(school.folder, "restore", ".")
    assert plan(school)["blockers"] == []


def test_a_shallow_clone_says_that_it_may_lack_the_commit(school: Shell, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", school.folder.parent.as_uri(), "clone")
    clone = Shell(tmp_path / "clone" / "school")
    clone.write("sqlmig.yml", CONFIG.replace("warehouse%s", str(school.folder / "warehouse")))

    blocker = plan(clone, code=4)["blockers"][0]

    assert "nothing in this clone, which is shallow, has it; it was deployed" in blocker["message"]
    assert blocker["hint"].startswith("`git fetch --unshallow` (`fetch-depth: 0` in GitHub's")


def test_without_git_only_the_ledger_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone(monkeypatch, tmp_path)
    shell = new_project(tmp_path / "school")
    shell.freeze("aaaa1111")
    shell.write("pipeline/views.sql", STRICTER)
    shell.freeze("bbbb2222", message="stricter")
    shell("stamp", "head")
    shell.file_of("bbbb2222").unlink()

    assert plan(shell, code=4)["blockers"][0]["message"] == (
        "the deployed revision bbbb2222 (stricter) has no file here: only the ledger has it; "
        "it is taken back, to aaaa1111"
    )
    policy(shell, "true")
    assert plan(shell)["target"] == "aaaa1111"


def test_plan_ref_looks_for_it_in_the_history_of_the_ref(school: Shell) -> None:
    by = revert_the_merge(school)
    git(school.folder, "branch", "reverted")
    git(school.folder, "checkout", "--quiet", "feature")

    assert plan(school)["warnings"] == []
    assert f"commit {by[:12]} " in plan(school, "--ref", "reverted")["warnings"][0]


def test_head_is_that_of_the_checkout_for_every_command(school: Shell) -> None:
    assert school("show", "head").out.startswith("Rev: aaaa1111")
    assert school("diff", "deployed", "head").out.startswith("~ materialized view honours")
    school("stamp", "head")
    assert school("current").out == "aaaa1111 (head)\n"


def test_the_way_down_asks_no_policy(school: Shell) -> None:
    assert plan(school, "-1")["blockers"] == []
    assert plan(school, "base")["direction"] == "downgrade"


def test_a_project_that_has_lost_all_revision_files_is_not_taken_down(school: Shell) -> None:
    school.file_of("aaaa1111").unlink()

    told = plan(school)

    assert (told["deployed"], told["target"]) == ("bbbb2222", "bbbb2222")
    assert told["downs"] == told["warnings"] == []
