"""The planner: from what is deployed and what is wanted to the ordered steps between. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlmig.ledger.fold import Deployment, materialization_key
from sqlmig.ledger.records import AppliedRevision, ConnectorState, RelationState
from sqlmig.planning.stages import Hop, Stage, split_stages
from sqlmig.planning.steps import (
    Action,
    AlterTable,
    Attach,
    Blocker,
    Bootstrap,
    Checkpoint,
    ContinueSource,
    CreateTable,
    Detach,
    DetachSource,
    EmptyTable,
    Plan,
    RenameTable,
    Restore,
    Resume,
    StartSource,
    Step,
    Stop,
    Volume,
    action_to_dict,
)
from sqlmig.planning.table_change import table_change
from sqlmig.program.canonical import fingerprint, materialization_fingerprint
from sqlmig.program.diff import Change, diff_programs
from sqlmig.program.model import Program, RelationKind, Table, View


@dataclass(frozen=True)
class Observed:
    """A Delta table as it is now: its version, and rows and bytes from its statistics.

    `fingerprint` and `inputs` come from the mark that sqlmig left in the commit, if it made it.
    """

    version: int
    rows: int | None
    bytes: int | None
    fingerprint: str | None = None
    inputs: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Request:
    """What a plan is made from.

    Args:
        deployment: the fold of the ledger.
        deployed, target: the programs at both ends.
        revision: the target revision; None for base.
        ups, downs: the revisions to apply and to take back, in order.
        hops: their hooks, in order.
        observed: folder -> the table as it is now; empty when planning from the ledger alone.
    """

    pipeline: str
    direction: str
    deployment: Deployment
    deployed: Program
    target: Program
    revision: str | None
    ups: tuple[AppliedRevision, ...] = ()
    downs: tuple[str, ...] = ()
    hops: tuple[Hop, ...] = ()
    observed: Mapping[str, Observed] = field(default_factory=dict)


def make_plan(request: Request) -> Plan:
    """Plan the way from the deployed program to the target.

    Returns:
        The plan. What stands in its way is in `blockers`; such a plan can be shown but not run.
    """
    return _Planning(request).plan()


class _Planning:
    """One planning: predicts the cut while it adds steps."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.deployment = request.deployment
        self.target = request.target
        self.diff = diff_programs(request.deployed, request.target)
        self.changes: dict[tuple[str, str], Change] = {
            (c.what, c.name): c for c in self.diff.changes
        }
        self.steps: list[Step] = []
        self.blockers: list[Blocker] = []
        self.warnings: list[str] = []
        self.states: dict[str, RelationState] = {
            name: self._as_observed(state) for name, state in self.deployment.cut.relations.items()
        }
        self.folders = set(self.deployment.folders)
        self.table_renames: dict[str, str] = {}
        self.emptied: set[str] = set()
        self.returned: set[str] = set()

    def plan(self) -> Plan:
        request = self.request
        self._check_supported()
        stages, blockers = split_stages(request.deployed, self.target, request.hops)
        self.blockers.extend(blockers)
        self._add(Stop(), "the change is made while no input is read")
        self._add(Checkpoint(), "every relation is read as of one point")
        for number, stage in enumerate(stages):
            self._stage(number, stage)
        self._connectors()
        self._views()
        self._detach()
        self._add(Resume(), "")
        actions = [action_to_dict(step.action) for step in self.steps]
        basis = json.dumps(
            [
                request.pipeline,
                request.direction,
                self.deployment.revision,
                request.revision,
                self.deployment.deployed_seq,
                actions,
                sorted(self.target.files.items()),
                [r.text for r in request.ups],
                request.downs,
            ],
            sort_keys=True,
        )
        return Plan(
            id=hashlib.sha256(basis.encode()).hexdigest()[:12],
            pipeline=request.pipeline,
            direction=request.direction,
            deployed=self.deployment.revision,
            target=request.revision,
            deployed_seq=self.deployment.deployed_seq,
            diff=self.diff,
            steps=tuple(self.steps),
            blockers=tuple(self.blockers),
            warnings=tuple(self.warnings),
            ups=request.ups,
            downs=request.downs,
            stages=tuple(stage.after.files for stage in stages),
        )

    # what can't be run yet

    def _check_supported(self) -> None:
        for view in self.target.views.values():
            if view.kind is RelationKind.STREAMING_TABLE:
                self.blockers.append(
                    Blocker(
                        f"streaming table `{view.name}` can't be deployed "
                        "by this version of sqlmig",
                        view.location,
                        "use CREATE MATERIALIZED VIEW",
                    )
                )
        for sink in self.target.sinks.values():
            self.blockers.append(
                Blocker(
                    f"sink `{sink.name}` can't be deployed by this version of sqlmig",
                    sink.location,
                    "read the relation's Delta table, or `sqlmig query`",
                )
            )

    # tables

    def _stage(self, number: int, stage: Stage) -> None:
        for before, after in sorted(stage.tables.items()):
            if before in self.states:
                self.states[after] = self.states.pop(before)
            self.table_renames[self._first_name(before)] = after
            self._add(RenameTable(before, after), stage.causes.get(after, ""))
        origin = {after: before for before, after in stage.tables.items()}
        for name, table in sorted(stage.after.tables.items()):
            old = stage.before.tables.get(origin.get(name, name))
            state = self.states.get(name)
            if state is None or state.kind != RelationKind.TABLE.value:
                self._new_table(number, table)
            elif old is None:
                self._existing_table(number, table, None, {}, state)
            elif fingerprint(old) != fingerprint(table):
                self._existing_table(number, table, old, stage.columns.get(name, {}), state)
        for action, cause in stage.effects:
            self._add(replace(action, stage=number), cause)

    def _first_name(self, name: str) -> str:
        return next((b for b, a in self.table_renames.items() if a == name), name)

    def _new_table(self, number: int, table: Table) -> None:
        earlier = self._earlier_state(table.name)
        mark = fingerprint(table)
        if earlier and earlier.fingerprint == mark and earlier.kind == RelationKind.TABLE.value:
            self.states[table.name] = earlier
            self.returned.add(table.name)
            self._add(
                Attach(table.name, earlier.folder),
                "it is as it was when this revision was deployed last",
                writes=self._volume(table.name, earlier),
            )
            return
        folder = self._new_folder(table.name)
        self.states[table.name] = RelationState(
            folder, RelationKind.TABLE.value, 0, f"new:{table.name}", mark, rows=0, bytes=0
        )
        self._add(
            CreateTable(table.name, folder, number),
            self._cause("table", table.name) or "it is not in the warehouse",
            writes=Volume(table.name, 0, 0),
        )

    def _existing_table(
        self,
        number: int,
        table: Table,
        before: Table | None,
        renamed: Mapping[str, str],
        state: RelationState,
    ) -> None:
        mark = fingerprint(table)
        cause = self._cause("table", table.name) or "its definition changed"
        undo = find_undo(state, mark)
        if undo is not None:
            loses = _was_emptied_since(state, undo) and state.rows != 0
            self.states[table.name] = replace(undo, altered_from=None)
            self.returned.add(table.name)
            self._add(
                Restore(table.name, undo.folder, undo.version, undo.content),
                cause,
                writes=self._volume(table.name, undo),
                destructive=f"the rows written to `{table.name}` since it was emptied"
                if loses
                else None,
            )
            return
        change = table_change(before, table, renamed) if before is not None else None
        changed = replace(state, content=f"new:{table.name}", fingerprint=mark, altered_from=None)
        if change is not None and change.reason_to_empty is None:
            self.states[table.name] = changed
            dropped = [o for o in change.operations if o.startswith("drop column")]
            if dropped:
                self.warnings.append(f"`{table.name}`: {', '.join(dropped)}: its values are lost")
            self._add(
                AlterTable(table.name, change.operations, tuple(sorted(renamed.items())), number),
                cause,
                writes=self._volume(table.name, state),
            )
            return
        reason = change.reason_to_empty if change else "a view becomes a table"
        self.states[table.name] = replace(changed, rows=0, bytes=0)
        self.emptied.add(table.name)
        rows = "all rows" if state.rows is None else f"{state.rows:,} rows"
        self._add(
            EmptyTable(table.name, number),
            f"{cause}: {reason}" if reason else cause,
            writes=self._volume(table.name, state),
            destructive=f"{rows} of `{table.name}`: {reason}",
        )

    # connectors

    def _connectors(self) -> None:
        states = self.deployment.cut.connectors
        carried: set[str] = set()
        for name, source in sorted(self.target.sources.items()):
            mark = fingerprint(source)
            change = self.changes.get(("source", name))
            was = next(
                (b for b, a in self.table_renames.items() if a == source.table), source.table
            )
            old_name = f"{was}.{source.name}"
            old = states.get(old_name)
            earlier = self.deployment.connector_history.get((self.request.revision or "base", name))
            if source.table in self.emptied:
                self._start(name, mark, "its table is emptied")
            elif change is None and name in states and source.table not in self.returned:
                continue
            elif old is not None and old_name != name and change is not None:
                carried.add(old_name)
                self._continue(name, replace(old, fingerprint=mark), "its table was renamed")
            elif earlier is not None and earlier.fingerprint == mark:
                if states.get(name) != earlier:
                    self._continue(name, earlier, "it goes on where this revision left it")
            else:
                self._start(name, mark, self._cause("source", name) or "it was never started")
        for name in sorted(states):
            if name not in self.target.sources:
                cause = "goes on under its table's new name" if name in carried else None
                self._add(
                    DetachSource(name), cause or self._cause("source", name) or "it is removed"
                )

    def _start(self, name: str, mark: str, cause: str) -> None:
        generations = [
            state.generation
            for known in (
                self.deployment.cut.connectors,
                self.deployment.cut.detached_connectors,
                self.deployment.connector_history,
            )
            for state in known.values()
            if state.folder == name
        ]
        self._add(StartSource(name, name, 1 + max(generations, default=0), mark), cause)

    def _continue(self, name: str, state: ConnectorState, cause: str) -> None:
        self._add(ContinueSource(name, state.folder, state.generation, state.fingerprint), cause)

    # views

    def _views(self) -> None:
        for name in self.target.order:
            view = self.target.relations[name]
            if isinstance(view, View) and view.is_stored:
                self._view(view)

    def _view(self, view: View) -> None:
        name = view.name
        state = self.states.get(name)
        if state is not None and state.kind == RelationKind.TABLE.value:
            state = None
        change = self.changes.get(("view", name))
        if change is None and state is not None:
            return
        mark = materialization_fingerprint(self.target, name)
        inputs = sorted(self.target.stored_reads(name))
        contents = {read: self.states[read].content for read in inputs if read in self.states}
        reads = tuple(self._volume(read, self.states.get(read)) for read in inputs)
        cause = self._cause("view", name) or "it is not in the warehouse"
        published = self._published(name, state, mark, contents)
        if published is not None:
            self.states[name] = published
            self._add(
                Restore(name, published.folder, published.version, published.content),
                cause,
                writes=self._volume(name, published),
            )
            return
        folder = state.folder if state is not None else self._folder_again(name, view.kind)
        self.states[name] = RelationState(
            folder, view.kind.value, -1, f"new:{name}", mark, contents
        )
        was = Volume(name, state.rows, state.bytes) if state else Volume(name, None, None)
        self._add(Bootstrap(name, folder), cause, reads=reads, writes=was)

    def _published(
        self, name: str, state: RelationState | None, mark: str, contents: Mapping[str, str]
    ) -> RelationState | None:
        earlier = self._earlier_state(name)
        folders = [s.folder for s in (state, earlier) if s is not None]
        for folder in folders:
            key = materialization_key(folder, mark, contents)
            found = self.deployment.materializations.get(key)
            if found is not None:
                return found
        return None

    def _folder_again(self, name: str, kind: RelationKind) -> str:
        earlier = self._earlier_state(name)
        if earlier is not None and earlier.kind == kind.value:
            return earlier.folder
        return self._new_folder(name)

    def _earlier_state(self, name: str) -> RelationState | None:
        """The relation as the target revision left it, if that was deployed before and is kept."""
        earlier = self.deployment.relation_history.get((self.request.revision or "base", name))
        return earlier if earlier and earlier.folder in self.deployment.cut.detached else None

    # the rest

    def _detach(self) -> None:
        for name in sorted(self.states):
            relation = self.target.relations.get(name)
            if relation is None:
                gone = self.changes.get(("table", name)) or self.changes.get(("view", name))
                cause = "; ".join(gone.reasons) if gone else ""
                self._add(Detach(name), cause or "it is removed")
            elif not relation.is_stored:
                self._add(Detach(name), "it becomes a view")

    def _add(
        self,
        action: Action,
        cause: str,
        *,
        reads: tuple[Volume, ...] = (),
        writes: Volume | None = None,
        destructive: str | None = None,
    ) -> None:
        self.steps.append(Step(len(self.steps) + 1, action, cause, reads, writes, destructive))

    def _cause(self, what: str, name: str) -> str:
        change = self.changes.get((what, name))
        if change is None:
            return ""
        return "; ".join(change.reasons) or f"it is {change.how}"

    def _new_folder(self, name: str) -> str:
        folder, number = name, 1
        while folder in self.folders:
            number += 1
            folder = f"{name}__{number}"
        self.folders.add(folder)
        return folder

    def _as_observed(self, state: RelationState) -> RelationState:
        now = self.request.observed.get(state.folder)
        return state if now is None else observe(state, now)

    @staticmethod
    def _volume(name: str, state: RelationState | None) -> Volume:
        return Volume(name, state.rows if state else None, state.bytes if state else None)


def find_undo(state: RelationState, mark: str) -> RelationState | None:
    """The state that a table had under the definition `mark`, if its rows have not moved since."""
    undo = state.altered_from
    while undo is not None and undo.fingerprint != mark:
        undo = undo.altered_from
    return undo


def _was_emptied_since(state: RelationState, undo: RelationState) -> bool:
    at: RelationState | None = state
    while at is not None and at is not undo:
        if at.is_emptied:
            return True
        at = at.altered_from
    return False


def observe(state: RelationState, now: Observed) -> RelationState:
    """`state` as it is now: contents are new when the Delta version moved on."""
    if now.version == state.version:
        return replace(state, rows=now.rows, bytes=now.bytes)
    is_table = state.kind == RelationKind.TABLE.value
    return replace(
        state,
        version=now.version,
        content=f"{state.folder}@{now.version}",
        fingerprint=state.fingerprint if is_table else now.fingerprint or "",
        inputs={} if is_table else now.inputs or {},
        rows=now.rows,
        bytes=now.bytes,
        altered_from=state.altered_from if state.is_emptied else None,
    )
