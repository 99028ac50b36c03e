"""Runs actionlint on our workflows and on those that `sqlmig init` writes.

    python -m tests.github.actionlint

It takes the actionlint on PATH, or has Go install one. Where there is neither it says so, and
passes, except in CI.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sqlmig.spark.jars import cache_folder
from sqlmig.templating import copy_project

ROOT = Path(__file__).parents[2]
MODULE = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"


def find_actionlint() -> Path | None:
    """The program; None where it is not there and can't be installed."""
    found = shutil.which("actionlint")
    if found:
        return Path(found)
    folder = cache_folder() / "tools"
    program = folder / "actionlint"
    go = shutil.which("go")
    if not program.is_file() and go:
        environment = {**os.environ, "GOBIN": str(folder)}
        subprocess.run([go, "install", MODULE], env=environment, check=True)
    return program if program.is_file() else None


def lint(actionlint: Path, checkout: Path) -> str:
    """What is wrong with the workflows of a checkout; '' for nothing."""
    with tempfile.TemporaryDirectory() as scratch:  # it finds local actions from Git's root
        shutil.copytree(checkout / ".github", Path(scratch) / ".github")
        subprocess.run(["git", "init", "--quiet"], cwd=scratch, check=True)
        words = [str(actionlint), "-no-color"]
        done = subprocess.run(words, cwd=scratch, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main() -> int:
    """Lint both; 1 when something is wrong."""
    actionlint = find_actionlint()
    if actionlint is None:
        sys.stderr.write("actionlint: left out, there is neither it nor Go\n")
        return 1 if os.environ.get("CI") else 0
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "shop"
        copy_project(project)
        wrong = lint(actionlint, ROOT) + lint(actionlint, project)
    sys.stderr.write(wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
