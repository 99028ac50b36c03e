"""Whether the readers of sinks and the rows that a plan lets them send still fit together. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmig.errors import Location
from sqlmig.planning.sink_steps import CutOverSink, StartSink
from sqlmig.planning.steps import Blocker, Plan
from sqlmig.program.compatibility import find_breaks
from sqlmig.program.model import Program, Relation, Sink, Table, View
from sqlmig.program.sink_options import Compatibility, SinkOptions, read_sink_options
from sqlmig.program.type_shape import Field

Columns = Mapping[str, Sequence[Field]]


@dataclass(frozen=True)
class ColumnChange:
    """A sink of the target whose columns an upgrade may change.

    Args:
        before: what it reads in the deployed program; it reads `sink.relation` in the target.
    """

    sink: Sink
    options: SinkOptions
    before: Relation
    after: Relation

    @property
    def views_before(self) -> frozenset[str]:
        """What only Spark knows the columns of, in the deployed program."""
        return _views(self.before)

    @property
    def views_after(self) -> frozenset[str]:
        """The same in the target."""
        return _views(self.after)


def column_changes(plan: Plan, deployed: Program, target: Program) -> tuple[ColumnChange, ...]:
    """The sinks that ask for a compatibility and that the plan lets send other columns, maybe.

    Those are the sinks that it cuts over, or starts again at the same place. Not on the way back:
    a downgrade leads to columns that were sent before.
    """
    if plan.direction != "upgrade":
        return ()
    found = []
    for step in plan.steps:
        if not isinstance(step.action, CutOverSink | StartSink):
            continue
        sink = target.sinks[step.action.connector]
        options = read_sink_options(target, sink)
        if options.compatibility is Compatibility.NONE or options.mistakes:
            continue
        if isinstance(step.action, CutOverSink):
            before = deployed.relations.get(step.action.relation)
        else:
            before = _same_place(deployed, sink, options)
        if before is not None:
            found.append(ColumnChange(sink, options, before, target.relations[sink.relation]))
    return tuple(found)


def _same_place(deployed: Program, sink: Sink, options: SinkOptions) -> Relation | None:
    """What the sink reads in the deployed program, if it writes that format to that place there."""
    was = deployed.sinks.get(sink.connector)
    if was is None:
        return None
    now = read_sink_options(deployed, was)
    is_same = (now.kind, now.format, now.place) == (options.kind, options.format, options.place)
    return deployed.relations[was.relation] if is_same else None


def check_columns(change: ColumnChange, before: Columns, after: Columns) -> tuple[Blocker, ...]:
    """What of the change breaks the compatibility that the sink asks for.

    Args:
        before: view -> its columns in the deployed program; a view that is missing isn't checked.
        after: the same in the target.
    """
    old, new = _fields(change, change.before, before), _fields(change, change.after, after)
    if old is None or new is None:
        return ()
    asked, form = change.options.compatibility, change.options.format
    breaks = find_breaks(asked, form, old, new)
    weaker = _weaker(asked, {found.direction for found in breaks})
    blockers = []
    for found in breaks:
        name = found.column.partition(".")[0]
        blockers.append(
            Blocker(
                f"sink `{change.sink.connector}`: column `{found.column}` {found.problem}: "
                f"that breaks its compatibility `{asked.value}`",
                _location(change),
                f"keep `{name}` as it was, and put what is new in a column behind it; or let the "
                f"sink say compatibility '{weaker.value}'",
            )
        )
    return tuple(blockers)


def _weaker(asked: Compatibility, broken: set[Compatibility]) -> Compatibility:
    """The strongest compatibility that is not broken."""
    if asked is Compatibility.FULL and broken == {Compatibility.BACKWARD}:
        return Compatibility.FORWARD
    if asked is Compatibility.FULL and broken == {Compatibility.FORWARD}:
        return Compatibility.BACKWARD
    return Compatibility.NONE


def _location(change: ColumnChange) -> Location | None:
    """Where the columns come from; the sink itself if it reads another relation now."""
    if change.before.name != change.after.name:
        return change.sink.location
    if isinstance(change.after, View):
        return change.after.query_location or change.after.location
    return change.after.location


def _fields(change: ColumnChange, relation: Relation, known: Columns) -> tuple[Field, ...] | None:
    """The columns as they are sent: a key is never NULL, and a view's other columns may be.

    The letter case of a table's columns is that in which they were made, so it is not compared.
    """
    key = {name.lower() for name in change.options.key}
    if isinstance(relation, Table):
        fields = [Field(c.name, c.type, c.nullable) for c in relation.columns]
    elif relation.name in known:
        fields = list(known[relation.name])
    else:
        return None
    folds = isinstance(change.before, Table) or isinstance(change.after, Table)
    return tuple(
        Field(
            field.name.lower() if folds else field.name,
            field.type,
            field.is_nullable and field.name.lower() not in key,
        )
        for field in fields
    )


def _views(relation: Relation) -> frozenset[str]:
    return frozenset() if isinstance(relation, Table) else frozenset((relation.name,))
