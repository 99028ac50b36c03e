"""A project in a real Git repository of its own, for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.shell import Shell

_SETTINGS = (
    "user.name=A. Person",
    "user.email=person@example.com",
    "merge.conflictStyle=merge",
    "core.autocrlf=false",
    "commit.gpgSign=false",
)


class Repository:
    """Runs `git` in a folder, with settings that don't depend on the machine.

    Args:
        folder: the repository; it is made there, on the branch `main`, with all that it holds.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self("init", "--quiet", "--initial-branch=main")
        (folder / ".gitignore").write_text("warehouse/\n.sqlmig/\n")
        self.commit("begin")

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run `git WORDS`, which must end with `code`; what it printed."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        done = subprocess.run(
            ["git", *settings, *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"git {' '.join(words)}: {done}"
        return done.stdout + done.stderr

    def commit(self, message: str) -> None:
        """Commit everything."""
        self("add", "--all")
        self("commit", "--quiet", "--allow-empty", "-m", message)

    @property
    def unmerged(self) -> tuple[str, ...]:
        """The files that Git calls unmerged."""
        return tuple(self("diff", "--name-only", "--diff-filter=U").splitlines())


def two_branches(
    school: Shell,
    base: dict[str, str],
    ours: dict[str, str],
    theirs: dict[str, str],
    root: Path | None = None,
) -> Repository:
    """A repository on `main` (`bbbb2222`) with a branch `feature` (`cccc3333`), both on `aaaa1111`.

    Args:
        base, ours, theirs: path -> text of the files that each writes; "" removes.
        root: the repository's folder; by default the project's own.
    """

    def freeze(revision: str, files: dict[str, str]) -> None:
        for path, text in files.items():
            if text:
                school.write(path, text)
            else:
                (school.folder / path).unlink()
        school.freeze(revision)

    freeze("aaaa1111", base)
    git = Repository(root or school.folder)
    git("switch", "--quiet", "-c", "feature")
    freeze("cccc3333", theirs)
    git.commit("feature")
    git("switch", "--quiet", "main")
    freeze("bbbb2222", ours)
    git.commit("ours")
    return git
