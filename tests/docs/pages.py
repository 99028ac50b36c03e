"""The pages of the documentation taken apart: blocks, command lines, links. It checks nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(
    sorted(
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.md", "docs/*.md", "example_project/**/*.md")
        for path in ROOT.glob(pattern)
    )
)
_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)(?:`([^`\n]+)`|`` ?([^\n]+?) ?``)(?!`)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words behind it, its text, and where it begins."""

    page: str
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read(page: str) -> str:
    """The text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = read(page)
    for found in _FENCE.finditer(text):
        language, *words = found["info"].split() or [""]
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, language, tuple(words), found["text"])


def prose(page: str) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", read(page))


def spans(page: str) -> Iterator[str]:
    """The inline code of a page."""
    lines = [line for line in prose(page).splitlines() if not line.startswith("    ")]
    for found in _SPAN.finditer("\n".join(lines)):
        yield found[1] or found[2]


def links(page: str) -> Iterator[str]:
    """The targets of a page's links."""
    for found in _LINK.finditer(prose(page)):
        yield found[1]


def anchors(page: str) -> frozenset[str]:
    """What a link may name behind `#`: the headings, as GitHub writes them."""
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(prose(page))
    )


def typed_commands(page: str) -> Iterator[tuple[str, ...]]:
    """The arguments of the lines `sqlmig ...` that a reader may type."""
    for line in read(page).splitlines():
        found = re.fullmatch(r" {4,}(?:\$ )?sqlmig (.+)", line)
        if found:
            yield _arguments(found[1])


def mentioned_commands(page: str) -> Iterator[tuple[str, ...]]:
    """The arguments of `sqlmig ...` in the text, which may leave some out."""
    for span in spans(page):
        if span.startswith("sqlmig "):
            yield _arguments(span.removeprefix("sqlmig "))


def _arguments(text: str) -> tuple[str, ...]:
    words = shlex.split(text, comments=True)
    ends = [i for i, word in enumerate(words) if word in ("<", "|", ">", "&&", ";")]
    return tuple(words[: ends[0]] if ends else words)
