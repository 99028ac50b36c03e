"""The folder of revision files: reads all, finds one, writes a new one, replaces an unapplied one.

It knows files and their names, and keeps `heads.lock` beside them. What is applied, and whether a file may be replaced, is for its
caller.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmig.errors import Location, RevisionError
from sqlmig.revisions.errors import raise_all
from sqlmig.revisions.file import RevisionFile, parse_revision
from sqlmig.revisions.graph import Node, RevisionGraph

if TYPE_CHECKING:
    from sqlmig.revisions.lock import HeadsLock


class RevisionDirectory:
    """The revision files of a project; read once, at the first use, and again after a write.

    Args:
        path: the folder, usually `revisions`; it may be missing, and is then empty.
        root: paths in messages are shown relative to this folder; by default `path`'s parent.
    """

    def __init__(self, path: Path, *, root: Path | None = None) -> None:
        self.path = path
        self._root = path.parent if root is None else root
        self._files: dict[str, RevisionFile] | None = None
        self._graph: RevisionGraph | None = None

    @property
    def files(self) -> Mapping[str, RevisionFile]:
        """Id -> file, sorted by file name.

        Raises:
            RevisionError: broken files, and ids that two files have; all of them at once.
        """
        if self._files is None:
            self._files = self._load()
        return self._files

    @property
    def graph(self) -> RevisionGraph:
        """The graph of the files.

        Raises:
            RevisionError: as for `files`; missing parents and cycles.
        """
        if self._graph is None:
            self._graph = RevisionGraph(self.files.values())
        return self._graph

    def graph_with(self, nodes: Iterable[Node]) -> RevisionGraph:
        """The graph of the files and of `nodes` that have no file, as the ledger remembers them.

        Raises:
            RevisionError: as for `graph`; a parent may be among `nodes`.
        """
        without_file = [node for node in nodes if node.revision not in self.files]
        return RevisionGraph([*self.files.values(), *without_file]) if without_file else self.graph

    def get(self, revision: str) -> RevisionFile | None:
        """The file with exactly this id, or None."""
        return self.files.get(revision)

    def heads(self, known: Iterable[Node] = ()) -> Mapping[str, RevisionFile]:
        """The files that no other revision follows, by id, sorted.

        Args:
            known: revisions of which some have no file, as the ledger remembers them.
        """
        parents = {
            parent for node in (*self.files.values(), *known) for parent in node.down_revisions
        }
        return {name: self.files[name] for name in sorted(set(self.files) - parents)}

    @property
    def lock_path(self) -> Path:
        """Where the heads are locked; projects that were begun without it get it later."""
        from sqlmig.revisions.lock import LOCK_NAME

        return self.path / LOCK_NAME

    def lock(self) -> HeadsLock | None:
        """What `heads.lock` says; None where there is none.

        Raises:
            RevisionError: it can't be read.
        """
        from sqlmig.revisions.lock import ANEW, parse_lock

        if not self.lock_path.exists():
            return None
        shown = self._shown(self.lock_path)
        try:
            text = _read(str(self.lock_path), shown)
        except RevisionError as error:
            raise RevisionError(error.message, location=error.location, hint=ANEW) from None
        return parse_lock(text, shown)

    def lock_error(self, known: Iterable[Node] = ()) -> RevisionError | None:
        """What is wrong with `heads.lock`, or None; a missing one is right.

        Args:
            known: as for `heads`.

        Raises:
            RevisionError: broken revision files.
        """
        from sqlmig.revisions.lock import mismatch

        try:
            lock = self.lock()
        except RevisionError as error:
            return error
        return mismatch(lock, self.heads(known), self._shown(self.lock_path)) if lock else None

    def write_lock(self, known: Iterable[Node] = ()) -> None:
        """Write the heads as they are now into `heads.lock`, unless it says so already.

        Args:
            known: as for `heads`.

        Raises:
            RevisionError: broken revision files.
        """
        from sqlmig.revisions.lock import render_lock

        if not self.lock_path.is_file() or self.lock_error(known) is not None:
            self._put(self.lock_path, render_lock(self.heads(known)))

    def check(self) -> None:
        """Read every file whole, which `files` doesn't: its program, and the syntax of its hooks.

        Raises:
            RevisionError: all mistakes at once; also those of `graph`.
        """
        from sqlmig.revisions.hooks import compile_text

        errors: list[RevisionError] = []
        for file in self.files.values():
            try:
                _ = file.files
                compile_text(file.text, file.path)
            except RevisionError as error:
                errors.append(error)
        raise_all(errors)
        _ = self.graph

    def add(
        self,
        *,
        revision: str,
        down_revisions: Sequence[str],
        message: str,
        created: datetime,
        files: Mapping[str, str],
        branch_labels: Sequence[str] = (),
        depends_on: Sequence[str] = (),
        diff_lines: Sequence[str] = (),
        up_lines: Sequence[str] = (),
        down_lines: Sequence[str] = (),
        known: Iterable[Node] = (),
    ) -> RevisionFile:
        """Write a new revision; the arguments are those of `render_revision`.

        Args:
            known: revisions without a file that may be parents, as the ledger remembers them.

        Raises:
            RevisionError: the id is taken, a label is, or what `render_revision` refuses.
        """
        from sqlmig.revisions.render import file_name, render_revision

        taken = self.get(revision)
        if taken is not None:
            raise RevisionError(
                f"revision id `{revision}` is already taken",
                location=Location(taken.path),
                hint="choose another `--rev-id`, or leave it out",
            )
        text = render_revision(
            revision=revision,
            down_revisions=down_revisions,
            message=message,
            created=created,
            files=files,
            branch_labels=branch_labels,
            depends_on=depends_on,
            diff_lines=diff_lines,
            up_lines=up_lines,
            down_lines=down_lines,
        )
        path = self.path / file_name(revision, created, message)
        file = parse_revision(text, self._shown(path))
        known = tuple(known)
        RevisionGraph([*self.graph_with(known).nodes, file])
        self._write(path, text)
        self.write_lock(known)
        return file

    def replace(
        self,
        file: RevisionFile,
        *,
        files: Mapping[str, str],
        down_revisions: Sequence[str] | None = None,
        message: str | None = None,
        diff_lines: Sequence[str] = (),
        up_lines: Sequence[str] = (),
        down_lines: Sequence[str] = (),
        known: Iterable[Node] = (),
    ) -> RevisionFile:
        """Freeze another program into the file of an unapplied revision, under the same name.

        Hooks that people wrote stay; the arguments are those of `refreeze`, and `known` is that of
        `heads`.

        Raises:
            RevisionError: what `refreeze` refuses.
        """
        from sqlmig.revisions.render import refreeze

        text = refreeze(
            file,
            files=files,
            down_revisions=down_revisions,
            message=message,
            diff_lines=diff_lines,
            up_lines=up_lines,
            down_lines=down_lines,
        )
        self._write(self._root / file.path, text)
        self.write_lock(known)
        return parse_revision(text, file.path)

    def _load(self) -> dict[str, RevisionFile]:
        found: dict[str, RevisionFile] = {}
        errors: list[RevisionError] = []
        folder = self._shown(self.path)
        for name in self._names():
            shown = name if folder == "." else f"{folder}/{name}"
            try:
                file = parse_revision(self._text(name, shown), shown)
            except RevisionError as error:
                errors.append(error)
                continue
            first = found.setdefault(file.revision, file)
            if first is not file:
                errors.append(
                    RevisionError(
                        f"revision id `{file.revision}` is already taken by `{first.path}`",
                        location=Location(shown),
                        hint="delete one of the two files, or give it a new id",
                    )
                )
        raise_all(errors)
        return found

    def _names(self) -> list[str]:
        try:
            with os.scandir(self.path) as entries:
                return sorted(
                    entry.name
                    for entry in entries
                    if entry.name.endswith(".py")
                    and not entry.name.startswith(("_", "."))
                    and entry.is_file()
                )
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _text(self, name: str, shown: str) -> str:
        return _read(f"{self.path}{os.sep}{name}", shown)

    def _shown(self, path: Path) -> str:
        try:
            return path.relative_to(self._root).as_posix()
        except ValueError:
            return str(path)

    def _write(self, path: Path, text: str) -> None:
        """Write a revision, and read the folder again at the next use."""
        self._put(path, text)
        self._files = None
        self._graph = None

    @staticmethod
    def _put(path: Path, text: str) -> None:
        """Write the whole file or nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            with partial.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def _read(path: str, shown: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - two thousand `Path`s cost a tenth of a second
            return file.read().decode()
    except UnicodeDecodeError as error:
        raise RevisionError(
            f"byte {error.start + 1} is not UTF-8", location=Location(shown)
        ) from None
    except OSError as error:
        raise RevisionError(f"can't be read: {error.strerror}", location=Location(shown)) from None
