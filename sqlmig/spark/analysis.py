"""Spark's analysis of a program before anything is stopped: on empty tables, reading no row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError, SqlmigError
from sqlmig.planning.steps import Blocker
from sqlmig.program.model import Program, Table, View
from sqlmig.program.type_shape import Field
from sqlmig.spark.failures import describe
from sqlmig.spark.functions import define
from sqlmig.spark.names import quoted
from sqlmig.spark.relations import run_query
from sqlmig.spark.tables import default_sql, storage_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


def analyze(
    session: SparkSession,
    program: Program,
    names: Collection[str],
    schemas: dict[str, StructType] | None = None,
) -> Sequence[Blocker]:
    """Everything that Spark finds wrong with `names` and what they read, in program order.

    A relation or function that needs a broken one is not reported: its own error would be noise.

    Args:
        session: one of its own: the relations are registered in it, empty.
        names: of relations and functions.
        schemas: gets the schema of each view.
    """
    blockers: list[Blocker] = []
    broken: set[str] = set()
    defined: set[str] = set()

    def define_all(wanted: Iterable[str]) -> None:
        for name in program.called(wanted):
            function = program.functions[name]
            if name in defined:
                continue
            defined.add(name)
            if (function.calls | function.reads) & broken:
                broken.add(name)
                continue
            try:
                define(session, function)
            except SqlmigError as error:
                broken.add(name)
                blockers.append(Blocker(error.message, error.location, error.hint))

    functions = program.called(name for name in names if name in program.functions)
    read = {name for function in functions for name in program.functions[function].reads}
    for name in _upstream(program, read | (set(names) & program.relations.keys())):
        relation = program.relations[name]
        calls = set(relation.called) if isinstance(relation, View) else set()
        define_all(calls)
        if (program.reads(name) | calls) & broken:
            broken.add(name)
            continue
        if isinstance(relation, Table):
            frame, found = _table(session, relation)
        else:
            frame, found = _view(session, relation)
        blockers += found
        if frame is None or (found and isinstance(relation, View)):
            broken.add(name)
        else:
            frame.createOrReplaceTempView(quoted(name))
            if schemas is not None and isinstance(relation, View):
                schemas[name] = frame.schema
    define_all(functions)
    return blockers


def columns(
    session: SparkSession, program: Program, names: Collection[str]
) -> Mapping[str, Sequence[Field]]:
    """The columns of the views `names`, as a query gives them: each may be NULL.

    What Spark can't analyse is left out.
    """
    schemas: dict[str, StructType] = {}
    analyze(session, program, names, schemas)
    return {
        name: [Field(field.name, _type_text(field.dataType)) for field in schemas[name].fields]
        for name in names
        if name in schemas
    }


def schema_of(session: SparkSession, program: Program, name: str) -> StructType:
    """The schema of a view, from empty tables of the declared columns.

    Raises:
        EngineError: Spark finds something wrong with it or with what it reads.
    """
    schemas: dict[str, StructType] = {}
    for blocker in analyze(session, program, [name], schemas):
        raise EngineError(blocker.message, location=blocker.location, hint=blocker.hint)
    return schemas[name]


def _upstream(program: Program, names: Collection[str]) -> tuple[str, ...]:
    wanted: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending.extend(program.reads(name))
    return tuple(name for name in program.order if name in wanted)


def _table(session: SparkSession, table: Table) -> tuple[DataFrame | None, list[Blocker]]:
    """The empty table, and what is wrong with its types and defaults."""
    blockers: list[Blocker] = []
    for column in table.columns:
        where = f"`{table.name}.{column.name}`"
        kind = None
        try:
            kind = session.sql(f"SELECT CAST(NULL AS {column.type}) AS c").schema[0].dataType
        except Exception as error:
            failure = describe(error)
            blockers.append(Blocker(f"{where}: {failure.message}", table.location, failure.hint))
        if kind is None:
            continue
        problem = _unstorable(kind)
        if problem:
            blockers.append(Blocker(f"{where} {problem[0]}", table.location, problem[1]))
        elif column.default is not None:
            try:
                session.sql(f"SELECT {default_sql(column)} AS c").schema  # noqa: B018
            except Exception as error:
                failure = describe(error)
                blockers.append(
                    Blocker(
                        f"{where}: its default `{column.default}`: {failure.message}",
                        table.location,
                        failure.hint,
                    )
                )
    if blockers:
        return None, blockers
    columns = ", ".join(
        f"CAST(NULL AS {storage_type(c.type)}) AS {quoted(c.name)}" for c in table.columns
    )
    return session.sql(f"SELECT {columns} WHERE false"), []


def _view(session: SparkSession, view: View) -> tuple[DataFrame | None, list[Blocker]]:
    try:
        frame = run_query(session, view)
        fields = frame.schema.fields
    except SqlmigError as error:
        message = f"`{view.name}`: {error.message}" if view.name not in error.message else None
        return None, [Blocker(message or error.message, error.location, error.hint)]
    if not view.is_stored:
        return frame, []
    blockers = [
        Blocker(
            f"`{view.name}` has two columns named `{name}`",
            view.query_location or view.location,
            "give one of them another name with AS",
        )
        for name in _duplicates(frame.columns)
    ]
    for field in fields:
        problem = _unstorable(field.dataType)
        if problem:
            blockers.append(
                Blocker(
                    f"`{view.name}.{field.name}` {problem[0]}",
                    view.query_location or view.location,
                    problem[1],
                )
            )
    return frame, blockers


def _duplicates(names: Sequence[str]) -> list[str]:
    folded = [name.lower() for name in names]
    return sorted({name for name in folded if folded.count(name) > 1})


def _unstorable(kind: DataType) -> tuple[str, str] | None:
    """Why Delta can't store the type, and what to do."""
    names = set(_type_names(kind))
    if "void" in names:
        return "has no type: it is always NULL", "write CAST(NULL AS string), or the type meant"
    for name in sorted(names):
        if name.startswith(("interval", "time(")) or name in ("time", "calendarinterval"):
            return f"is of type {name}, which Delta can't store", "CAST it to a string or a number"
    return None


def _type_text(kind: DataType) -> str:
    """The type as a program's tables have it; Spark's own text does not quote names."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match kind:
        case ArrayType():
            return f"array<{_type_text(kind.elementType)}>"
        case MapType():
            return f"map<{_type_text(kind.keyType)},{_type_text(kind.valueType)}>"
        case StructType():
            fields = (
                f"{f.name if f.name.isidentifier() else quoted(f.name)}:{_type_text(f.dataType)}"
                for f in kind.fields
            )
            return f"struct<{','.join(fields)}>"
        case _:
            return kind.simpleString()


def _type_names(kind: DataType) -> Iterator[str]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    match kind:
        case ArrayType():
            yield from _type_names(kind.elementType)
        case MapType():
            yield from _type_names(kind.keyType)
            yield from _type_names(kind.valueType)
        case StructType():
            for field in kind.fields:
                yield from _type_names(field.dataType)
        case _:
            yield kind.simpleString()
