"""Where the project stands in Git: commit, branch, author, and whether it was changed since.

It changes nothing, takes no lock, and never returns credentials.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from sqlmig.git.command import GitCommand

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
    git = GitCommand(path)
    if not git.has_repository:
        return None
    status = git.text("status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--", ".")
    if status is None:
        return None
    headers = dict(
        line[2:].split(" ", 1) for line in status.splitlines() if line.startswith("# branch.")
    )
    commit = headers.get("branch.oid", _INITIAL)
    branch = headers.get("branch.head", _DETACHED)
    has_commit = commit != _INITIAL
    author = (
        git.text("log", "-1", "--no-show-signature", "--format=%an%x00%ae") if has_commit else None
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


def _remote(git: GitCommand, branch: str) -> str | None:
    pattern = r"^(remote\..*\.url|branch\..*\.remote)$"
    listed = git.text("config", "--null", "--get-regexp", pattern)
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
