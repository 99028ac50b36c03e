"""The wheel, as a user gets it: built, installed elsewhere without Spark, and used there."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in an environment that knows nothing of this checkout."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONWARNINGS": "default"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def done(*command: str | Path, cwd: Path) -> str:
    """Run a command that must end well; its standard output."""
    result = run(*command, cwd=cwd)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution, so that this one is whole too."""
    folder = tmp_path_factory.mktemp("dist")
    done(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a new virtual environment with the base install: no Spark."""
    folder = tmp_path_factory.mktemp("elsewhere") / "venv"
    venv.create(folder, with_pip=True)
    done(folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return folder / "bin"


def test_the_wheel_holds_the_templates_and_the_data_files_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    templates = {
        f"sqlmig/_templates/{path.relative_to(ROOT / 'templates').as_posix()}"
        for path in (ROOT / "templates").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert templates <= set(names)
    assert {"sqlmig/py.typed", "sqlmig/spark/log4j2.properties"} <= set(names)
    tops = {name.split("/")[0] for name in names}
    assert [top for top in sorted(tops) if not top.endswith(".dist-info")] == ["sqlmig"]
    assert not [name for name in names if name.endswith(".pyc")]


def test_the_installed_wheel_makes_a_project_and_its_first_revision(
    installed: Path, tmp_path: Path
) -> None:
    sqlmig = installed / "sqlmig"

    done(sqlmig, "init", "school", cwd=tmp_path)
    school = tmp_path / "school"
    done(sqlmig, "revision", "-m", "first", "--rev-id", "a1b2c3d4e5f6", cwd=school)

    assert {"sqlmig.yml", "pipeline", "revisions"} <= {path.name for path in school.iterdir()}
    assert (school / ".github" / "workflows" / "sqlmig.yml").is_file()
    (revision,) = (school / "revisions").glob("*.py")
    assert "a1b2c3d4e5f6" in revision.name
    assert "a1b2c3d4e5f6" in done(sqlmig, "heads", cwd=school)
    assert "a1b2c3d4e5f6" in done(sqlmig, "plan", "--offline", cwd=school)


def test_without_the_spark_extra_a_command_that_needs_it_says_so(
    installed: Path, tmp_path: Path
) -> None:
    sqlmig = installed / "sqlmig"
    packages = done(installed / "python", "-m", "pip", "list", cwd=tmp_path).lower()
    assert "pyspark" not in packages, "the base install has no Spark"
    done(sqlmig, "init", "school", cwd=tmp_path)
    done(sqlmig, "revision", "-m", "first", cwd=tmp_path / "school")

    result = run(sqlmig, "upgrade", "head", "--yes", cwd=tmp_path / "school")

    assert result.returncode == 1
    assert "error: this command needs Spark" in result.stderr, result.stderr
    assert "hint: pip install 'sqlmig[spark]'" in result.stderr
    assert "Traceback" not in result.stderr
