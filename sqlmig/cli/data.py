"""The commands that touch rows: exec, query."""

from __future__ import annotations

import sys

import click

from sqlmig import commands
from sqlmig.cli.app import PlainArguments, global_options, opened
from sqlmig.cli.output import print_csv, print_json, print_table, say
from sqlmig.wording import counted


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
    count = "" if done.rows is None else f"{counted(done.rows, 'row')}, "
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
@click.option(
    "--at", metavar="WHEN", help="Read a former cut: a checkpoint's number or name, or a time."
)
@global_options
def query_command(sql: str, style: str, as_json: bool, at: str | None) -> None:
    """Run a query over the relations, all read at one consistent cut.

    By default that is the newest one. WHEN is what `sqlmig checkpoint` printed or was called with,
    or a time: 2026-06-10T18:30 (UTC), 2026-06-10T18:30+02:00, or -10m.

    With - for SQL, it is read from standard input.
    """
    answer = commands.query(opened(), _given(sql), at=at)
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
