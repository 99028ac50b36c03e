"""Looks at the deployed rows of the tables that a plan converts, before anything is stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlmig.commands.project import Project
from sqlmig.ledger.deployment import Deployment
from sqlmig.planning.steps import (
    AlterTable,
    Attach,
    Blocker,
    CreateTable,
    EmptyTable,
    Execute,
    Plan,
    RenameTable,
    RestoreTable,
    RunFunction,
)
from sqlmig.planning.table_steps import ConvertTable

_HINT = (
    'mend the rows (`sqlmig exec "UPDATE ..."`), or `--allow-destructive` empties the table instead'
)


@dataclass(frozen=True)
class RowChecks:
    """What was found in the rows.

    Args:
        blockers: rows that can't be kept.
        warnings: values that a cast changes.
        misfits: table -> why its rows can't be kept.
    """

    blockers: tuple[Blocker, ...] = ()
    warnings: tuple[str, ...] = ()
    misfits: tuple[tuple[str, str], ...] = ()


def check_rows(project: Project, deployment: Deployment, plan: Plan) -> RowChecks:
    """Look at the rows of each table that the plan converts as it is deployed.

    A table that the plan itself changes before is left out: its rows aren't there yet, and the step
    looks at them.
    """
    blockers: list[Blocker] = []
    warnings: list[str] = []
    misfits: dict[str, str] = {}
    for action, deployed in converted_as_deployed(plan):
        state = deployment.cut.relations[deployed]
        table = project.parse_deployed(plan.stages[action.stage]).tables[action.relation]
        found = project.engine.find_misfits(
            table, state.folder, action.renamed, has_new_key=action.has_new_key
        )
        warnings.extend(misfit.message for misfit in found if misfit.is_loss)
        reasons = [misfit.message for misfit in found if not misfit.is_loss]
        blockers.extend(Blocker(reason, table.location, _HINT) for reason in reasons)
        if reasons:
            misfits[action.relation] = "; ".join(reasons)
    return RowChecks(tuple(blockers), tuple(warnings), tuple(sorted(misfits.items())))


def converted_as_deployed(plan: Plan) -> Iterator[tuple[ConvertTable, str]]:
    """The conversions of tables whose rows are still the deployed ones, and the deployed name."""
    deployed: dict[str, str] = {}
    moved: set[str] = set()
    words: set[str] = set()  # of the hooks' statements: a table that they name may be written to
    is_any_moved = False
    for step in plan.steps:
        match step.action:
            case RenameTable(before, after):
                deployed[after] = deployed.pop(before, before)
                if before in moved:
                    moved.discard(before)
                    moved.add(after)
            case ConvertTable(relation):
                if relation not in moved | words and not is_any_moved:
                    yield step.action, deployed.get(relation, relation)
                moved.add(relation)
            case (
                CreateTable(relation)
                | AlterTable(relation)
                | EmptyTable(relation)
                | Attach(relation)
                | RestoreTable(relation)
            ):
                moved.add(relation)
            case Execute(_, _, _, sql):
                words.update(re.findall(r"\w+", sql.lower()))
            case RunFunction():
                is_any_moved = True
            case _:
                pass
