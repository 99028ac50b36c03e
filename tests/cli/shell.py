"""A shell for tests: runs `sqlmig` in a folder, in this process or in a real one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from sqlmig.cli import main
from sqlmig.commands import Project, open_project

TABLES = """\
-- who learns here
CREATE TABLE students (id BIGINT, name STRING, PRIMARY KEY (id));

-- what they got
CREATE TABLE grades (student_id BIGINT, class STRING, grade DECIMAL(5, 2));
"""
VIEWS = """\
-- one row for each student and class
CREATE VIEW avg_grade AS
SELECT student_id, class, AVG(grade) AS class_avg FROM grades GROUP BY student_id, class;

CREATE MATERIALIZED VIEW honours AS
SELECT s.name, a.class FROM avg_grade AS a JOIN students AS s ON s.id = a.student_id
WHERE a.class_avg > 90;
"""


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> Any:
        """Standard output, read as JSON."""
        return json.loads(self.out)


class Shell:
    """Runs commands in a project's folder.

    Args:
        folder: the current folder of the commands.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str, code: int = 0, answers: str | None = None) -> Said:
        """Run `sqlmig WORDS` in this process; it must end with `code`."""
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            result = CliRunner().invoke(main, list(words), input=answers)
        finally:
            os.chdir(before)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        said = Said(result.stdout, result.stderr, result.exit_code)
        assert said.code == code, f"sqlmig {' '.join(words)}: {said}"
        assert "Traceback" not in said.err or "--debug" in words
        return said

    def start(self, *words: str, **environment: str) -> Said:
        """Run `sqlmig WORDS` in a process of its own."""
        result = subprocess.run(
            [sys.executable, "-m", "sqlmig", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONWARNINGS": "error", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Said(result.stdout, result.stderr, result.returncode)

    def write(self, path: str, text: str) -> Path:
        """Write a file below the folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def read(self, path: str) -> str:
        """The text of a file below the folder."""
        return (self.folder / path).read_text(encoding="utf-8")

    def freeze(self, revision: str, *words: str, message: str | None = None) -> Path:
        """`sqlmig revision` with this id; the file written."""
        self("revision", "-m", message or f"make {revision}", "--rev-id", revision, *words)
        return self.file_of(revision)

    def file_of(self, revision: str) -> Path:
        """The file of a revision."""
        (file,) = (self.folder / "revisions").glob(f"*_{revision}_*.py")
        return file

    @property
    def project(self) -> Project:
        """The project, opened anew."""
        return open_project(self.folder)


def new_project(folder: Path, **files: str) -> Shell:
    """A project with two tables and two views, or `files` in pipeline/; nothing is frozen."""
    shell = Shell(folder)
    shell.write("sqlmig.yml", "pipeline: school\ntargets:\n  local: {warehouse: warehouse}\n")
    for name, text in (files or {"tables": TABLES, "views": VIEWS}).items():
        shell.write(f"pipeline/{name}.sql", text)
    return shell
