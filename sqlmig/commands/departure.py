"""An upgrade away from a deployed revision that has no file here: reverted, or on another branch.

It says where the revision is, and whether the target's policy lets it be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmig.commands.project import Project
from sqlmig.git.whereabouts import Whereabouts, find_file
from sqlmig.ledger.deployment import Deployment
from sqlmig.revisions.graph import RevisionGraph


@dataclass(frozen=True)
class Departure:
    """What the plan says of it.

    Args:
        message: which revision, where it is, and which way is taken.
        hint: what to do instead, or to allow it.
        is_allowed: by the policy, or for this once.
    """

    message: str
    hint: str
    is_allowed: bool


def departure(
    project: Project,
    deployment: Deployment,
    graph: RevisionGraph,
    revision: str | None,
    *,
    allow: bool = False,
) -> Departure | None:
    """The departure that an upgrade to `revision` is; None where the deployed one is known here.

    Args:
        graph: one that has both revisions.
        revision: one of this checkout; None for base.
        allow: for this once, whatever the policy says.
    """
    deployed = deployment.revision
    if deployed is None or not project.is_unknown(deployed, deployment):
        return None
    walk = graph.path(deployed, revision)
    lost = [name for name in walk.downs if project.directory.get(name) is None]
    found = {
        name: find_file(project.root, deployment.known[name].path, project.commit) for name in lost
    }
    is_reverted = all(where is not None and where.removed_by for where in found.values())
    policy = project.target.git.allow_unknown_revision
    is_allowed = allow or policy == "true" or (policy == "reverted" and is_reverted)
    where = found.get(deployed)
    message = (
        f"the deployed revision {_named(deployment, deployed)} has no file here: "
        f"{_told(where, deployment)}; {_way(graph, deployed, revision, walk.ups)}"
    )
    also = [_named(deployment, name) for name in lost if name != deployed]
    if also:
        message += f"; with it {', '.join(also)} {'goes' if len(also) == 1 else 'go'} back"
    return Departure(message, _hint(project, where, deployment.known[deployed].path), is_allowed)


def _named(deployment: Deployment, name: str) -> str:
    title = deployment.known[name].message.partition("\n")[0]
    return f"{name} ({title})" if title else name


def _told(where: Whereabouts | None, deployment: Deployment) -> str:
    if where is not None and where.is_uncommitted:
        return "it was deleted, which is in no commit yet"
    if where is not None and where.removed_by:
        return f"commit {where.removed_by[:12]} ({where.subject}) removed it"
    if where is not None and where.ref:
        return f"`{where.ref}` has it"
    last = deployment.last_applied
    origin = ""
    if last is not None and last.revision == deployment.revision and last.commit:
        branch = f" on `{last.branch}`" if last.branch else ""
        origin = f"; it was deployed from commit {last.commit[:12]}{branch}"
    if where is None:
        return f"only the ledger has it{origin}"
    clone = "this clone, which is shallow," if where.is_shallow else "this clone"
    return f"nothing in {clone} has it{origin}"


def _way(graph: RevisionGraph, deployed: str, goal: str | None, ups: Sequence[str]) -> str:
    common = graph.ancestors(deployed) & graph.ancestors(goal)
    tops = graph.sort(common)[-1:] or ("base",)
    if not ups:
        return f"it is taken back, to {goal or 'base'}"
    return f"it is taken back to {tops[0]}, and from there the way goes up to {goal}"


def _hint(project: Project, where: Whereabouts | None, path: str) -> str:
    if where is not None and where.is_uncommitted:
        instead = f"`git restore {path}`"
    elif where is not None and where.ref:
        instead = f"`git merge {where.ref}` brings it here"
    elif where is not None and where.is_shallow:
        instead = "`git fetch --unshallow` (`fetch-depth: 0` in GitHub's checkout action)"
    else:
        instead = "`git fetch`, and merge the branch that has it"
    return (
        f"{instead}; if it is to be taken back: `--allow-unknown-revision`, or "
        f"`allow_unknown_revision: true` for target `{project.target.name}` in sqlmig.yml"
    )
