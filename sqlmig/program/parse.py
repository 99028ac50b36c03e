"""Text to Program: reads all statements, checks them against each other, and reports every mistake
at once.

It knows files and the whole program; what one statement says, it leaves to `forms` and `query`.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlmig.program.canonical import calls_text, canonical_text, names_become_data, spelled_text
from sqlmig.program.check_columns import (
    check_columns,
    check_layout,
    check_table,
    check_view_columns,
)
from sqlmig.program.check_names import Reads, check_connectors, find_reads, order_views
from sqlmig.program.declared import Declared, Mistakes, Place, declare
from sqlmig.program.forms import TableForm
from sqlmig.program.functions import bodies, link_functions
from sqlmig.program.lineage import Columns, Lineage, OutputColumn
from sqlmig.program.model import (
    Call,
    Column,
    Function,
    Language,
    Program,
    Relation,
    Sink,
    Source,
    Table,
    View,
)
from sqlmig.program.streams import stream_names


def parse_program(files: Mapping[str, str]) -> Program:
    """Reads the SQL of a pipeline.

    Args:
        files: path -> text; neither the order of files nor that of statements matters.

    Returns:
        The program; every name that it reads is created in it.

    Raises:
        ProgramErrors: all mistakes, each with its place and a hint.
    """
    mistakes = Mistakes()
    declared = declare(files, mistakes)
    functions = link_functions(declared, mistakes)
    reads = find_reads(declared, functions, mistakes)
    order = order_views(declared, reads, mistakes)
    check_connectors(declared, mistakes)
    relations = _relations(declared, functions, reads, order, mistakes)
    mistakes.raise_all()
    sources = [
        Source(
            form.name.folded,
            form.relation.folded,
            form.format,
            form.options,
            place.at(form.at),
            form.retain_raw,
        )
        for form, place in declared.connectors
        if form.is_source
    ]
    sinks = [
        Sink(form.name.folded, form.relation.folded, form.format, form.options, place.at(form.at))
        for form, place in declared.connectors
        if not form.is_source
    ]
    return Program(
        files=dict(sorted(files.items())),
        relations=dict(sorted(relations.items())),
        sources={source.connector: source for source in sorted(sources, key=lambda s: s.connector)},
        sinks={sink.connector: sink for sink in sorted(sinks, key=lambda s: s.connector)},
        spelling_counts=names_become_data(
            [*declared.queries.values(), *bodies(declared)],
            [n for n, f in functions.items() if f.language is Language.SQL],
        ),
        functions=functions,
    )


def _relations(
    declared: Declared,
    functions: Mapping[str, Function],
    reads: Reads,
    order: list[str],
    mistakes: Mistakes,
) -> dict[str, Relation]:
    """Builds the relations, inputs first, so that each query meets the schemas of what it reads."""
    relations: dict[str, Relation] = {}
    schemas: dict[str, Columns | None] = {}
    upstream: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for name, (form, place) in declared.tables.items():
        check_table(form, place, mistakes)
        names = tuple(column.name for column, _ in form.columns)
        check_layout(form.layout, names, form.name.text, place, mistakes)
        relations[name] = table = _table(form, place)
        schemas[name] = tuple(
            OutputColumn(column.name.lower(), column.type) for column in table.columns
        )
        spelled[name] = ", ".join(column.name for column in table.columns)
    for name in order:
        view, place = declared.views[name]
        query = declared.queries[name]
        lineage = Lineage(query, schemas)
        columns = lineage.columns
        check_view_columns(view, None if columns is None else len(columns), place, mistakes)
        if query.is_read:
            check_columns(view, place, lineage, mistakes)
        if view.columns:
            types = columns if columns and len(columns) == len(view.columns) else None
            columns = tuple(
                OutputColumn(column.folded, types[i].type if types else None)
                for i, column in enumerate(view.columns)
            )
        schemas[name] = columns
        check_layout(view.layout, _known_names(columns), name, place, mistakes)
        canonical = canonical_text(lineage, upstream, reads[name])
        tables = [f"{read} ({spelled[read]})" for read in sorted(reads[name]) if read in spelled]
        list_ = ", ".join(column.text for column in view.columns)
        may_call = query.may_call(functions) if functions else ()
        called = [functions[function] for function in sorted(may_call)]
        calls = tuple(Call(f.name, f.mark, f.spelled_mark) for f in called)
        upstream[name] = "\n".join((canonical, *calls_text(calls)))
        relations[name] = View(
            name=name,
            kind=view.kind,
            query=view.query,
            reads=reads[name],
            canonical=canonical,
            volatile=lineage.is_volatile() or any(f.volatile for f in called),
            columns=tuple(column.text for column in view.columns),
            comment=view.comment,
            output=_known_names(columns),
            streams=stream_names(query.tokens) if "stream" in view.query.lower() else (),
            spelled="\n".join((spelled_text(lineage), f"({list_})", *tables)),
            calls=calls,
            location=place.at(view.at),
            query_location=place.at(view.query_at),
            partitioned_by=tuple(column.folded for column in view.layout),
        )
    return relations


def _table(form: TableForm, place: Place) -> Table:
    key = tuple(name.folded for name in form.key)
    spelled = {column.name.lower(): column.name for column, _ in form.columns}
    return Table(
        name=form.name.folded,
        columns=tuple(
            Column(c.name, c.type, c.nullable and c.name.lower() not in key, c.comment, c.default)
            for c, _ in form.columns
        ),
        primary_key=tuple(spelled.get(name, name) for name in key),
        comment=form.comment,
        location=place.at(form.at),
        partitioned_by=tuple(spelled.get(name.folded, name.folded) for name in form.layout),
    )


def _known_names(columns: Columns | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    names = [column.name for column in columns if column.name is not None]
    return tuple(names) if len(names) == len(columns) else None
