"""`make` on a machine that lacks something: one line, with what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("sh", "cat", "env", "dirname", "uname", "mkdir", "rm", "touch", "sed")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def make(tmp_path: Path, target: str, *tools: Path, **environment: str) -> tuple[int, str, str]:
    """Run make with a PATH that has only a few tools and `tools`; status, stdout, stderr."""
    path = tmp_path / "path"
    path.mkdir()
    for name in (*TOOLS, "make"):
        found = shutil.which(name)
        if found:
            (path / name).symlink_to(found)
    for tool in tools:
        (path / tool.name).symlink_to(tool)
    done = subprocess.run(
        ["make", "-C", str(ROOT), target, f"VENV={tmp_path / 'venv'}"],
        env={"PATH": str(path), "HOME": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    return done.returncode, done.stdout, "\n".join(errors)


def tool(folder: Path, name: str, text: str) -> Path:
    """An executable shell script."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def python(folder: Path) -> Path:
    """A `python3` in a folder of its own."""
    return tool(folder, "python3", f'exec {sys.executable} "$@"')


@pytest.mark.parametrize("target", ["example", "example-kafka", "test"])
def test_a_missing_java_is_said_in_one_line_before_anything_is_downloaded(
    target: str, tmp_path: Path
) -> None:
    status, _, errors = make(tmp_path, target, python(tmp_path / "tools"))

    assert status != 0
    assert errors == (
        "error: Java 17 or 21 is needed, found none: "
        "install openjdk-17-jre-headless or set JAVA_HOME"
    )
    assert not (tmp_path / "venv").exists()


def test_a_wrong_java_is_said_in_one_line(tmp_path: Path) -> None:
    java = tool(tmp_path / "tools", "java", "echo 'openjdk version \"11.0.2\"' >&2")

    status, _, errors = make(tmp_path, "test", python(tmp_path / "tools"), java)

    assert status != 0
    assert errors.startswith("error: Java 17 or 21 is needed, found 11 at ")
    assert errors.endswith(": install openjdk-17-jre-headless or set JAVA_HOME")
    assert "\n" not in errors


def test_a_python_that_is_too_old_is_said_in_one_line(tmp_path: Path) -> None:
    old = tool(tmp_path / "tools", "python3", "exit 1")
    java = tool(tmp_path / "tools", "java", "echo 'openjdk version \"17.0.2\"' >&2")

    status, _, errors = make(tmp_path, "test", old, java)

    assert status != 0
    assert errors == (
        "error: Python 3.10 or later is needed: "
        "install python3, or say make PYTHON=/path/to/python3"
    )


def test_a_python_without_venv_is_said_in_one_line(tmp_path: Path) -> None:
    script = f'case "$*" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"'
    bare = tool(tmp_path / "tools", "python3", script)

    status, _, errors = make(tmp_path, "test-fast", bare)

    assert status != 0
    assert errors.startswith("error: ")
    assert "has no venv: install python3-venv" in errors
    assert "\n" not in errors


def test_ci_runs_what_make_test_runs() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")

    assert "make test" in script
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "run: .ci/run" in workflow
