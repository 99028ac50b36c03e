"""Combines two programs that come from one: statement by statement. Pure; it knows no revisions.

A three-way merge as Git's, whose unit is a statement instead of a line: what only one side changed
is taken from that side, its comments too; what both changed counts as one change when it means the
same, and is a conflict otherwise. So is what one side removed and the other reads from now on.
Whether the combined statements go together otherwise is for the parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlmig.errors import Location
from sqlmig.program.canonical import fingerprint, plain_text
from sqlmig.program.marks import Labels, lines_of_conflicts
from sqlmig.program.model import Language, Program, View
from sqlmig.program.pieces import (
    Files,
    Key,
    Place,
    places_of,
    put,
    put_marked,
    put_tails,
    read_files,
    text_of,
)
from sqlmig.program.query import read_query


@dataclass(frozen=True)
class Conflict:
    """A relation, connector, function or file that both sides changed, each in its own way.

    Args:
        what: "relation", "source", "sink", "function", "file" or "statement".
        name: of the thing; of a connector `<relation>.<connector>`, of a file its path.
        readers: one side removed it, and these statements of the other one are new or changed and
            read it; none where both sides changed it.
        location: its marks in the combined files.
    """

    what: str
    name: str
    readers: tuple[str, ...] = ()
    location: Location | None = field(default=None, compare=False)


def combine(
    base: Program,
    ours: Program,
    theirs: Program,
    *,
    unknown: frozenset[Key] = frozenset(),
    labels: Labels = Labels(),  # noqa: B008 - it is frozen
) -> tuple[Mapping[str, str], tuple[Conflict, ...]]:
    """Bring the changes from `base` to `theirs` into `ours`.

    Args:
        base: the program that both come from.
        ours, theirs: the two sides.
        unknown: statements of which it is not known what they were in the base: a difference
            between the sides is a conflict.
        labels: what the marks of a conflict call the three.

    Returns:
        The combined files, path -> text, and the conflicts, sorted; each stands in the files as
        ours, base and theirs between marks.
    """
    from_base, from_ours, from_theirs = (read_files(p.files) for p in (base, ours, theirs))
    places_base, places_ours, places_theirs = map(places_of, (from_base, from_ours, from_theirs))
    spelling = any(p.spelling_counts for p in (base, ours, theirs))
    still_read = dict(
        (*_still_read(base, ours, theirs, spelling), *_still_read(base, theirs, ours, spelling))
    )
    files = {path: list(pieces) for path, pieces in from_ours.items()}
    conflicts: dict[Key, Conflict] = {}
    for key in [*places_theirs, *sorted((set(places_base) | unknown) - set(places_theirs))]:
        was, mine, other = (p.get(key) for p in (places_base, places_ours, places_theirs))
        is_known = key not in unknown
        if key in still_read:
            conflicts[key] = still_read[key]
        elif _is_same_text(mine, other) or (is_known and _is_same_text(was, other)):
            continue
        elif not (is_known and _is_same_text(was, mine)):
            if _is_same(key, ours, theirs, spelling):
                continue
            if is_known and _is_same(key, base, theirs, spelling):
                continue
            if not (is_known and _is_same(key, base, ours, spelling)):
                conflicts[key] = Conflict(*key)
        if key in conflicts:
            put_marked(files, key, mine, was, other, labels)
        else:
            put(files, key, other)
    put_tails(files, from_base, from_theirs)
    for path in set(from_ours) & set(from_base) - set(from_theirs):
        if all(piece.key is None for piece in files[path]):
            del files[path]
    texts = {path: text_of(pieces) for path, pieces in sorted(files.items())}
    return texts, tuple(_located(conflicts, files, texts))


def differences(one: Program, other: Program) -> frozenset[Key]:
    """The statements that don't mean the same in both programs."""
    spelling = one.spelling_counts or other.spelling_counts
    places = places_of(read_files(one.files))
    others = places_of(read_files(other.files))
    return frozenset(
        key
        for key in {*places, *others}
        if not _is_same_text(places.get(key), others.get(key))
        and not _is_same(key, one, other, spelling)
    )


def _located(
    conflicts: Mapping[Key, Conflict], files: Files, texts: Mapping[str, str]
) -> Iterator[Conflict]:
    """The conflicts with the places of their marks, sorted by kind and name."""
    places: dict[Key, Location] = {}
    for path, pieces in files.items():
        marked = [piece.key for piece in pieces if piece.is_marked and piece.key]
        for key, line in zip(marked, lines_of_conflicts(texts[path]), strict=False):
            places[key] = Location(path, line)
    found = (replace(conflict, location=places.get(key)) for key, conflict in conflicts.items())
    return iter(sorted(found, key=lambda c: (c.what, c.name)))


def _still_read(
    base: Program, gone: Program, kept: Program, spelling: bool
) -> Iterator[tuple[Key, Conflict]]:
    """What `gone` removed and `kept` didn't, while a statement that `kept` changed reads it.

    A statement that `kept` left as it was is in `gone` one that doesn't read it, or none.
    """
    for name in sorted(set(base.relations) & set(kept.relations) - set(gone.relations)):
        readers = _changed(_readers_of_relation(kept, name), base, kept, spelling)
        if readers:
            yield ("relation", name), Conflict("relation", name, readers)
    for name in sorted(set(base.functions) & set(kept.functions) - set(gone.functions)):
        function = kept.functions[name]
        readers = _changed(_callers(kept, name), base, kept, spelling)
        if readers and function.language is Language.SQL:
            yield ("function", name), Conflict("function", name, readers)
        elif readers and function.location:
            yield ("file", function.location.path), Conflict("function", name, readers)


def _readers_of_relation(program: Program, name: str) -> Iterator[Key]:
    for view in program.views.values():
        called = program.called(view.called)
        by_functions = frozenset[str]().union(*(program.functions[c].reads for c in called))
        if name in view.reads - by_functions:
            yield "relation", view.name
    yield from (("function", f.name) for f in program.functions.values() if name in f.reads)
    yield from (("source", n) for n, s in program.sources.items() if s.table == name)
    yield from (("sink", n) for n, s in program.sinks.items() if s.relation == name)


def _callers(program: Program, name: str) -> Iterator[Key]:
    for view in program.views.values():
        if name in view.called:
            yield "relation", view.name
    yield from (("function", f.name) for f in program.functions.values() if name in f.calls)


def _changed(keys: Iterable[Key], base: Program, side: Program, spelling: bool) -> tuple[str, ...]:
    """The names of those that are not the same in `base`, sorted."""
    return tuple(sorted(key[1] for key in keys if not _is_same(key, base, side, spelling)))


def _is_same_text(one: Place | None, other: Place | None) -> bool:
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
