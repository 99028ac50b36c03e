"""What a hook's function gets: the pipeline's relations in SQL. It decides nothing of the plan."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlmig.execution.values import Mark, Written
from sqlmig.ledger.cut import RelationState
from sqlmig.program.model import Program, View
from sqlmig.spark.failures import told
from sqlmig.spark.query import check_reads_only, collect
from sqlmig.spark.relations import mentioned, needed, register
from sqlmig.spark.sessions import Sessions
from sqlmig.spark.statements import execute
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HookContext:
    """The argument of a function that `op.run` calls.

    If the process dies while the function runs, it is called again from its beginning; the
    statements that had been committed by then are skipped when the same come again at their places.
    """

    def __init__(
        self,
        sessions: Sessions,
        warehouse: DeltaWarehouse,
        program: Program,
        states: Mapping[str, RelationState],
        mark: Mark,
    ) -> None:
        self._sessions = sessions
        self._warehouse = warehouse
        self._program = program
        self._states = dict(states)
        self._mark = mark
        self._executed = 0

    def sql(self, text: str) -> list[dict[str, Any]]:
        """The rows of a query over the relations as they are now, statements executed included."""
        text = check_reads_only(text)
        session = self._sessions.fresh()
        needs = mentioned(self._program, text)
        register(
            session,
            self._warehouse,
            self._program,
            self._states,
            needs.relations,
            needs.functions,
        )
        with told():
            _, rows = collect(session.sql(text))
        return [dict(row) for row in rows]

    def execute(self, text: str) -> Written:
        """Run one INSERT, UPDATE, DELETE or MERGE on an input table; the table after it."""
        self._executed += 1
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        name, written = execute(
            self._sessions,
            self._warehouse,
            self._program,
            text,
            self._states,
            self._mark,
            part=f"/{self._executed}/{digest}",
        )
        self._states[name] = replace(
            self._states[name], version=written.version, rows=written.rows, bytes=written.bytes
        )
        return written

    @property
    def spark(self) -> SparkSession:
        """A session with every relation that has contents as a temporary view, and the functions
        that read no other one."""
        session = self._sessions.fresh(self._mark)
        ready = [name for name in self._program.relations if self._is_ready(name)]
        functions = [
            name
            for name in self._program.functions
            if all(
                self._program.functions[other].reads <= set(ready)
                for other in self._program.called([name])
            )
        ]
        register(session, self._warehouse, self._program, self._states, ready, functions)
        return session

    def _is_ready(self, name: str) -> bool:
        return all(
            other in self._states
            for other in needed(self._program, [name])
            if not isinstance(relation := self._program.relations[other], View)
            or relation.is_stored
        )
