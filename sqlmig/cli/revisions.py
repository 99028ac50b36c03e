"""The commands on the history: init, revision, check, history, heads, branches, show."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from sqlmig import commands
from sqlmig.cli.app import PlainArguments, global_options, opened
from sqlmig.cli.output import print_json, say

if TYPE_CHECKING:
    from sqlmig.commands.inspect import Entry


@click.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--ci",
    type=click.Choice(["github", "gitlab", "none"]),
    default="github",
    show_default=True,
    help="Whose workflow it gets: one that plans on pull requests and deploys on merge.",
)
@global_options
def init_command(folder: str, ci: str) -> None:
    """Make a new project in DIR that works at once.

    It gets sqlmig.yml, pipeline/ with a small pipeline, revisions/, a workflow that plans on pull
    requests and deploys on merge, a Dockerfile for the runner and a pre-commit hook. A README.md, a
    .gitignore and their like that are there already are kept.
    """
    for path in commands.init(folder, ci=ci):
        say(f"  Creating {path} ...  done")
    say("\nNext:\n")
    if folder != ".":
        say(f"  cd {shlex.quote(folder)}")
    say('  sqlmig revision -m "first"\n  sqlmig upgrade head')


@click.command("revision", cls=PlainArguments)
@click.option("-m", "--message", default="", help="What the revision is for.")
@click.option("--rev-id", metavar="ID", help="The revision's id; by default a random one.")
@click.option("--head", default="head", metavar="REV", help="The parent; by default the head.")
@click.option("--splice", is_flag=True, help="Allow a parent that is not a head: a new branch.")
@click.option("--branch-label", metavar="LABEL", help="A label for the branch that begins here.")
@click.option(
    "--depends-on",
    metavar="REV",
    multiple=True,
    help="Wants REV applied before, besides its parent. May be given several times.",
)
@click.option("--empty", is_flag=True, help="Keep the parent's program: a revision for hooks only.")
@click.option(
    "--amend", is_flag=True, help="Freeze the SQL into the head itself, which is not applied yet."
)
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
    """Freeze pipeline/*.sql into a new revision below the head.

    The new file in revisions/ holds the SQL, what it changes, and the hooks up(op) and down(op).
    If the program means the same as the head's, nothing is written.
    """
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
    file = new.file
    if file is None:
        parent = new.parents[0] if new.parents else "base"
        say(f"No changes since {parent}: no revision made.")
        say("\nhint: `--empty` makes one for hooks")
    else:
        say(f"  {'Amending' if amend else 'Generating'} {file.path} ...  done")
    if as_json:
        print_json(
            {
                "revision": file.revision if file else None,
                "path": file.path if file else None,
                "down_revisions": list(new.parents),
                "diff": new.diff.to_json(),
            }
        )


@click.command("check")
@click.option("--json", "as_json", is_flag=True, help="Print the program diff as JSON.")
@global_options
def check_command(as_json: bool) -> None:
    """Fail if pipeline/ differs from the head, or an applied file was edited.

    Every revision file is read whole, heads.lock must say the same, and there must be one head:
    for use in CI.
    """
    checked = commands.check(opened())
    if checked.diff.is_empty:
        say(f"No changes: pipeline/ is the program of {checked.head or 'base'}.")
    else:
        from sqlmig.planning.explain import describe_diff

        if checked.head:
            say(f"error: pipeline/ differs from the head {checked.head}:\n")
        else:
            say("error: pipeline/ is in no revision yet:\n")
        for line in describe_diff(checked.diff):
            say(f"  {line}")
        say('\nhint: `sqlmig revision -m "..."` freezes it')
    if as_json:
        print_json(checked.diff.to_json())
    click.get_current_context().exit(0 if checked.diff.is_empty else 1)


@click.command("history", cls=PlainArguments)
@click.option(
    "-r",
    "--rev-range",
    metavar="A:B",
    help="Only these, both ends included: a:b, a:, :b, -3:current.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show all that each revision says.")
@click.option(
    "-i", "--indicate-current", is_flag=True, help="Mark the deployed revision: reads the ledger."
)
@click.option(
    "--deployed",
    is_flag=True,
    help="List what was deployed instead: who, when, from which commit, and the way back.",
)
@click.option(
    "-n",
    "--number",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="With --deployed: only so many, the newest; 0 for all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@global_options
def history_command(
    rev_range: str | None,
    verbose: bool,
    indicate_current: bool,
    deployed: bool,
    number: int,
    as_json: bool,
) -> None:
    """List the revisions, newest first, with the commits that wrote their files.

    With --deployed the ledger is told: every upgrade, downgrade and stamp of the target.
    """
    if deployed:
        if rev_range or verbose or indicate_current:
            raise click.UsageError("'--deployed' goes with '-n' and '--json' only.")
        from sqlmig.cli.deploys import print_deploys

        print_deploys(opened(), number, as_json=as_json)
        return
    entries = commands.history(opened(), rev_range=rev_range, with_current=indicate_current)
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    for entry in entries:
        line = f"{_origin(entry)} -> {_line(entry)}{_wrote(entry)}"
        click.echo(verbose_entry(entry) if verbose else line)
    if not entries and rev_range is None:
        _say_none()


@click.command("heads")
@click.option("-v", "--verbose", is_flag=True, help="Show all that each revision says.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@global_options
def heads_command(verbose: bool, as_json: bool) -> None:
    """List the revisions that nothing follows."""
    entries = commands.heads(opened())
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    for entry in entries:
        click.echo(verbose_entry(entry) if verbose else short_entry(entry, tree=False))
    if not entries:
        _say_none()


@click.command("branches")
@click.option("-v", "--verbose", is_flag=True, help="Show all that each branch point says.")
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
            text = _line(child) if verbose else short_entry(child)
            click.echo(f"{' ' * len(entry.revision)} -> {text}")
        click.echo()


@click.command("show", cls=PlainArguments)
@click.argument("rev", metavar="REV")
@click.option(
    "--text", "as_text", is_flag=True, help="Print the text of its file, as it is or was, instead."
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, with the file's text.")
@global_options
def show_command(rev: str, as_text: bool, as_json: bool) -> None:
    """Show the revision REV.

    It works although the file is gone: the ledger keeps what was applied, and
    `sqlmig show REV --text > FILE` brings it back.
    """
    if as_text and as_json:
        raise click.UsageError("'--text' and '--json' exclude each other.")
    entry, text = commands.show(opened(), rev)
    if as_json:
        print_json({**entry.to_dict(), "text": text})
    elif as_text:
        click.echo(text, nl=not text.endswith("\n"))
    else:
        click.echo(verbose_entry(entry))


def short_entry(entry: Entry, *, labels: bool = True, tree: bool = True) -> str:
    """A revision in alembic's short form: `ID (labels) (head) (branchpoint)`."""
    is_real = entry.is_head and not entry.is_depended_on
    marks = [
        ", ".join(entry.branch_labels) if labels else "",
        "head" if is_real else "effective head" if entry.is_head else "",
        "current" if entry.is_current else "",
        "branchpoint" if tree and entry.is_branch_point else "",
        "mergepoint" if tree and entry.is_merge_point else "",
        "only in the ledger" if entry.is_lost else "",
    ]
    return "".join([entry.revision, *(f" ({mark})" for mark in marks if mark)])


def verbose_entry(entry: Entry) -> str:
    """A revision in alembic's long form, with a blank line after it."""
    lines = [
        f"Rev: {short_entry(entry, labels=False)}",
        f"{'Merges' if entry.is_merge_point else 'Parent'}: {_parents(entry)}",
    ]
    if entry.depends_on:
        lines.append(f"Also depends on: {', '.join(entry.depends_on)}")
    if entry.is_branch_point:
        lines.append(f"Branches into: {', '.join(entry.children)}")
    if entry.branch_labels:
        lines.append(f"Branch names: {', '.join(entry.branch_labels)}")
    lines.append(f"Path: {entry.path}")
    if entry.authorship is not None:
        wrote = entry.authorship
        lines.append(f"Commit: {wrote.commit}, by {wrote.author}, {wrote.at}")
    elif entry.is_committed is False:
        lines.append("Commit: none yet")
    lines.append("")
    lines += [f"    {line}".rstrip() for line in entry.docstring.strip().splitlines()]
    return "\n".join(lines) + "\n"


def _line(entry: Entry) -> str:
    return f"{short_entry(entry)}, {entry.message.partition(chr(10))[0]}"


def _wrote(entry: Entry) -> str:
    """Commit, author and day, where Git has them."""
    if entry.authorship is not None:
        wrote = entry.authorship
        return f"  [{wrote.commit[:8]}, {wrote.author_name}, {wrote.at[:10]}]"
    return "  [not committed]" if entry.is_committed is False else ""


def _origin(entry: Entry) -> str:
    needed = f" ({', '.join(entry.depends_on)})" if entry.depends_on else ""
    return f"{_parents(entry)}{needed}"


def _parents(entry: Entry) -> str:
    return ", ".join(entry.down_revisions) or "<base>"


def _say_none() -> None:
    say('There are no revisions yet: `sqlmig revision -m "first"` makes one.')
