"""A project opened for a command: its config, files, ledger, warehouse and engine, each made when first used."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import sqlmig
from sqlmig.config import Config, Target, load_config
from sqlmig.errors import Location, ProgramError, RevisionError
from sqlmig.revisions.directory import RevisionDirectory
from sqlmig.revisions.graph import RevisionGraph

if TYPE_CHECKING:
    from sqlmig.execution.journal import Journal
    from sqlmig.ledger.delta import DeltaLedger
    from sqlmig.ledger.fold import Deployment
    from sqlmig.program.model import Program
    from sqlmig.spark.engine import SparkEngine
    from sqlmig.warehouse import DeltaWarehouse


class Project:
    """A project and one of its targets.

    Args:
        config: the read `sqlmig.yml`.
        target: the target to work on.
    """

    def __init__(self, config: Config, target: Target) -> None:
        self.config = config
        self.target = target
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

        return DeltaLedger(_join(self.target.warehouse, "ledger"))

    @cached_property
    def journal(self) -> Journal:
        """The ledger as this process sees it; Git is asked when it is first made."""
        from sqlmig.execution.journal import Journal, Provenance
        from sqlmig.git import read_git_state

        git = read_git_state(self.root)
        provenance = Provenance(
            commit=git.commit if git else None,
            branch=git.branch if git else None,
            dirty=git.is_dirty if git else None,
            author=git.author if git else None,
            actor=f"{_user()}@{socket.gethostname()}",
            versions={"sqlmig": sqlmig.__version__},
        )
        return Journal(self.ledger, self.config.pipeline, provenance)

    @cached_property
    def warehouse(self) -> DeltaWarehouse:
        """The target's stored tables, without Spark."""
        from sqlmig.warehouse import DeltaWarehouse

        return DeltaWarehouse(self.target.warehouse)

    @cached_property
    def engine(self) -> SparkEngine:
        """Spark on the target; the session is opened by what needs it first."""
        from sqlmig.spark.engine import SparkEngine
        from sqlmig.spark.session import open_session

        def session() -> object:
            return open_session(
                self.target.spark,
                app_name=f"sqlmig {self.config.pipeline}",
                log_path=self.root / ".sqlmig" / "spark.log",
            )

        return SparkEngine(session, self.warehouse, self.root)

    def deployment(self) -> Deployment:
        """What the ledger says now.

        Raises:
            LedgerError: it can't be read, or belongs to another pipeline.
        """
        from sqlmig.errors import LedgerError
        from sqlmig.ledger.fold import fold

        deployment = fold(self.ledger.read()[1])
        if deployment.pipeline not in (None, self.config.pipeline):
            raise LedgerError(
                f"this warehouse holds pipeline `{deployment.pipeline}`, "
                f"not `{self.config.pipeline}`",
                hint="give the target a warehouse of its own in sqlmig.yml",
            )
        return deployment

    def graph(self, deployment: Deployment | None = None) -> RevisionGraph:
        """The history: the files, and what the ledger knows of revisions whose files are gone."""
        if deployment is None or not deployment.known:
            return self.directory.graph
        return self.directory.graph_with(deployment.known.values())

    def working_files(self) -> Mapping[str, str]:
        """The SQL that people edit: path -> text, sorted.

        Raises:
            ProgramError: a file is no UTF-8 text.
        """
        folder = self.root / "pipeline"
        files = {}
        for path in sorted(folder.rglob("*.sql")):
            shown = path.relative_to(self.root).as_posix()
            try:
                files[shown] = path.read_text(encoding="utf-8").replace("\r\n", "\n")
            except UnicodeDecodeError:
                raise ProgramError(
                    "the file is not UTF-8 text", location=Location(shown), hint="save it as UTF-8"
                ) from None
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

    def revision_files(self, revision: str, deployment: Deployment) -> Mapping[str, str]:
        """The program that a revision froze: from its file, else as the ledger kept it."""
        from sqlmig.revisions.file import parse_revision

        file = self.directory.get(revision)
        if file is None:
            known = deployment.known.get(revision)
            if known is None:
                raise self.graph(deployment).unknown(revision)
            file = parse_revision(known.text, known.path)
        return file.files


def open_project(path: str | Path | None = None, target: str | None = None) -> Project:
    """Open the project at `path`.

    Args:
        path: `sqlmig.yml`, or its folder; by default it is looked for here and in the folders above.
        target: name of a target; by default the config's.

    Raises:
        ConfigError: no or a wrong `sqlmig.yml`, or no such target.
    """
    config = load_config(path)
    return Project(config, config.target(target))


def init(path: str | Path) -> tuple[Path, ...]:
    """Make a new project that works at once; the files written, sorted.

    Raises:
        ConfigError: a file of a project is there already; nothing was written.
    """
    from sqlmig.templating import copy_project

    return copy_project(Path(path))


def refuse_edited(project: Project, deployment: Deployment) -> None:
    """Raise when the file of an applied revision is not what was applied.

    Raises:
        RevisionError: with the difference to the ledger's text.
    """
    import difflib

    from sqlmig.revisions.file import normalised

    for revision, applied in sorted(deployment.applied.items()):
        file = project.directory.get(revision)
        if file is None or normalised(file.text) == normalised(applied.text):
            continue
        lines = difflib.unified_diff(
            normalised(applied.text).splitlines(),
            normalised(file.text).splitlines(),
            "as applied",
            file.path,
            lineterm="",
            n=1,
        )
        shown = "\n".join(list(lines)[:40])
        raise RevisionError(
            f"revision {revision} was applied and its file was edited afterwards",
            location=Location(file.path),
            hint="undo the edit (`git checkout` of the file) and put the change into a new revision: "
            f"`sqlmig revision -m ...`\n\n{shown}",
        )


def _join(warehouse: str, name: str) -> str:
    return f"{str(warehouse).rstrip('/')}/{name}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
