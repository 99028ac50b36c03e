"""The text templates: where they lie, how they are filled in, and what `sqlmig init` copies.

It knows jinja2 and the templates' folder, nothing of what is filled in. In a wheel the folder is
`sqlmig/_templates`; in a source checkout, and so in an editable install, `templates` beside the
package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlmig.errors import ConfigError, Location

if TYPE_CHECKING:
    from jinja2 import Environment

_SUFFIX = ".jinja"
_MARK = "revision.py.jinja"
_PROJECT = "project"
CI = ("github", "gitlab", "none")
"""Whose continuous integration a new project can have; files of all but `none` are in `ci/`."""
# What a folder may have before it becomes a project: these files of the user are kept.
_KEPT = frozenset({".dockerignore", ".gitignore", ".pre-commit-config.yaml", "README.md"})


def templates_folder() -> Path:
    """The folder of the templates.

    Raises:
        ConfigError: the installation has none.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "_templates", package.parent / "templates"):
        if (folder / _MARK).is_file():
            return folder
    raise ConfigError(
        "the templates of sqlmig are missing from this installation",
        location=Location(str(package)),
        hint="install sqlmig again",
    )


def render(name: str, **context: Any) -> str:
    """The text of template `name` with the values filled in.

    Args:
        name: path below the templates' folder, as `revision.py.jinja`.
        context: the values; every name that the template uses must be there.

    Raises:
        jinja2.UndefinedError: a value is missing.
    """
    return _environment(templates_folder()).get_template(name).render(**context)


def copy_project(
    destination: Path, context: dict[str, Any] | None = None, *, ci: str = CI[0]
) -> tuple[Path, ...]:
    """Make a new project from `templates/project`, and return the files written, sorted.

    A `README.md`, a `.gitignore` and their like that are there already are kept as they are.

    Args:
        destination: the project's folder; made when it isn't there.
        context: values for the templates; `pipeline` is taken from the folder's name if not given.
        ci: one of `CI`.

    Raises:
        ConfigError: another file of the project is there already; nothing was written.
    """
    values = {"pipeline": pipeline_name(destination), "ci": ci, **(context or {})}
    folder = templates_folder()
    environment = _environment(folder)
    sources = [folder / _PROJECT, folder / "ci" / ci]
    texts = {
        target: environment.get_template(source.relative_to(folder).as_posix()).render(**values)
        if source.suffix == _SUFFIX
        else source.read_text(encoding="utf-8")
        for part in sources
        for source, target in _project_files(part, destination)
    }
    kept = {path for path in texts if path.name in _KEPT and path.is_file()}
    for path in texts:
        if path not in kept and (path.exists() or not _can_be_folder(path.parent)):
            raise ConfigError(
                "this is in the way of a new project",
                location=Location(str(path if path.exists() else path.parent)),
                hint="`sqlmig init` wants a folder without a project; nothing was written",
            )
    for path, text in texts.items():
        if path not in kept:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
    return tuple(sorted(path for path in texts if path not in kept))


def pipeline_name(folder: Path) -> str:
    """A name for the pipeline in `folder`: its name in lower case, other characters as `_`."""
    name = re.sub(r"[^a-z0-9]+", "_", folder.resolve().name.lower()).strip("_")
    return name if name and not name[0].isdigit() else f"pipeline_{name}".rstrip("_")


def _project_files(source: Path, destination: Path) -> Iterator[tuple[Path, Path]]:
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            relative = path.relative_to(source)
            if path.suffix == _SUFFIX:
                relative = relative.with_suffix("")
            yield path, destination / relative


def _can_be_folder(path: Path) -> bool:
    """True when `path` is a folder, or could be made: no file is in its way."""
    for folder in (path, *path.parents):
        if folder.exists():
            return folder.is_dir()
    return True


def _environment(folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
