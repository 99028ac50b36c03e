"""The program's relations as names in a session: stored ones pinned, views as queries, with the
functions that they call."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.ledger.cut import RelationState
from sqlmig.program.lexer import LexError, tokenize
from sqlmig.program.model import Program, View
from sqlmig.program.streams import without_stream
from sqlmig.spark.failures import told
from sqlmig.spark.functions import define
from sqlmig.spark.names import quoted
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Mentioned:
    """What a text needs of a program: names of relations and of functions."""

    relations: frozenset[str]
    functions: tuple[str, ...]


def mentioned(program: Program, sql: str) -> Mentioned:
    """What `sql` needs of the program; too much, never too little.

    Raises:
        EngineError: a string or comment in `sql` doesn't end.
    """
    try:
        names = {token.folded for token in tokenize(sql) if token.is_name}
    except LexError as error:
        raise EngineError(error.message, hint=error.hint) from error
    return named(program, names)


def named(program: Program, names: Collection[str]) -> Mentioned:
    """The relations and functions with these names, and what those functions call and read."""
    functions = program.called(name for name in program.functions if name in names)
    read = {name for function in functions for name in program.functions[function].reads}
    return Mentioned(frozenset(read | (set(names) & program.relations.keys())), functions)


def register(
    session: SparkSession,
    warehouse: DeltaWarehouse,
    program: Program,
    states: Mapping[str, RelationState],
    names: Iterable[str],
    functions: Iterable[str] = (),
) -> None:
    """Make temporary views of `names`, and of what logical views among them read; define functions.

    Args:
        states: the version of each stored relation.
        functions: those that are needed besides what these views call. What they read is among
            `names`.

    Raises:
        EngineError: a relation that is needed has no contents yet, or can't be read.
    """
    defined: set[str] = set()

    def define_all(wanted: Iterable[str]) -> None:
        for name in program.called(wanted):
            if name not in defined:
                defined.add(name)
                define(session, program.functions[name])

    for name in needed(program, names):
        relation = program.relations[name]
        if isinstance(relation, View) and not relation.is_stored:
            define_all(relation.called)
            frame = run_query(session, relation)
        else:
            state = states.get(name)
            if state is None:
                raise EngineError(
                    f"`{name}` has no contents yet",
                    hint="it is computed at the end of the upgrade that adds it",
                )
            with told(f"`{name}`"):
                frame = (
                    session.read.format("delta")
                    .option("versionAsOf", state.version)
                    .load(warehouse.table_path(state.folder))
                )
        with told(f"`{name}`"):
            frame.createOrReplaceTempView(quoted(name))
    define_all(functions)


def needed(program: Program, names: Iterable[str]) -> tuple[str, ...]:
    """`names` and what logical views among them read, inputs before readers."""
    wanted = set(names)
    for name in tuple(wanted):
        if not program.relations[name].is_stored:
            wanted |= program.logical_reads(name) | program.stored_reads(name)
    return tuple(name for name in program.order if name in wanted)


def run_query(session: SparkSession, view: View) -> DataFrame:
    """The view's own query, analysed in the session; the user's text is not touched.

    Raises:
        EngineError: Spark refuses it; it is placed in the user's file.
    """
    with told(query=view.query, begins=view.query_location or view.location):
        frame = session.sql(without_stream(view.query) if view.streams else view.query)
        found = len(frame.columns)  # analysed here and now, also over Spark Connect
        if view.columns:
            if found != len(view.columns):
                raise EngineError(
                    f"`{view.name}` names {len(view.columns)} columns, its query has {found}",
                    location=view.location,
                )
            frame = frame.toDF(*view.columns)
        return frame
