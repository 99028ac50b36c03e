"""`plan`: from the names of revisions to a plan. It reads, and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from sqlmig.commands.departure import departure
from sqlmig.commands.edited import refuse_edited
from sqlmig.commands.foreign import foreign_functions, not_analyzed, read_plainly
from sqlmig.commands.project import Project
from sqlmig.commands.row_checks import check_rows
from sqlmig.errors import EngineError, RevisionError
from sqlmig.execution.observing import observed_cut
from sqlmig.execution.parting import find_part
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.records import AppliedRevision
from sqlmig.planning import planner
from sqlmig.planning.directives import Directive, Operations
from sqlmig.planning.request import RawRecords, Request
from sqlmig.planning.sink_columns import check_columns, column_changes
from sqlmig.planning.stages import Hop
from sqlmig.planning.steps import Blocker, Bootstrap, Plan, Restore
from sqlmig.planning.strategies import explain_relations
from sqlmig.planning.stream_steps import AdvanceStream, BackfillStream, EvolveStream, RestoreStream
from sqlmig.program.model import EMPTY_PROGRAM, Program
from sqlmig.revisions.graph import RevisionGraph
from sqlmig.revisions.hooks import load_hooks
from sqlmig.revisions.identifier import counts_from_head

_COMPUTING = (Bootstrap, EvolveStream, BackfillStream)


def make_plan(
    project: Project,
    target: str = "head",
    *,
    offline: bool = False,
    direction: str | None = None,
    allow_destructive: bool = False,
    allow_unknown: bool = False,
    ref: str | None = None,
    at: datetime | None = None,
) -> Plan:
    """The plan that takes the deployed revision to `target`.

    Args:
        target: any name of a revision.
        offline: plan from the ledger alone: start no Spark, look at no table.
        direction: `upgrade` or `downgrade`; by default whichever leads there.
        allow_destructive: empty tables whose rows can't be kept, instead of being blocked by them.
        allow_unknown: take a deployed revision back that has no file here, whatever the policy.
        ref: a Git ref: plan as if that were checked out. Its files are read from Git's objects, and
            nothing of their code is run.
        at: from when on rows pass streaming tables under the target's queries.

    Raises:
        GitError: no such ref, or it lacks the project.
        RevisionError: no such revision, not on the way, or an applied file was edited.
        ProgramErrors: the target's SQL has mistakes.
    """
    from contextlib import nullcontext

    if ref is None:
        place: AbstractContextManager[None] = nullcontext()
    else:
        from sqlmig.commands.references import ReferenceProject, placed_at

        project = ReferenceProject(project, ref)
        place = placed_at(project.reference)
    with place:
        return plan_way(
            project,
            project.deployment(),
            target,
            direction=direction,
            offline=offline,
            allow_destructive=allow_destructive,
            allow_unknown=allow_unknown,
            at=at,
        )[0]


def plan_way(
    project: Project,
    deployment: Deployment,
    target: str,
    *,
    direction: str | None,
    offline: bool = False,
    analyze: bool = True,
    explain: bool = True,
    allow_destructive: bool = False,
    allow_unknown: bool = False,
    at: datetime | None = None,
) -> tuple[Plan, Program]:
    """The plan from what is deployed to `target`, and the target's program.

    Args:
        direction: refuse a way that leads elsewhere; None for whichever leads there.
        offline: look at the ledger only.
        analyze: let Spark analyse new and changed queries, and look at rows that are converted.
        explain: tell of each relation what kind of change it is, and which ways there are.
        allow_destructive: empty tables whose rows can't be kept.
        allow_unknown: take a deployed revision back that has no file here, whatever the policy.
        at: from when on rows pass streaming tables under the target's queries.
    """
    if direction != "downgrade":  # going back uses the ledger's text
        refuse_edited(project, deployment)
    revision = project.resolve(target, deployment)
    graph = project.graph(deployment, target)
    walk = graph.path(deployment.revision, revision)
    left = None
    if direction != "downgrade" and walk.downs and (walk.ups or counts_from_head(target)):
        left = departure(project, deployment, graph, revision, allow=allow_unknown)
    is_down = bool(walk.downs) and not walk.ups
    wanted = "downgrade" if is_down and (left or direction is None) else direction or "upgrade"
    if left is None:
        _check_way(graph, deployment.revision, revision, wanted)
    before = project.parse_deployed(deployment.program)
    files = project.revision_files(revision, deployment) if revision else {}
    after = project.parse(files) if revision else EMPTY_PROGRAM
    hops = [_hop(project, graph, name, "down", deployment) for name in walk.downs]
    hops += [_hop(project, graph, name, "up", deployment) for name in walk.ups]
    request = Request(
        pipeline=project.config.pipeline,
        direction=wanted,
        deployment=deployment,
        deployed=before,
        target=after,
        revision=revision,
        ups=tuple(as_applied(project, graph, name, deployment) for name in walk.ups),
        downs=tuple(walk.downs),
        hops=tuple(hops),
        observed={} if offline else project.warehouse.observe(deployment.cut.relations),
        folders=frozenset() if offline else project.warehouse.folders(),
        raw={} if offline else _raw_records(project, deployment, before),
        at=at,
    )
    plan = planner.make_plan(request)
    if left is not None and not left.is_allowed:
        plan = replace(plan, blockers=(Blocker(left.message, hint=left.hint), *plan.blockers))
    foreign = foreign_functions(before, after) if project.is_foreign else ()
    if at is not None and not offline:
        plan = _parts_checked(project, plan, before, deployment)
    asks_spark = analyze and not offline
    if asks_spark:
        plan = _rows_checked(project, plan, request, allow_destructive=allow_destructive)
    if asks_spark and foreign:
        plan = replace(plan, warnings=(*plan.warnings, not_analyzed(foreign)))
    elif asks_spark:
        plan = _analyzed(project, plan, after, was_deployed=revision in (None, *deployment.known))
    plan = _sinks_checked(project, plan, before, after, with_spark=asks_spark and not foreign)
    if left is not None and left.is_allowed:
        plan = replace(plan, warnings=(left.message, *plan.warnings))
    if explain:
        plan = replace(plan, relations=explain_relations(before, after, plan))
    return plan, after


def _raw_records(
    project: Project, deployment: Deployment, deployed: Program
) -> dict[str, Mapping[int, RawRecords]]:
    """Folder of a source -> generation -> the raw records that are kept of it."""
    folders = {
        deployment.cut.connectors[name].folder
        for name, source in deployed.sources.items()
        if source.retain_raw is not None and name in deployment.cut.connectors
    }
    return {folder: project.warehouse.raw_records(folder) for folder in sorted(folders)}


def _check_way(
    graph: RevisionGraph, deployed: str | None, target: str | None, direction: str
) -> None:
    walk = graph.path(deployed, target)
    if walk.downs and walk.ups:
        common = graph.ancestors(deployed) & graph.ancestors(target)
        tops = graph.sort(common)[-1:] or ("base",)
        raise RevisionError(
            f"revision {target} is not on the same branch as the deployed {deployed}",
            hint=f"`sqlmig merge` joins the branches, or `sqlmig downgrade {tops[0]}` goes back "
            "to where they part",
        )
    if direction == "upgrade" and walk.downs:
        raise RevisionError(
            f"revision {target or 'base'} is below the deployed {deployed}",
            hint=f"`sqlmig downgrade {target or 'base'}` goes there",
        )
    if direction == "downgrade" and walk.ups:
        raise RevisionError(
            f"revision {target} is above the deployed {deployed or 'base'}",
            hint=f"`sqlmig upgrade {target}` goes there",
        )


def _hop(
    project: Project, graph: RevisionGraph, name: str, hook: str, deployment: Deployment
) -> Hop:
    revision = as_applied(project, graph, name, deployment)
    is_run = not project.is_foreign or name in deployment.applied
    key = (revision.path, revision.text, hook, is_run)
    if key not in project.directives:
        read = read_directives if is_run else read_plainly
        project.directives[key] = read(revision, hook)
    directives = project.directives[key]
    if not directives:
        return Hop(revision, hook, (), EMPTY_PROGRAM, EMPTY_PROGRAM)
    own = project.parse(project.revision_files(name, deployment))
    parents = graph.down_revisions(name)
    parent = (
        project.parse(project.revision_files(parents[0], deployment)) if parents else EMPTY_PROGRAM
    )
    before, after = (parent, own) if hook == "up" else (own, parent)
    return Hop(revision, hook, directives, before, after)


def read_directives(revision: AppliedRevision, hook: str) -> tuple[Directive, ...]:
    """What a revision's hook asks for; its code runs, and has no effect.

    Raises:
        RevisionError: the code raises.
    """
    operations = Operations()
    hooks = load_hooks(revision.text, revision.path)
    (hooks.up if hook == "up" else hooks.down)(operations)
    return operations.directives


def as_applied(
    project: Project, graph: RevisionGraph, name: str, deployment: Deployment
) -> AppliedRevision:
    """The revision with its text: as applied if it is, else from its file, else as last applied."""
    if name in deployment.applied:
        return deployment.applied[name]
    file = project.directory.get(name)
    if file is None:
        return deployment.known[name]
    return AppliedRevision(
        revision=file.revision,
        down_revisions=graph.down_revisions(name),
        depends_on=file.depends_on,
        branch_labels=file.branch_labels,
        message=file.message,
        path=file.path,
        text=file.text,
    )


def _parts_checked(project: Project, plan: Plan, before: Program, deployment: Deployment) -> Plan:
    """The plan with what keeps the logs from telling where its time parts rows."""
    if plan.blockers:
        return plan
    states = observed_cut(project.warehouse, deployment.cut).relations
    found: list[Blocker] = []
    for step in plan.steps:
        match step.action:
            case AdvanceStream(relation, until, parted) if until and not parted:
                view, at = before.views[relation], datetime.fromisoformat(until)
                try:
                    find_part(project.warehouse, view, states, at)
                except EngineError as error:
                    found.append(Blocker(error.message, error.location, error.hint))
    return replace(plan, blockers=tuple(found))


def _rows_checked(
    project: Project, plan: Plan, request: Request, *, allow_destructive: bool
) -> Plan:
    """The plan with what is found in the rows of the tables that it converts."""
    if plan.blockers:
        return plan
    checks = check_rows(project, request.deployment, plan)
    if checks.misfits and allow_destructive:
        plan = planner.make_plan(replace(request, emptied=dict(checks.misfits)))
        checks = replace(checks, blockers=())
    return replace(plan, blockers=checks.blockers, warnings=(*plan.warnings, *checks.warnings))


def _sinks_checked(
    project: Project, plan: Plan, before: Program, after: Program, *, with_spark: bool
) -> Plan:
    """The plan with what breaks the compatibility of sinks.

    Spark is asked for the columns of views; without it, or in a plan that is blocked already, only
    sinks of tables are checked.
    """
    changes = column_changes(plan, before, after)
    old = frozenset[str]().union(*(change.views_before for change in changes))
    new = frozenset[str]().union(*(change.views_after for change in changes))
    asks = with_spark and not plan.blockers
    columns_before = project.engine.columns(before, sorted(old)) if asks and old else {}
    columns_after = project.engine.columns(after, sorted(new)) if asks and new else {}
    found = [b for c in changes for b in check_columns(c, columns_before, columns_after)]
    return replace(plan, blockers=(*plan.blockers, *found))


def _analyzed(project: Project, plan: Plan, after: Program, *, was_deployed: bool) -> Plan:
    """The plan with Spark's verdict on every new or changed query and function.

    A revision that was deployed before was analysed then; it is not again when nothing has to be
    computed, so that going back starts no Spark.
    """
    computed = {s.action.relation for s in plan.steps if isinstance(s.action, _COMPUTING)}
    restored = {
        s.action.relation for s in plan.steps if isinstance(s.action, (Restore, RestoreStream))
    }
    changed = {c.name for c in plan.diff.changes if c.how != "removed"}
    names = [n for n in after.order if n in after.views and n in (changed | computed) - restored]
    names += sorted(changed & after.functions.keys())
    if plan.blockers or not names or (was_deployed and not computed):
        return plan
    kept = {
        s.action.relation: s.action.folder
        for s in plan.steps
        if isinstance(s.action, (EvolveStream, BackfillStream))
    }
    return replace(plan, blockers=tuple(project.engine.analyze(after, names, kept)))
