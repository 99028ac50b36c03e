"""The effects: what each step of a plan does to the warehouse, and what it changes in the cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlmig.errors import EngineError
from sqlmig.execution.accumulation_effects import AccumulationEffects
from sqlmig.execution.engine import Engine, Warehouse
from sqlmig.execution.journal import Journal
from sqlmig.execution.observing import observed_cut, seen
from sqlmig.execution.outcome import Outcome, connector_changed, fresh, relation_changed
from sqlmig.execution.putting_back import put_back_if_kept
from sqlmig.execution.row_effects import row_change
from sqlmig.execution.sink_effects import sink_change
from sqlmig.execution.stopping import wait_until_stopped
from sqlmig.execution.stream_effects import StreamEffects
from sqlmig.execution.values import Mark, Written
from sqlmig.ledger.cut import ConnectorState, Cut, RelationState
from sqlmig.ledger.deployment import materialization_key
from sqlmig.planning.sink_steps import ContinueSink, CutOverSink, DetachSink, StartSink
from sqlmig.planning.steps import (
    AlterTable,
    Attach,
    Bootstrap,
    Checkpoint,
    ContinueSource,
    CreateTable,
    Detach,
    DetachSource,
    EmptyTable,
    Execute,
    Plan,
    RenameTable,
    Restore,
    RestoreTable,
    Resume,
    RunFunction,
    StartSource,
    Step,
    Stop,
    assert_never,
)
from sqlmig.planning.stream_steps import AdvanceStream, BackfillStream, EvolveStream, RestoreStream
from sqlmig.planning.table_steps import ConvertTable, FillColumns, LayOut, RebuildTable
from sqlmig.planning.undo import altered, find_way_back
from sqlmig.program.canonical import fingerprint, materialization_fingerprint
from sqlmig.program.model import Program, RelationKind, Table, View

HookLoader = Callable[[Plan, RunFunction], Callable[[Any], object]]


class Effects:
    """Makes the effects of one plan's steps.

    Args:
        stages: the parsed programs that the plan passes through; the last is the target.
        deployed: gives the parsed program that the plan leaves.
        journal: holds the working cut, which each finished step has changed.
        patience: seconds that a runner may take to end its tick.
    """

    def __init__(
        self,
        engine: Engine,
        warehouse: Warehouse,
        plan: Plan,
        stages: Sequence[Program],
        journal: Journal,
        load_hook: HookLoader,
        deployed: Callable[[], Program],
        patience: float = 60.0,
    ) -> None:
        self._engine = engine
        self._warehouse = warehouse
        self._plan = plan
        self._deployed = deployed
        self._stages = stages
        self._target = stages[-1]
        self._journal = journal
        self._load_hook = load_hook
        self._patience = patience

    def make(self, step: Step, *, is_repeated: bool) -> Outcome:  # noqa: RET503
        """Make one step's effect.

        Args:
            is_repeated: an earlier process started this step and may have made its effect.
        """
        rows: int | None
        match step.action:
            case Stop():
                return self._stop()
            case Resume():
                return Outcome()
            case Checkpoint():
                return self._checkpoint()
            case RenameTable(before, after):
                return self._rename(before, after)
            case CreateTable(relation, folder, stage):
                return self._create(step, self._table(relation, stage), folder)
            case AlterTable(relation, _, renamed, stage):
                return self._alter(step, self._table(relation, stage), renamed)
            case ConvertTable(relation, _, renamed, _, has_new_key, stage):
                table = self._table(relation, stage)
                return self._alter(step, table, renamed, is_converted=True, has_new_key=has_new_key)
            case LayOut() | FillColumns() | RebuildTable():
                was = self._cut.relations[step.action.relation]
                mark = self._mark(step, was.fingerprint, was.inputs)
                return row_change(self._engine, self._target, was, step.action, mark)
            case EmptyTable(relation, stage):
                return self._empty(step, self._table(relation, stage))
            case Attach(relation, folder):
                return self._attach(relation, folder)
            case RestoreTable():
                return self._restore_table(step, step.action)
            case Restore():
                return self._restore(step, step.action, is_repeated)
            case Execute(_, _, _, sql, stage):
                return self._execute(step, sql, stage, is_repeated)
            case RunFunction():
                return self._call(step, step.action)
            case StartSource(name, folder, generation, mark):
                return connector_changed(name, ConnectorState(folder, generation, mark))
            case ContinueSource(name, folder, generation, mark):
                return connector_changed(name, self._known_connector(folder, generation, mark))
            case DetachSource(name):
                return Outcome({"removed_connectors": [name]})
            case StartSink() | ContinueSink() | CutOverSink() | DetachSink():
                deployment = self._journal.deployment
                return Outcome(sink_change(step.action, step.number, deployment, self._target))
            case Bootstrap(relation, folder):
                return self._bootstrap(step, relation, folder, is_repeated)
            case AdvanceStream(relation):
                deployed = self._deployed()
                passing = self._passing(step, deployed, relation)
                state, rows = passing.advance(deployed, step.action)
                return relation_changed(relation, state, rows)
            case EvolveStream(relation):
                passing = self._passing(step, self._target, relation)
                state, rows = passing.evolve(self._target, step.action)
                return relation_changed(relation, state, rows)
            case BackfillStream():
                state, rows = self._streams(step).backfill(self._target, step.action)
                return relation_changed(step.action.relation, state, rows)
            case RestoreStream(relation):
                passing = self._passing(step, self._target, relation)
                state, rows, note = passing.restore(self._target, step.action)
                return relation_changed(relation, state, rows, note)
            case Detach(relation):
                return Outcome({"removed": [relation]})
            case _:
                assert_never(step.action)

    # what the steps need

    @property
    def _cut(self) -> Cut:
        unfinished = self._journal.deployment.unfinished
        if unfinished is None:
            raise EngineError("the plan is no longer under way")
        return unfinished.cut

    @property
    def _run(self) -> str:
        unfinished = self._journal.deployment.unfinished
        return unfinished.run if unfinished else self._plan.id

    def _mark(self, step: Step, mark: str | None, inputs: Mapping[str, str]) -> Mark:
        return Mark(self._plan.pipeline, self._run, step.number, self._plan.target, mark, inputs)

    def _streams(self, step: Step) -> StreamEffects:
        mark = self._mark(step, None, {})
        return StreamEffects(self._engine, self._warehouse, mark, self._cut.relations)

    def _passing(
        self, step: Step, program: Program, name: str
    ) -> StreamEffects | AccumulationEffects:
        if program.views[name].is_streaming:
            return self._streams(step)
        return AccumulationEffects(
            self._engine,
            self._warehouse,
            self._mark(step, None, {}),
            self._cut.relations,
            self._journal.deployment.relation_history.get((self._plan.target or "base", name)),
        )

    def _table(self, name: str, stage: int) -> Table:
        return self._stages[stage].tables[name]

    def _view(self, name: str) -> View:
        return self._target.views[name]

    def _written(self, state: RelationState) -> Written:
        now = seen(self._warehouse, state)
        return Written(now.version, now.rows, now.bytes)

    # steps

    def _stop(self) -> Outcome:
        journal = self._journal
        return Outcome(
            note=wait_until_stopped(
                journal, self._warehouse, patience=self._patience, check=journal.still_owner
            )
        )

    def _checkpoint(self) -> Outcome:
        cut = observed_cut(self._warehouse, self._cut)
        return Outcome(cut.to_dict(), note=f"{len(cut.relations)} relations")

    def _rename(self, before: str, after: str) -> Outcome:
        state = self._cut.relations.get(before)
        if state is None:  # an earlier process did it
            return Outcome()
        return Outcome({"relations": {after: state.to_dict()}, "forgotten": [before]})

    def _create(self, step: Step, table: Table, folder: str) -> Outcome:
        mark = fingerprint(table)
        written = self._engine.create_table(table, folder, self._mark(step, mark, {}))
        state = fresh(folder, RelationKind.TABLE, written, mark, {}, table.layout)
        return relation_changed(table.name, state, 0)

    def _alter(
        self,
        step: Step,
        table: Table,
        renamed: Sequence[tuple[str, str]],
        *,
        is_converted: bool = False,
        has_new_key: bool = False,
    ) -> Outcome:
        was = self._cut.relations[table.name]
        mark = fingerprint(table)
        told = self._mark(step, mark, {})
        if is_converted:
            written = self._engine.convert_table(
                table, was.folder, renamed, told, has_new_key=has_new_key
            )
        else:
            written = self._engine.alter_table(table, was.folder, renamed, told)
        state = fresh(was.folder, RelationKind.TABLE, written, mark, {}, was.layout)
        return relation_changed(table.name, altered(state, was), written.written)

    def _empty(self, step: Step, table: Table) -> Outcome:
        was = self._cut.relations[table.name]
        mark = fingerprint(table)
        written = self._engine.empty_table(table, was.folder, self._mark(step, mark, {}))
        state = fresh(was.folder, RelationKind.TABLE, written, mark, {})
        return relation_changed(table.name, replace(altered(state, was), is_emptied=True), 0)

    def _attach(self, relation: str, folder: str) -> Outcome:
        state = self._cut.detached[folder]
        written = self._written(state)
        if written.version != state.version:
            raise EngineError(
                f"the detached table in folder `{folder}` was written to by something else",
                hint="look at its Delta history; nothing of sqlmig writes to a detached table",
            )
        return relation_changed(relation, state, 0)

    def _restore(self, step: Step, action: Restore, is_repeated: bool) -> Outcome:
        view = self._view(action.relation)
        mark = materialization_fingerprint(self._target, view.name)
        inputs = self._input_contents(view)
        known = self._journal.deployment.materializations.get(
            materialization_key(action.folder, mark, inputs)
        )
        if known is None or known.content != action.content:
            outcome = self._bootstrap(step, view.name, action.folder, is_repeated)
            return replace(outcome, note="computed: its inputs have moved")
        back = self._back_to(action, self._mark(step, mark, inputs))
        if isinstance(back, EngineError):
            outcome = self._bootstrap(step, view.name, action.folder, is_repeated)
            return replace(outcome, note=f"computed: {back.message}")
        return relation_changed(view.name, replace(known, version=back.version), 0)

    def _restore_table(self, step: Step, action: RestoreTable) -> Outcome:
        table = self._table(action.relation, action.stage)
        was = self._cut.relations[action.relation]
        mark = fingerprint(table)
        way = find_way_back(was, action.content, mark)
        if way is not None and way.loses_rows and was.rows != 0 and step.destructive is None:
            way = None
        if way is not None:
            back = self._back_to(action, self._mark(step, mark, {}))
            if isinstance(back, Written):
                return relation_changed(table.name, replace(way.state, version=back.version), 0)
            if not action.can_alter:
                raise back
            return self._keep_rows(step, table, action, back.message)
        if not action.can_alter:
            raise EngineError(
                f"rows of `{table.name}` have moved since the plan was made",
                hint="run the command again: it makes a new plan",
            )
        return self._keep_rows(step, table, action, "its rows have moved")

    def _keep_rows(self, step: Step, table: Table, action: RestoreTable, why: str) -> Outcome:
        outcome = self._alter(
            step,
            table,
            action.renamed,
            is_converted=action.is_converted,
            has_new_key=action.has_new_key,
        )
        return replace(outcome, note=f"altered: {why}")

    def _back_to(self, action: Restore | RestoreTable, mark: Mark) -> Written | EngineError:
        folder, version = action.folder, action.version
        return put_back_if_kept(self._warehouse, self._engine, folder, version, mark)

    def _execute(self, step: Step, sql: str, stage: int, is_repeated: bool) -> Outcome:
        relations = self._cut.relations
        if is_repeated:
            for name, state in sorted(relations.items()):
                if self._warehouse.find_mark(state.folder, self._run, step.number) is not None:
                    return self._moved(name, self._written(state))
        program = self._stages[stage]
        name, written = self._engine.execute(program, sql, relations, self._mark(step, None, {}))
        return self._moved(name, written)

    def _call(self, step: Step, action: RunFunction) -> Outcome:
        function = self._load_hook(self._plan, action)
        relations = self._cut.relations
        program = self._stages[action.stage]
        self._engine.call(program, function, relations, self._mark(step, None, {}))
        observed = observed_cut(self._warehouse, self._cut)
        changed = {
            name: state.to_dict()
            for name, state in observed.relations.items()
            if state.version != relations[name].version
        }
        return Outcome({"relations": changed} if changed else None)

    def _moved(self, name: str, written: Written) -> Outcome:
        was = self._cut.relations[name]
        if written.version == was.version:
            return Outcome(rows=0)
        state = was.with_rows(written.version, written.rows, written.bytes)
        return relation_changed(name, state, written.written)

    def _bootstrap(self, step: Step, name: str, folder: str, is_repeated: bool) -> Outcome:
        view = self._view(name)
        if view.is_streaming:
            state, count = self._streams(step).begin(self._target, view, folder)
            return relation_changed(name, state, count)
        mark = materialization_fingerprint(self._target, name)
        inputs = self._input_contents(view)
        empty = RelationState(folder, view.kind.value, -1, "", mark, inputs)

        def made(written: Written, rows: int | None) -> Outcome:
            state = fresh(folder, view.kind, written, mark, inputs, view.layout)
            return relation_changed(name, state, rows)

        if is_repeated:
            version = self._warehouse.find_mark(folder, self._run, step.number)
            if version is not None:
                written = self._written(empty)
                return made(written, written.rows)
        wanted = self._target.stored_reads(name)
        states = {n: s for n, s in self._cut.relations.items() if n in wanted}
        own = self._mark(step, mark, inputs)
        written = self._engine.materialize(self._target, view, states, folder, own)
        return made(written, written.written if written.written is not None else written.rows)

    def _input_contents(self, view: View) -> dict[str, str]:
        return {
            name: self._cut.relations[name].content
            for name in sorted(self._target.followed(view.name))
        }

    def _known_connector(self, folder: str, generation: int, mark: str) -> ConnectorState:
        deployment = self._journal.deployment
        for known in (
            self._cut.connectors,
            self._cut.detached_connectors,
            deployment.connector_history,
        ):
            for state in known.values():
                if state.folder == folder and state.generation == generation:
                    return replace(state, fingerprint=mark)
        return ConnectorState(folder, generation, mark)
