"""Secrets and places in a connector's options: resolved when it is opened, and never shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlmig.errors import EngineError, Location

_SECRET = re.compile(r"\$\{env:([^}]+)\}")


@dataclass(frozen=True)
class Opened:
    """A connector's options as Spark gets them.

    Args:
        options: with secrets put in.
        hidden: the secrets' values, which must not be shown.
    """

    options: Mapping[str, str]
    hidden: tuple[str, ...]


def resolve_secrets(
    options: Mapping[str, str],
    secrets: Callable[[str], str | None],
    what: str,
    location: Location | None,
) -> Opened:
    """Put the values of `${env:NAME}` in.

    Args:
        secrets: gives the value of a name, None where there is none.
        what: names the connector in errors.

    Raises:
        EngineError: a variable is not set.
    """
    hidden: list[str] = []

    def value(match: re.Match[str]) -> str:
        found = secrets(match[1])
        if found is None:
            raise EngineError(
                f"{what}: the environment variable {match[1]} is not set",
                location=location,
                hint=f"export {match[1]}=...",
            )
        hidden.append(found)
        return found

    resolved = {name: _SECRET.sub(value, text) for name, text in options.items()}
    return Opened(resolved, tuple(hidden))


def placed(path: str, root: Path) -> str:
    """A path as Spark gets it: a relative one starts at `root`; a URL stays as it is."""
    if "://" in path or path.startswith("file:"):
        return path
    return str(Path(path) if Path(path).is_absolute() else root / path)
