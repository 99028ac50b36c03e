"""What tests with real repositories have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git.repository import alone, git


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone(monkeypatch, tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit on `main`, and the project in its folder `pipelines/school`."""
    folder = tmp_path / "repository"
    project = folder / "pipelines" / "school"
    project.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (project / "a.sql").write_text("1")
    (folder / "other.txt").write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder
