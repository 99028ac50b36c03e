"""What Git says of edited files, of a merge that it has stopped at, and of the main branch.

It changes nothing and takes no lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlmig.git.command import GitCommand


def edited_files(folder: Path) -> frozenset[str] | None:
    """The files below `folder` that hold what people have edited and not committed.

    What Git itself has put there in a merge, rebase or cherry-pick that is not committed yet is no
    edit, unless somebody touched it since.

    Returns:
        Paths relative to `folder`, with `/`; None where there is no Git to ask.
    """
    git = GitCommand(folder)
    if not git.has_repository:
        return None
    prefix = git.text("rev-parse", "--show-prefix")
    listed = git.text(
        "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", "--", "."
    )
    if prefix is None or listed is None:
        return None
    is_merging = _incoming(git) is not None
    found = set()
    for entry in listed.split("\0"):
        kind, _, rest = entry.partition(" ")
        fields = {"1": 7, "u": 9, "?": 0}.get(kind)
        if fields is None:
            continue
        staged_by_git = kind == "1" and rest[1:2] == "." and is_merging
        if not staged_by_git:
            found.add(rest.split(" ", fields)[fields].removeprefix(prefix))
    return frozenset(found)


@dataclass(frozen=True)
class Side:
    """A folder as one side of a merge, rebase or cherry-pick has it that Git has stopped at.

    Args:
        same: names of the files that are now as they are there.
        former: name -> text there, of files that are other ones now.
    """

    same: frozenset[str]
    former: Mapping[str, str]


def sides_of_merge(folder: Path) -> tuple[Side, ...]:
    """Both sides of what Git has stopped at: what is checked out, and what comes in.

    Returns:
        Nothing without Git, or when Git is in the middle of nothing.
    """
    git = GitCommand(folder)
    if not git.has_repository:
        return ()
    incoming = _incoming(git)
    return () if incoming is None else (_side(git, "HEAD"), _side(git, incoming))


def _side(git: GitCommand, commit: str) -> Side:
    names = frozenset(
        filter(None, (git.text("ls-tree", "-z", "--name-only", commit) or "").split("\0"))
    )
    listed = git.text("diff", "--name-only", "-z", "--no-renames", "--relative", commit, "--", ".")
    changed = names & frozenset((listed or "").split("\0"))
    texts = {name: git.text("show", f"{commit}:./{name}") for name in sorted(changed)}
    former = {name: text for name, text in texts.items() if text is not None}
    return Side(names - changed, former)


def _incoming(git: GitCommand) -> str | None:
    """The commit that Git brings in and has stopped at; None in the middle of nothing."""
    for name in ("MERGE_HEAD", "REBASE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"):
        if git.text("rev-parse", "--quiet", "--verify", name) is not None:
            return name
    return None


def names_on_main(folder: Path) -> tuple[str, frozenset[str]] | None:
    """What `folder` holds on the remote's main branch, as of the last fetch.

    Returns:
        The branch, such as `origin/main`, and the names in the folder there; None without Git, or
        where no such branch is known.
    """
    git = GitCommand(folder)
    if not git.has_repository:
        return None
    head = git.text("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    for branch in filter(None, (head, "origin/main", "origin/master")):
        listed = git.text("ls-tree", "-z", "--name-only", f"refs/remotes/{branch}")
        if listed is not None:
            return branch, frozenset(filter(None, listed.split("\0")))
    return None
