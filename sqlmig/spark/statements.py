"""Runs one INSERT, UPDATE, DELETE or MERGE on an input table, in one commit with its mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlmig.errors import EngineError
from sqlmig.execution.values import Mark, Written
from sqlmig.ledger.cut import RelationState
from sqlmig.program.lexer import Token
from sqlmig.program.model import Column, Program, Table
from sqlmig.spark.assignment import explain_cast, obstacle
from sqlmig.spark.dml import Statement, read_statement, target_table
from sqlmig.spark.failures import describe, told
from sqlmig.spark.names import delta_name
from sqlmig.spark.relations import named, register
from sqlmig.spark.rewriting import rewritten, with_defaults
from sqlmig.spark.sessions import Sessions, once, once_only, transaction_name
from sqlmig.spark.upsert import ORDER, filled, stored, write_rows
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession


def execute(
    sessions: Sessions,
    warehouse: DeltaWarehouse,
    program: Program,
    sql: str,
    states: Mapping[str, RelationState],
    mark: Mark,
    *,
    part: str = "",
) -> tuple[str, Written]:
    """Run one statement.

    Args:
        states: the versions at which other relations are read.
        part: tells statements apart that share one mark.

    Returns:
        The table's name, and the table after it. When this run, step and part committed before,
        nothing is written.

    Raises:
        EngineError: the statement can't be read, isn't on an input table, or fails; then nothing
            was written.
    """
    statement = read_statement(sql)
    table = target_table(program, statement)
    state = states.get(table.name)
    if state is None:
        raise EngineError(
            f"`{table.name}` is not in the warehouse", hint="`sqlmig upgrade` makes it"
        )
    if not part and warehouse.find_mark(state.folder, mark.run, mark.step) is not None:
        return table.name, warehouse.written(state.folder, by=mark)
    before = warehouse.version(state.folder)
    path = warehouse.table_path(state.folder)
    session = sessions.fresh(mark)
    needed = named(program, statement.mentions)
    register(session, warehouse, program, states, needed.relations, needed.functions)
    application = transaction_name(mark) + part
    if statement.kind == "INSERT":
        rows = _rows(session, statement, table)
        try:
            with once_only(warehouse, path, application):
                write_rows(rows, table, path, mark.to_json(), (application, 0))
        except Exception as error:
            raise _insert_error(error, session, statement, table) from error
    else:
        _check_keys(statement, table)
        once(session, application)
        with told(f"`{table.name}`"), once_only(warehouse, path, application):
            session.sql(rewritten(statement, table, delta_name(path))).collect()
    return table.name, warehouse.written(state.folder, by=mark, after=before)


def _rows(session: SparkSession, statement: Statement, table: Table) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    given, frame = _given(session, statement, table)
    values = {}
    for index, column in enumerate(given):
        kind = frame.schema[index].dataType
        problem = obstacle(kind, column.type)
        if problem:
            raise EngineError(
                f"`{table.name}.{column.name}`: {problem}", hint=f"CAST it to {column.type}"
            )
        values[column.name] = stored(F.col(frame.columns[index]), column)
    for column in table.columns:
        if column.name not in values:
            if not column.nullable and column.default is None:
                raise EngineError(
                    f"`{table.name}.{column.name}` may not be NULL and the statement leaves it out",
                    hint=f"give `{column.name}` a value, or a DEFAULT in `pipeline/`",
                )
            values[column.name] = filled(column)
    order = []
    if table.primary_key:
        order.append(_order(statement, frame).alias(ORDER))
    return frame.select(
        *(values[column.name].alias(column.name) for column in table.columns), *order
    )


def _order(statement: Statement, frame: DataFrame) -> Expression:
    """What decides which of two rows with one key is the later.

    Their order where the statement gives them one, by VALUES or ORDER BY; else their text, so that
    running the statement again gives the same.
    """
    from pyspark.sql import functions as F  # noqa: N812

    depth = 0
    is_ordered = False
    for token in statement.tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        is_ordered |= depth == 0 and token.word in ("VALUES", "ORDER")
    if is_ordered:
        return F.monotonically_increasing_id()
    return F.to_json(F.struct(*frame.columns))


def _given(
    session: SparkSession, statement: Statement, table: Table
) -> tuple[list[Column], DataFrame]:
    """The columns that the statement gives, and its rows with as many columns."""
    named = {column.name.lower(): column for column in table.columns}
    given = [_column(named, name, table) for name in statement.columns]
    query = with_defaults(statement.query, given or list(table.columns))
    with told(f"`{table.name}`"):
        frame = session.sql(query)
        names = frame.columns
    if statement.by_name:
        given = [_column(named, name, table) for name in names]
    elif not statement.columns:
        given = list(table.columns)[: len(names)]
    if len(given) != len(names):
        wanted = len(statement.columns) or len(table.columns)
        raise EngineError(
            f"`{table.name}` takes {wanted} values here, a row has {len(names)}",
            hint="the columns are: " + ", ".join(c.name for c in given or table.columns),
        )
    twice = sorted({c.name for c in given if sum(c is other for other in given) > 1})
    if twice:
        raise EngineError(f"column `{twice[0]}` is given twice")
    return given, frame.toDF(*(f"__{index}" for index in range(len(names))))


def _column(named: Mapping[str, Column], name: str, table: Table) -> Column:
    column = named.get(name.lower())
    if column is None:
        close = get_close_matches(name.lower(), named, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"columns are: {', '.join(named)}"
        raise EngineError(f"`{table.name}` has no column `{name}`", hint=hint)
    return column


def _insert_error(
    error: Exception, session: SparkSession, statement: Statement, table: Table
) -> EngineError:
    failure = describe(error)
    given, frame = _given(session, statement, table)
    culprit = explain_cast(frame, given)
    if culprit is not None:
        column, value = culprit
        return EngineError(
            f"`{table.name}.{column.name}`: {value!r} is no {column.type}", hint=failure.hint
        )
    return EngineError(f"`{table.name}`: {failure.message}", hint=failure.hint)


def _check_keys(statement: Statement, table: Table) -> None:
    """Refuse an UPDATE of a key: two rows could come to have the same."""
    if statement.kind != "UPDATE" or not table.primary_key:
        return
    depth = 0
    is_setting = False
    tokens = statement.tokens
    for token, sign in pairwise(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.word in ("SET", "WHERE"):
            is_setting = token.word == "SET"
        is_key = token.is_name and token.folded in {k.lower() for k in table.primary_key}
        if is_setting and depth == 0 and is_key and sign.text == "=" and _begins(tokens, token):
            raise EngineError(
                f"`{table.name}.{token.name}` is a key and can't be updated",
                hint="DELETE the row and INSERT it under its new key",
            )


def _begins(tokens: Sequence[Token], token: Token) -> bool:
    """Whether an assignment begins at `token`: behind SET, a comma, or `alias.`."""
    index = tokens.index(token)
    before = tokens[index - 1]
    if before.text == ".":
        before = tokens[index - 3]
    return before.word == "SET" or before.text == ","
