"""The commands that plan and deploy: plan, upgrade, downgrade, approve, reject, repair, stamp."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sqlmig import commands
from sqlmig.cli.annotations import annotate
from sqlmig.cli.app import PlainArguments, global_options, opened
from sqlmig.cli.durations import DURATION, TIME
from sqlmig.cli.outcomes import print_unfinished, report, told_plan, unfinished_json
from sqlmig.cli.output import is_interactive, painted, print_json, say

if TYPE_CHECKING:
    from sqlmig.planning.steps import Plan

_allow_unknown = click.option(
    "--allow-unknown-revision",
    "allow_unknown",
    is_flag=True,
    help="Take a deployed revision back that has no file here.",
)
_allow_destructive = click.option(
    "--allow-destructive", is_flag=True, help="Run steps that lose rows, too."
)
_stop_timeout = click.option(
    "--stop-timeout",
    type=DURATION,
    metavar="5m",
    help="How long the tick under way may take to end; by default the target's.",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")


@click.command("plan", cls=PlainArguments)
@click.argument("rev", metavar="[REV]", default="head")
@click.option(
    "--offline", is_flag=True, help="From the ledger alone: start no Spark, look at no table."
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="How to tell it.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Say of each relation what kind of change it is, which ways there are, and why this one.",
)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write it to FILE."
)
@click.option(
    "--allow-destructive",
    is_flag=True,
    help="Plan to empty tables whose rows can't be kept, as upgrade does with it.",
)
@click.option(
    "--preview",
    "with_preview",
    is_flag=True,
    help="Compute what would be computed, and show which rows would come, go and change.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0, max=100),
    default=3,
    show_default=True,
    metavar="N",
    help="Rows of each kind that --preview shows; 0 for counts alone.",
)
@_allow_unknown
@click.option(
    "--ref",
    metavar="REF",
    help="Plan the revisions of a Git ref, as if it were checked out; none of its code is run.",
)
@click.option("--at", type=TIME, metavar="TIME", help="As for upgrade.")
@global_options
def plan_command(
    rev: str,
    ref: str | None,
    offline: bool,
    style: str,
    as_json: bool,
    verbose: bool,
    output: str | None,
    allow_destructive: bool,
    with_preview: bool,
    samples: int,
    allow_unknown: bool,
    at: datetime | None,
) -> None:
    """Show what it takes to bring the pipeline to REV: the changes, why, and the steps.

    REV is by default the head; a revision below the deployed one gives the plan of a downgrade.
    Nothing is run. Every new or changed query is analysed by Spark, and the rows of tables that are
    cast or get a key are looked at, unless --offline. --preview costs what the upgrade's own
    computing costs; it reads one consistent cut and writes nothing.

    Exits with 4 if the plan is blocked.
    """
    if with_preview and (offline or ref):
        other = "'--offline'" if offline else "'--ref'"
        raise click.UsageError(f"{other} and '--preview' exclude each other.")
    project = opened()
    plan = commands.make_plan(
        project,
        rev,
        offline=offline,
        allow_destructive=allow_destructive,
        allow_unknown=allow_unknown,
        ref=ref,
        at=at,
    )
    preview = commands.preview(project, plan, samples=samples) if with_preview else None
    text = told_plan(plan, "json" if as_json else style, verbose=verbose, preview=preview)
    if output is None:
        click.echo(painted(text) if style == "text" and not as_json else text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8")
        say(f"Plan {plan.id} is written to {output}.")
    for blocker in plan.blockers:
        annotate(blocker.message, blocker.location, blocker.hint, project.root)
    if plan.blockers:
        click.get_current_context().exit(4)


@click.command("upgrade", cls=PlainArguments)
@click.argument("rev", metavar="[REV]", default="head")
@click.option(
    "--bootstrap-policy",
    type=click.Choice(["await_approval", "allow", "reject"]),
    help="What to do with a plan that changes something; by default the target's.",
)
@click.option("-y", "--yes", is_flag=True, help="Go on without asking.")
@_allow_destructive
@_allow_unknown
@_stop_timeout
@click.option(
    "--at", type=TIME, metavar="TIME", help="Rows that came before pass under the old queries."
)
@_as_json
@global_options
def upgrade_command(
    rev: str,
    bootstrap_policy: str | None,
    yes: bool,
    allow_destructive: bool,
    allow_unknown: bool,
    stop_timeout: float | None,
    at: datetime | None,
    as_json: bool,
) -> None:
    """Take the pipeline to REV: head (the default), an id or its prefix, +1, label@head ...

    On a terminal the plan is shown and you are asked. Elsewhere the target's policy decides: with
    await_approval the plan is recorded, the exit code is 3, and `sqlmig approve` goes on.

    With --at (18:30, +10m, -2h, an ISO time), rows that came into a stream from then on pass the
    streaming tables that go on in place under the new queries, those before under the old ones.
    It waits for a time that has not come yet.
    """
    from sqlmig.cli.progress import progress

    with progress() as observer:
        result = commands.upgrade(
            opened(),
            rev,
            policy=bootstrap_policy,
            yes=yes,
            allow_destructive=allow_destructive,
            allow_unknown=allow_unknown,
            confirm=_confirm if is_interactive() else None,
            observer=observer,
            stop_timeout=stop_timeout,
            at=at,
        )
    report(result, as_json=as_json)


@click.command("downgrade", cls=PlainArguments)
@click.argument("rev", metavar="REV")
@click.option("-y", "--yes", is_flag=True, help="Accepted for scripts; downgrade does not ask.")
@_allow_destructive
@_stop_timeout
@_as_json
@global_options
def downgrade_command(
    rev: str, yes: bool, allow_destructive: bool, stop_timeout: float | None, as_json: bool
) -> None:
    """Take the pipeline back to REV: -1, an id or its prefix, base ...

    Relations whose inputs have not moved get the very contents back that they had, without being
    computed. It works although revision files are gone: the ledger holds what was applied.
    """
    from sqlmig.cli.progress import progress

    del yes
    with progress() as observer:
        result = commands.downgrade(
            opened(),
            rev,
            allow_destructive=allow_destructive,
            observer=observer,
            stop_timeout=stop_timeout,
        )
    report(result, as_json=as_json)


@click.command("approve")
@click.argument("plan", metavar="[PLAN]", required=False)
@_as_json
@global_options
def approve_command(plan: str | None, as_json: bool) -> None:
    """Carry out the plan that waits for approval.

    PLAN is its id or the first characters of it, to be sure which one it is. A plan made against a
    deployed state that has moved since is refused, and so is one that another took the place of:
    then the exit code is 5.
    """
    from sqlmig.cli.progress import progress

    with progress() as observer:
        result = commands.approve(opened(), plan, observer=observer)
    report(result, as_json=as_json)


@click.command("reject")
@click.argument("plan", metavar="[PLAN]", required=False)
@global_options
def reject_command(plan: str | None) -> None:
    """Turn down the plan that waits for approval; nothing is run."""
    say(f"Plan {commands.reject(opened(), plan)} is rejected; nothing was run.")


@click.command("repair")
@click.option("--resume", is_flag=True, help="Finish the plan.")
@click.option(
    "--rollback", is_flag=True, help="Take it back: contents are those of its checkpoint."
)
@click.option("--json", "as_json", is_flag=True, help="Print the unfinished plan as JSON.")
@global_options
def repair_command(resume: bool, rollback: bool, as_json: bool) -> None:
    """Show a plan that died under way, step by step; finish it, or take it back.

    `sqlmig upgrade` finishes a plan whose process died on this machine by itself.
    """
    from sqlmig.cli.progress import progress

    if resume and rollback:
        raise click.UsageError("'--resume' and '--rollback' exclude each other.")
    project = opened()
    with progress() as observer:
        unfinished = commands.repair(project, resume=resume, rollback=rollback, observer=observer)
    if as_json:
        print_json(unfinished_json(unfinished))
        return
    if unfinished is None:
        say("No plan is unfinished.")
        return
    if resume or rollback:
        now = commands.current(project)
        say(
            f"Plan {unfinished.id} is {'finished' if resume else 'taken back'}: "
            f"{now.entry.revision if now.entry else 'base'} is deployed."
        )
        return
    print_unfinished(unfinished)


@click.command("stamp", cls=PlainArguments)
@click.argument("rev", metavar="REV")
@click.option(
    "--purge",
    is_flag=True,
    help="Forget first what was applied, an unfinished plan, edits of files.",
)
@global_options
def stamp_command(rev: str, purge: bool) -> None:
    """Write into the ledger that REV is deployed, doing nothing else.

    For a warehouse that was brought to REV by other means. No table is touched or looked at.
    """
    project = opened()
    stamped = commands.stamp(project, rev, purge=purge)
    say(f"Target `{project.target.name}` is stamped with {stamped or 'base'}.")


def _confirm(plan: Plan) -> bool:
    from sqlmig.planning.explain import to_text

    say(to_text(plan))
    return click.confirm("Carry it out?", default=False, err=True)
