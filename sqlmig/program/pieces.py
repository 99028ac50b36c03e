"""The statements of a program's files, as pieces of text that put together give the files again.

It knows where a statement begins and ends and what it creates; not what it means. A file of
functions in Python is one piece: what its parts mean depends on the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlmig.program.declared import is_python
from sqlmig.program.forms import BrokenForm, ConnectorForm, read_form
from sqlmig.program.function_form import FunctionForm
from sqlmig.program.lexer import split_statements, tokenize
from sqlmig.program.marks import Labels, marked, marked_lines

Key = tuple[str, str]
"""What a statement creates and its name: ("relation", "a"), ("source", "a.s"), ("file", path)."""

_SAME_LINE = re.compile(r"[ \t]*--[^\n]*(?=\n|\Z)")
"""A comment behind a statement, in its last line."""


@dataclass(frozen=True)
class Piece:
    """A statement of a file.

    Args:
        key: what it creates; None for what stands after the last statement.
        text: the comments before it, and the statement without its semicolon.
        end: the semicolon, if there is one, and a comment in the same line.
        is_closed: there is a semicolon.
        is_marked: it holds a conflict, between marks.
    """

    key: Key | None
    text: str
    end: str = ""
    is_closed: bool = False
    is_marked: bool = False

    @property
    def core(self) -> tuple[str, str]:
        """What is compared as text: all but the space around it and the semicolon."""
        return self.text.strip(), self.end.replace(";", "").strip()

    @property
    def whole(self) -> str:
        """The statement with its comments and a semicolon, in lines of its own."""
        return f"{self.text.strip()}{self.end if self.is_closed else f';{self.end}'}\n"


Files = dict[str, list[Piece]]
Place = tuple[str, Piece]
"""A path, and the piece there."""


def read_files(files: Mapping[str, str]) -> Files:
    """The pieces of all files, path -> pieces; the last one of a file of SQL has no key."""
    return {
        path: [Piece(("file", path), text)] if is_python(path) else _pieces(text)
        for path, text in files.items()
    }


def places_of(files: Mapping[str, Sequence[Piece]]) -> dict[Key, Place]:
    """Where each statement stands, in the order of the files."""
    return {
        piece.key: (path, piece)
        for path, pieces in files.items()
        for piece in pieces
        if piece.key is not None
    }


def put(files: Files, key: Key, place: Place | None) -> None:
    """Let the statement `key` be the one at `place`: replaced, added at the end, or removed."""
    for pieces in files.values():
        for index, piece in enumerate(pieces):
            if piece.key == key:
                pieces[index : index + 1] = [place[1]] if place else []
                return
    if place is None:
        return
    path, piece = place
    pieces = files.setdefault(path, [])
    end = len(pieces) - 1 if pieces and pieces[-1].key is None else len(pieces)
    pieces.insert(end, replace(piece, text=f"\n\n{piece.text.lstrip(chr(10))}"))


def put_marked(
    files: Files,
    key: Key,
    ours: Place | None,
    base: Place | None,
    theirs: Place | None,
    labels: Labels,
) -> None:
    """Let the statement `key` be a conflict of the three; at least one of them is there."""
    place = next(place for place in (ours, theirs, base) if place)
    if key[0] == "file":
        mine, was, other = (side[1].text if side else "" for side in (ours, base, theirs))
        text = marked_lines(mine, was, other, labels)
    else:
        mine, was, other = (side[1].whole if side else "" for side in (ours, base, theirs))
        text = f"\n\n{marked(mine, was, other, labels).rstrip(chr(10))}"
    put(files, key, (place[0], Piece(key, text, is_closed=True, is_marked=True)))


def put_tails(files: Files, base: Files, theirs: Files) -> None:
    """Take what stands after a file's last statement from `theirs` where only it changed that."""
    for path, pieces in theirs.items():
        was, mine, other = (_tail(part.get(path, ())) for part in (base, files, theirs))
        if mine is None and other is not None:
            if path in files or not any(piece.key for piece in pieces):
                files.setdefault(path, []).append(other)
        elif was and mine and other and mine.core == was.core != other.core:
            files[path][-1] = other


def _tail(pieces: Sequence[Piece]) -> Piece | None:
    return pieces[-1] if pieces and pieces[-1].key is None else None


def text_of(pieces: Sequence[Piece]) -> str:
    """The file's text: pieces that came together get the line ends and semicolons they lack."""
    parts: list[str] = []
    for index, piece in enumerate(pieces):
        text = piece.text
        if not index:
            text = text.lstrip("\n")
        elif not text.startswith("\n") and piece.key is not None:
            text = f"\n\n{text}"
        elif text and not text.startswith("\n") and pieces[index - 1].is_marked:
            text = f"\n{text}"
        is_last = all(later.key is None for later in pieces[index + 1 :])
        semicolon = "" if is_last or piece.key is None or piece.is_closed else ";"
        parts += [text, semicolon, piece.end]
    text = "".join(parts)
    return text if not text or text.endswith("\n") else f"{text}\n"


def _pieces(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    begin = 0
    for start, end in split_statements(text):
        statement = text[start:end]
        key = _key(statement)
        if key is None:
            continue
        stop = start + tokenize(statement)[-1].end
        is_closed = text[end : end + 1] == ";"
        after = end + 1 if is_closed else stop
        comment = _SAME_LINE.match(text, after)
        after = comment.end() if comment else after
        pieces.append(Piece(key, text[begin:stop], text[stop:after], is_closed))
        begin = after
    pieces.append(Piece(None, text[begin:]))
    return pieces


def _key(statement: str) -> Key | None:
    """What a statement creates; its text where a variable keeps its head from being read."""
    form = read_form(statement)
    if form is None:
        return None
    if isinstance(form, BrokenForm):
        return ("statement", " ".join(statement.split()))
    if isinstance(form, ConnectorForm):
        name = f"{form.relation.folded}.{form.name.folded}"
        return ("source" if form.is_source else "sink", name)
    return ("function" if isinstance(form, FunctionForm) else "relation", form.name.folded)
