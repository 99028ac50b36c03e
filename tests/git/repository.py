"""Real Git repositories for tests, untouched by the machine's settings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

_AUTHOR = ("-c", "user.name=Tést Author", "-c", "user.email=author@example.com")


def alone(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """No setting of the machine or of a surrounding repository plays a part.

    Args:
        folder: repositories are looked for in it, and not above.
    """
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))


def git(folder: Path, *arguments: str) -> str:
    """The output of `git ARGUMENTS` in `folder`, which must end well."""
    settings = (*_AUTHOR, "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *settings, *arguments], cwd=folder, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}{done.stdout}"
    return done.stdout.strip()


def commit(folder: Path, message: str) -> str:
    """Commit everything in `folder`; the commit's id."""
    git(folder, "add", "--all", ".")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")
