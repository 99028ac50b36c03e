"""How `history --deployed` tells deploys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sqlmig import commands
from sqlmig.cli.output import print_json, say
from sqlmig.wording import counted

if TYPE_CHECKING:
    from sqlmig.commands.deployed import DeployEntry, Undoing
    from sqlmig.ledger.chronicle import Deploy


def print_deploys(project: Any, number: int, *, as_json: bool) -> None:
    """Print the newest deploys of the project's target; 0 for all."""
    entries, count = commands.deployed_history(project, newest=number)
    if as_json:
        print_json([entry.to_dict() for entry in entries])
    else:
        for entry in entries:
            click.echo("\n".join(deploy_lines(entry)))
    if not entries:
        say(f"Nothing was deployed to target `{project.target.name}` yet.")
    elif len(entries) < count:
        say(f"These are the newest {len(entries)} of {count}; `-n 0` lists all.")


def deploy_lines(entry: DeployEntry) -> list[str]:
    """A deploy in words, over a few lines."""
    deploy = entry.deploy
    marks = " (current)" if entry.is_current else ""
    marks += f" ({deploy.status})" if deploy.status != "applied" else ""
    way = deploy.revision or "base"
    if deploy.kind != "stamp":
        way = f"{deploy.before or 'base'} -> {way}"
    message = f", {deploy.message}" if deploy.message else ""
    lines = [f"{deploy.began:%Y-%m-%d %H:%M:%S} UTC  {deploy.kind} {way}{marks}{message}"]
    if deploy.actor:
        lines.append(f"    by {deploy.actor}")
    if deploy.commit:
        lines.append(f"    from {_origin(deploy)}")
    if deploy.seconds is not None and deploy.kind != "stamp":
        lines.append(f"    took {deploy.seconds:.1f} s, wrote {counted(deploy.rows, 'row')}")
    if deploy.error:
        lines.append(f"    error: {deploy.error}")
    if entry.undoing is not None:
        lines.append(f"    to undo it {_undoing(entry.undoing)}")
    return lines


def _origin(deploy: Deploy) -> str:
    where = deploy.branch or "no branch"
    dirty = ", with changes that are in no commit" if deploy.is_dirty else ""
    author = f", by {deploy.author}" if deploy.author else ""
    remote = f", {deploy.remote}" if deploy.remote else ""
    return f"commit {(deploy.commit or '')[:12]} on {where}{author}{remote}{dirty}"


def _undoing(undoing: Undoing) -> str:
    if undoing.is_free:
        return "nothing is computed"
    if undoing.blocker:
        return f"there is no way: {undoing.blocker}"
    parts = []
    if undoing.computes:
        names = ", ".join(f"`{name}`" for name in undoing.computes)
        parts.append(f"{names} {'is' if len(undoing.computes) == 1 else 'are'} computed")
    if undoing.runs:
        parts.append("hooks run")
    if undoing.loses:
        parts.append(f"this is lost: {'; '.join(undoing.loses)}")
    return ", ".join(parts)
