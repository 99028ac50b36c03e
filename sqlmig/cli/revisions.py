"""The commands on the history: init, revision, merge, history, heads, branches, show, check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sqlmig import commands
from sqlmig.cli.app import RevisionCommand, global_options, opened
from sqlmig.cli.output import print_json, say

if TYPE_CHECKING:
    from sqlmig.commands.inspect import Entry


@click.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@global_options
def init_command(folder: str) -> None:
    """Make a new project in DIR that works at once.

    It gets sqlmig.yml, pipeline/ with a small pipeline, revisions/, and a GitHub Actions workflow
    that plans on pull requests and deploys on merge.
    """
    for path in commands.init(folder):
        say(f"  Creating {path} ...  done")
    say()
    say(f'Next: cd {folder}; sqlmig revision -m "first"; sqlmig upgrade head')


@click.command("revision")
@click.option("-m", "--message", default="", help="What the revision is for.")
@click.option("--rev-id", metavar="ID", help="The revision's id; by default a random one.")
@click.option("--head", default="head", metavar="REV", help="The parent; by default the head.")
@click.option("--splice", is_flag=True, help="Allow a parent that is not a head.")
@click.option("--branch-label", metavar="LABEL", help="A label for the branch that begins here.")
@click.option("--depends-on", metavar="REV", multiple=True, help="Needs REV, besides its parent.")
@click.option("--empty", is_flag=True, help="Make it though the program did not change: for hooks.")
@click.option("--amend", is_flag=True, help="Freeze the SQL into the head, which is not applied yet.")
@click.option("--json", "as_json", is_flag=True, help="Print the new revision as JSON.")
@global_options
def revision_command(
    message: str,
    rev_id: str | None,
    head: str,
    splice: bool,
    branch_label: str | None,
    depends_on: tuple[str, ...],
    empty: bool,
    amend: bool,
    as_json: bool,
) -> None:
    """Freeze pipeline/*.sql into a new revision below the head."""
    if not message and not amend:
        raise click.UsageError("Missing option '-m' / '--message'.")
    if amend and (empty or splice or rev_id or branch_label or depends_on):
        raise click.UsageError("'--amend' goes with '-m' and '--head' only.")
    new = commands.revision(
        opened(),
        message,
        rev_id=rev_id,
        head=head,
        splice=splice,
        branch_label=branch_label,
        depends_on=depends_on,
        empty=empty,
        amend=amend,
    )
    from sqlmig.planning.explain import describe_diff

    for line in describe_diff(new.diff):
        say(f"  {line}")
    if as_json:
        file = new.file
        print_json(
            {
                "revision": file.revision if file else None,
                "path": file.path if file else None,
                "down_revisions": list(new.parents),
                "diff": new.diff.to_json(),
            }
        )
    if new.file is None:
        parent = new.parents[0] if new.parents else "base"
        say(f"No changes since {parent}: no revision made. `--empty` makes one for hooks.")
    else:
        say(f"  {'Amending' if amend else 'Generating'} {new.file.path} ...  done")


@click.command("merge")
@click.argument("revisions", metavar="[REV]...", nargs=-1)
@click.option("-m", "--message", default="", help="What the merge is for.")
@click.option("--rev-id", metavar="ID", help="The revision's id; by default a random one.")
@click.option("--branch-label", metavar="LABEL", help="A label for the branch that begins here.")
@global_options
def merge_command(
    revisions: tuple[str, ...], message: str, rev_id: str | None, branch_label: str | None
) -> None:
    """Join REVs, by default all heads, into one head.

    Their programs must be equal or differ in disjoint relations; else the relation that both
    change is named, and nothing is written.
    """
    merged = commands.merge(
        opened(), revisions or ("heads",), message, rev_id=rev_id, branch_label=branch_label
    )
    say(f"  Generating {merged.path} ...  done")


@click.command("history")
@click.option("-r", "--rev-range", metavar="A:B", help="Only these; both ends count.")
@click.option("-v", "--verbose", is_flag=True, help="Show all of each revision.")
@click.option("-i", "--indicate-current", is_flag=True, help="Mark the deployed revision.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@global_options
def history_command(
    rev_range: str | None, verbose: bool, indicate_current: bool, as_json: bool
) -> None:
    """List the revisions, newest first."""
    entries = commands.history(opened(), rev_range=rev_range, with_current=indicate_current)
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    for entry in entries:
        if verbose:
            click.echo(verbose_entry(entry))
        else:
            click.echo(f"{_parents(entry)} -> {short_entry(entry)}")


@click.command("heads")
@click.option("-v", "--verbose", is_flag=True, help="Show all of each revision.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@global_options
def heads_command(verbose: bool, as_json: bool) -> None:
    """List the revisions that nothing follows."""
    entries = commands.heads(opened())
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    for entry in entries:
        labels = f" ({', '.join(entry.branch_labels)})" if entry.branch_labels else ""
        click.echo(verbose_entry(entry) if verbose else f"{entry.revision}{labels} (head)")


@click.command("branches")
@click.option("-v", "--verbose", is_flag=True, help="Show all of each revision.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@global_options
def branches_command(verbose: bool, as_json: bool) -> None:
    """List the branch points, each with what follows it."""
    found = commands.branches(opened())
    if as_json:
        print_json(
            [{**e.to_dict(), "children": [c.to_dict() for c in children]} for e, children in found]
        )
        return
    for entry, children in found:
        click.echo(verbose_entry(entry) if verbose else short_entry(entry))
        for child in children:
            click.echo(f"{' ' * len(entry.revision)} -> {short_entry(child)}")


@click.command("show", cls=RevisionCommand)
@click.argument("rev", metavar="REV")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, with the file's text.")
@global_options
def show_command(rev: str, as_json: bool) -> None:
    """Show the revision REV and its file."""
    entry, text = commands.show(opened(), rev)
    if as_json:
        print_json({**entry.to_dict(), "text": text})
        return
    click.echo(verbose_entry(entry))
    click.echo(text)


@click.command("check")
@click.option("--json", "as_json", is_flag=True, help="Print the program diff as JSON.")
@global_options
def check_command(as_json: bool) -> None:
    """Fail if pipeline/ differs from the head, or an applied file was edited."""
    checked = commands.check(opened())
    if as_json:
        print_json(checked.diff.to_json())
    if checked.diff.is_empty:
        say(f"No changes: pipeline/ is the program of {checked.head or 'base'}.")
        return
    from sqlmig.planning.explain import describe_diff

    say(f"error: pipeline/ differs from the head {checked.head or '(there is none)'}:")
    for line in describe_diff(checked.diff):
        say(f"  {line}")
    say()
    say('hint: `sqlmig revision -m "..."` freezes it')
    click.get_current_context().exit(1)


def short_entry(entry: Entry) -> str:
    """A revision in alembic's short form: `ID (labels) (head), message`."""
    marks = [f" ({', '.join(entry.branch_labels)})" if entry.branch_labels else ""]
    marks.append(" (head)" if entry.is_head else "")
    marks.append(" (branchpoint)" if entry.is_branch_point else "")
    marks.append(" (mergepoint)" if entry.is_merge_point else "")
    marks.append(" (current)" if entry.is_current else "")
    marks.append(" (only in the ledger)" if entry.is_lost else "")
    return f"{entry.revision}{''.join(marks)}, {entry.message.partition(chr(10))[0]}"


def verbose_entry(entry: Entry) -> str:
    """A revision in alembic's long form."""
    head = short_entry(entry).partition(",")[0]
    lines = [f"Rev: {head}"]
    if entry.is_merge_point:
        lines.append(f"Merges: {', '.join(entry.down_revisions)}")
    else:
        lines.append(f"Parent: {_parents(entry)}")
    if entry.depends_on:
        lines.append(f"Also depends on: {', '.join(entry.depends_on)}")
    if entry.is_branch_point:
        lines.append(f"Branches into: {', '.join(entry.children)}")
    lines += [f"Path: {entry.path}", ""]
    lines += [f"    {line}".rstrip() for line in entry.message.splitlines()]
    if entry.created:
        lines += ["", f"    Create Date: {entry.created}"]
    return "\n".join(lines) + "\n"


def _parents(entry: Entry) -> str:
    return ", ".join(entry.down_revisions) or "<base>"
