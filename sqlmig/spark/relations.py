"""The program's relations as names in a session: stored ones pinned, views as queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.ledger.records import RelationState
from sqlmig.program.lexer import LexError, tokenize
from sqlmig.program.model import Program, View
from sqlmig.program.streams import without_stream
from sqlmig.spark.failures import told
from sqlmig.spark.names import quoted
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def mentioned(program: Program, sql: str) -> frozenset[str]:
    """The relations of the program whose names occur in `sql`; too many, never too few.

    Raises:
        EngineError: a string or comment in `sql` doesn't end.
    """
    try:
        names = {token.folded for token in tokenize(sql) if token.is_name}
    except LexError as error:
        raise EngineError(error.message, hint=error.hint) from error
    return frozenset(names & program.relations.keys())


def register(
    session: SparkSession,
    warehouse: DeltaWarehouse,
    program: Program,
    states: Mapping[str, RelationState],
    names: Iterable[str],
) -> None:
    """Make temporary views of `names`, and of what logical views among them read.

    Args:
        states: the version of each stored relation.

    Raises:
        EngineError: a relation that is needed has no contents yet, or can't be read.
    """
    for name in needed(program, names):
        relation = program.relations[name]
        if isinstance(relation, View) and not relation.is_stored:
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


def needed(program: Program, names: Iterable[str]) -> tuple[str, ...]:
    """`names` and what logical views among them read, inputs before readers."""
    wanted: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in wanted:
            continue
        wanted.add(name)
        if not program.relations[name].is_stored:
            pending.extend(program.reads(name))
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
