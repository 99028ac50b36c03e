"""What a sink's definition asks for, and what is wrong with it. It opens nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from typing import TypeVar

from sqlmig.program.model import Program, Relation, RelationKind, Sink, Table

OP = "_op"
"""The column that says what became of a row."""
BATCH = "_batch"
"""The column that says with which batch a row was sent, where its place doesn't."""


class SinkKind(str, Enum):
    """Where a sink writes to."""

    FILES = "files"
    KAFKA = "kafka"
    DELTA = "delta"


class CutoverMode(str, Enum):
    """What a sink sends when its relation is made anew, or is another one from now on."""

    DIFFERENCE = "difference"
    SNAPSHOT = "snapshot"
    CONTINUE = "continue"


class Compatibility(str, Enum):
    """Which readers and which rows, old or new, an upgrade may not part."""

    NONE = "none"
    BACKWARD = "backward"
    FORWARD = "forward"
    FULL = "full"


_TIMES = "dateFormat timestampFormat timestampNTZFormat timeZone locale"
_JSON = f"{_TIMES} ignoreNullFields"
_CSV = (
    f"{_TIMES} sep delimiter quote escape charToEscapeQuoteEscaping escapeQuotes quoteAll "
    "nullValue emptyValue ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace"
)
_TEXT_FILES = "compression codec encoding charset lineSep"
_FILE_OPTIONS: Mapping[str, str] = {
    "avro": "compression",
    "csv": f"{_CSV} {_TEXT_FILES} header",
    "json": f"{_JSON} {_TEXT_FILES}",
    "orc": "compression",
    "parquet": "compression",
}
_VALUE_OPTIONS: Mapping[str, str] = {"avro": "", "csv": _CSV, "json": _JSON}
_FORMATS = (*sorted(_FILE_OPTIONS), "kafka", "delta")
_OF_EVERY_SINK = ("key", "cutover", "compatibility")
SERVERS = "kafka.bootstrap.servers"


@dataclass(frozen=True)
class SinkMistake:
    """What is wrong with a sink's definition."""

    message: str
    hint: str


@dataclass(frozen=True)
class SinkOptions:
    """What a sink's definition asks for.

    Args:
        kind: where it writes to.
        format: of the files or of Kafka's values; `delta` for a Delta table.
        key: the columns that name a row, spelled as the relation has them; () for an unkeyed sink.
        place: `path` or `topic`, as the user wrote it.
        options: for Spark's writer, secrets unresolved; names in lower case.
        cutover: what a cutover sends. compatibility: what a change of the columns may not break.
        mistakes: what is wrong; with any, the rest means little.
    """

    kind: SinkKind
    format: str
    key: tuple[str, ...] = ()
    place: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    mistakes: tuple[SinkMistake, ...] = ()
    cutover: CutoverMode = CutoverMode.DIFFERENCE
    compatibility: Compatibility = Compatibility.NONE

    @property
    def reserved(self) -> tuple[str, ...]:
        """Names of the columns that the sink adds; the relation can't have them."""
        match self.kind:
            case SinkKind.FILES:
                return (OP,)
            case _:
                return () if self.key else (OP, BATCH)


def read_sink_options(program: Program, sink: Sink) -> SinkOptions:
    """What `sink` asks for, checked as far as the program tells."""
    relation = program.relations[sink.relation]
    given = {name.lower(): text for name, text in sink.options}
    name = sink.format.lower()
    key, mistakes = _key(given.pop("key", None), relation)
    kind = (
        SinkKind(name) if name in (SinkKind.KAFKA.value, SinkKind.DELTA.value) else SinkKind.FILES
    )
    mistakes = [*_relation_mistakes(relation), *mistakes]
    cutover = _choice(CutoverMode, given.pop("cutover", "difference"), "cutover", mistakes)
    compatibility = _choice(
        Compatibility, given.pop("compatibility", "none"), "compatibility", mistakes
    )
    if name not in _FORMATS:
        mistakes.append(_unknown("sink format", sink.format, _FORMATS))
        return SinkOptions(kind, name, key, mistakes=tuple(mistakes))
    place_name = "topic" if kind is SinkKind.KAFKA else "path"
    place = given.pop(place_name, "")
    form = given.pop("format", "json").lower() if kind is SinkKind.KAFKA else name
    read = SinkOptions(kind, form, key, place, given, (), cutover, compatibility)
    if not place:
        mistakes.append(_missing(place_name, given, _EXAMPLES[kind]))
    mistakes += _place_mistakes(program, sink, read)
    mistakes += _option_mistakes(read)
    mistakes += _reserved_mistakes(read, relation)
    return replace(read, mistakes=tuple(mistakes))


_Choice = TypeVar("_Choice", CutoverMode, Compatibility)


def _choice(kind: type[_Choice], text: str, option: str, mistakes: list[SinkMistake]) -> _Choice:
    """The value of an option that has few; the first of them where the text is none."""
    values = {str(each.value): each for each in kind}
    found = values.get(text.strip().lower())
    if found is None:
        mistakes.append(_unknown(f"`{option}`", text, values))
    return found or next(iter(kind))


_EXAMPLES: Mapping[SinkKind, str] = {
    SinkKind.FILES: "path 'out/grades'",
    SinkKind.DELTA: "path 'out/grades'",
    SinkKind.KAFKA: "topic 'grades'",
}


def column_names(relation: Relation) -> tuple[str, ...] | None:
    """The relation's columns; None where they aren't known without Spark."""
    if isinstance(relation, Table):
        return tuple(column.name for column in relation.columns)
    return relation.columns or relation.output


def _key(text: str | None, relation: Relation) -> tuple[tuple[str, ...], list[SinkMistake]]:
    if text is None:
        return (relation.primary_key if isinstance(relation, Table) else ()), []
    names = [part.strip().strip("`") for part in text.split(",")] if text.strip() else []
    columns = column_names(relation)
    mistakes: list[SinkMistake] = []
    key: list[str] = []
    for name in names:
        known = {column.lower(): column for column in columns or names}
        if name.lower() not in known:
            mistakes.append(
                SinkMistake(
                    f"key column `{name}` is no column of `{relation.name}`",
                    _suggestion(name, columns or ())
                    or f"its columns are {', '.join(columns or ())}",
                )
            )
            continue
        key.append(known[name.lower()])
    if len({name.lower() for name in key}) < len(key):
        mistakes.append(SinkMistake("a key column is given twice", "name each column once"))
    return tuple(key), mistakes


def _relation_mistakes(relation: Relation) -> list[SinkMistake]:
    if relation.kind is not RelationKind.VIEW:
        return []
    return [
        SinkMistake(
            f"it reads the view `{relation.name}`, whose rows are not stored",
            f"write CREATE MATERIALIZED VIEW {relation.name} AS ...",
        )
    ]


def _option_mistakes(read: SinkOptions) -> list[SinkMistake]:
    if read.kind is SinkKind.KAFKA:
        if read.format not in _VALUE_OPTIONS:
            return [_unknown("value format", read.format, tuple(_VALUE_OPTIONS))]
        known = _VALUE_OPTIONS[read.format].split()
        mistakes = []
        if not read.options.get(SERVERS):
            example = f"'{SERVERS}' 'localhost:9092'"
            mistakes.append(_missing(SERVERS, read.options, example))
        given = [name for name in read.options if not name.startswith("kafka.")]
        names = ("topic", "format", SERVERS, *_OF_EVERY_SINK, *known)
    elif read.kind is SinkKind.DELTA:
        known, mistakes, given = [], [], list(read.options)
        names = ("path", *_OF_EVERY_SINK)
    else:
        known, mistakes, given = _FILE_OPTIONS[read.format].split(), [], list(read.options)
        names = ("path", *_OF_EVERY_SINK, *known)
    lower = {name.lower() for name in known}
    return [*mistakes, *(_unknown("option", g, names) for g in sorted(given) if g not in lower)]


def _place_mistakes(program: Program, sink: Sink, read: SinkOptions) -> list[SinkMistake]:
    """Folders of batches can't be shared: who reads them could not tell whose a batch is."""
    if read.kind is not SinkKind.FILES or not read.place:
        return []
    return [
        SinkMistake(
            f"it has the `path` of sink `{other.connector}`", "give each a `path` of its own"
        )
        for other in program.sinks.values()
        if other.connector != sink.connector
        and other.format.lower() in _FILE_OPTIONS
        and {n.lower(): text for n, text in other.options}.get("path") == read.place
    ]


def _reserved_mistakes(read: SinkOptions, relation: Relation) -> list[SinkMistake]:
    columns = {name.lower() for name in column_names(relation) or ()}
    return [
        SinkMistake(
            f"`{relation.name}` has a column `{name}`, which the sink adds",
            f"select `{name}` under another name",
        )
        for name in read.reserved
        if name in columns
    ]


def _missing(name: str, given: Iterable[str], example: str) -> SinkMistake:
    close = get_close_matches(name, given, n=1)
    hint = f"did you mean `{name}` by `{close[0]}`?" if close else f"OPTIONS ({example})"
    return SinkMistake(f"it has no `{name}`", hint)


def _unknown(what: str, name: str, known: Iterable[str]) -> SinkMistake:
    names = tuple(known)
    hint = _suggestion(name, names) or f"there are {', '.join(sorted(names))}"
    return SinkMistake(f"there is no {what} `{name}`", hint)


def _suggestion(name: str, known: Iterable[str]) -> str | None:
    spelled = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), spelled, n=1)
    return f"did you mean `{spelled[close[0]]}`?" if close else None
