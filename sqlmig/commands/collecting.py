"""The verb gc: removes what no kept cut and no way back within the retention needs."""

from __future__ import annotations

from collections.abc import Callable

from sqlmig.commands.project import Project
from sqlmig.errors import EngineError, RejectedError
from sqlmig.execution.collection import Collector, Findings
from sqlmig.execution.executor import check_idle
from sqlmig.ledger.deployment import Deployment

RETENTION = 30 * 86400.0
"""Seconds for which a way back is kept by default: as long as the tables' own retention."""


def gc(
    project: Project,
    *,
    older_than: float = RETENTION,
    dry_run: bool = False,
    confirm: Callable[[Findings], bool] | None = None,
) -> Findings:
    """Remove old files of tables, folders of dropped relations, offsets of former sources.

    The pipeline may run meanwhile.

    Args:
        older_than: seconds; what a way back to a revision that was deployed since then needs
            stays. Cuts for `query --at` are kept for that long at most.
        dry_run: remove nothing.
        confirm: shows a person what goes and returns the answer; None when nobody is there.

    Returns:
        What was, or would be, removed.

    Raises:
        UnfinishedPlanError: a plan is under way.
        RejectedError: by the person.
        EngineError: the warehouse is in an object store, or a file can't be removed.
    """
    if not project.warehouse.is_local:
        raise EngineError(
            f"the warehouse at {project.warehouse.url} is in an object store, and nothing is "
            "removed there",
            hint="run Spark's VACUUM on its tables; `sqlmig status --json` names their folders",
        )
    check_idle(project.journal.refresh())
    chosen = collector(project)
    findings = chosen.find(older_than)
    if dry_run or not findings.removed:
        return findings
    if confirm is not None and not confirm(findings):
        raise RejectedError("not confirmed; nothing was removed")
    chosen.remove(findings)
    return findings


def collector(project: Project) -> Collector:
    """What finds and removes what the project's pipeline needs no more."""
    from sqlmig.vacuum import LocalStorage

    keep = project.target.runner.keep_checkpoints

    def retained(deployment: Deployment) -> dict[str, float]:
        states = deployment.cut.connectors
        return {
            states[name].folder: source.raw_seconds
            for name, source in project.parse_deployed(deployment.program).sources.items()
            if source.raw_seconds is not None and name in states
        }

    return Collector(LocalStorage(project.warehouse), project.journal, keep, retained)
