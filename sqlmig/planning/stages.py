"""From the hooks' directives to the stages that tables pass through. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlmig.ledger.records import AppliedRevision
from sqlmig.planning import directives
from sqlmig.planning.directives import Directive
from sqlmig.planning.renames import chained, compose
from sqlmig.planning.steps import Blocker, Execute, RunFunction
from sqlmig.program.model import Program

Effect = Execute | RunFunction


@dataclass(frozen=True)
class Hop:
    """One hook on the way: `up` of a revision, or `down` of one that is taken back.

    Args:
        revision: whose hook it is.
        hook: `up` or `down`.
        directives: what the hook asked.
        before, after: the program that the hook leaves, and the one that it goes to.
    """

    revision: AppliedRevision
    hook: str
    directives: tuple[Directive, ...]
    before: Program
    after: Program


@dataclass(frozen=True)
class Stage:
    """Tables go from `before` to `after`, then `effects` run.

    Stages are cut only where a hook has an effect, so that it sees the tables of its own revision:
    after the change on the way up, before it on the way down.

    Args:
        revision: the revision whose program `after` is; None for base.
        tables: name before -> name after, for tables of `before` that a hook renamed.
        columns: table name after -> (column before -> column after).
        causes: name of a renamed table after -> the revision that asked.
    """

    before: Program
    after: Program
    revision: str | None = None
    tables: dict[str, str] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)
    effects: tuple[tuple[Effect, str], ...] = ()


def split_stages(
    deployed: Program, target: Program, hops: Sequence[Hop], revision: str | None = None
) -> tuple[tuple[Stage, ...], tuple[Blocker, ...]]:
    """Cut the way from `deployed` to `target` into stages.

    Args:
        deployed, target: the programs at both ends.
        hops: the hooks in the order in which they apply.
        revision: the target's; None for base.

    Returns:
        At least one stage, the last of which ends at `target`; what is wrong with the directives.
    """
    stages: list[Stage] = []
    blockers: list[Blocker] = []
    current = Stage(deployed, target, revision)
    for hop in hops:
        effects = _effects(hop)
        if effects and hop.hook == "down":
            stages.append(_ended(current, hop, hop.before, effects))
            current = Stage(hop.before, target, revision)
        _note_renames(current, hop, blockers)
        if effects and hop.hook == "up":
            stages.append(_ended(current, hop, hop.after, effects))
            current = Stage(hop.after, target, revision)
    stages.append(current)
    return tuple(_at_both_ends(stage) for stage in stages), tuple(blockers)


def renamed_tables(hops: Iterable[Hop]) -> dict[str, str]:
    """Table before the hops -> the same table after them, for those that hooks rename."""
    found = (directive for hop in hops for directive in hop.directives)
    return chained((d.before, d.after) for d in found if isinstance(d, directives.RenameTable))


def _at_both_ends(stage: Stage) -> Stage:
    """The stage with those renames only that lead from `before` to `after`.

    What came or went on the way is left to the comparison of both ends, so that the way back,
    where the same hop leads to nothing instead of from it, is the inverse.
    """
    tables = {
        before: after
        for before, after in stage.tables.items()
        if before in stage.before.tables and after in stage.after.tables
    }
    origin = {after: before for before, after in tables.items()}
    columns = {}
    for name, renamed in stage.columns.items():
        old = stage.before.tables.get(origin.get(name, name))
        new = stage.after.tables.get(name)
        if old is not None and new is not None:
            known = [{column.name.lower() for column in table.columns} for table in (old, new)]
            columns[name] = {b: a for b, a in renamed.items() if b in known[0] and a in known[1]}
    return replace(stage, tables=tables, columns={t: c for t, c in columns.items() if c})


def _ended(
    stage: Stage, hop: Hop, after: Program, effects: tuple[tuple[Effect, str], ...]
) -> Stage:
    return replace(stage, after=after, revision=hop.revision.revision, effects=effects)


def _effects(hop: Hop) -> tuple[tuple[Effect, str], ...]:
    effects: list[tuple[Effect, str]] = []
    for index, directive in enumerate(hop.directives):
        cause = f"{hop.hook}() of {hop.revision.revision}"
        match directive:
            case directives.Execute(sql):
                effects.append((Execute(hop.revision.revision, hop.hook, index, sql), cause))
            case directives.Run(name, _):
                effects.append((RunFunction(hop.revision.revision, hop.hook, index, name), cause))
            case directives.RenameTable() | directives.RenameColumn() | directives.Cutover():
                pass
            case directives.InPlace() | directives.Rebuild() | directives.Backfill():
                pass  # see `streams`
    return tuple(effects)


def _note_renames(stage: Stage, hop: Hop, blockers: list[Blocker]) -> None:
    where = f"{hop.hook}() of {hop.revision.revision}"
    for directive in hop.directives:
        if isinstance(directive, directives.RenameTable):
            problem = _table_problem(hop, directive.before, directive.after)
            if problem:
                message = f"{where}: rename of table `{directive.before}`: {problem}"
                blockers.append(Blocker(message))
                continue
            _rename_table(stage, directive.before, directive.after)
            stage.causes[directive.after] = where
    for directive in hop.directives:  # after the tables': it names a table as it is called then
        if isinstance(directive, directives.RenameColumn):
            table, before, after = directive.table, directive.before, directive.after
            problem = _column_problem(hop, table, before, after)
            if problem:
                message = f"{where}: rename of column `{table}.{before}`: {problem}"
                blockers.append(Blocker(message))
                continue
            compose(stage.columns.setdefault(table, {}), before, after)
            stage.causes.setdefault(table, where)


def _rename_table(stage: Stage, before: str, after: str) -> None:
    columns = stage.columns.pop(before, {})
    stage.columns.pop(after, None)
    is_known = before in stage.before.tables or before in stage.tables.values()
    if is_known and compose(stage.tables, before, after):
        stage.columns[after] = columns


def _table_problem(hop: Hop, before: str, after: str) -> str | None:
    if before not in hop.before.tables:
        return f"the program that is left has no table `{before}`"
    if after not in hop.after.tables:
        return f"the program that is gone to has no table `{after}`"
    if before in hop.after.relations:
        return f"the program that is gone to still has `{before}`"
    if after in hop.before.relations:
        return f"the program that is left has `{after}` already"
    return None


def _column_problem(hop: Hop, table: str, before: str, after: str) -> str | None:
    if table not in hop.after.tables:
        return f"the program that is gone to has no table `{table}`"
    renamed = {d.after: d.before for d in hop.directives if isinstance(d, directives.RenameTable)}
    source = hop.before.tables.get(renamed.get(table, table))
    if source is None:
        return f"the program that is left has no table `{table}`"
    if before not in {c.name.lower() for c in source.columns}:
        return f"the table that is left has no column `{before}`"
    names = {c.name.lower() for c in hop.after.tables[table].columns}
    if after not in names:
        return f"the table that is gone to has no column `{after}`"
    if before in names:
        return f"the table that is gone to still has `{before}`"
    return None
