"""The program: relations and connectors of a pipeline at one revision. It holds, and parses
nothing."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from sqlmig.errors import Location


class RelationKind(str, Enum):
    """What a relation is; the words of the SQL statement that creates it."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    STREAMING_TABLE = "streaming table"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        name: as written, without quotes; compared without regard to letter case.
        type: Spark's type, canonical (`decimal(5,2)`, `array<struct<a:int>>`), lower case.
        nullable: False after NOT NULL, and for a primary key's columns.
        comment: text of COMMENT, or None.
        default: SQL text of DEFAULT, or None.
    """

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None


@dataclass(frozen=True)
class Table:
    """An input table: kept in Delta, fed by sources and by INSERT; with a key, later rows
    replace.

    `partitioned_by` names the columns by whose values its files lie apart, as the columns spell it.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    comment: str | None = None
    location: Location | None = field(default=None, compare=False)
    partitioned_by: tuple[str, ...] = ()

    kind = RelationKind.TABLE
    is_stored = True

    @property
    def layout(self) -> tuple[str, ...]:
        """The columns that it is partitioned by, in lower case."""
        return tuple(name.lower() for name in self.partitioned_by)


UNITS: Mapping[str, int] = {"HOUR": 3600, "DAY": 86400, "WEEK": 604800}
"""Units of time in a statement, and their seconds."""


class Language(str, Enum):
    """What a function is written in."""

    SQL = "SQL"
    PYTHON = "Python"


@dataclass(frozen=True)
class Function:
    """A function of the program.

    Args:
        name: lower case, without quotes.
        text: SQL: the statement from the name on, unchanged; Python: the whole text of its file.
        signature: canonical: parameters, what it returns, whether it is deterministic.
        body: canonical: what it computes; for Python with all that it depends on in its file.
        spelled: as `signature` and `body`, with the letter case of names.
        packages: pinned packages, `name==version`, sorted.
        calls: functions of the program that it calls directly.
        reads: relations of the program that it reads directly.
        is_read: what it reads is certain; else it reads at most `reads`.
        volatile: equal arguments may give different values, by itself or by what it calls.
        entry: its name as written.
        returns: Spark's type, for a function in Python.
        mark: fingerprint of the function and of all that it calls.
        spelled_mark: the same, with the letter case of names.
        shown: the body as written, for messages.
        location: where it is declared.
    """

    name: str
    language: Language
    text: str
    signature: str
    body: str
    spelled: str = ""
    packages: tuple[str, ...] = ()
    calls: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    is_read: bool = True
    volatile: bool = False
    entry: str = ""
    returns: str = ""
    mark: str = ""
    spelled_mark: str = ""
    shown: str = field(default="", compare=False)
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, order=True)
class Call:
    """A function that a query calls: its name, and its two fingerprints."""

    name: str
    mark: str
    spelled_mark: str


@dataclass(frozen=True)
class View:
    """A relation that a query defines: a view, a materialized view or a streaming table.

    Args:
        name: lower case, without quotes.
        kind: VIEW, MATERIALIZED_VIEW or STREAMING_TABLE.
        query: the user's text from the first to the last character of the query, unchanged.
        reads: names of relations of the program that the query reads directly, or that functions
            read which it calls; lower case.
        canonical: the canonical token text of the query, stars expanded; equal text, equal meaning.
        volatile: the query may give other rows over the same input (`rand()`, `current_date()`).
        columns: output names given in parentheses after the view's name, or ().
        output: names of the output columns where they are known without Spark, else None.
        streams: the relations behind STREAM, lower case, sorted.
        spelled: as `canonical`, with the letter case of names, also of the columns of tables read.
        calls: functions of the program that the query may call, sorted.
        query_location: where `query` begins in the user's file.
        partitioned_by: the columns by whose values the files of a stored view lie apart.
    """

    name: str
    kind: RelationKind
    query: str
    reads: frozenset[str]
    canonical: str
    volatile: bool = False
    columns: tuple[str, ...] = ()
    comment: str | None = None
    output: tuple[str, ...] | None = None
    spelled: str = ""
    calls: tuple[Call, ...] = ()
    streams: tuple[str, ...] = ()
    location: Location | None = field(default=None, compare=False)
    query_location: Location | None = field(default=None, compare=False)
    partitioned_by: tuple[str, ...] = ()

    @property
    def is_stored(self) -> bool:
        """True for what has a Delta table of its own."""
        return self.kind is not RelationKind.VIEW

    @property
    def is_streaming(self) -> bool:
        """True for a streaming table."""
        return self.kind is RelationKind.STREAMING_TABLE

    @property
    def called(self) -> tuple[str, ...]:
        """Names of the functions that its query calls."""
        return tuple(call.name for call in self.calls)

    @property
    def layout(self) -> tuple[str, ...]:
        """The columns that it is partitioned by, in lower case."""
        return tuple(name.lower() for name in self.partitioned_by)


Relation = Table | View


@dataclass(frozen=True)
class Source:
    """An input connector: any Spark streaming source that feeds a table.

    `options` keeps the user's text: `${name}` and `${env:NAME}` are resolved when it is opened.
    `retain_raw` says for how long its raw records are kept (`30 days`): '' for ever, None not at
    all.
    """

    name: str
    table: str
    format: str
    options: tuple[tuple[str, str], ...]
    location: Location | None = field(default=None, compare=False)
    retain_raw: str | None = None

    @property
    def connector(self) -> str:
        """`<relation>.<connector>`, the name in a program diff."""
        return f"{self.table}.{self.name}"

    @property
    def raw_seconds(self) -> float | None:
        """For how long a raw record is kept, in seconds; None for ever, or not at all."""
        if not self.retain_raw:
            return None
        number, unit = self.retain_raw.split()
        return float(number) * UNITS[unit.removesuffix("s").upper()]


@dataclass(frozen=True)
class Sink:
    """An output connector: the contents of a relation and then its changes."""

    name: str
    relation: str
    format: str
    options: tuple[tuple[str, str], ...]
    location: Location | None = field(default=None, compare=False)

    @property
    def connector(self) -> str:
        """`<relation>.<connector>`, the name in a program diff."""
        return f"{self.relation}.{self.name}"


@dataclass(frozen=True)
class Program:
    """All statements of a pipeline at one revision, checked: every name read is created here.

    Args:
        files: path -> text, as the user wrote them, sorted by path.
        relations: name -> relation, sorted by name.
        sources: `<relation>.<connector>` -> source, sorted.
        sinks: `<relation>.<connector>` -> sink, sorted.
        spelling_counts: a query can turn names into data, so that their letter case matters.
        functions: name -> function, those that are called before those that call them.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    relations: Mapping[str, Relation] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    spelling_counts: bool = False
    functions: Mapping[str, Function] = field(default_factory=dict)

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """The input tables, by name."""
        return {n: r for n, r in self.relations.items() if isinstance(r, Table)}

    @cached_property
    def views(self) -> Mapping[str, View]:
        """Everything that a query defines, by name."""
        return {n: r for n, r in self.relations.items() if isinstance(r, View)}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All relation names, inputs before readers; among equals, by name."""
        remaining = {n: set(self.reads(n)) for n in self.relations}
        done: list[str] = []
        readers: dict[str, list[str]] = {n: [] for n in self.relations}
        for name, inputs in remaining.items():
            for read in inputs:
                readers[read].append(name)
        ready = [n for n, inputs in remaining.items() if not inputs]
        heapq.heapify(ready)
        while ready:
            name = heapq.heappop(ready)
            done.append(name)
            for reader in readers[name]:
                remaining[reader].discard(name)
                if not remaining[reader]:
                    heapq.heappush(ready, reader)
        return tuple(done)

    def called(self, names: Iterable[str]) -> tuple[str, ...]:
        """The functions `names` and all that they call, in an order to define them."""
        wanted: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in wanted:
                wanted.add(name)
                pending.extend(self.functions[name].calls)
        return tuple(name for name in self.functions if name in wanted)

    def reads(self, name: str) -> frozenset[str]:
        """Names of the relations that `name` reads directly; nothing for a table."""
        relation = self.relations[name]
        return relation.reads if isinstance(relation, View) else frozenset()

    def stored_reads(self, name: str) -> frozenset[str]:
        """Names of the stored relations that `name` reads, looking through logical views."""
        made_of = self.logical_reads(name)
        read = self.reads(name).union(*(self.reads(view) for view in made_of))
        return read - made_of

    def logical_reads(self, name: str) -> frozenset[str]:
        """Names of the logical views that `name` reads, directly or through each other."""
        found: set[str] = set()
        pending = list(self.reads(name))
        while pending:
            read = pending.pop()
            if read not in found and not self.relations[read].is_stored:
                found.add(read)
                pending.extend(self.reads(read))
        return frozenset(found)

    def followed(self, name: str) -> frozenset[str]:
        """The stored relations whose new contents make work for `name`: all that a materialized
        view reads, only the streams of a streaming table."""
        relation = self.relations[name]
        if isinstance(relation, View) and relation.is_streaming:
            return frozenset(relation.streams) & self.reads(name)
        return self.stored_reads(name)

    def downstream(self, names: frozenset[str]) -> frozenset[str]:
        """Every relation that reads one of `names`, directly or through others; not `names`
        itself."""
        found: set[str] = set()
        for name in self.order:
            if self.reads(name) & (names | found):
                found.add(name)
        return frozenset(found - names)


EMPTY_PROGRAM = Program()
