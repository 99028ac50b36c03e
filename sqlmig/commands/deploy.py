"""The verbs on what is deployed: plan, upgrade, downgrade, approve, reject, repair, stamp."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlmig.commands.project import Project, refuse_edited
from sqlmig.errors import BlockedError, DeployedMovedError, RejectedError, RevisionError
from sqlmig.execution import events
from sqlmig.execution.executor import Executor, check_idle
from sqlmig.execution.journal import is_alive
from sqlmig.execution.tick import Ticker, TickResult, has_stale
from sqlmig.ledger.fold import Deployment, PlanInProgress
from sqlmig.ledger.records import (
    AppliedRevision,
    ConnectorState,
    Cut,
    Kind,
    RelationState,
    Status,
)
from sqlmig.planning import planner
from sqlmig.planning.directives import Directive, Operations, Run
from sqlmig.planning.request import Request
from sqlmig.planning.stages import Hop
from sqlmig.planning.steps import Bootstrap, Plan, Restore, RunFunction
from sqlmig.program.canonical import fingerprint, materialization_fingerprint
from sqlmig.program.model import EMPTY_PROGRAM, Program
from sqlmig.revisions.graph import RevisionGraph
from sqlmig.revisions.hooks import load_hooks
from sqlmig.revisions.identifier import resolve

Confirm = Callable[[Plan], bool]


@dataclass(frozen=True)
class Deployed:
    """What a deploying verb did.

    Args:
        status: `applied`, `nothing_to_do` or `awaiting_approval`.
        plan: the plan that it is about.
        tick: the tick after it; None when there was none.
        resumed: id of an unfinished plan that was finished before, if there was one.
    """

    status: str
    plan: Plan
    tick: TickResult | None = None
    resumed: str | None = None


def make_plan(
    project: Project, target: str = "head", *, offline: bool = False, direction: str | None = None
) -> Plan:
    """The plan that takes the deployed revision to `target`.

    Args:
        target: any name of a revision.
        offline: plan from the ledger alone: start no Spark, look at no table.
        direction: `upgrade` or `downgrade`; by default whichever leads there.

    Raises:
        RevisionError: no such revision, not on the way, or an applied file was edited.
        ProgramErrors: the target's SQL has mistakes.
    """
    deployment = project.deployment()
    return _plan(project, deployment, target, direction=direction, offline=offline)[0]


def upgrade(
    project: Project,
    target: str = "head",
    *,
    policy: str | None = None,
    yes: bool = False,
    allow_destructive: bool = False,
    confirm: Confirm | None = None,
    observer: events.Observer = events.ignore,
) -> Deployed:
    """Take the pipeline to a later revision.

    Args:
        target: any name of a revision.
        policy: `await_approval`, `allow` or `reject`; by default the target's.
        yes: go on without asking, whatever the policy.
        allow_destructive: let steps run that lose rows.
        confirm: shows the plan to a person and returns the answer; None when nobody is there.
        observer: told what happens.

    Returns:
        What was done; `awaiting_approval` when the plan was recorded for `approve`.

    Raises:
        BlockedError: the plan has blockers, or is destructive and that isn't allowed.
        RejectedError: by the policy, or the person.
        StepFailed: a step failed; the pipeline was taken back.
    """
    resumed = _finish_dead_plan(project, observer)
    deployment = project.journal.refresh()
    check_idle(deployment)
    chosen = "allow" if yes else policy or project.target.bootstrap_policy
    plan, after = _plan(
        project, deployment, target, direction="upgrade", analyze=chosen != "reject"
    )
    if plan.is_noop:
        return Deployed("nothing_to_do", plan, resumed=resumed)
    _refuse_blocked(plan, allow_destructive or chosen == "reject")
    if plan.needs_approval:
        if chosen == "reject":
            raise RejectedError(
                f"the policy rejects changes; plan {plan.id} would make these:\n"
                + "\n".join(f"  {line}" for line in _diff_lines(plan)),
                hint="`--bootstrap-policy await_approval` records the plan for approval",
            )
        if chosen == "await_approval" and confirm is None:
            _await(project, plan, after)
            return Deployed("awaiting_approval", plan, resumed=resumed)
        if chosen == "await_approval" and confirm is not None and not confirm(plan):
            raise RejectedError("not approved; nothing was run")
    _executor(project, observer).run(plan)
    return Deployed("applied", plan, _tick(project, after, observer, with_sources=True), resumed)


def downgrade(
    project: Project,
    target: str,
    *,
    allow_destructive: bool = False,
    observer: events.Observer = events.ignore,
) -> Deployed:
    """Take the pipeline back to an earlier revision; it works although revision files are gone.

    Args and errors are those of `upgrade`. No sources are read; what became stale is computed.
    """
    resumed = _finish_dead_plan(project, observer)
    deployment = project.journal.refresh()
    check_idle(deployment)
    plan, after = _plan(project, deployment, target, direction="downgrade")
    if plan.is_noop:
        return Deployed("nothing_to_do", plan, resumed=resumed)
    _refuse_blocked(plan, allow_destructive)
    state = _executor(project, observer).run(plan)
    tick = (
        _tick(project, after, observer, with_sources=False) if has_stale(after, state.cut) else None
    )
    return Deployed("applied", plan, tick, resumed)


def approve(
    project: Project, plan_id: str | None = None, *, observer: events.Observer = events.ignore
) -> Deployed:
    """Carry out the plan that waits for approval, if the deployed state is still the planned one.

    Args:
        plan_id: the plan's id or a prefix of it; by default the one that waits.

    Raises:
        DeployedMovedError: no plan waits, another one does, or the deployed state moved.
    """
    deployment = project.journal.refresh()
    waiting = _waiting(deployment, plan_id)
    plan = Plan.from_dict(waiting.plan)
    after = project.parse_deployed(plan.stages[-1])
    _executor(project, observer).run(plan, is_approved=True)
    return Deployed("applied", plan, _tick(project, after, observer, with_sources=True))


def reject(project: Project, plan_id: str | None = None) -> str:
    """Turn the waiting plan down; nothing is run. Returns the plan's id."""
    journal = project.journal
    waiting = _waiting(journal.refresh(), plan_id)

    def check(now: Deployment) -> None:
        _waiting(now, waiting.id)

    journal.append(
        Kind.PLAN, Status.REJECTED, check=check, plan=waiting.id, revision=waiting.target
    )
    return waiting.id


def repair(
    project: Project,
    *,
    resume: bool = False,
    rollback: bool = False,
    observer: events.Observer = events.ignore,
) -> PlanInProgress | None:
    """Show, finish or take back an unfinished plan.

    Args:
        resume: finish it. rollback: take it back; contents are those of its checkpoint.

    Returns:
        The plan that was unfinished; None when there was none.
    """
    unfinished = project.journal.refresh().unfinished
    if unfinished is None or not (resume or rollback):
        return unfinished
    executor = _executor(project, observer)
    if rollback:
        executor.roll_back()
    else:
        executor.resume()
    return unfinished


def stamp(project: Project, target: str, *, purge: bool = False) -> str | None:
    """Write into the ledger that `target` is deployed, without changing anything else.

    Tables and checkpoints that lie in the warehouse under the names of the program, and that the
    ledger doesn't know, are taken up as they are: so a lost ledger is begun anew.

    Args:
        target: any name of a revision, or `base`.
        purge: forget what was applied before, also when a plan is unfinished or files of applied
            revisions were edited: what the files say now counts as applied.

    Returns:
        The revision stamped; None for base.
    """
    journal = project.journal
    deployment = journal.refresh()
    if purge:
        deployment = replace(deployment, applied={})
    else:
        check_idle(deployment)
        refuse_edited(project, deployment)
    graph = project.graph(deployment, target)
    revision = resolve(graph, target, deployment.revision)
    ups = [
        _as_applied(project, graph, name, deployment).to_dict()
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
            rows=observed[name].rows,
            bytes=observed[name].bytes,
        )
        for name, state in states.items()
        if name in observed
    }
    connectors = {
        name: ConnectorState(name, max(1, project.warehouse.generation(name)), fingerprint(source))
        for name, source in program.sources.items()
        if source.table in relations and name not in deployment.cut.connectors
    }
    return Cut(relations=relations, connectors=connectors).to_dict() or None


# planning


def _plan(
    project: Project,
    deployment: Deployment,
    target: str,
    *,
    direction: str | None,
    offline: bool = False,
    analyze: bool = True,
) -> tuple[Plan, Program]:
    if direction != "downgrade":  # going back uses the ledger's text
        refuse_edited(project, deployment)
    graph = project.graph(deployment, target)
    revision = resolve(graph, target, deployment.revision)
    walk = graph.path(deployment.revision, revision)
    wanted = direction or ("downgrade" if walk.downs and not walk.ups else "upgrade")
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
        ups=tuple(_as_applied(project, graph, name, deployment) for name in walk.ups),
        downs=tuple(walk.downs),
        hops=tuple(hops),
        observed={} if offline else project.warehouse.observe(deployment.cut.relations),
        folders=frozenset() if offline else project.warehouse.folders(),
    )
    plan = planner.make_plan(request)
    if analyze and not offline:
        plan = _analyzed(project, plan, after, was_deployed=revision in (None, *deployment.known))
    return plan, after


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
    revision = _as_applied(project, graph, name, deployment)
    directives = read_directives(revision, hook)
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


def _as_applied(
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


def _analyzed(project: Project, plan: Plan, after: Program, *, was_deployed: bool) -> Plan:
    """The plan with Spark's verdict on every new or changed query.

    A revision that was deployed before was analysed then; it is not again when nothing has to be
    computed, so that going back starts no Spark.
    """
    computed = {s.action.relation for s in plan.steps if isinstance(s.action, Bootstrap)}
    restored = {s.action.relation for s in plan.steps if isinstance(s.action, Restore)}
    changed = {c.name for c in plan.diff.changes if c.what == "view" and c.how != "removed"}
    names = [n for n in after.order if n in after.views and n in (changed | computed) - restored]
    if plan.blockers or not names or (was_deployed and not computed):
        return plan
    return replace(plan, blockers=tuple(project.engine.analyze(after, names)))


# carrying out


def _executor(project: Project, observer: events.Observer) -> Executor:
    def load_hook(plan: Plan, step: RunFunction) -> Callable[[Any], object]:
        known: Mapping[str, AppliedRevision] = {
            **project.journal.deployment.known,
            **{r.revision: r for r in plan.ups},
        }
        directive = read_directives(known[step.revision], step.hook)[step.index]
        if not isinstance(directive, Run):
            raise RevisionError(
                f"{step.hook}() of {step.revision} asked for something else "
                "than when it was planned",
                hint="a hook must ask for the same each time it is called",
            )
        return directive.function

    return Executor(
        project.engine,
        project.warehouse,
        project.journal,
        project.parse_deployed,
        load_hook,
        observer,
    )


def _finish_dead_plan(project: Project, observer: events.Observer) -> str | None:
    unfinished = project.journal.refresh().unfinished
    if unfinished is None or unfinished.owner is None or is_alive(unfinished.owner) is not False:
        return None
    _executor(project, observer).resume()
    return unfinished.id


def _refuse_blocked(plan: Plan, allow_destructive: bool) -> None:
    if plan.blockers:
        first = plan.blockers[0]
        more = "".join(
            f"\n{f'{b.location}: ' if b.location else ''}{b.message}" for b in plan.blockers[1:]
        )
        raise BlockedError(
            f"{first.message}{more}", location=first.location, hint=first.hint or "`sqlmig plan`"
        )
    if plan.destructive and not allow_destructive:
        losses = "; ".join(step.destructive or "" for step in plan.destructive)
        raise BlockedError(
            f"the plan is destructive: it loses {losses}",
            hint="add `--allow-destructive` if that is meant",
        )


def _await(project: Project, plan: Plan, after: Program) -> None:
    journal = project.journal
    waiting = journal.deployment.awaiting
    if waiting is not None and waiting.id == plan.id:
        return

    def check(now: Deployment) -> None:
        check_idle(now)
        if now.deployed_seq != plan.deployed_seq:
            raise DeployedMovedError(
                "the deployed state has moved while the plan was made",
                hint="run the command again",
            )

    journal.append(
        Kind.PLAN,
        Status.AWAITING,
        check=check,
        plan=plan.id,
        revision=plan.target,
        program=dict(after.files),
        program_diff=plan.diff.to_json(),
        details={"plan": plan.to_dict()},
    )


def _waiting(deployment: Deployment, plan_id: str | None) -> PlanInProgress:
    waiting = deployment.awaiting
    if waiting is None:
        raise DeployedMovedError(
            "no plan waits for approval",
            hint="`sqlmig upgrade head --bootstrap-policy await_approval` records one",
        )
    if plan_id is not None and not waiting.id.startswith(plan_id):
        raise DeployedMovedError(
            f"plan {plan_id} does not wait for approval; plan {waiting.id} does",
            hint=f"`sqlmig approve {waiting.id}`",
        )
    return waiting


def _tick(
    project: Project, program: Program, observer: events.Observer, *, with_sources: bool
) -> TickResult | None:
    needs_sources = with_sources and bool(program.sources)
    if not needs_sources and not has_stale(program, project.journal.deployment.cut):
        return None
    ticker = Ticker(project.engine, project.warehouse, project.journal, program, observer)
    return ticker.tick(with_sources=with_sources)


def _diff_lines(plan: Plan) -> tuple[str, ...]:
    from sqlmig.planning.explain import describe_diff

    return describe_diff(plan.diff)
