"""The commands that tell the state: current, status, diff."""

from __future__ import annotations

import click

from sqlmig import commands
from sqlmig.cli.app import RevisionCommand, global_options, opened
from sqlmig.cli.output import print_json, say
from sqlmig.cli.revisions import short_entry, verbose_entry


@click.command("current")
@click.option("-v", "--verbose", is_flag=True, help="Show all of it: since when, from which commit.")
@click.option("--check-heads", is_flag=True, help="Exit with 1 unless the head is deployed.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@global_options
def current_command(verbose: bool, check_heads: bool, as_json: bool) -> None:
    """Show the deployed revision."""
    now = commands.current(opened())
    if as_json:
        print_json(
            {
                "revision": now.entry.revision if now.entry else None,
                "is_head": now.is_head,
                "since": now.since.isoformat(timespec="seconds") if now.since else None,
                "commit": now.commit,
                "actor": now.actor,
            }
        )
    elif now.entry is not None and verbose:
        click.echo(verbose_entry(now.entry))
        since = f"{now.since:%Y-%m-%d %H:%M:%S} UTC" if now.since else "unknown"
        click.echo(f"    Deployed: {since}, by {now.actor}, from commit {now.commit or '(none)'}")
    elif now.entry is not None:
        click.echo(short_entry(now.entry).partition(",")[0])
    if check_heads and not now.is_head:
        say("error: the head is not deployed\n\nhint: `sqlmig upgrade head`")
        click.get_current_context().exit(1)


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@global_options
def status_command(as_json: bool) -> None:
    """Show the pipeline's state: what runs, what waits, how large each relation is."""
    state = commands.status(opened())
    if as_json:
        print_json(state.to_dict())
        return
    click.echo(f"pipeline {state.pipeline} on target {state.target}: {state.state}")
    since = f", since {state.since:%Y-%m-%d %H:%M:%S} UTC" if state.since else ""
    click.echo(f"deployed: {state.revision or 'base'}{since}")
    if state.plan:
        done = f", {state.steps_done} of {state.steps} steps done" if state.steps_done else ""
        click.echo(f"plan: {state.plan}{done}")
    if state.details is not None:
        for key, names in sorted(state.details["program_diff"].items()):
            if names:
                click.echo(f"  {key.replace('_', ' ')}: {', '.join(names)}")
    if state.last_tick:
        click.echo(f"last tick: {state.last_tick:%Y-%m-%d %H:%M:%S} UTC")
    if state.error:
        click.echo(f"last error: {state.error}")
    for name, relation in state.relations.items():
        rows = "?" if relation["rows"] is None else f"{relation['rows']:,}"
        click.echo(f"  {relation['kind']} {name}: {rows} rows, version {relation['version']}")
    for name, connector in state.connectors.items():
        aside = f", {connector['rejected']:,} bad records" if connector["rejected"] else ""
        click.echo(f"  source {name}: {connector['rows']:,} rows read{aside}")


@click.command("diff", cls=RevisionCommand)
@click.argument("before", metavar="[A]", default="deployed")
@click.argument("after", metavar="[B]", default="working")
@click.option("--json", "as_json", is_flag=True, help="Print the program diff as JSON.")
@global_options
def diff_command(before: str, after: str, as_json: bool) -> None:
    """Show the program diff from A to B.

    A and B name a revision, `deployed` (what runs now; the default of A) or `working`
    (pipeline/*.sql as it is; the default of B).
    """
    difference = commands.diff(opened(), before, after)
    if as_json:
        print_json(difference.to_json())
        return
    from sqlmig.planning.explain import describe_diff

    lines = describe_diff(difference)
    for line in lines:
        click.echo(line)
    if not lines:
        say("No changes.")
