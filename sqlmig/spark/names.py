"""Text for Spark: quoted names, strings and paths. It knows SQL's quoting and nothing else."""

from __future__ import annotations


def quoted(name: str) -> str:
    """An identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


def delta_name(path: str) -> str:
    """How SQL names the Delta table at a path."""
    return f"delta.{quoted(path)}"


def literal(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
