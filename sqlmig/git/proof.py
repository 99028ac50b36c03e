"""What Git vouches for of the commit that is checked out: pushed, on a branch, signed."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from sqlmig.git.command import GitCommand


def is_pushed(folder: Path) -> bool:
    """Whether a branch of a remote has the commit, as far as was fetched or pushed from here."""
    return bool(_holders(GitCommand(folder), "refs/remotes"))


def is_on_branch(folder: Path, pattern: str) -> bool:
    """Whether a branch of that name, here or of a remote, has the commit that is checked out.

    Args:
        pattern: a name, or a pattern as a shell's.
    """
    for ref in _holders(GitCommand(folder), "refs/heads", "refs/remotes"):
        kind, _, name = ref.removeprefix("refs/").partition("/")
        if fnmatchcase(name if kind == "heads" else name.partition("/")[2], pattern):
            return True
    return False


def signature_fault(folder: Path) -> tuple[str, str] | None:
    """What is wrong with the commit's signature, and what to do; None where it is good."""
    git = GitCommand(folder)
    if git.ask("verify-commit", "HEAD").is_good:
        return None
    header, _, _ = git.ask("cat-file", "commit", "HEAD").out.partition(b"\n\n")
    if b"\ngpgsig" not in header:
        return "is not signed", "`git commit --amend --no-edit --gpg-sign` signs it"
    # N: Git was told of no allowed signers at all, and says then as if there was no signature
    state = git.text("log", "-1", "--no-show-signature", "--format=%G?")
    if state in ("E", "N", "U"):
        return (
            "has a signature that can't be checked here",
            "bring the signer's key here: `gpg --import`, or `gpg.ssh.allowedSignersFile`",
        )
    return "has a signature that is not good", "`git verify-commit HEAD` says why"


def _holders(git: GitCommand, *below: str) -> tuple[str, ...]:
    """The refs that have the commit that is checked out."""
    listed = git.text("for-each-ref", "--format=%(refname)", "--contains=HEAD", *below)
    return tuple((listed or "").splitlines())
