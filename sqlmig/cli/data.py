"""The commands that touch rows: run, exec, query."""

from __future__ import annotations

import sys

import click

from sqlmig import commands
from sqlmig.cli.app import PlainArguments, global_options, opened
from sqlmig.cli.output import print_csv, print_json, print_table, say


@click.command("run")
@click.option("--once", is_flag=True, help="One tick, then end.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@global_options
def run_command(once: bool, as_json: bool) -> None:
    """Tick the pipeline: sources in, stale views computed again, the cut recorded."""
    from sqlmig.cli.deploy import tick_json
    from sqlmig.cli.progress import progress

    with progress() as observer:
        tick = commands.run(opened(), once=once, observer=observer)
    if as_json:
        print_json(tick_json(tick))
    if not tick.ingested and not tick.refreshed and not tick.failures:
        say("Nothing new: every view is current.")
    if tick.failures:
        names = ", ".join(f"`{name}`" for name in sorted(tick.failures))
        say(f"\nerror: the tick failed for {names}\n\nhint: mend the cause and tick again")
        click.get_current_context().exit(1)


@click.command("exec", cls=PlainArguments)
@click.argument("sql", metavar="SQL")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@global_options
def exec_command(sql: str, as_json: bool) -> None:
    """Run one INSERT, UPDATE, DELETE or MERGE on a table of the pipeline.

    Views take the change up at the next tick: `sqlmig run --once`. With - for SQL, it is read from
    standard input.
    """
    done = commands.execute(opened(), _given(sql))
    if as_json:
        print_json({"table": done.table, "version": done.version, "rows": done.rows})
    count = "" if done.rows is None else f"{done.rows:,} row{'' if done.rows == 1 else 's'}, "
    say(f"`{done.table}`: {count}version {done.version}; views follow at the next tick")


@click.command("query", cls=PlainArguments)
@click.argument("sql", metavar="SQL")
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="How to print the rows.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@global_options
def query_command(sql: str, style: str, as_json: bool) -> None:
    """Run a query over the relations, all read at one consistent cut.

    With - for SQL, it is read from standard input.
    """
    answer = commands.query(opened(), _given(sql))
    if as_json or style == "json":
        print_json([dict(row) for row in answer.rows])
    elif style == "csv":
        print_csv(answer.columns, answer.rows)
    else:
        print_table(answer.columns, answer.rows)
    if answer.is_behind:
        say("tables have newer rows, which views take up at the next tick: `sqlmig run --once`")


def _given(sql: str) -> str:
    return sys.stdin.read() if sql == "-" else sql
