"""How values are printed: JSON with exact numbers, tables. Data goes to stdout, talk to stderr."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import click

from sqlmig.wording import counted

_COLORS = {"error:": "red", "hint:": "cyan", "+": "green", "-": "red", "~": "yellow"}
_WHAT = r"(?:(?:streaming )?table|(?:materialized )?view|source|sink|function)"
_SIGN = re.compile(rf"^(?:error:|hint:|[ ]*[+~-](?= {_WHAT} ))", re.MULTILINE)


def say(text: str = "") -> None:
    """Talk, to stderr."""
    click.echo(painted(text), err=True)


def painted(text: str) -> str:
    """Text with `error:`, `hint:` and the signs of a program diff in colour.

    click takes the colours out again where there is no terminal, or NO_COLOR is set.
    """
    return _SIGN.sub(
        lambda found: click.style(
            found[0], fg=_COLORS[found[0].strip()], bold=found[0].endswith(":") or None
        ),
        text,
    )


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON to stdout."""
    click.echo(to_json(value, indent=indent))


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """A value as JSON. Decimals become numbers with all their digits; NaN and infinities, text."""
    marker = os.urandom(16).hex()

    def encode(other: Any) -> str:
        if isinstance(other, Decimal):
            return f"{marker}{other:f}" if other.is_finite() else str(other)
        return str(other)

    text = json.dumps(_finite(value), indent=indent, ensure_ascii=False, default=encode)
    return re.sub(f'"{marker}(-?[0-9.]+)"', r"\1", text)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def print_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a table to stdout, whole, also where the terminal is narrow."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.ASCII2, show_edge=True, header_style="bold")
    for column in columns:
        numeric = rows and all(
            isinstance(row[column], (int, float, Decimal)) and not isinstance(row[column], bool)
            for row in rows
            if row[column] is not None
        )
        table.add_column(
            Text(column), justify="right" if numeric else "left", no_wrap=True, ratio=None
        )
    for row in rows:
        table.add_row(*(Text(cell(row[column])) for column in columns))
    width = 10_000 if not sys.stdout.isatty() else None
    console = Console(file=sys.stdout, width=width, highlight=False, soft_wrap=True)
    console.print(table)
    say(counted(len(rows), "row"))


def print_csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as CSV with a header to stdout; NULL is an empty field."""
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        ["" if row[column] is None else cell(row[column]) for column in columns] for row in rows
    )
    click.echo(buffer.getvalue(), nl=False)


def cell(value: Any) -> str:
    """One value as text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (dict, list, tuple)):
        return to_json(value, indent=None)
    return str(value)


def is_interactive() -> bool:
    """Whether a person sits at a terminal who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()
