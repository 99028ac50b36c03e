"""A project opened for a command: config, files, ledger, warehouse, engine; each made when used."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlmig
from sqlmig.config import Config, Target, load_config
from sqlmig.environment import resolve, resolve_spark
from sqlmig.errors import Location, ProgramError, ProgramErrors, RevisionError, SqlmigError
from sqlmig.revisions.directory import RevisionDirectory
from sqlmig.revisions.graph import RevisionGraph
from sqlmig.revisions.identifier import RESERVED, counts_from_deployed, counts_from_head
from sqlmig.revisions.identifier import resolve as resolve_name

if TYPE_CHECKING:
    from sqlmig.execution.journal import Journal
    from sqlmig.git import GitState
    from sqlmig.ledger.delta import DeltaLedger
    from sqlmig.ledger.deployment import Deployment
    from sqlmig.ledger.records import Record
    from sqlmig.planning.directives import Directive
    from sqlmig.program.model import Program
    from sqlmig.spark.engine import SparkEngine
    from sqlmig.warehouse import DeltaWarehouse


class Project:
    """A project and one of its targets.

    Args:
        config: the read `sqlmig.yml`.
        target: the target to work on.
        on_start: called before Spark is started, which takes seconds.

    Attributes:
        directives: what hooks that were read ask for; path, text, hook and whether it was run ->
            directives. Who plans many ways reads each hook once.
    """

    is_foreign = False
    """Its files are not those of this checkout: nothing of their code is run."""
    commit = "HEAD"
    """Git's name of the commit that its files are of."""

    def __init__(
        self, config: Config, target: Target, on_start: Callable[[], None] | None = None
    ) -> None:
        self.config = config
        self.target = target
        self.on_start = on_start
        self.directives: dict[tuple[str, str, str, bool], tuple[Directive, ...]] = {}
        self._parsed: dict[tuple[tuple[str, str], ...], Program] = {}

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.config.root

    @cached_property
    def directory(self) -> RevisionDirectory:
        """The revision files."""
        return RevisionDirectory(self.root / "revisions", root=self.root)

    @cached_property
    def ledger(self) -> DeltaLedger:
        """The target's ledger."""
        from sqlmig.ledger.delta import DeltaLedger

        return DeltaLedger(_join(self.target.warehouse, "ledger"), *self._storage)

    @cached_property
    def git_state(self) -> GitState | None:
        """Where the project stands in Git; None without a repository."""
        from sqlmig.git import read_git_state

        return read_git_state(self.root)

    @cached_property
    def journal(self) -> Journal:
        """The ledger as this process sees it; Git is asked when it is first made."""
        import socket

        from sqlmig.execution.journal import Journal, Provenance

        git = self.git_state
        provenance = Provenance(
            commit=git.commit if git else None,
            branch=git.branch if git else None,
            dirty=git.is_dirty if git else None,
            author=git.author if git else None,
            remote=git.remote if git else None,
            actor=f"{_user()}@{socket.gethostname()}",
            versions={"sqlmig": sqlmig.__version__},
        )
        lease = self.target.runner.lease
        return Journal(self.ledger, self.config.pipeline, provenance, lease=lease)

    @cached_property
    def warehouse(self) -> DeltaWarehouse:
        """The target's stored tables, without Spark."""
        from sqlmig.warehouse import DeltaWarehouse

        return DeltaWarehouse(self.target.warehouse, *self._storage)

    @cached_property
    def _storage(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """The options of the target's object store, and what of them must not be shown."""
        return resolve(self.target.storage_options, os.environ.get, self._named)

    @property
    def _named(self) -> str:
        return f"target `{self.target.name}`"

    @cached_property
    def engine(self) -> SparkEngine:
        """Spark on the target; the session is opened by what needs it first."""
        from sqlmig.spark.engine import SparkEngine

        def session() -> Any:
            from sqlmig.spark.packages import needed_packages
            from sqlmig.spark.session import open_session

            if self.on_start is not None:
                self.on_start()
                self.on_start = None
            spark, secrets = resolve_spark(self.target.spark, os.environ.get, self._named)
            return open_session(
                spark,
                app_name=f"sqlmig {self.config.pipeline}",
                log_path=self.root / ".sqlmig" / "spark.log",
                packages=needed_packages(self._parsed.values()),
                secrets=secrets,
            )

        return SparkEngine(session, self.warehouse, self.root)

    def deployment(self, records: Iterable[Record] | None = None) -> Deployment:
        """What the ledger says now.

        Args:
            records: those of the ledger, where they were read already.

        Raises:
            LedgerError: it can't be read, or belongs to another pipeline.
        """
        from sqlmig.errors import LedgerError
        from sqlmig.ledger.fold import fold

        deployment = fold(self.ledger.read()[1] if records is None else records)
        if deployment.pipeline not in (None, self.config.pipeline):
            raise LedgerError(
                f"this warehouse holds pipeline `{deployment.pipeline}`, "
                f"not `{self.config.pipeline}`",
                hint="give the target a warehouse of its own in sqlmig.yml",
            )
        return deployment

    def graph(self, deployment: Deployment | None = None, *names: str) -> RevisionGraph:
        """The history: the files, and what the ledger knows of revisions whose files are gone.

        A revision that was taken back and whose file was then deleted is no second head: it is left
        out, unless one of `names` asks for it, or there are no files at all.
        """
        if deployment is None or not deployment.known:
            return self.directory.graph
        full = self.directory.graph_with(deployment.known.values())
        if not self.directory.files or len(full) == len(self.directory.files):
            return full
        kept = {*self.directory.files, *deployment.applied}
        kept = kept.union(*(full.ancestors(name) for name in kept))
        words = {word for name in names for word in re.findall(r"\w+", name)} - RESERVED
        if any(name.startswith(tuple(words)) for name in full if words and name not in kept):
            return full
        return self.directory.graph_with(
            known for name, known in deployment.known.items() if name in kept
        )

    def resolve(self, name: str, deployment: Deployment) -> str | None:
        """The revision that a name means; None for base.

        A head is one of this checkout, whatever the ledger still knows: so a deployed revision that
        was reverted, or lies on another branch, is none.

        Raises:
            RevisionError: there is none, or several are called so.
        """
        from sqlmig.revisions.errors import UnknownRevision

        if counts_from_head(name) and self.directory.files:
            try:
                return resolve_name(self._checkout(deployment), name, deployment.revision)
            except UnknownRevision:
                pass  # the branch label may be that of a revision whose file is gone
        return resolve_name(self.graph(deployment, name), name, deployment.revision)

    def is_unknown(self, revision: str, deployment: Deployment) -> bool:
        """Whether no file is or follows a revision. False where there are no revision files."""
        return bool(self.directory.files) and revision not in self._checkout(deployment)

    def _checkout(self, deployment: Deployment) -> RevisionGraph:
        """The revisions that have files, and those below them, which may have lost theirs."""
        files = self.directory.files
        full = self.directory.graph_with(deployment.known.values())
        kept = frozenset[str]().union(*(full.ancestors(name) for name in files))
        return self.directory.graph_with(
            known for name, known in deployment.known.items() if name in kept
        )

    def history(self) -> tuple[RevisionGraph, Deployment | None]:
        """The history of the files. Only where a parent's file is gone is the ledger read, too.

        Raises:
            RevisionError: broken files; a parent that neither a file nor the ledger has.
        """
        try:
            return self.directory.graph, None
        except RevisionError:
            _ = self.directory.files
            try:
                deployment = self.deployment()
            except SqlmigError:
                deployment = None
            if deployment is None or not deployment.known:
                raise
            return self.graph(deployment), deployment

    def starting_point(self, *names: str) -> str | None:
        """The deployed revision if one of `names` counts from it: `current`, `+1`, `label@-1`.

        The ledger is not read for other names.
        """
        return self.deployment().revision if any(map(counts_from_deployed, names)) else None

    @property
    def file_heads(self) -> tuple[str, ...]:
        """The revisions with a file that no other file follows, sorted."""
        return tuple(self.directory.heads())

    def working_files(self) -> Mapping[str, str]:
        """The SQL and the functions in Python that people edit: path -> text, sorted.

        Raises:
            ProgramErrors: there is no `pipeline/`, or files that can't be read or have conflict
                marks.
        """
        from sqlmig.program.marks import line_of_mark

        files = self.pipeline_texts()
        marks = [
            ProgramError(
                "a conflict mark is left",
                location=Location(path, line),
                hint="solve the conflict; `sqlmig merge` joins what two heads changed",
            )
            for path, text in files.items()
            if (line := line_of_mark(text)) is not None
        ]
        if marks:
            raise ProgramErrors(marks)
        return files

    def pipeline_texts(self) -> dict[str, str]:
        """As `working_files`, also with conflict marks in them."""
        folder = self.root / "pipeline"
        files: dict[str, str] = {}
        errors: list[ProgramError] = []
        if not folder.is_dir():
            message, hint = "no such folder", "the pipeline's SQL is expected there, in *.sql files"
            errors.append(ProgramError(message, location=Location("pipeline"), hint=hint))
        for path in sorted((*folder.rglob("*.sql"), *(folder / "functions").glob("*.py"))):
            shown = path.relative_to(self.root).as_posix()
            try:
                files[shown] = path.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError as error:
                message, hint = f"byte {error.start + 1} is not UTF-8", "save the file as UTF-8"
                errors.append(ProgramError(message, location=Location(shown), hint=hint))
            except OSError as error:
                message = f"can't be read: {error.strerror}"
                errors.append(ProgramError(message, location=Location(shown)))
        if errors:
            raise ProgramErrors(errors)
        return files

    def substituted(self, files: Mapping[str, str]) -> Mapping[str, str]:
        """The files with the target's variables filled in; secrets stay as they are."""
        from sqlmig.program.variables import substitute

        return substitute(files, self.target.vars)

    def parse(self, files: Mapping[str, str]) -> Program:
        """The program of `files`, with the target's variables filled in.

        Raises:
            ProgramErrors: all mistakes.
        """
        return self.parse_deployed(self.substituted(files))

    def parse_deployed(self, files: Mapping[str, str]) -> Program:
        """The program of files whose variables are filled in already, as the ledger has them."""
        from sqlmig.program.parse import parse_program

        key = tuple(sorted(files.items()))
        if key not in self._parsed:
            self._parsed[key] = parse_program(files)
        return self._parsed[key]

    def revision_files(
        self, revision: str, deployment: Deployment | None = None
    ) -> Mapping[str, str]:
        """The program that a revision froze: from its file, else as the ledger kept it.

        Args:
            deployment: what the ledger says; it is read when it is needed and not given.
        """
        from sqlmig.revisions.file import parse_revision

        file = self.directory.get(revision)
        if file is None:
            deployment = deployment or self.deployment()
            known = deployment.known.get(revision)
            if known is None:
                raise self.graph(deployment).unknown(revision)
            file = parse_revision(known.text, known.path)
        return file.files


def open_project(path: str | Path | None = None, target: str | None = None) -> Project:
    """Open the project at `path`.

    Args:
        path: `sqlmig.yml`, or its folder; by default the one here or in a folder above.
        target: name of a target; by default the config's.

    Raises:
        ConfigError: no or a wrong `sqlmig.yml`, or no such target.
    """
    config = load_config(path)
    return Project(config, config.target(target))


def deployed(project: Project) -> Deployment:
    """What the ledger says now, where something is deployed.

    Raises:
        EngineError: nothing is.
    """
    from sqlmig.errors import EngineError

    deployment = project.journal.refresh()
    if deployment.deployed_seq < 0:
        raise EngineError(
            f"nothing is deployed to target `{project.target.name}`",
            hint="`sqlmig upgrade head` deploys the head",
        )
    return deployment


def init(path: str | Path, *, ci: str = "github") -> tuple[Path, ...]:
    """Make a new project that works at once; the files written, sorted.

    Revision files that are there already are kept, and their heads are locked.

    Args:
        ci: whose continuous integration it gets: `github`, `gitlab` or `none`.

    Raises:
        ConfigError: a file of a project is there already; nothing was written.
        RevisionError: revision files that are there are broken; nothing was written.
    """
    from sqlmig.templating import copy_project

    directory = RevisionDirectory(Path(path) / "revisions", root=Path(path))
    has_revisions = bool(directory.files)
    written = copy_project(Path(path), ci=ci)
    if not has_revisions:
        return written
    directory.write_lock()
    return tuple(sorted({*written, directory.lock_path}))


def _join(warehouse: str, name: str) -> str:
    return f"{str(warehouse).rstrip('/')}/{name}"


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
