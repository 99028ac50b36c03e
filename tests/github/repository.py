"""A repository on a server, a developer's clone of it, and the checkouts that a runner gets."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_AUTHOR = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Dana"), ("EMAIL", "dana@example.com"))
}


@dataclass(frozen=True)
class Repository:
    """A bare repository with a clone.

    Args:
        folder: holds both, and the checkouts.
        tools: the folder of `sqlmig`.
    """

    folder: Path
    tools: Path

    @property
    def desk(self) -> Path:
        """The developer's clone."""
        return self.folder / "desk"

    def begin(self) -> None:
        """Make the bare repository, and an empty clone on `main`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _run(self.folder, "git", "init", "--quiet", "--bare", "-b", "main", "origin.git")
        _run(self.folder, "git", "clone", "--quiet", "origin.git", "desk")
        self.git("checkout", "--quiet", "-B", "main")

    def git(self, *words: str, code: int = 0) -> str:
        """Run Git in the clone; its data."""
        return _run(self.desk, "git", *words, code=code)

    def sqlmig(self, *words: str, code: int = 0) -> str:
        """Run sqlmig in the clone; its data."""
        return _run(self.desk, str(self.tools / "sqlmig"), *words, code=code)

    def write(self, path: str, text: str) -> None:
        """Write a file of the clone."""
        file = self.desk / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def push(self, message: str, branch: str = "main") -> None:
        """Commit all that changed, and push."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.git("push", "--quiet", "origin", f"HEAD:{branch}")

    def checkout(self, name: str, branch: str = "main") -> Path:
        """What a runner gets for a push: the branch with its history."""
        folder = self.folder / name
        words = ("git", "clone", "--quiet", "--branch", branch, "origin.git", str(folder))
        _run(self.folder, *words)
        return folder

    def merged(self, name: str, branch: str) -> Path | None:
        """What a runner gets for a pull request: it merged into main; None if they conflict."""
        folder = self.folder / name
        _run(self.folder, "git", "clone", "--quiet", "origin.git", str(folder))
        words = ["git", "merge", "--quiet", "--no-ff", "--no-edit", f"origin/{branch}"]
        done = _started(folder, words)
        return None if done.returncode else folder

    def merge(self, branch: str) -> None:
        """Merge a pull request on the server, as its button does."""
        self.git("checkout", "--quiet", "main")
        self.git("pull", "--quiet", "--ff-only", "origin", "main")
        self.git("merge", "--quiet", "--no-ff", "--no-edit", f"origin/{branch}")
        self.git("push", "--quiet", "origin", "main")


def _started(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **_AUTHOR},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _run(folder: Path, *words: str, code: int = 0) -> str:
    done = _started(folder, list(words))
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
