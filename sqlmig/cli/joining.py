"""The commands that join branches: merge, rebase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sqlmig import commands
from sqlmig.cli.app import PlainArguments, global_options, opened
from sqlmig.cli.output import say

if TYPE_CHECKING:
    from sqlmig.commands.pipeline_files import Written


@click.command("merge", cls=PlainArguments)
@click.argument("revisions", metavar="[REV]...", nargs=-1)
@click.option("-m", "--message", default="", help="What the merge is for.")
@click.option("--rev-id", metavar="ID", help="The revision's id; by default a random one.")
@click.option("--branch-label", metavar="LABEL", help="A label for the branch that begins here.")
@click.option(
    "--continue", "go_on", is_flag=True, help="Freeze pipeline/, where conflicts are solved now."
)
@click.option("--abort", is_flag=True, help="Give it up: pipeline/ is again what it was before.")
@global_options
def merge_command(
    revisions: tuple[str, ...],
    message: str,
    rev_id: str | None,
    branch_label: str | None,
    go_on: bool,
    abort: bool,
) -> None:
    """Join REVs, by default all heads, into one head.

    Their programs are joined statement by statement, against the one that they come from.
    pipeline/ is brought to the joined program. What two of them change differently is written
    into pipeline/ between conflict marks, as by Git: solve it, and go on with --continue. With
    one head, heads.lock is written anew.
    """
    if go_on + abort + bool(revisions) > 1:
        raise click.UsageError("'--continue', '--abort' and REV exclude each other.")
    if abort:
        if message or rev_id or branch_label:
            raise click.UsageError("'--abort' goes without other options.")
        _say_aborted(commands.abort_merge(opened()), "merge")
        return
    if go_on:
        merged = commands.continue_merge(
            opened(), message, rev_id=rev_id, branch_label=branch_label
        )
    else:
        merged = commands.merge(
            opened(), revisions or ("heads",), message, rev_id=rev_id, branch_label=branch_label
        )
    file = merged.file
    if file is None:
        say("There is one head, and nothing to merge.")
        say("  Writing revisions/heads.lock ...  done")
        return
    for line in _changes(file.docstring):
        say(f"  {line}")
    say(f"  Generating {file.path} ...  done")
    _say_pipeline(merged.pipeline)


@click.command("rebase", cls=PlainArguments)
@click.argument("revision", metavar="[REV]", required=False)
@click.option("--onto", metavar="REV", help="The new parent; by default the other head.")
@click.option(
    "--continue", "go_on", is_flag=True, help="Go on with pipeline/, where conflicts are solved."
)
@click.option("--abort", is_flag=True, help="Give it up: pipeline/ is again what it was before.")
@global_options
def rebase_command(revision: str | None, onto: str | None, go_on: bool, abort: bool) -> None:
    """Put the revisions of the branch that ends at REV on top of another head.

    Their files keep their names, ids and hooks; parent and program are frozen anew, each change
    brought into the new parent's program. pipeline/ and conflicts are treated as by merge. What
    was applied to the target, or is on the remote's main branch, is refused. Of two heads, the
    one that may move does.
    """
    if go_on + abort + bool(revision or onto) > 1:
        raise click.UsageError("'--continue', '--abort' and REV exclude each other.")
    if abort:
        _say_aborted(commands.abort_rebase(opened()), "rebase")
        return
    project = opened()
    rebased = (
        commands.continue_rebase(project)
        if go_on
        else commands.rebase(project, revision, onto=onto)
    )
    from sqlmig.planning.explain import describe_diff

    for file, difference in rebased.files:
        for line in describe_diff(difference) or ("nothing is left that it changes",):
            say(f"  {line}")
        say(f"  Rebasing {file.path} onto {file.down_revisions[0]} ...  done")
    _say_pipeline(rebased.pipeline)


def _say_aborted(is_put_back: bool, verb: str) -> None:
    if is_put_back:
        say(f"pipeline/ is what it was before the {verb}.")
    else:
        say(f"The revisions have changed since the {verb} was begun: pipeline/ was left as it is.")


def _say_pipeline(pipeline: Written) -> None:
    """What of pipeline/ was left alone, or copied."""
    if pipeline.edited:
        say(f"\npipeline/ was left as it is: {', '.join(pipeline.edited)} was edited.")
        say("\nhint: `sqlmig diff head working` shows how it differs")
    if pipeline.copied:
        say(f"\n{', '.join(pipeline.copied)} was in no revision so: a copy is in .sqlmig/before/.")


def _changes(docstring: str) -> list[str]:
    """The lines about the program diff, which follow the date."""
    lines = docstring.splitlines()
    dates = [number for number, line in enumerate(lines) if line.startswith("Create Date:")]
    return [line for line in lines[dates[-1] + 1 :] if line] if dates else []
