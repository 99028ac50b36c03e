"""Tells a preview: lines for a terminal, Markdown for a pull request. It decides nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from sqlmig.planning.preview import Difference, Preview
from sqlmig.wording import counted

_LONGEST = 60
"""The longest value that is shown whole."""


def preview_lines(preview: Preview) -> Iterator[str]:
    """The lines that `plan --preview` adds to the text."""
    yield "data:"
    if not preview.differences:
        yield "  no relation gets other rows"
    for difference in preview.differences:
        yield f"  {difference.kind} {difference.relation}: {summary(difference)}"
        for sign, text in _samples(difference):
            yield f"      {sign} {text}"
    for note in preview.notes:
        yield f"  note: {note}"


def preview_markdown(preview: Preview) -> list[str]:
    """The section that `plan --preview --format markdown` adds."""
    lines = ["**Data, if it were deployed now:**", ""]
    if not preview.differences:
        lines.append("No relation gets other rows.")
    else:
        lines += [
            "| relation | rows before | after | added | removed | changed | columns |",
            "|---|--:|--:|--:|--:|--:|---|",
        ]
        lines += [_row(difference) for difference in preview.differences]
    for difference in preview.differences:
        shown = list(_samples(difference))
        if shown:
            by = f", rows told apart by {_named(difference.key)}" if difference.key else ""
            lines += [
                "",
                "<details>",
                f"<summary>Samples of <code>{_html(difference.relation)}</code>{by}</summary>",
                "",
                *_fenced([f"{sign} {text}" for sign, text in shown]),
                "",
                "</details>",
            ]
    for note in preview.notes:
        lines += ["", f"*{note[0].upper()}{note[1:]}.*"]
    return lines


def summary(difference: Difference) -> str:
    """What differs, in a line."""
    if difference.unknown:
        return f"not previewed: {difference.unknown}"
    if difference.is_empty:
        return f"the same {counted(difference.after or 0, 'row')}"
    parts = [
        f"{count:,} {word}"
        for count, word in (
            (difference.added, "added"),
            (difference.removed, "removed"),
            (difference.changed, "changed"),
        )
        if count
    ]
    parts += [f"column {name} added" for name in difference.new_columns]
    parts += [f"column {name} dropped" for name in difference.lost_columns]
    told = (
        f"{', '.join(parts)}; {difference.before or 0:,} -> {counted(difference.after or 0, 'row')}"
    )
    by = f", told apart by {', '.join(difference.key)}" if difference.changed else ""
    return told + by


def _row(difference: Difference) -> str:
    name = f"`{difference.relation}`"
    if difference.unknown:
        return f"| {name} | | | | | | not previewed: {_cell(difference.unknown)} |"
    columns = [f"+ `{name}`" for name in difference.new_columns]
    columns += [f"- `{name}`" for name in difference.lost_columns]
    changed = f"{difference.changed:,}" if difference.key else ""
    cells = (
        name,
        f"{difference.before or 0:,}",
        f"{difference.after or 0:,}",
        f"{difference.added:,}",
        f"{difference.removed:,}",
        changed,
        _cell(", ".join(columns)),
    )
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def _samples(difference: Difference) -> Iterator[tuple[str, str]]:
    for row in difference.samples.removed:
        yield "-", _told(row)
    for row in difference.samples.added:
        yield "+", _told(row)
    for before, after in difference.samples.changed:
        key = ", ".join(f"{name}={_value(after.get(name))}" for name in difference.key)
        changes = ", ".join(
            f"{name}: {_value(before[name])} -> {_value(after[name])}"
            for name in after
            if name in before and _value(before[name]) != _value(after[name])
        )
        yield "~", f"{key}: {changes}"


def _told(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in row.items())


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, Decimal):
        text = f"{value:f}"
    elif isinstance(value, str):
        text = " ".join(value.split())
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _fenced(lines: list[str]) -> list[str]:
    """A block of code that no value in it can end."""
    longest = max((len(run) for line in lines for run in _ticks(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}diff", *lines, fence]


def _ticks(line: str) -> list[str]:
    return "".join(c if c == "`" else " " for c in line).split()


def _named(names: tuple[str, ...]) -> str:
    return ", ".join(f"<code>{_html(name)}</code>" for name in names)


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
