"""Splits Spark SQL into tokens, each with its place. It knows Spark's lexer, and no statement.

The rules follow `SqlBaseLexer.g4` of Spark 4: strings with backslash escapes and doubled quotes,
raw strings, dollar quotes, nested comments, and a line comment that a backslash carries over to the
next line. Every character that is neither white space nor in a comment is in exactly one token.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

WORD = "word"
QUOTED = "quoted"
STRING = "string"
NUMBER = "number"
HINT = "hint"
VARIABLE = "variable"
SYMBOL = "symbol"


class Token(NamedTuple):
    """A token: its kind, its exact text, and the offsets of its first and behind its last
    character."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The upper-case word of an unquoted token; for others, the text unchanged."""
        return self.text.upper() if self.kind == WORD else self.text

    @property
    def is_name(self) -> bool:
        """True for what can be an identifier."""
        return self.kind in (WORD, QUOTED)

    @property
    def name(self) -> str:
        """The identifier without its quotes, letter case kept."""
        return self.text[1:-1].replace("``", "`") if self.kind == QUOTED else self.text

    @property
    def folded(self) -> str:
        """The identifier as names are compared: without quotes, in lower case."""
        return self.name.lower()


class LexError(Exception):
    """A string, quoted name or comment that doesn't end; `offset` is where it begins."""

    def __init__(self, message: str, offset: int, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint


_STRING = (
    r"""[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\""""
    r"""|\$(?P<tag>[A-Za-z]*)\$.*?\$(?P=tag)\$"""
)
_LINE_COMMENT = r"--(?:\\\n|[^\r\n])*"
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<word>(?![rR]['"])[^\W\d]\w*)
    |(?P<comment>{_LINE_COMMENT}|/\*(?!\+))
    |(?P<symbol><=>|>>>|<<|>>|<=|>=|<>|!=|==|\|\||\|>|->|=>|::|:=|!<|!>|[(),*=+<>;\-\[\]%!|&^~:?@\\{{}}]|/(?!\*)|\.(?!\d))
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\w*)
    |(?P<string>{_STRING})
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<hint>/\*\+.*?\*/)
    |(?P<variable>\$\{{[^}}\n]*\}})
    |(?P<open>['"`])
    |(?P<other>\S)
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
_SPLIT = re.compile(
    rf"(?P<skip>{_LINE_COMMENT}|{_STRING}|`(?:[^`]|``)*`)|(?P<comment>/\*)|(?P<end>;)", re.DOTALL
)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")


def _comment_end(text: str, start: int) -> int:
    """The offset behind a bracketed comment that begins at `start`; comments nest, as in Spark."""
    depth, position = 1, start + 2
    while depth:
        edge = _COMMENT_EDGE.search(text, position)
        if edge is None:
            raise LexError("a comment is not closed", start, "close it with `*/`")
        depth += 1 if edge.group().startswith("/") else -1
        position = edge.end()
    return position


def tokenize(text: str) -> list[Token]:
    """The tokens of `text`, without white space and comments; hints `/*+ */` are tokens.

    Raises:
        LexError: a string, quoted name or comment doesn't end.
    """
    tokens: list[Token] = []
    append = tokens.append
    position = 0
    match_at = _TOKEN.match
    while match := match_at(text, position):
        kind = match.lastgroup
        assert kind is not None
        start, position = match.span(kind)
        if kind == "end":
            break
        if kind == "comment":
            if text[start] == "/":
                position = _comment_end(text, start)
            continue
        if kind == "open":
            quote = text[start]
            if quote == "`":
                raise LexError("a quoted name is not closed", start, "close it with a backtick")
            raise LexError("a string is not closed", start, f"close it with `{quote}`")
        append(Token(SYMBOL if kind == "other" else kind, match[kind], start, position))
    return tokens


@lru_cache(maxsize=256)
def split_statements(text: str) -> tuple[tuple[int, int], ...]:
    """The stretches of `text` between semicolons, as offsets; strings and comments are left whole.

    A string or comment that doesn't end is left to `tokenize` to report.
    """
    pieces: list[tuple[int, int]] = []
    start = position = 0
    while match := _SPLIT.search(text, position):
        position = match.end()
        if match.lastgroup == "comment":
            try:
                position = _comment_end(text, match.start())
            except LexError:
                break
        elif match.lastgroup == "end":
            pieces.append((start, match.start()))
            start = position
    pieces.append((start, len(text)))
    return tuple(pieces)


@lru_cache(maxsize=64)
def _line_starts(text: str) -> tuple[int, ...]:
    return (0, *(match.end() for match in re.finditer("\n", text)))


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The line and column of an offset, both counted from 1."""
    starts = _line_starts(text)
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1


_ESCAPE = re.compile(
    r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\([0-3][0-7]{2})|\\(.)|(''|\"\")", re.DOTALL
)
_ESCAPED = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": "\\%",
    "_": "\\_",
}


def string_value(text: str) -> str:
    """What a string token says: without quotes, escapes resolved as Spark does."""
    if text[0] in "rR":
        return text[2:-1]
    if text[0] == "$":
        tag = text[: text.index("$", 1) + 1]
        return text[len(tag) : -len(tag)]
    quote = text[0]

    def resolve(match: re.Match[str]) -> str:
        short, long, octal, other, doubled = match.groups()
        if doubled:
            return quote if doubled[0] == quote else doubled
        if short or long:
            return chr(int(short or long, 16))
        return chr(int(octal, 8)) if octal else _ESCAPED.get(other, other)

    return _ESCAPE.sub(resolve, text[1:-1])


def match_parentheses(words: Sequence[str]) -> dict[int, int]:
    """The index of the closing parenthesis for each opening one; the end for one left open.

    Returns {} when one closes that none opened.
    """
    closing: dict[int, int] = {}
    open_: list[int] = []
    for i, word in enumerate(words):
        if word == "(":
            open_.append(i)
        elif word == ")":
            if not open_:
                return {}
            closing[open_.pop()] = i
    for i in open_:
        closing[i] = len(words)
    return closing
