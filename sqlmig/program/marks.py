"""Conflict marks as Git writes them in its style `diff3`. It knows lines, nothing of SQL or Git."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARK = re.compile(r"^(?:<{7}|\|{7}|>{7})(?=[ \r\n]|\Z)", re.MULTILINE)
_OURS, _BASE, _THEIRS, _END = "<<<<<<<", "|||||||", "=======", ">>>>>>>"


@dataclass(frozen=True)
class Labels:
    """What stands behind the marks: the names of the two sides and of what both come from."""

    ours: str = "ours"
    base: str = "base"
    theirs: str = "theirs"


def marked(ours: str, base: str, theirs: str, labels: Labels) -> str:
    """The three texts between marks; each is "" or ends with a line end, as does the result."""
    return (
        f"{_OURS} {labels.ours}\n{ours}"
        f"{_BASE} {labels.base}\n{base}"
        f"{_THEIRS}\n{theirs}"
        f"{_END} {labels.theirs}\n"
    )


def marked_lines(ours: str, base: str, theirs: str, labels: Labels) -> str:
    """The three texts as one: lines that all begin or end with are outside of the marks."""
    texts = [text.splitlines(keepends=True) for text in (ours, base, theirs)]
    texts = [[line if line.endswith("\n") else f"{line}\n" for line in text] for text in texts]
    shortest = min(len(text) for text in texts)
    begin = 0
    while begin < shortest and len({text[begin] for text in texts}) == 1:
        begin += 1
    end = 0
    while end < shortest - begin and len({text[-1 - end] for text in texts}) == 1:
        end += 1
    mine, was, other = ("".join(text[begin : len(text) - end]) for text in texts)
    head, tail = texts[0][:begin], texts[0][len(texts[0]) - end :]
    return "".join([*head, marked(mine, was, other, labels), *tail])


def line_of_mark(text: str) -> int | None:
    """The number of the first line that begins with a conflict mark; None where there is none."""
    found = _MARK.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else None


def lines_of_conflicts(text: str) -> tuple[int, ...]:
    """The numbers of the lines at which conflicts begin."""
    lines = enumerate(text.split("\n"), 1)
    return tuple(number for number, line in lines if side_of_mark(line) == "ours")


def side_of_mark(line: str) -> str | None:
    """Whose lines follow this one: "ours", "base", "theirs", "both" after the last mark.

    Returns:
        None when the line is no mark.
    """
    word = line.partition(" ")[0]
    return {_OURS: "ours", _BASE: "base", _THEIRS: "theirs", _END: "both"}.get(word)
