"""The command gc."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sqlmig import commands
from sqlmig.cli.app import global_options, opened
from sqlmig.cli.durations import DURATION
from sqlmig.cli.output import is_interactive, print_json, say
from sqlmig.wording import counted

if TYPE_CHECKING:
    from sqlmig.execution.collection import Findings


@click.command("gc")
@click.option("--dry-run", is_flag=True, help="List what would go; remove nothing.")
@click.option(
    "--older-than",
    type=DURATION,
    metavar="30d",
    help="Keep what going back to a revision needs that was deployed since; by default 30d.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask, at a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print what goes as JSON.")
@global_options
def gc_command(dry_run: bool, older_than: float | None, yes: bool, as_json: bool) -> None:
    """Remove files and folders that no kept cut and no way back needs.

    These are files of tables that no cut of the last `keep_checkpoints` has, and, of revisions
    that were left longer ago than --older-than: the folders of dropped relations, and the offsets
    of former sources. While an upgrade is under way it refuses; the pipeline may run.
    """
    from sqlmig.commands.collecting import RETENTION

    asks = is_interactive() and not yes and not dry_run
    findings = commands.gc(
        opened(),
        older_than=RETENTION if older_than is None else older_than,
        dry_run=dry_run,
        confirm=_confirm if asks else None,
    )
    if as_json:
        print_json(
            {
                "dry_run": dry_run,
                "files": findings.files,
                "bytes": findings.bytes,
                "removed": [each.to_dict() for each in findings.removed],
            }
        )
    elif not asks:
        _list(findings)
    if not findings.removed:
        say("Nothing to remove.")
        return
    say(f"{'Would remove' if dry_run else 'Removed'} {_total(findings)}.")


def _confirm(findings: Findings) -> bool:
    _list(findings)
    return click.confirm(f"Remove {_total(findings)}?", err=True)


def _list(findings: Findings) -> None:
    from sqlmig.planning.volume import size

    for each in findings.removed:
        what = "all" if each.is_whole else "old"
        click.echo(
            f"{what}  {each.place.kind}/{each.place.name}  {counted(each.files, 'file')}  "
            f"{size(each.bytes)}  {each.why}"
        )


def _total(findings: Findings) -> str:
    from sqlmig.planning.volume import size

    return f"{counted(findings.files, 'file')}, {size(findings.bytes)}"
