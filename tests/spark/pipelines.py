"""What the engine's tests share: a pipeline on the shared Spark, with a warehouse of its own."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlmig.execution.streams import (
    advanced,
    find_advance,
    position,
    take_in,
    whole,
    windows_so_far,
)
from sqlmig.execution.values import Ingested, Mark, Written
from sqlmig.ledger.cut import ConnectorState, RelationState
from sqlmig.ledger.sink_state import Batch, PinnedContents, SinkState
from sqlmig.program.model import Program, Table
from sqlmig.program.parse import parse_program
from sqlmig.spark.engine import SparkEngine
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "pipeline/school.sql"


class Pipeline:
    """A program whose effects are made one by one, as the executor would.

    Args:
        root: the project's folder; the warehouse is in it.
    """

    def __init__(self, spark: SparkSession, root: Path, secrets: Mapping[str, str] = {}) -> None:
        self.root = root
        self.warehouse = DeltaWarehouse(str(root / "warehouse"))
        self.engine = SparkEngine(lambda: spark, self.warehouse, root, dict(secrets).get)
        self.program = Program()
        self.states: dict[str, RelationState] = {}
        self.connectors: dict[str, ConnectorState] = {}
        self.sinks: dict[str, SinkState] = {}
        self.begun: list[str] = []
        self._steps = itertools.count(1)

    def use(self, sql: str) -> Program:
        """Let the program be `sql`."""
        self.program = parse_program({FILE: sql})
        return self.program

    def mark(self, fingerprint: str | None = None, **inputs: str) -> Mark:
        """The mark of a new step."""
        return Mark("school", "run", next(self._steps), "r1", fingerprint, inputs)

    def table(self, name: str) -> Table:
        """An input table of the program."""
        return self.program.tables[name]

    def create(self, *names: str) -> None:
        """Make the tables `names`, or all."""
        for name in names or self.program.tables:
            self.note(name, self.engine.create_table(self.table(name), name, self.mark()))

    def refresh(self, name: str, mark: Mark | None = None) -> Written:
        """Compute a materialized view."""
        view = self.program.views[name]
        mark = mark or self.mark("f1")
        return self.note(name, self.engine.materialize(self.program, view, self.states, name, mark))

    def begin(self, name: str) -> Written:
        """Make a streaming table of every row of its streams, also where it is there already."""
        view = self.program.views[name]
        passed = whole(self.warehouse, view, self.states)
        inputs = {stream: self.states[stream].content for stream in view.streams}
        watermark, span = windows_so_far(self.engine, view, self.states)
        mark = replace(self.mark("f1", **inputs), passed=passed, watermark=watermark)
        written = self.engine.materialize(self.program, view, self.states, name, mark, span)
        self.note(name, written)
        state = replace(self.states[name], inputs=inputs, passed=passed, watermark=watermark)
        self.states[name] = state
        return written

    def take_in(self, name: str, mark: Mark | None = None) -> int | None:
        """Let a relation take in what came; rows written, None where nothing came."""
        view = self.program.views[name]
        advance = find_advance(self.warehouse, view, self.states[name], self.states)
        if not advance.has_rows:
            self.states[name] = advanced(self.states[name], advance, None)
            return None
        state, own = self.states[name], mark or self.mark("f1")
        taken = take_in(self.engine, self.program, view, self.states, advance, state, own)
        self.states[name] = taken.state
        return taken.written.written if taken.written else None

    def keep(self, name: str) -> None:
        """Let a materialized view go on in place from what it was computed from."""
        inputs = {read: self.states[read].content for read in self.program.reads(name)}
        passed = position(self.warehouse, inputs.values())
        self.states[name] = replace(self.states[name], inputs=inputs, passed=passed)

    def evolve(self, name: str) -> Written:
        """Bring a streaming table's columns to those of its query."""
        view = self.program.views[name]
        written = self.engine.evolve(self.program, view, name, self.mark())
        state = self.states[name]
        self.note(name, written)
        self.states[name] = replace(self.states[name], inputs=state.inputs, passed=state.passed)
        return written

    def execute(self, sql: str, mark: Mark | None = None) -> Written:
        """Run one statement."""
        name, written = self.engine.execute(self.program, sql, self.states, mark or self.mark())
        return self.note(name, written)

    def ingest(self, connector: str, generation: int = 1, *, is_recorded: bool = True) -> Ingested:
        """Run one round of a source.

        Args:
            is_recorded: else the process dies before the ledger knows what the round brought.
        """
        source = self.program.sources[connector]
        new = ConnectorState(connector, generation, "f")
        state = self.connectors.get(new.offsets, new)
        done = self.engine.ingest(
            self.program, source, state, self.states[source.table], self.mark()
        )
        self.note(source.table, done.table)
        if is_recorded:
            self.connectors[new.offsets] = replace(
                state,
                rows=state.rows + done.rows,
                rejected=state.rejected + done.rejected,
                batch=done.batch,
            )
        return done

    def contents(self, name: str) -> PinnedContents:
        """What a relation holds now."""
        state = self.states[name]
        return PinnedContents(state.folder, state.version, state.content)

    def due(self, connector: str) -> Batch:
        """The batch that a sink is to get next."""
        state = self._sink(connector)
        after = self.contents(self.program.sinks[connector].relation)
        return Batch(state.batch + 1, state.sent, after)

    def send(self, connector: str, batch: Batch | None = None) -> int:
        """Send a sink what it is due, or `batch` (again); the rows of it."""
        sink, state = self.program.sinks[connector], self._sink(connector)
        batch = batch or self.due(connector)
        rows = self.engine.send(
            self.program, sink, state, batch, self.mark(), lambda: self.begun.append(connector)
        )
        self.sinks[connector] = state.after(batch, rows)
        return rows

    def _sink(self, connector: str) -> SinkState:
        new = SinkState(connector, 1, "f", f"{self.root}/{connector}")
        return self.sinks.get(connector, new)

    def note(self, name: str, written: Written) -> Written:
        """Let `name` be read at the version that was written."""
        kind = self.program.relations[name].kind.value
        content = f"{name}@{written.version}"
        self.states[name] = RelationState(
            name, kind, written.version, content, "f", {}, written.rows, written.bytes
        )
        return written

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        _, rows = self.engine.query(self.program, sql, self.states)
        return [tuple(row.values()) for row in rows]
