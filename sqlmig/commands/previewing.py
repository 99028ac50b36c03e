"""`plan --preview`: what a plan would do to the rows. It reads, and changes nothing."""

from __future__ import annotations

from sqlmig.commands.project import Project
from sqlmig.errors import DeployedMovedError
from sqlmig.planning.preview import Preview, notes, prospects
from sqlmig.planning.steps import Plan
from sqlmig.program.model import EMPTY_PROGRAM, Program, Table
from sqlmig.program.sink_options import read_sink_options

SAMPLES = 3
"""Rows of each kind that are shown where nobody says how many."""


def preview(project: Project, plan: Plan, *, samples: int = SAMPLES) -> Preview | None:
    """Compute what the plan would, over the newest consistent cut, and compare with what is there.

    It costs what the plan's own computing costs, and writes nothing.

    Args:
        samples: rows that are shown of those added, removed and changed; 0 for counts alone.

    Returns:
        None for a plan that is blocked or has nothing to do.

    Raises:
        DeployedMovedError: the plan is of another deployed state.
        EngineError: a query fails over the rows that are there.
    """
    if plan.blockers or plan.is_noop:
        return None
    deployment = project.deployment()
    if deployment.deployed_seq != plan.deployed_seq:
        raise DeployedMovedError(
            "the deployed state has moved while the plan was made", hint="run the command again"
        )
    after = project.parse_deployed(plan.stages[-1]) if plan.stages else EMPTY_PROGRAM
    states = {**deployment.cut.relations, **deployment.consistent.relations}
    states = {name: s for name, s in states.items() if name in deployment.cut.relations}
    changed = prospects(plan, after, states)
    keys = {p.relation: _key(after, p.relation) for p in changed}
    differences = project.engine.preview(after, changed, states, keys, samples) if changed else ()
    return Preview(tuple(differences), notes(plan))


def _key(program: Program, name: str) -> tuple[str, ...]:
    """The columns that are declared to tell rows apart: a table's key, or that of a sink."""
    relation = program.relations.get(name)
    if isinstance(relation, Table):
        return relation.primary_key
    sinks = (sink for _, sink in sorted(program.sinks.items()) if sink.relation == name)
    return next((key for sink in sinks if (key := read_sink_options(program, sink).key)), ())
