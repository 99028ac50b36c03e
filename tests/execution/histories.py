"""Histories of revisions for the laws: each changes a little of the program before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from sqlmig.planning.directives import Cutover, Directive, Execute, RenameColumn, RenameTable
from tests.fakes import Revision

_TABLES = ("t1", "t2", "t3")
_VIEWS = ("v1", "v2", "v3", "t3")
_COLUMNS = ("a", "b", "c")
_TYPES = ("INT", "BIGINT", "STRING")
_MODES = ("difference", "snapshot", "continue")
STREAM = "STREAMING TABLE"
_KINDS = ("VIEW", "MATERIALIZED VIEW", "MATERIALIZED VIEW", STREAM)


@dataclass(frozen=True)
class _Draft:
    """A program that can be changed: tables, views, sources and sinks by name."""

    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    views: dict[str, tuple[str, int, frozenset[str]]] = field(default_factory=dict)
    sources: dict[str, tuple[str, str]] = field(default_factory=dict)
    sinks: dict[str, tuple[str, str, str]] = field(default_factory=dict)

    @property
    def stored(self) -> list[str]:
        """The relations that a sink can read."""
        kinds = {n: view[0] for n, view in self.views.items()}
        views = [n for n, k in kinds.items() if k != "VIEW" and (k != STREAM or self._is_stream(n))]
        return [*self.tables, *views]

    def sql(self) -> str:
        lines = []
        for name, columns in self.tables.items():
            listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            lines.append(f"CREATE TABLE {name} ({listed});")
        for name, (kind, number, reads) in self.views.items():
            if kind == STREAM:
                lines.append(self._stream(name, number, reads))
                continue
            inputs = f" FROM {', '.join(sorted(reads))}" if reads else ""
            lines.append(f"CREATE {kind} {name} AS SELECT COUNT(*) + {number} AS n{inputs};")
        for name, (table, path) in self.sources.items():
            lines.append(f"CREATE SOURCE {name} INTO {table} USING json OPTIONS (path '{path}');")
        for name, (relation, path, mode) in self.sinks.items():
            if relation in self.stored:
                lines.append(
                    f"CREATE SINK {name} FROM {relation} USING json "
                    f"OPTIONS (path '{path}', cutover '{mode}');"
                )
        return "\n".join(lines)

    def _stream(self, name: str, number: int, reads: frozenset[str]) -> str:
        """A streaming table; a view where none of what it reads can be a stream."""
        streams = sorted(r for r in reads if r in self.tables or self._is_stream(r))
        if not streams:
            return f"CREATE VIEW {name} AS SELECT {number} AS n;"
        return f"CREATE STREAMING TABLE {name} AS SELECT *, {number} AS n FROM STREAM {streams[0]};"

    def _is_stream(self, name: str) -> bool:
        kind, _, reads = self.views.get(name, ("", 0, frozenset()))
        return kind == STREAM and any(r in self.tables or self._is_stream(r) for r in reads)

    def without(self, name: str) -> _Draft:
        """This program without a relation: nothing reads or feeds it."""
        views = {
            n: (kind, number, reads - {name})
            for n, (kind, number, reads) in self.views.items()
            if n != name
        }
        sources = {n: s for n, s in self.sources.items() if s[0] != name}
        tables = {n: t for n, t in self.tables.items() if n != name}
        sinks = {n: k for n, k in self.sinks.items() if k[0] != name}
        return _Draft(tables, views, sources, sinks)

    def renamed(self, before: str, after: str) -> _Draft:
        """This program with a table under another name."""
        tables = {after if n == before else n: t for n, t in self.tables.items()}
        views = {
            n: (kind, number, frozenset(after if r == before else r for r in reads))
            for n, (kind, number, reads) in self.views.items()
        }
        sources = {n: (after if t == before else t, path) for n, (t, path) in self.sources.items()}
        sinks = {n: (after if k[0] == before else k[0], *k[1:]) for n, k in self.sinks.items()}
        return _Draft(tables, views, sources, sinks)


@st.composite
def histories(draw: st.DrawFn, *, size: int = 4, with_effects: bool = False) -> Sequence[Revision]:
    """A straight history of up to `size` revisions.

    Args:
        with_effects: hooks may also insert a row.
    """
    program = _Draft(
        tables={"t1": {"a": "INT"}},
        views={"v1": ("MATERIALIZED VIEW", 0, frozenset({"t1"}))},
        sinks={"k1": ("t1", "/k1", "difference")},
    )
    revisions = [Revision("r1", program.sql())]
    for number in range(2, draw(st.integers(2, size)) + 1):
        up: list[Directive] = []
        down: list[Directive] = []
        for _ in range(draw(st.integers(1, 3))):
            program = _change(draw, program, up, down)
        if with_effects and program.tables and draw(st.booleans()):
            table = draw(st.sampled_from(sorted(program.tables)))
            up.append(Execute(f"INSERT INTO {table} VALUES ({number})"))
        if with_effects and program.tables and draw(st.booleans()):
            table = draw(st.sampled_from(sorted(program.tables)))
            down.append(Execute(f"INSERT INTO {table} VALUES ({10 * number})"))
        fed = [f"{k[0]}.{name}" for name, k in program.sinks.items() if k[0] in program.stored]
        if draw(st.booleans()) and fed:
            sink = draw(st.sampled_from(sorted(fed)))
            up.append(Cutover(sink, draw(st.sampled_from(_MODES))))
        revisions.append(Revision(f"r{number}", program.sql(), tuple(up), tuple(down)))
    return revisions


def _change(draw: st.DrawFn, program: _Draft, up: list[Directive], down: list[Directive]) -> _Draft:
    taken = set(program.tables) | set(program.views)
    free = [name for name in (*_TABLES, "t4") if name not in taken]
    choices = ["view", "drop"]
    choices += ["table"] if free else []
    choices += ["columns", "source"] if program.tables else []
    choices += ["sink"] if program.stored else []
    is_first = not up and not down
    choices += ["rename", "rename column"] if program.tables and is_first else []
    match draw(st.sampled_from(choices)):
        case "view":
            return _with_view(draw, program)
        case "drop":
            return program.without(draw(st.sampled_from(sorted(taken)))) if taken else program
        case "table":
            name = draw(st.sampled_from(free))
            return replace(program, tables={**program.tables, name: _columns(draw)})
        case "columns":
            name = draw(st.sampled_from(sorted(program.tables)))
            return replace(program, tables={**program.tables, name: _columns(draw)})
        case "source":
            return _with_source(draw, program)
        case "sink":
            return _with_sink(draw, program)
        case "rename":
            if not free:
                return program
            before = draw(st.sampled_from(sorted(program.tables)))
            after = draw(st.sampled_from(free))
            return _noted(program, program.renamed(before, after), before, after, up, down)
        case _:
            return _with_renamed_column(draw, program, up, down)


def _noted(
    was: _Draft,
    now: _Draft,
    before: str,
    after: str,
    up: list[Directive],
    down: list[Directive],
) -> _Draft:
    up.append(RenameTable(before, after))
    down.append(RenameTable(after, before))
    return now


def _columns(draw: st.DrawFn) -> dict[str, str]:
    names = draw(st.permutations(_COLUMNS))[: draw(st.integers(1, 3))]
    return {name: draw(st.sampled_from(_TYPES)) for name in names}


def _with_view(draw: st.DrawFn, program: _Draft) -> _Draft:
    name = draw(st.sampled_from(_VIEWS))
    if name in program.tables:
        program = program.without(name)
    inputs = sorted(set(program.tables) | {v for v in program.views if v < name and v != "t3"})
    inputs = [n for n in inputs if n != name]
    reads = draw(st.frozensets(st.sampled_from(inputs), max_size=2)) if inputs else frozenset()
    view = (draw(st.sampled_from(_KINDS)), draw(st.integers(0, 2)), reads)
    return replace(program, views={**program.views, name: view})


def _with_source(draw: st.DrawFn, program: _Draft) -> _Draft:
    name = draw(st.sampled_from(("s1", "s2")))
    if name in program.sources and draw(st.booleans()):
        rest = {n: s for n, s in program.sources.items() if n != name}
        return replace(program, sources=rest)
    table = draw(st.sampled_from(sorted(program.tables)))
    path = draw(st.sampled_from(("/x", "/y")))
    return replace(program, sources={**program.sources, name: (table, path)})


def _with_sink(draw: st.DrawFn, program: _Draft) -> _Draft:
    name = draw(st.sampled_from(("k1", "k2")))
    if name in program.sinks and draw(st.booleans()):
        rest = {n: k for n, k in program.sinks.items() if n != name}
        return replace(program, sinks=rest)
    relation = draw(st.sampled_from(sorted(program.stored)))
    path = draw(st.sampled_from((f"/{name}", f"/{name}", f"/{name}/other")))
    mode = draw(st.sampled_from(_MODES))
    return replace(program, sinks={**program.sinks, name: (relation, path, mode)})


def _with_renamed_column(
    draw: st.DrawFn, program: _Draft, up: list[Directive], down: list[Directive]
) -> _Draft:
    table = draw(st.sampled_from(sorted(program.tables)))
    columns = program.tables[table]
    before = draw(st.sampled_from(sorted(columns)))
    free = [name for name in (*_COLUMNS, "d") if name not in columns]
    after = draw(st.sampled_from(free))
    up.append(RenameColumn(table, before, after))
    down.append(RenameColumn(table, after, before))
    now = {after if name == before else name: kind for name, kind in columns.items()}
    return replace(program, tables={**program.tables, table: now})
