"""Who committed which file last, when and in which commit: one walk over the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlmig.git.command import GitCommand

_COMMIT = "\x01"


@dataclass(frozen=True)
class Authorship:
    """The newest commit that changed a file.

    Args:
        commit: its full id.
        author_name, author_email: who wrote it.
        at: when it was written, in ISO form with its time zone.
    """

    commit: str
    author_name: str
    author_email: str
    at: str

    @property
    def author(self) -> str:
        """`name <address>`, as Git writes it."""
        return f"{self.author_name} <{self.author_email}>".strip()


def read_authorship(folder: Path, below: str) -> Mapping[str, Authorship | None] | None:
    """Who wrote the files below one of the project's folders, as `HEAD` has them.

    Args:
        folder: the project's folder.
        below: a folder in it, or a file.

    Returns:
        Path in the project -> its newest commit, or None where a shallow clone does not have it. A
        file that isn't there was never committed. None where there is no repository, or no commit.
    """
    git = GitCommand(folder)
    asked = ("rev-parse", "--show-prefix", "--git-path", "shallow")
    places = git.text(*asked) if git.has_repository else None
    if places is None:
        return None
    prefix, _, shallow = places.partition("\n")
    # -c: a merge's commit counts where the file differs from both sides, as one made in it does
    walk = git.text(
        "log",
        *("-z", "-c", "--name-only", "--no-renames", "--diff-filter=d", "--no-relative"),
        "--no-show-signature",
        f"--format={_COMMIT}%H%x00%an%x00%ae%x00%aI",
        "--",
        below,
    )
    if walk is None:
        return None
    cut_off = _cut_off(folder / shallow)
    found: dict[str, Authorship | None] = {}
    for entry in walk.split(_COMMIT)[1:]:
        commit, name, address, at, *paths = entry.split("\0")
        wrote = None if commit in cut_off else Authorship(commit, name, address, at)
        for path in paths:
            shown = path.removeprefix("\n")
            if shown:
                found.setdefault(shown.removeprefix(prefix), wrote)
    return found


def _cut_off(shallow: Path) -> frozenset[str]:
    """The commits whose parents a shallow clone lacks: they seem to have written every file.

    Args:
        shallow: Git's list of them; only a shallow clone has the file.
    """
    return frozenset(shallow.read_text().split()) if shallow.is_file() else frozenset()
