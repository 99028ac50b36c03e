"""A Git ref, and the files of its commit, read from Git's objects.

Nothing is checked out, no filter and no other code of the repository is run.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlmig.errors import GitError, Location
from sqlmig.git.command import GitCommand

FORCED = "git:"
"""Before a name: it is a Git ref, although a revision is called so, too."""

_LINK, _MODULE = "120000", "160000"
_SHALLOW = (
    "this clone is shallow and may lack it: `git fetch --unshallow`, "
    "or `fetch-depth: 0` in GitHub's checkout action"
)


@dataclass(frozen=True)
class Reference:
    """A commit that somebody named.

    Args:
        name: as it was typed, without `git:`.
        commit: its full id.
        folder: the project's folder in this checkout; the one at the commit lies at the same place.
    """

    name: str
    commit: str
    folder: Path

    def texts(self, folder: str, is_wanted: Callable[[str], bool]) -> Mapping[str, str]:
        """The files below one of the project's folders: path in the project -> text, sorted.

        Args:
            folder: such as `pipeline`; it may be missing, and is then empty.
            is_wanted: told a file's path in the project; others are not read.

        Raises:
            GitError: a link, a submodule, a text that is not UTF-8, an object that isn't there.
        """
        git = GitCommand(self.folder)
        listed = git.ask("ls-tree", "-r", "-z", self.commit, "--", f"{folder}/")
        if not listed.is_good:
            raise self._unreadable(folder, listed.error)
        objects: dict[str, str] = {}
        for entry in listed.words:
            head, _, path = entry.partition("\t")
            mode, _, name = head.split(" ")
            if mode == _MODULE:
                raise self._refused(path, "is a submodule, which is not read from Git's objects")
            if is_wanted(path) and mode == _LINK:
                raise self._refused(path, "is a symbolic link, which is not followed in Git")
            if is_wanted(path):
                objects[path] = name
        contents = self._contents(git, objects)
        return {path: self._text(path, contents[path]) for path in sorted(contents)}

    @property
    def has_project(self) -> bool:
        """The project's folder is there at the commit."""
        return bool(GitCommand(self.folder).text("ls-tree", "-z", self.commit))

    def without_project(self) -> GitError:
        """The error for a commit that has no file in the project's folder."""
        prefix = GitCommand(self.folder).text("rev-parse", "--show-prefix") or ""
        where = f"folder `{prefix.rstrip('/')}`" if prefix else "file"
        return GitError(
            f"`{self.name}` has no {where}: the project is not there at commit {self.commit[:12]}",
            hint="`git log --oneline -- .` lists the commits that have it",
        )

    def place(self, path: str) -> str:
        """A file of the commit as Git writes it: `REF:PATH`."""
        return f"{self.name}:{path}"

    def _contents(self, git: GitCommand, objects: Mapping[str, str]) -> Mapping[str, bytes]:
        if not objects:
            return {}
        asked = "".join(f"{name}\n" for name in objects.values())
        answer = git.ask("cat-file", "--batch", sent=asked.encode())
        if not answer.is_good:
            raise self._unreadable("its files", answer.error)
        contents: dict[str, bytes] = {}
        at = 0
        for path in objects:
            end = answer.out.index(b"\n", at)
            head = answer.out[at:end].split(b" ")
            if head[1:2] != [b"blob"]:
                raise self._unreadable(path, "the object is not in this clone")
            at = end + 1 + int(head[2])
            contents[path] = answer.out[end + 1 : at]
            at += 1
        return contents

    def _text(self, path: str, content: bytes) -> str:
        try:
            return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError as error:
            raise GitError(
                f"byte {error.start + 1} is not UTF-8", location=Location(self.place(path))
            ) from None

    def _refused(self, path: str, why: str) -> GitError:
        return GitError(
            f"it {why}",
            location=Location(self.place(path)),
            hint=f"`git worktree add ../there {self.commit[:12]}`, and run the command there",
        )

    def _unreadable(self, what: str, why: str) -> GitError:
        return GitError(
            f"{what} of `{self.name}` can't be read: {why.splitlines()[0] if why else 'no answer'}",
            hint="`git fsck` looks for what is missing; `git fetch` brings it",
        )


def find_reference(folder: Path, name: str) -> Reference | None:
    """The commit that Git knows by this name; None where it knows none.

    Args:
        folder: the project's folder.
        name: a branch, a tag, a commit's id or the beginning of it, `HEAD~2`, `origin/main` ...
    """
    git = GitCommand(folder)
    if not name or name.startswith("-") or not git.has_repository:
        return None
    commit = git.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return Reference(name, commit, folder) if commit else None


def reference(folder: Path, name: str) -> Reference:
    """The commit that Git knows by this name.

    Raises:
        GitError: it knows none, or there is no repository.
    """
    name = name.removeprefix(FORCED)
    found = find_reference(folder, name)
    if found is None:
        raise _unknown(GitCommand(folder), name)
    return found


def common_ancestor(folder: Path, one: str, other: str) -> Reference:
    """The newest commit that two Git refs both have in their history.

    Raises:
        GitError: an unknown ref, or no such commit in this clone.
    """
    git = GitCommand(folder)
    ends = [reference(folder, name) for name in (one, other)]
    commit = git.text("merge-base", *(end.commit for end in ends))
    if not commit:
        raise GitError(
            f"`{ends[0].name}` and `{ends[1].name}` have no common commit",
            hint=_SHALLOW if git.is_shallow else f"compare them as they are: `{one}..{other}`",
        )
    return Reference(f"{one}...{other}", commit, folder)


def unknown_hint(folder: Path, name: str) -> str | None:
    """What to do about a name that is no Git ref; None where nothing is known of it."""
    git = GitCommand(folder)
    if not git.has_repository:
        return None
    fault = _fault(git)
    if fault is not None:
        return f"Git can't be asked: {fault}"
    listed = git.text("for-each-ref", "--format=%(refname:short)") or ""
    known = listed.splitlines()
    remote = sorted(ref for ref in known if ref.endswith(f"/{name}"))
    near = remote[:1] or difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return _SHALLOW if git.is_shallow else None


def _unknown(git: GitCommand, name: str) -> GitError:
    if not git.has_repository:
        return GitError(
            f"`{name}` is to be a Git ref, and the project is in no Git repository",
            hint="`git init` makes one; `sqlmig history` lists the revisions, which need none",
        )
    fault = _fault(git)
    if fault is not None:
        return GitError(
            f"Git can't be asked for `{name}`: {fault}",
            hint="`git status` in the project's folder must work",
        )
    return GitError(
        f"no commit, branch or tag `{name}`",
        hint=unknown_hint(git.folder, name) or "`git fetch` brings what the remote has",
    )


def _fault(git: GitCommand) -> str | None:
    """Why Git answers nothing here, such as a folder that somebody else owns; None if it does."""
    answer = git.ask("rev-parse", "--git-dir")
    return None if answer.is_good else (answer.error.splitlines() or ["no answer"])[0]
