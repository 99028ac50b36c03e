"""`stamp`: writes into the ledger what is deployed, and takes up what the warehouse has of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlmig.commands.edited import refuse_edited
from sqlmig.commands.plans import as_applied
from sqlmig.commands.policy import check_checkout
from sqlmig.commands.project import Project
from sqlmig.execution.executor import check_idle
from sqlmig.ledger.cut import ConnectorState, Cut, RelationState
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.records import Kind, Status
from sqlmig.ledger.sink_state import SinkState
from sqlmig.program.canonical import fingerprint, materialization_fingerprint, sink_fingerprint
from sqlmig.program.model import Program, RelationKind
from sqlmig.program.sink_options import read_sink_options


def stamp(project: Project, target: str, *, purge: bool = False) -> str | None:
    """Write into the ledger that `target` is deployed, without changing anything else.

    Tables and checkpoints that lie in the warehouse under the names of the program, and that the
    ledger doesn't know, are taken up as they are: so a lost ledger is begun anew. What their sinks
    had sent isn't known then: they begin with a snapshot.

    Args:
        target: any name of a revision, or `base`.
        purge: forget what was applied before, also when a plan is unfinished or files of applied
            revisions were edited: what the files say now counts as applied.

    Returns:
        The revision stamped; None for base.

    Raises:
        RejectedError: the checkout isn't what the target asks for.
    """
    check_checkout(project)
    journal = project.journal
    deployment = journal.refresh()
    if purge:
        deployment = replace(deployment, applied={})
    else:
        check_idle(deployment)
        refuse_edited(project, deployment)
    revision = project.resolve(target, deployment)
    graph = project.graph(deployment, target)
    ups = [
        as_applied(project, graph, name, deployment).to_dict()
        for name in graph.path(None, revision).ups
    ]
    files = project.substituted(project.revision_files(revision, deployment)) if revision else {}
    program = project.parse_deployed(files)
    journal.append(
        Kind.STAMP,
        Status.DONE,
        check=None if purge else check_idle,
        revision=revision,
        program=dict(files),
        cut=_found(project, program, deployment),
        details={"purge": purge, "ups": ups},
    )
    return revision


def _found(project: Project, program: Program, deployment: Deployment) -> dict[str, Any] | None:
    """A partial cut of what the warehouse has of the program and the ledger doesn't know."""
    known = deployment.folders
    states = {
        name: RelationState(name, relation.kind.value, -1, "", "")
        for name, relation in program.relations.items()
        if relation.is_stored and name not in deployment.cut.relations and name not in known
    }
    observed = project.warehouse.observe(states)
    relations = {
        name: RelationState(
            folder=name,
            kind=state.kind,
            version=observed[name].version,
            content=f"{name}@{observed[name].version}",
            fingerprint=fingerprint(program.relations[name])
            if name in program.tables
            else materialization_fingerprint(program, name),
            inputs=observed[name].inputs or {},
            passed=observed[name].passed or {},
            watermark=observed[name].watermark,
            late=observed[name].late,
            is_historical=state.kind == RelationKind.MATERIALIZED_VIEW.value
            and bool(observed[name].passed),
            rows=observed[name].rows,
            bytes=observed[name].bytes,
            layout=project.warehouse.describe(name).partitions,
        )
        for name, state in states.items()
        if name in observed
    }
    connectors = {
        name: ConnectorState(name, max(1, project.warehouse.generation(name)), fingerprint(source))
        for name, source in program.sources.items()
        if source.table in relations and name not in deployment.cut.connectors
    }
    options = {name: read_sink_options(program, sink) for name, sink in program.sinks.items()}
    sinks = {
        name: SinkState(
            name,
            1,
            sink_fingerprint(sink, options[name].key),
            f"stamp-{project.journal.owner.token}/{number}",
            mode=options[name].cutover.value,
        )
        for number, (name, sink) in enumerate(sorted(program.sinks.items()))
        if sink.relation in relations and name not in deployment.cut.sinks
    }
    return Cut(relations=relations, connectors=connectors, sinks=sinks).to_dict() or None
