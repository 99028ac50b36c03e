"""Templates are found, and a new project is complete."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import jinja2
import pytest
import yaml

from sqlmig import templating
from sqlmig.errors import ConfigError
from sqlmig.templating import copy_project, pipeline_name, render, templates_folder

COMMON = {
    ".dockerignore",
    ".gitignore",
    ".pre-commit-config.yaml",
    "Dockerfile",
    "README.md",
    "pipeline/tables.sql",
    "pipeline/views.sql",
    "revisions/.gitkeep",
    "sqlmig.yml",
}
OF = {
    "github": {
        ".github/actions/sqlmig/action.yml",
        ".github/actions/sqlmig/report.py",
        ".github/workflows/sqlmig.yml",
    },
    "gitlab": {".gitlab-ci.yml", ".gitlab/sqlmig/note.py"},
    "none": set[str](),
}
PROJECT = COMMON | OF["github"]


def test_a_new_project_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "My School"

    written = copy_project(folder)

    assert {path.relative_to(folder).as_posix() for path in written} == PROJECT
    assert all(path.is_file() for path in written)
    assert list(written) == sorted(written)


def test_the_settings_name_the_pipeline_after_its_folder(tmp_path: Path) -> None:
    copy_project(tmp_path / "My School")

    settings = yaml.safe_load((tmp_path / "My School" / "sqlmig.yml").read_text())

    assert settings == {
        "pipeline": "my_school",
        "targets": {"local": {"spark": {"master": "local[*]"}, "warehouse": "warehouse"}},
        "default_target": "local",
    }


def test_the_commented_target_is_valid_when_it_is_uncommented(tmp_path: Path) -> None:
    copy_project(tmp_path, {"pipeline": "school"})
    text = (tmp_path / "sqlmig.yml").read_text()
    start = text.index("  # prod:")
    text = text[:start] + re.sub(r"(?m)^  # ", "  ", text[start:])

    settings = yaml.safe_load(text)

    assert settings["targets"]["prod"] == {
        "spark": {"master": "spark://spark.internal:7077"},
        "warehouse": "/lake/school",
        "bootstrap_policy": "await_approval",
        "vars": {"landing": "/landing/school"},
    }


@pytest.mark.parametrize("ci", OF)
def test_a_new_project_has_the_workflow_that_was_asked_for(tmp_path: Path, ci: str) -> None:
    written = copy_project(tmp_path / "shop", ci=ci)

    found = {path.relative_to(tmp_path / "shop").as_posix() for path in written}
    assert found == COMMON | OF[ci]
    readme = (tmp_path / "shop" / "README.md").read_text(encoding="utf-8")
    assert ("`.github/workflows/sqlmig.yml`" in readme) == (ci == "github")
    assert ("`.gitlab-ci.yml`" in readme) == (ci == "gitlab")
    assert "\n\n\n" not in readme


def test_a_readme_and_a_gitignore_that_are_there_are_kept(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("ours")
    (tmp_path / ".gitignore").write_text("ours")

    written = copy_project(tmp_path)

    assert (tmp_path / "README.md").read_text() == "ours"
    assert (tmp_path / ".gitignore").read_text() == "ours"
    assert len(written) == len(PROJECT) - 2


@pytest.mark.parametrize("name", ["sqlmig.yml", "pipeline/views.sql", "pipeline"])
def test_nothing_is_written_where_a_file_is_in_the_way(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("ours")

    with pytest.raises(ConfigError) as caught:
        copy_project(tmp_path)

    assert str(caught.value) == f"{tmp_path / name}: this is in the way of a new project"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]


def test_a_second_project_in_a_folder_is_refused(tmp_path: Path) -> None:
    copy_project(tmp_path)

    with pytest.raises(ConfigError):
        copy_project(tmp_path)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("school", "school"),
        ("My-School 2", "my_school_2"),
        ("2school", "pipeline_2school"),
        ("日本", "pipeline"),
    ],
)
def test_a_pipeline_is_named_after_its_folder(tmp_path: Path, folder: str, name: str) -> None:
    assert pipeline_name(tmp_path / folder) == name


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        render("revision.py.jinja")


def test_templates_are_found_in_a_checkout_and_in_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = templates_folder()
    package = tmp_path / "sqlmig"
    package.mkdir()
    monkeypatch.setattr(templating, "__file__", str(package / "templating.py"))

    with pytest.raises(ConfigError, match="missing from this installation"):
        templates_folder()
    shutil.copytree(checkout, tmp_path / "templates")
    assert templates_folder() == tmp_path / "templates"
    shutil.copytree(checkout, package / "_templates")
    assert templates_folder() == package / "_templates"
