"""The verbs that touch the pipeline's rows: exec, query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmig.commands.project import Project, deployed
from sqlmig.errors import LedgerError
from sqlmig.execution.executor import check_idle
from sqlmig.execution.observing import observed_cut
from sqlmig.execution.values import Mark
from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.ledger.records import Kind, Status
from sqlmig.program.model import Program, View


@dataclass(frozen=True)
class Executed:
    """What a statement did: the table, its version now, the rows written where known."""

    table: str
    version: int
    rows: int | None


@dataclass(frozen=True)
class Answer:
    """Rows of a query.

    Args:
        columns: their names, in order.
        rows: column -> value: numbers (decimals exact), text (dates and times in ISO form), lists,
            objects.
        versions: relation -> Delta version that was read.
        is_behind: tables that were read have newer rows, which views take up at the next tick.
    """

    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    versions: Mapping[str, int]
    is_behind: bool = False


def execute(project: Project, sql: str) -> Executed:
    """Run one INSERT, UPDATE, DELETE or MERGE on a table of the deployed pipeline.

    Views take the change up at the next tick.

    Args:
        sql: the statement.

    Raises:
        UnfinishedPlanError: a plan is under way.
        EngineError: the statement is wrong, or not one on a table.
        LedgerError: it is done, and could not be recorded: it must not be run again.
    """
    deployment = deployed(project)
    check_idle(deployment)
    program = project.parse_deployed(deployment.program)
    journal = project.journal
    cut = observed_cut(project.warehouse, deployment.cut)
    mark = Mark(
        project.config.pipeline,
        f"exec-{journal.owner.token}-{deployment.seq}",
        1,
        deployment.revision,
    )
    project.ledger.check_room()  # what can't be recorded is not begun
    name, written = project.engine.execute(program, sql, cut.relations, mark)
    state = cut.relations[name]
    state = state.with_rows(written.version, written.rows, written.bytes)
    try:
        journal.append(
            Kind.EXEC,
            Status.DONE,
            revision=deployment.revision,
            cut={"relations": {name: state.to_dict()}},
            details={"rows": written.written},
        )
    except LedgerError as error:
        raise LedgerError(
            f"the statement is done (version {written.version} of `{name}`), and {error.message}",
            hint="do not run it again; the next tick takes its rows up, when the ledger can be "
            "written",
        ) from error
    return Executed(name, written.version, written.written)


def query(project: Project, sql: str, *, at: str | None = None) -> Answer:
    """Run a query over the deployed relations, all read at one consistent cut.

    The cut is the newest at which everything that the query reads is consistent: what the last tick
    or upgrade recorded, when it reads a materialized view; the tables as they are now, when it
    reads tables and logical views only.

    Args:
        sql: a SELECT.
        at: a former cut: a checkpoint's number or name, or a time.

    Raises:
        EngineError: nothing is deployed, there is no such cut, or the query is wrong.
    """
    deployment = deployed(project)
    if at is not None:
        return _query_at(project, sql, at)
    program = project.parse_deployed(deployment.program)
    read = _closure(program, sql)
    cut = deployment.consistent.relations
    states = {name: cut[name] for name in sorted(read) if name in cut}
    is_behind = False
    if deployment.unfinished is None:
        if all(_is_table(state) for state in states.values()):
            states = dict(observed_cut(project.warehouse, Cut(relations=states)).relations)
        else:
            tables = {n: cut[n] for n in _tables_below(program, read) if n in cut}
            now = project.warehouse.observe(tables)
            is_behind = any(now[s.folder].version != s.version for s in tables.values())
    # a column may be called as a relation that is not read: the engine takes it for one, too
    columns, rows = project.engine.query(program, sql, {**cut, **states})
    versions = {name: state.version for name, state in sorted(states.items())}
    return Answer(columns, rows, versions, is_behind)


def _query_at(project: Project, sql: str, at: str) -> Answer:
    from sqlmig.commands.cuts import find_cut

    former = find_cut(project, at)
    program = project.parse_deployed(former.program)
    read = _closure(program, sql)
    states = {n: s for n, s in sorted(former.cut.relations.items()) if n in read}
    columns, rows = project.engine.query(program, sql, former.cut.relations)
    return Answer(columns, rows, {name: state.version for name, state in states.items()})


def _is_table(state: RelationState) -> bool:
    return state.kind == "table"


def _closure(program: Program, sql: str) -> frozenset[str]:
    from sqlmig.program.query import read_query

    read = read_query(sql)
    named = read.relations if read.is_read else read.mentioned
    names = {name for name, _ in named} & set(program.relations)
    found: set[str] = set()
    for name in names:
        relation = program.relations[name]
        if isinstance(relation, View) and not relation.is_stored:
            found |= program.stored_reads(name)
        else:
            found.add(name)
    return frozenset(found)


def _tables_below(program: Program, names: frozenset[str]) -> frozenset[str]:
    """The tables that `names` are computed from, through stored views and others, or are."""
    found: set[str] = set()
    pending = [name for name in names if name in program.relations]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        pending.extend(program.reads(name))
    return frozenset(found & set(program.tables))
