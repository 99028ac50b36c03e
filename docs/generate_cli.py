"""Writes docs/cli.md from the commands: `make docs`. A test asserts that it is current."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "cli.md"
GLOBAL = ("config", "target", "debug")
EXIT_CODES = """\
| exit code | meaning |
|---|---|
| 0 | done |
| 1 | error; one line says what and where, a hint says what to type next |
| 2 | wrong usage |
| 3 | the plan is recorded and waits for `sqlmig approve` |
| 4 | rejected by the policy or a person, or the plan is blocked; nothing was run |
| 5 | outdated: what is deployed, or the plan that waits, is another one by now |
"""
NAMES = """\
## Names of revisions

Wherever a revision is taken, REV may be:

| name | means |
|---|---|
| `8f3c2a91d0be`, `8f3c` | an id, or its beginning if only one revision begins so |
| `head` | the newest revision; an error if there are several heads |
| `base` | the state before the first revision |
| `current` | the deployed revision |
| `+1`, `-1` | steps from the deployed revision |
| `8f3c+2`, `head-1` | steps from another one |
| `side`, `side@head`, `side@+1` | a branch label; its head; a step along its branch |
| `heads` | all heads (`merge`, `history -r`) |
"""


def reference() -> str:
    """The text of docs/cli.md."""
    from sqlmig.cli.app import SECTIONS, main

    context = click.Context(main, info_name="sqlmig")
    parts = [
        "# Commands",
        "Written by `make docs` from the commands; `sqlmig COMMAND --help` says the same.",
        _prose((main.help or "").partition("Exit codes:")[0]),
        "These options are taken by every command, before or after its name:",
        _options([p for p in main.params if p.name in GLOBAL]),
        EXIT_CODES.strip(),
        NAMES.strip(),
    ]
    for title, section in SECTIONS.items():
        parts.append(f"## {title}")
        parts.append(
            "\n".join(f"- [{name}](#{name}): {_lower(what)}" for name, (_, what) in section.items())
        )
        for name in section:
            command = main.get_command(context, name)
            assert command is not None
            parts += _command(name, command, context)
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: click.Command, parent: click.Context) -> list[str]:
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(["sqlmig", name, *command.collect_usage_pieces(context)])
    own = [p for p in command.params if isinstance(p, click.Option) and p.name not in GLOBAL]
    parts = [f"### {name}", f"    {usage}", _prose(command.help or "")]
    return [*parts, _options(own)] if own else parts


def _prose(text: str) -> str:
    """A help text as Markdown: a paragraph is a line; what click leaves as it is becomes code."""
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        if "\b" in paragraph:
            lines = paragraph.replace("\b", "").strip().splitlines()
            paragraphs.append("\n".join(f"    {line.strip()}" for line in lines))
        else:
            paragraphs.append(_marked(" ".join(paragraph.split())))
    return "\n\n".join(paragraphs)


def _marked(text: str) -> str:
    """Paths and names as code, so that Markdown leaves their stars and bars alone."""
    return re.sub(
        r"(?<![`\w/])(pipeline/(?:\*\.sql)?|revisions/|sqlmig\.yml|README\.md|\.gitignore)"
        r"(?=[\s,;.:]|$)",
        r"`\1`",
        text,
    )


def _options(options: Sequence[click.Parameter]) -> str:
    lines = ["| option | meaning |", "|---|---|"]
    for option in options:
        assert isinstance(option, click.Option)
        names = ", ".join(f"`{name}`" for name in option.opts)
        if not option.is_flag:
            kind = option.type
            value = (
                "|".join(map(str, kind.choices))
                if isinstance(kind, click.Choice)
                else option.metavar or "TEXT"
            )
            names += f" `{value}`".replace("|", "\\|")
        default = f" Default: `{option.default}`." if option.show_default else ""
        meaning = _marked(option.help or "").replace("|", "\\|")
        lines.append(f"| {names} | {meaning}{default} |")
    return "\n".join(lines)


def _lower(text: str) -> str:
    return _marked(f"{text[0].lower()}{text[1:]}".rstrip("."))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    TARGET.write_text(reference(), encoding="utf-8", newline="\n")
