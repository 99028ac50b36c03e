"""Combines two programs that come from one: statement by statement. Pure; it knows no revisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmig.program.canonical import fingerprint
from sqlmig.program.forms import BrokenForm, ConnectorForm, read_form
from sqlmig.program.lexer import split_statements
from sqlmig.program.model import Program

Key = tuple[str, str]


@dataclass(frozen=True)
class Conflict:
    """A relation or connector that both sides changed, each in its own way."""

    what: str
    name: str


@dataclass(frozen=True)
class _Piece:
    """A statement with the comments before it; `key` is None for what stands after the last one."""

    key: Key | None
    text: str


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
    marks_base, marks_ours, marks_theirs = (_marks(p) for p in (base, ours, theirs))
    changed = [
        key
        for key in sorted(set(marks_base) | set(marks_theirs))
        if marks_base.get(key) != marks_theirs.get(key)
        and marks_ours.get(key) != marks_theirs.get(key)
    ]
    conflicts = tuple(
        Conflict(*key) for key in changed if marks_ours.get(key) != marks_base.get(key)
    )
    if conflicts:
        return ours.files, conflicts
    files = {path: _pieces(text) for path, text in ours.files.items()}
    places = _places(theirs.files)
    for key in changed:
        place = places.get(key)
        _put(files, key, place)
    return {path: "".join(p.text for p in pieces) for path, pieces in sorted(files.items())}, ()


def _put(files: dict[str, list[_Piece]], key: Key, place: tuple[str, _Piece] | None) -> None:
    for path, pieces in files.items():
        for index, piece in enumerate(pieces):
            if piece.key == key:
                pieces[index : index + 1] = [place[1]] if place else []
                return
        del path
    if place is not None:
        path, piece = place
        pieces = files.setdefault(path, [])
        end = len(pieces) - 1 if pieces and pieces[-1].key is None else len(pieces)
        before = pieces[end - 1].text if end else "\n"
        lead = "" if piece.text.startswith("\n") or before.endswith("\n\n") or not end else "\n\n"
        text = piece.text if piece.text.rstrip().endswith(";") else f"{piece.text};"
        pieces.insert(end, _Piece(key, f"{lead}{text}"))


def _marks(program: Program) -> dict[Key, str]:
    marks: dict[Key, str] = {}
    for name, relation in program.relations.items():
        marks[("relation", name)] = fingerprint(relation)
    for name, source in program.sources.items():
        marks[("source", name)] = fingerprint(source)
    for name, sink in program.sinks.items():
        marks[("sink", name)] = fingerprint(sink)
    return marks


def _places(files: Mapping[str, str]) -> dict[Key, tuple[str, _Piece]]:
    return {
        piece.key: (path, piece)
        for path, text in files.items()
        for piece in _pieces(text)
        if piece.key is not None
    }


def _pieces(text: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    begin = 0
    for start, end in split_statements(text):
        key = _key(text[start:end])
        if key is None:
            continue
        stop = end + 1 if text[end : end + 1] == ";" else end
        pieces.append(_Piece(key, text[begin:stop]))
        begin = stop
    if begin < len(text):
        pieces.append(_Piece(None, text[begin:]))
    return pieces


def _key(statement: str) -> Key | None:
    form = read_form(statement)
    if form is None or isinstance(form, BrokenForm):
        return None
    if isinstance(form, ConnectorForm):
        name = f"{form.relation.folded}.{form.name.folded}"
        return ("source" if form.is_source else "sink", name)
    return ("relation", form.name.folded)


def describe(conflicts: Sequence[Conflict]) -> str:
    """The conflicts in words: "relation `a` and source `b.s`"."""
    names = [f"{c.what} `{c.name}`" for c in conflicts]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
