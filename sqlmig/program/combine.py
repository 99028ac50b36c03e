"""Combines two programs that come from one: statement by statement. Pure; it knows no revisions.

A file of functions in Python is one unit: what its parts mean depends on the others.

A three-way merge as Git's, whose unit is a statement instead of a line: what only one side changed
is taken from that side, its comments too; what both changed counts as one change when it means the
same, and is a conflict otherwise. Whether the combined statements go together is for the parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlmig.program.canonical import fingerprint, plain_text
from sqlmig.program.declared import is_python
from sqlmig.program.forms import BrokenForm, ConnectorForm, read_form
from sqlmig.program.function_form import FunctionForm
from sqlmig.program.lexer import split_statements, tokenize
from sqlmig.program.model import Program, View
from sqlmig.program.query import read_query

Key = tuple[str, str]
_SAME_LINE = re.compile(r"[ \t]*--[^\n]*(?=\n|\Z)")
"""A comment behind a statement, in its last line."""


@dataclass(frozen=True)
class Conflict:
    """A relation, connector, function or file that both sides changed, each in its own way."""

    what: str
    name: str


@dataclass(frozen=True)
class _Piece:
    """A statement of a file.

    Args:
        key: what it creates; None for what stands after the last statement.
        text: the comments before it, and the statement without its semicolon.
        end: the semicolon, if there is one, and a comment in the same line.
        is_closed: there is a semicolon.
    """

    key: Key | None
    text: str
    end: str = ""
    is_closed: bool = False

    @property
    def core(self) -> tuple[str, str]:
        """What is compared as text: all but the space around it and the semicolon."""
        return self.text.strip(), self.end.replace(";", "").strip()


_Files = Mapping[str, Sequence[_Piece]]


def combine(
    base: Program, ours: Program, theirs: Program
) -> tuple[Mapping[str, str], tuple[Conflict, ...]]:
    """Bring the changes from `base` to `theirs` into `ours`.

    Args:
        base: the program that both come from.
        ours, theirs: the two sides.

    Returns:
        The combined files, path -> text, and what both sides changed differently; with conflicts
        the files are those of `ours`.
    """
    from_base, from_ours, from_theirs = (_files(p) for p in (base, ours, theirs))
    places_base, places_ours, places_theirs = map(_places, (from_base, from_ours, from_theirs))
    spelling = any(p.spelling_counts for p in (base, ours, theirs))
    files = {path: list(pieces) for path, pieces in from_ours.items()}
    conflicts: list[Conflict] = []
    for key in [*places_theirs, *sorted(set(places_base) - set(places_theirs))]:
        was, mine, other = (p.get(key) for p in (places_base, places_ours, places_theirs))
        if _is_same_text(was, other) or _is_same_text(mine, other):
            continue
        if not _is_same_text(was, mine):
            if _is_same(key, ours, theirs, spelling) or _is_same(key, base, theirs, spelling):
                continue
            if not _is_same(key, base, ours, spelling):
                conflicts.append(Conflict(*key))
                continue
        _put(files, key, other)
    if conflicts:
        return ours.files, tuple(sorted(conflicts, key=lambda c: (c.what, c.name)))
    _put_tails(files, from_base, from_theirs)
    for path in set(from_ours) & set(from_base) - set(from_theirs):
        if all(piece.key is None for piece in files[path]):
            del files[path]
    return {path: _text(pieces) for path, pieces in sorted(files.items())}, ()


def _is_same_text(one: tuple[str, _Piece] | None, other: tuple[str, _Piece] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one[1].core == other[1].core


def _is_same(key: Key, one: Program, other: Program, spelling: bool) -> bool:
    """Whether a statement means the same in both programs; what it reads is not its own."""
    what, name = key
    if what == "file":
        return one.files.get(name) == other.files.get(name)
    if what == "function":
        return _function(one, name, spelling) == _function(other, name, spelling)
    if what == "source" or what == "sink":
        first = (one.sources if what == "source" else one.sinks).get(name)
        second = (other.sources if what == "source" else other.sinks).get(name)
        if first is None or second is None:
            return first is second
        return fingerprint(first) == fingerprint(second)
    old, new = one.relations.get(name), other.relations.get(name)
    if old is None or new is None:
        return what == "relation" and old is new
    if not isinstance(old, View) or not isinstance(new, View):
        return old == new if spelling else fingerprint(old) == fingerprint(new)
    if old.kind is not new.kind or [c.lower() for c in old.columns] != [
        c.lower() for c in new.columns
    ]:
        return False
    if spelling:
        return old.columns == new.columns and _plain(old) == _plain(new)
    return _own(old.canonical) == _own(new.canonical) or _plain(old) == _plain(new)


def _function(program: Program, name: str, spelling: bool) -> tuple[str, ...]:
    """What a function is by itself, whatever it calls; () where there is none."""
    function = program.functions.get(name)
    if function is None:
        return ()
    own = (function.language.value, function.signature, function.body)
    return (*own, function.spelled) if spelling else own


def _plain(view: View) -> str:
    return plain_text(read_query(view.query))


def _own(canonical: str) -> str:
    """The canonical text without what its stars stand for, which is decided by what it reads."""
    return canonical.partition("\n")[0]


def _put(files: dict[str, list[_Piece]], key: Key, place: tuple[str, _Piece] | None) -> None:
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


def _put_tails(files: dict[str, list[_Piece]], base: _Files, theirs: _Files) -> None:
    """Take what stands after a file's last statement from `theirs` where only it changed that."""
    for path, pieces in theirs.items():
        was, mine, other = (_tail(part.get(path, ())) for part in (base, files, theirs))
        if mine is None and other is not None:
            if path in files or not any(piece.key for piece in pieces):
                files.setdefault(path, []).append(other)
        elif was and mine and other and mine.core == was.core != other.core:
            files[path][-1] = other


def _tail(pieces: Sequence[_Piece]) -> _Piece | None:
    return pieces[-1] if pieces and pieces[-1].key is None else None


def _text(pieces: Sequence[_Piece]) -> str:
    parts: list[str] = []
    for index, piece in enumerate(pieces):
        text = piece.text
        if not index:
            text = text.lstrip("\n")
        elif piece.key is not None and not text.startswith("\n"):
            text = f"\n\n{text}"
        is_last = all(later.key is None for later in pieces[index + 1 :])
        semicolon = "" if is_last or piece.key is None or piece.is_closed else ";"
        parts += [text, semicolon, piece.end]
    text = "".join(parts)
    return text if not text or text.endswith("\n") else f"{text}\n"


def _files(program: Program) -> dict[str, list[_Piece]]:
    return {
        path: [_Piece(("file", path), text)] if is_python(path) else _pieces(text)
        for path, text in program.files.items()
    }


def _places(files: _Files) -> dict[Key, tuple[str, _Piece]]:
    return {
        piece.key: (path, piece)
        for path, pieces in files.items()
        for piece in pieces
        if piece.key is not None
    }


def _pieces(text: str) -> list[_Piece]:
    pieces: list[_Piece] = []
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
        pieces.append(_Piece(key, text[begin:stop], text[stop:after], is_closed))
        begin = after
    pieces.append(_Piece(None, text[begin:]))
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


def describe(conflicts: Sequence[Conflict]) -> str:
    """The conflicts in words: "relation `a` and source `b.s`"."""
    names = [f"{c.what} `{c.name}`" for c in conflicts]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
