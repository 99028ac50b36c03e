"""Names of programs: revisions, what is deployed, `pipeline/` as it is, and Git refs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from sqlmig.commands.project import Project
from sqlmig.errors import GitError, Location, ProgramError, ProgramErrors, RevisionError
from sqlmig.git.command import GitCommand
from sqlmig.git.reference import (
    FORCED,
    Reference,
    common_ancestor,
    find_reference,
    reference,
    unknown_hint,
)
from sqlmig.revisions.errors import RevisionErrors, UnknownRevision
from sqlmig.revisions.identifier import counts_from_deployed, resolve
from sqlmig.revisions.snapshot import RevisionSnapshot

if TYPE_CHECKING:
    from sqlmig.ledger.deployment import Deployment
    from sqlmig.program.model import Program


class ReferenceProject(Project):
    """The project as of a Git ref: its revisions and `pipeline/` are those of that commit.

    `sqlmig.yml` is this checkout's, so the target is the one that was chosen.

    Raises:
        GitError: no such ref, or the project isn't there at it.
    """

    is_foreign = True

    def __init__(self, project: Project, name: str) -> None:
        super().__init__(project.config, project.target, project.on_start)
        self.reference = reference(project.root, name)
        self.commit = self.reference.commit
        if not self.reference.has_project:
            raise self.reference.without_project()
        if not self.directory.files:
            raise GitError(
                f"`{self.reference.name}` has no revisions",
                hint="`sqlmig revision -m ...` there makes the first",
            )

    @cached_property
    def directory(self) -> RevisionSnapshot:
        """The revision files of the commit."""
        return RevisionSnapshot(
            self.root / "revisions",
            self.reference.texts("revisions", RevisionSnapshot.is_revision),
            root=self.root,
            origin=self.reference.name,
        )

    def working_files(self) -> Mapping[str, str]:
        """The SQL and the functions in Python of the commit: path -> text, sorted."""
        files = self.reference.texts("pipeline", _is_source)
        if not files:
            raise self.reference.without_project()
        return files


def split_range(text: str) -> tuple[str, str, bool] | None:
    """`A..B` and `A...B` as Git reads them: both ends, and whether there are three dots.

    An end that is left out is HEAD. None for what is no such range.
    """
    for dots in ("...", ".."):
        before, found, after = text.partition(dots)
        if found and ".." not in after:
            return before or "HEAD", after or "HEAD", dots == "..."
    return None


class Programs:
    """The programs that people name, each read when it is asked for.

    Args:
        project: whose they are; its target's variables are filled in.
    """

    def __init__(self, project: Project) -> None:
        self._project = project

    def named(self, name: str) -> Program:
        """The program of a name.

        A revision of this checkout goes before a Git ref of the same name, and that before a
        revision that only the ledger still has; `git:NAME` is always a Git ref.

        Raises:
            RevisionError, GitError: nothing is called so, or several revisions are.
            ProgramErrors: its SQL has mistakes.
        """
        from sqlmig.program.model import EMPTY_PROGRAM

        project = self._project
        if name == "working":
            return project.parse(project.working_files())
        if name == "deployed":
            return project.parse_deployed(self._deployment.program)
        if name.startswith(FORCED):
            return self._at(reference(project.root, name))
        found = None if self._is_of_checkout(name) else find_reference(project.root, name)
        if found is not None:
            return self._at(found)
        revision = self._revision(name)
        if revision is None:
            return EMPTY_PROGRAM
        return project.parse(project.revision_files(revision, self._deployment))

    def ancestor(self, one: str, other: str) -> Program:
        """The program of the newest commit that two Git refs have in common.

        Args:
            one, other: `working` stands for HEAD.

        Raises:
            GitError: an unknown ref, or no such commit.
        """
        ends = ["HEAD" if name == "working" else name.removeprefix(FORCED) for name in (one, other)]
        return self._at(common_ancestor(self._project.root, *ends))

    @cached_property
    def _deployment(self) -> Deployment:
        return self._project.deployment()

    def _is_of_checkout(self, name: str) -> bool:
        if counts_from_deployed(name):
            return True
        try:
            resolve(self._project.directory.graph, name)
        except UnknownRevision:
            return False
        except RevisionError:
            return True  # to be told by who reads the ledger, too
        return True

    def _revision(self, name: str) -> str | None:
        project, deployment = self._project, self._deployment
        try:
            return project.resolve(name, deployment)
        except UnknownRevision as error:
            if not GitCommand(project.root).has_repository:
                raise
            hint = error.hint if error.hint and "did you mean" in error.hint else None
            raise UnknownRevision(
                error.message.replace("revision or branch", "revision, branch or Git ref"),
                hint=hint or unknown_hint(project.root, name) or error.hint,
            ) from None

    def _at(self, found: Reference) -> Program:
        files = found.texts("pipeline", _is_source)
        if not files:
            raise found.without_project()
        with placed_at(found):
            return self._project.parse(files)


@contextmanager
def placed_at(found: Reference) -> Iterator[None]:
    """Errors in files of the commit name it: `main:pipeline/views.sql:3:1`."""

    def moved(location: Location | None) -> Location | None:
        if location is None or not location.path.startswith(("pipeline/", "revisions/")):
            return location
        return Location(found.place(location.path), location.line, location.column)

    try:
        yield
    except ProgramErrors as error:
        raise ProgramErrors(
            ProgramError(e.message, location=moved(e.location), hint=e.hint) for e in error.errors
        ) from None
    except RevisionErrors as error:
        raise RevisionErrors(
            [_moved_revision(e, moved(e.location)) for e in error.errors]
        ) from None
    except RevisionError as error:
        raise _moved_revision(error, moved(error.location)) from None


def _moved_revision(error: RevisionError, location: Location | None) -> RevisionError:
    return type(error)(error.message, location=location, hint=error.hint)


def _is_source(path: str) -> bool:
    """Whether a file of a project is one of those that a program is made of."""
    folder, _, name = path.rpartition("/")
    return path.endswith(".sql") or (folder == "pipeline/functions" and name.endswith(".py"))
