"""A plain function for each verb: it takes a `Project`, returns values and prints nothing.

    from sqlmig import commands

    project = commands.open_project("school")
    commands.upgrade(project, "head", yes=True)

A verb's module is imported when the verb is first used, so that reading commands start fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlmig.commands.collecting import gc
    from sqlmig.commands.data import execute, query
    from sqlmig.commands.deploy import approve, downgrade, reject, repair, upgrade
    from sqlmig.commands.deployed import deployed_history
    from sqlmig.commands.inspect import branches, check, current, diff, heads, history, show
    from sqlmig.commands.merging import abort_merge, continue_merge, merge
    from sqlmig.commands.plans import make_plan
    from sqlmig.commands.previewing import preview
    from sqlmig.commands.project import Project, init, open_project
    from sqlmig.commands.rebasing import abort_rebase, continue_rebase, rebase
    from sqlmig.commands.revise import revision
    from sqlmig.commands.running import checkpoint, keep_running, resume, run, stop
    from sqlmig.commands.stamping import stamp
    from sqlmig.commands.state import status

_MODULES = {
    "collecting": ("gc",),
    "data": ("execute", "query"),
    "deploy": ("approve", "downgrade", "reject", "repair", "upgrade"),
    "deployed": ("deployed_history",),
    "inspect": ("branches", "check", "current", "diff", "heads", "history", "show"),
    "merging": ("abort_merge", "continue_merge", "merge"),
    "plans": ("make_plan",),
    "previewing": ("preview",),
    "project": ("Project", "init", "open_project"),
    "rebasing": ("abort_rebase", "continue_rebase", "rebase"),
    "revise": ("revision",),
    "running": ("checkpoint", "keep_running", "resume", "run", "stop"),
    "stamping": ("stamp",),
    "state": ("status",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Project",
    "abort_merge",
    "abort_rebase",
    "approve",
    "branches",
    "check",
    "checkpoint",
    "continue_merge",
    "continue_rebase",
    "current",
    "deployed_history",
    "diff",
    "downgrade",
    "execute",
    "gc",
    "heads",
    "history",
    "init",
    "keep_running",
    "make_plan",
    "merge",
    "open_project",
    "preview",
    "query",
    "rebase",
    "reject",
    "repair",
    "resume",
    "revision",
    "run",
    "show",
    "stamp",
    "status",
    "stop",
    "upgrade",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"sqlmig.commands.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
