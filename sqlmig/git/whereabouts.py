"""Where a file is that a checkout lacks: removed by a commit, on another branch, or nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlmig.git.command import GitCommand

_REFS = ("refs/heads", "refs/remotes", "refs/tags")


@dataclass(frozen=True)
class Whereabouts:
    """What Git knows of a file that isn't there.

    Args:
        is_uncommitted: the commit that is checked out has it; it was deleted since.
        removed_by: the commit that removed it from this history; None where none did.
        subject: that commit's first line.
        ref: a branch or tag that has it; None where none does.
        is_shallow: the clone lacks older commits, so there may be more to know.
    """

    is_uncommitted: bool = False
    removed_by: str | None = None
    subject: str = ""
    ref: str | None = None
    is_shallow: bool = False


def find_file(folder: Path, path: str, commit: str = "HEAD") -> Whereabouts | None:
    """Look for a file that isn't in the checkout.

    Args:
        folder: the project's folder.
        path: the file's path in it.
        commit: whose history is looked through.

    Returns:
        None where there is no repository.
    """
    git = GitCommand(folder)
    if not git.has_repository or git.text("rev-parse", "--git-dir") is None:
        return None
    is_shallow = git.is_shallow
    if _has(git, commit, path):
        return Whereabouts(is_uncommitted=True, is_shallow=is_shallow)
    # --full-history: a merge with a branch that never had the file doesn't hide who removed it
    removed = git.text(
        "log",
        *("-1", "--full-history", "--no-renames", "--diff-filter=D", "--no-show-signature"),
        "--format=%H%x00%s",
        commit,
        "--",
        path,
    )
    if removed:
        by, _, subject = removed.partition("\0")
        return Whereabouts(removed_by=by, subject=subject, is_shallow=is_shallow)
    added = git.text(
        "log",
        *("-1", "--all", "--full-history", "--no-renames", "--diff-filter=A"),
        "--no-show-signature",
        "--format=%H",
        "--",
        path,
    )
    refs: list[str] = []
    if added:
        listed = git.text(
            "for-each-ref", "--format=%(refname:short)", f"--contains={added}", *_REFS
        )
        refs = [ref for ref in (listed or "").splitlines() if _has(git, ref, path)]
    return Whereabouts(ref=refs[0] if refs else None, is_shallow=is_shallow)


def _has(git: GitCommand, commit: str, path: str) -> bool:
    return git.ask("cat-file", "-e", f"{commit}:./{path}").is_good
