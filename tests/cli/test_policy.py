"""What a target asks of the checkout: clean, pushed, a branch, signed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.shell import Shell, new_project
from tests.git.repository import alone, commit, git


@pytest.fixture
def school(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    """A project in a clone: everything is committed on `main`, and pushed."""
    alone(monkeypatch, tmp_path)
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    shell = new_project(tmp_path / "school")
    shell.write(".gitignore", "warehouse/\n")
    git(shell.folder, "init", "--quiet", "--initial-branch=main")
    git(shell.folder, "remote", "add", "origin", (tmp_path / "remote.git").as_uri())
    shell.freeze("aaaa1111", message="first")
    commit(shell.folder, "first")
    return shell


def ask(shell: Shell, *lines: str) -> str:
    """Let the target ask for this, commit it, and push; the commit."""
    text = "".join(f"    {line}\n" for line in ("warehouse: warehouse", *lines))
    shell.write("sqlmig.yml", f"pipeline: school\ntargets:\n  prod:\n{text}")
    head = commit(shell.folder, "policy")
    git(shell.folder, "push", "--quiet", "origin", "HEAD")
    return head[:12]


def refusal(shell: Shell) -> str:
    """What `stamp` says; `upgrade` must say the same."""
    said = shell("stamp", "head", code=4)
    assert shell("upgrade", "head", "-y", code=4).err == said.err
    assert said.out == ""
    assert not (shell.folder / "warehouse").exists()
    return said.err


def test_a_checkout_with_changes_is_refused(school: Shell) -> None:
    head = ask(school, "require_clean: true")
    school.write("pipeline/new.sql", "")

    assert refusal(school) == (
        f"error: target `prod` refuses this checkout: files differ from commit {head}, or are new "
        "(require_clean)\n\n"
        "hint: commit them, or put them aside with `git stash -u`; `git status` lists them\n"
    )
    git(school.folder, "stash", "-u")
    school("stamp", "head")


def test_a_commit_that_was_not_pushed_is_refused(school: Shell) -> None:
    ask(school, "require_pushed: true")
    head = commit(school.folder, "local")

    assert refusal(school) == (
        f"error: target `prod` refuses this checkout: no branch of a remote has commit {head[:12]} "
        "(require_pushed)\n\nhint: `git push`\n"
    )
    git(school.folder, "push", "--quiet", "origin", "HEAD:refs/heads/other")
    school("stamp", "head")


def test_another_branch_is_refused(school: Shell) -> None:
    ask(school, "require_branch: main")
    git(school.folder, "switch", "--quiet", "-c", "feature")

    assert refusal(school) == (
        "error: target `prod` refuses this checkout: branch `feature` is not `main` "
        "(require_branch)\n\nhint: `git switch main`\n"
    )
    git(school.folder, "switch", "--quiet", "main")
    school("stamp", "head")


def test_a_pattern_names_branches(school: Shell) -> None:
    ask(school, "require_branch: 'release/*'")

    assert refusal(school).endswith(
        "\n\nhint: `git switch` to a branch that is called like `release/*`\n"
    )
    git(school.folder, "switch", "--quiet", "-c", "release/1.2")
    school("stamp", "head")


def test_a_detached_head_passes_where_the_branch_has_its_commit(school: Shell) -> None:
    ask(school, "require_branch: main")
    git(school.folder, "switch", "--quiet", "--detach", "main")
    git(school.folder, "branch", "--quiet", "-D", "main")
    on_main = git(school.folder, "rev-parse", "HEAD")
    head = commit(school.folder, "beside")

    assert refusal(school).startswith(
        f"error: target `prod` refuses this checkout: the detached commit {head[:12]} is not on "
        "`main` (require_branch)\n"
    )
    git(school.folder, "switch", "--quiet", "--detach", on_main)
    school("stamp", "head")


def test_everything_that_is_the_matter_is_said_at_once(school: Shell) -> None:
    ask(
        school,
        *("require_clean: true", "require_pushed: true", "require_branch: trunk"),
        "require_signed: true",
    )
    head = commit(school.folder, "local")[:12]
    school.write("pipeline/new.sql", "")

    assert refusal(school) == (
        f"error: target `prod` refuses this checkout: files differ from commit {head}, or are new "
        "(require_clean); branch `main` is not `trunk` (require_branch); no branch of a remote has "
        f"commit {head} (require_pushed); commit {head} is not signed (require_signed)\n\n"
        "hint: commit them, or put them aside with `git stash -u`; `git status` lists them; "
        "`git switch trunk`; `git push`; `git commit --amend --no-edit --gpg-sign` signs it\n"
    )


def test_a_commit_without_a_good_signature_is_refused(school: Shell, tmp_path: Path) -> None:
    key, signers = tmp_path / "key", tmp_path / "signers"
    new_key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a key", "-f", str(key)]
    subprocess.run(new_key, check=True)
    git(school.folder, "config", "gpg.format", "ssh")
    git(school.folder, "config", "user.signingkey", str(key))
    head = ask(school, "require_signed: true")

    unsigned = refusal(school)
    git(school.folder, "commit", "--quiet", "--amend", "--no-edit", "--gpg-sign")
    unchecked = refusal(school)
    signers.write_text(f"author@example.com {key.with_suffix('.pub').read_text()}")
    git(school.folder, "config", "gpg.ssh.allowedSignersFile", str(signers))

    assert unsigned == (
        f"error: target `prod` refuses this checkout: commit {head} is not signed (require_signed)"
        "\n\nhint: `git commit --amend --no-edit --gpg-sign` signs it\n"
    )
    signed = git(school.folder, "rev-parse", "HEAD")[:12]
    assert unchecked == (
        f"error: target `prod` refuses this checkout: commit {signed} has a signature that "
        "can't be checked here (require_signed)\n\n"
        "hint: bring the signer's key here: `gpg --import`, or `gpg.ssh.allowedSignersFile`\n"
    )
    school("stamp", "head")


def test_without_git_or_a_commit_such_a_target_refuses_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone(monkeypatch, tmp_path)
    shell = new_project(tmp_path / "school")
    text = shell.read("sqlmig.yml").replace("}", ", require_clean: true, require_pushed: true}")
    shell.write("sqlmig.yml", text)
    shell.freeze("aaaa1111")

    assert refusal(shell) == (
        "error: target `local` has require_clean and require_pushed, and the project is in no Git "
        "repository that can be read\n\n"
        "hint: deploy from a clone; `git status` must work in the project's folder\n"
    )
    git(shell.folder, "init", "--quiet")
    assert refusal(shell) == (
        "error: target `local` refuses this checkout: nothing is committed yet (require_clean)\n\n"
        "hint: `git commit`\n"
    )


def test_what_goes_by_the_ledger_asks_nothing_of_the_checkout(school: Shell) -> None:
    school("stamp", "head")
    school.write("sqlmig.yml", school.read("sqlmig.yml").replace("}", ", require_clean: true}"))

    assert school("plan", "--offline", "--json").json["blockers"] == []
    assert school("plan", "base", "--offline", "--json").json["direction"] == "downgrade"
    assert school("repair").err == "No plan is unfinished.\n"
    assert "refuses this checkout" in school("upgrade", "head", "-y", code=4).err


def test_the_ledger_keeps_the_remote_without_credentials(school: Shell) -> None:
    git(school.folder, "remote", "set-url", "origin", "https://me:secret@example.com/school.git")

    school("stamp", "head")

    (record,) = school.project.ledger.read()[1]
    assert record.remote == "https://example.com/school.git"
    assert (record.branch, record.dirty) == ("main", False)
    assert record.commit == git(school.folder, "rev-parse", "HEAD")
    assert record.author == "Tést Author <author@example.com>"
