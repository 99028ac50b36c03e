"""Where the project stands in Git: commit, branch, author, and whether it was changed since.

It knows Git through GitPython, which is imported only when there is a repository to ask. It
changes nothing, takes no lock, and never returns credentials.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from git import Git

_INITIAL = "(initial)"
_DETACHED = "(detached)"


@dataclass(frozen=True)
class GitState:
    """What the ledger keeps of Git.

    Args:
        commit: the full id of the commit that is checked out; None before the first commit.
        branch: the branch's name; None when the head is detached.
        is_dirty: something in the project's folder differs from the commit, or is new and not
            ignored.
        author_name: who wrote the commit; None before the first commit.
        author_email: the address in the commit; None before the first commit.
        remote: address of the branch's remote, or of `origin`, or of the only one, without user
            and password; None if there is none.
    """

    commit: str | None
    branch: str | None
    is_dirty: bool
    author_name: str | None = None
    author_email: str | None = None
    remote: str | None = None

    @property
    def author(self) -> str | None:
        """`name <address>`, as Git writes it."""
        if self.author_name is None and self.author_email is None:
            return None
        return f"{self.author_name or ''} <{self.author_email or ''}>".strip()


def read_git_state(path: Path) -> GitState | None:
    """The state of the repository that holds the folder `path`.

    Args:
        path: the project's folder; only what lies in it can make the state dirty.

    Returns:
        None without a repository, without a `git` command, or where Git refuses to answer.
    """
    if not path.is_dir() or not _may_be_in_repository(path.resolve()):
        return None
    git = _git(path)
    status = _run(
        git, "status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--", "."
    )
    if status is None:
        return None
    headers = dict(
        line[2:].split(" ", 1) for line in status.splitlines() if line.startswith("# branch.")
    )
    commit = headers.get("branch.oid", _INITIAL)
    branch = headers.get("branch.head", _DETACHED)
    has_commit = commit != _INITIAL
    author = (
        _run(git, "log", "-1", "--no-show-signature", "--format=%an%x00%ae") if has_commit else None
    )
    name, _, address = (author or "").partition("\0")
    return GitState(
        commit=commit if has_commit else None,
        branch=None if branch == _DETACHED else branch,
        is_dirty=any(line and not line.startswith("#") for line in status.splitlines()),
        author_name=name or None,
        author_email=address.strip() or None,
        remote=_remote(git, branch),
    )


def edited_files(folder: Path) -> frozenset[str] | None:
    """The files below `folder` that hold what people have edited and not committed.

    What Git itself has put there in a merge, rebase or cherry-pick that is not committed yet is no
    edit, unless somebody touched it since.

    Returns:
        Paths relative to `folder`, with `/`; None where there is no Git to ask.
    """
    if not folder.is_dir() or not _may_be_in_repository(folder.resolve()):
        return None
    git = _git(folder)
    prefix = _run(git, "rev-parse", "--show-prefix")
    listed = _run(
        git, "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", "--", "."
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
    if not folder.is_dir() or not _may_be_in_repository(folder.resolve()):
        return ()
    git = _git(folder)
    incoming = _incoming(git)
    return () if incoming is None else (_side(git, "HEAD"), _side(git, incoming))


def _side(git: Git, commit: str) -> Side:
    names = frozenset(
        filter(None, (_run(git, "ls-tree", "-z", "--name-only", commit) or "").split("\0"))
    )
    listed = _run(git, "diff", "--name-only", "-z", "--no-renames", "--relative", commit, "--", ".")
    changed = names & frozenset((listed or "").split("\0"))
    texts = {name: _run(git, "show", f"{commit}:./{name}") for name in sorted(changed)}
    former = {name: text for name, text in texts.items() if text is not None}
    return Side(names - changed, former)


def _incoming(git: Git) -> str | None:
    """The commit that Git brings in and has stopped at; None in the middle of nothing."""
    for name in ("MERGE_HEAD", "REBASE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"):
        if _run(git, "rev-parse", "--quiet", "--verify", name) is not None:
            return name
    return None


def names_on_main(folder: Path) -> tuple[str, frozenset[str]] | None:
    """What `folder` holds on the remote's main branch, as of the last fetch.

    Returns:
        The branch, such as `origin/main`, and the names in the folder there; None without Git, or
        where no such branch is known.
    """
    if not folder.is_dir() or not _may_be_in_repository(folder.resolve()):
        return None
    git = _git(folder)
    head = _run(git, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    for branch in filter(None, (head, "origin/main", "origin/master")):
        listed = _run(git, "ls-tree", "-z", "--name-only", f"refs/remotes/{branch}")
        if listed is not None:
            return branch, frozenset(filter(None, listed.split("\0")))
    return None


def without_credentials(address: str) -> str:
    """A remote's address without user, password, query and fragment.

    `git@host:path` stays, as does the user of an `ssh://` address: these name no person and no
    secret.
    """
    if "://" not in address:
        return address
    try:
        parts = urlsplit(address)
    except ValueError:
        return re.sub(r"//[^/]*@", "//", address.partition("?")[0])
    user, at, host = parts.netloc.rpartition("@")
    if at and parts.scheme in ("ssh", "git+ssh", "ssh+git"):
        host = f"{user.partition(':')[0]}@{host}"
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _may_be_in_repository(folder: Path) -> bool:
    """False when Git needn't be asked: no `.git` here or above, and no variable names one."""
    if "GIT_DIR" in os.environ:
        return True
    return any((parent / ".git").exists() for parent in (folder, *folder.parents))


def _git(path: Path) -> Git:
    # GitPython looks for the command when it is imported, and complains when there is none.
    before = os.environ.get("GIT_PYTHON_REFRESH")
    os.environ["GIT_PYTHON_REFRESH"] = "quiet"
    try:
        from git import Git
    finally:
        if before is None:
            del os.environ["GIT_PYTHON_REFRESH"]
        else:
            os.environ["GIT_PYTHON_REFRESH"] = before
    git = Git(path)
    git.update_environment(GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0")
    return git


def _run(git: Git, *arguments: str) -> str | None:
    """The output of `git ...`; None when there is no such command, or it fails."""
    from git.exc import CommandError

    try:
        return str(git.execute(["git", "--no-pager", *arguments]))
    except (CommandError, OSError):
        return None


def _remote(git: Git, branch: str) -> str | None:
    pattern = r"^(remote\..*\.url|branch\..*\.remote)$"
    listed = _run(git, "config", "--null", "--get-regexp", pattern)
    values = dict(
        entry.partition("\n")[::2] for entry in (listed or "").split("\0") if "\n" in entry
    )
    remotes = {
        key.removeprefix("remote.").removesuffix(".url"): address
        for key, address in values.items()
        if key.startswith("remote.")
    }
    for name in (values.get(f"branch.{branch}.remote"), "origin", *sorted(remotes)):
        if name in remotes:
            return without_credentials(remotes[name])
    return None
