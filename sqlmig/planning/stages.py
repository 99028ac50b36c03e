"""From the hooks' directives to the stages that tables pass through. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlmig.ledger.records import AppliedRevision
from sqlmig.planning import directives
from sqlmig.planning.directives import Directive
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
        tables: name before -> name after, for tables that a hook renamed.
        columns: table name after -> (column before -> column after).
        causes: name of a renamed table after -> the revision that asked.
    """

    before: Program
    after: Program
    tables: dict[str, str] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)
    effects: tuple[tuple[Effect, str], ...] = ()


def split_stages(
    deployed: Program, target: Program, hops: Sequence[Hop]
) -> tuple[tuple[Stage, ...], tuple[Blocker, ...]]:
    """Cut the way from `deployed` to `target` into stages.

    Args:
        deployed, target: the programs at both ends.
        hops: the hooks in the order in which they apply.

    Returns:
        At least one stage, the last of which ends at `target`; what is wrong with the directives.
    """
    stages: list[Stage] = []
    blockers: list[Blocker] = []
    current = Stage(deployed, target)
    for hop in hops:
        effects = _effects(hop)
        if effects and hop.hook == "down":
            stages.append(_ended(current, hop.before, effects))
            current = Stage(hop.before, target)
        _note_renames(current, hop, blockers)
        if effects and hop.hook == "up":
            stages.append(_ended(current, hop.after, effects))
            current = Stage(hop.after, target)
    stages.append(current)
    return tuple(stages), tuple(blockers)


def _ended(stage: Stage, after: Program, effects: tuple[tuple[Effect, str], ...]) -> Stage:
    return Stage(stage.before, after, stage.tables, stage.columns, stage.causes, effects)


def _effects(hop: Hop) -> tuple[tuple[Effect, str], ...]:
    effects: list[tuple[Effect, str]] = []
    for index, directive in enumerate(hop.directives):
        cause = f"{hop.hook}() of {hop.revision.revision}"
        match directive:
            case directives.Execute(sql):
                effects.append((Execute(hop.revision.revision, hop.hook, index, sql), cause))
            case directives.Run(name, _):
                effects.append((RunFunction(hop.revision.revision, hop.hook, index, name), cause))
            case directives.RenameTable() | directives.RenameColumn():
                pass
    return tuple(effects)


def _note_renames(stage: Stage, hop: Hop, blockers: list[Blocker]) -> None:
    where = f"{hop.hook}() of {hop.revision.revision}"
    for directive in hop.directives:
        match directive:
            case directives.RenameTable(before, after):
                problem = _table_problem(hop, before, after)
                if problem:
                    blockers.append(Blocker(f"{where}: rename of table `{before}`: {problem}"))
                    continue
                original = next((b for b, a in stage.tables.items() if a == before), before)
                stage.tables[original] = after
                stage.columns[after] = stage.columns.pop(before, {})
                stage.causes[after] = where
            case directives.RenameColumn(table, before, after):
                problem = _column_problem(stage, hop, table, before, after)
                if problem:
                    blockers.append(
                        Blocker(f"{where}: rename of column `{table}.{before}`: {problem}")
                    )
                    continue
                renamed = stage.columns.setdefault(table, {})
                original = next((b for b, a in renamed.items() if a == before), before)
                renamed[original] = after
                stage.causes[table] = where
            case directives.Execute() | directives.Run():
                pass


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


def _column_problem(stage: Stage, hop: Hop, table: str, before: str, after: str) -> str | None:
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
