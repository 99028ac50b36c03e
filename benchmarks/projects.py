"""Projects to measure with, made through `sqlmig.commands` as a user's script would."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from sqlmig import commands
from sqlmig.commands import Project

CONFIG = """\
pipeline: school
targets:
  local:
    spark: {master: "local[*]"}
    warehouse: warehouse
    bootstrap_policy: allow
"""
FIRST_DAY = datetime(2025, 9, 1, tzinfo=timezone.utc)


def make_project(root: Path, files: Mapping[str, str]) -> Project:
    """A project in `root` whose `pipeline/` holds `files` (name -> SQL)."""
    (root / "revisions").mkdir(parents=True)
    (root / "sqlmig.yml").write_text(CONFIG, encoding="utf-8")
    write_pipeline(root, files)
    return commands.open_project(root)


def write_pipeline(root: Path, files: Mapping[str, str]) -> None:
    """Put `files` (name -> SQL) into `pipeline/`."""
    (root / "pipeline").mkdir(exist_ok=True)
    for name, text in files.items():
        (root / "pipeline" / name).write_text(text, encoding="utf-8")


def write_revisions(project: Project, count: int, files: Mapping[str, str]) -> list[str]:
    """Write `count` revisions with the same program, one on top of the other; their ids."""
    from sqlmig.revisions.render import file_name, render_revision

    ids = [f"{number:012x}" for number in range(1, count + 1)]
    for number, revision in enumerate(ids):
        created = FIRST_DAY + timedelta(hours=number)
        message = f"change number {number + 1}"
        text = render_revision(
            revision=revision,
            down_revisions=ids[number - 1 : number] if number else (),
            message=message,
            created=created,
            files=files,
        )
        path = project.root / "revisions" / file_name(revision, created, message)
        path.write_text(text, encoding="utf-8")
    return ids


def commit_all(root: Path) -> None:
    """Make the project a Git repository, and commit what is in it, as projects are."""
    (root / ".gitignore").write_text(".sqlmig/\nwarehouse/\n", encoding="utf-8")
    git = ("git", "-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost")
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-m", "pipeline")):
        subprocess.run([*git, *words], cwd=root, check=True, capture_output=True)
