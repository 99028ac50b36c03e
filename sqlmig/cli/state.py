"""The commands that tell the state: current, status, diff."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from time import sleep
from typing import TYPE_CHECKING, Any

import click

from sqlmig import commands
from sqlmig.cli.app import PlainArguments, global_options, opened
from sqlmig.cli.output import painted, print_json, say, to_json
from sqlmig.cli.revisions import short_entry, verbose_entry
from sqlmig.wording import counted

if TYPE_CHECKING:
    from sqlmig.commands.state import Status

_WATCHED_EVERY = 2.0
"""Seconds."""


@click.command("current")
@click.option(
    "-v", "--verbose", is_flag=True, help="Show all of it: since when, from which commit."
)
@click.option("--check-heads", is_flag=True, help="Exit with 1 unless the head is deployed.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@global_options
def current_command(verbose: bool, check_heads: bool, as_json: bool) -> None:
    """Show the deployed revision: nothing for base."""
    project = opened()
    now = commands.current(project)
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
    elif now.entry is None:
        say(f"Nothing is deployed to target `{project.target.name}`.")
    elif verbose:
        click.echo(
            f"Current revision of pipeline {project.config.pipeline} "
            f"on target {project.target.name}:"
        )
        click.echo(verbose_entry(now.entry))
        by = f", by {now.actor}" if now.actor else ""
        commit = f", from commit {now.commit}" if now.commit else ""
        click.echo(f"    Deployed: {_time(now.since)}{by}{commit}\n")
    else:
        click.echo(short_entry(now.entry, labels=False).replace(" (current)", ""))
    if check_heads and not now.is_head:
        heads = ", ".join(project.file_heads) or "base"
        deployed = now.entry.revision if now.entry else "base"
        say(f"error: the head is not deployed: {deployed} is, and the head is {heads}")
        say("\nhint: `sqlmig upgrade head`")
        click.get_current_context().exit(1)


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--watch", is_flag=True, help="Show it anew every two seconds, until interrupted.")
@global_options
def status_command(as_json: bool, watch: bool) -> None:
    """Show the pipeline's state: what runs, what waits, how large each relation is.

    The state is Stopped, Running, AwaitingApproval, Bootstrapping or Failed. Rows and versions are
    those that the ledger has: of the last upgrade, tick or `sqlmig exec`.
    """
    project = opened()
    state = commands.status(project)
    if as_json and not watch:
        print_json(state.to_dict())
    elif not watch:
        for line in _status_lines(state):
            click.echo(painted(line))
    elif as_json:
        _watch(lambda: click.echo(to_json(commands.status(project).to_dict(), indent=None)))
    else:
        _watch(lambda: _draw(_status_lines(commands.status(project))))


def _watch(show: Callable[[], None]) -> None:
    try:
        while True:
            show()
            sleep(_WATCHED_EVERY)
    except KeyboardInterrupt:
        return


def _draw(lines: Sequence[str]) -> None:
    if sys.stdout.isatty():
        click.clear()
    for line in lines:
        click.echo(painted(line))
    if not sys.stdout.isatty():
        click.echo()


def _status_lines(state: Status) -> list[str]:
    rows = [
        ("pipeline", state.pipeline),
        ("target", state.target),
        ("state", state.state),
        ("deployed", f"{state.revision or 'base'}{_since(state.since)}"),
    ]
    if state.plan:
        steps = f", {state.steps_done} of {state.steps} steps done" if state.deployer else ""
        rows.append(("plan", f"{state.plan} to {state.plan_target or 'base'}{steps}"))
    died = {False: ", which died", True: "", None: ", on another machine"}
    if state.deployer:
        rows.append(("run by", f"{state.deployer}{died[state.is_deployer_alive]}"))
    if state.runner:
        rows.append(("runner", _runner_words(state.runner, died)))
    if state.stop_at and state.state != "Stopped":
        rows.append(("stops", f"from {_time(state.stop_at)} on"))
    if state.last_tick:
        rows.append(("last tick", _time(state.last_tick)))
    if state.error and not state.failures:
        rows.append(("last error", state.error))
    lines = [f"{name:<10}  {value}" for name, value in rows]
    if state.details is not None:
        lines += ["", "changes of the plan:"]
        lines += [
            f"  {key.replace('_', ' ')}: {', '.join(names)}" for key, names in _changes(state)
        ]
    if state.relations:
        lines += ["", "relations:", *_relation_lines(state)]
    if state.connectors:
        lines += ["", "sources:", *_connector_lines(state)]
    if state.sinks:
        lines += ["", "sinks:", *_sink_lines(state)]
    if state.failures:
        lines += ["", "errors:"]
        for name, message in state.failures.items():
            lines.append(f"  {name}: {message}")
            if name in state.hints:
                lines.append(f"    hint: {state.hints[name]}")
    if state.state == "AwaitingApproval":
        lines += ["", f"hint: `sqlmig approve {state.plan}`, or `sqlmig reject {state.plan}`"]
    elif state.deployer and state.is_deployer_alive is not True:
        lines += ["", "hint: `sqlmig repair` shows the plan, finishes it or takes it back"]
    return lines


def _runner_words(runner: Mapping[str, Any], died: Mapping[bool | None, str]) -> str:
    since = _time(datetime.fromisoformat(runner["since"]))
    words = f"{runner['process']}{died[runner['is_alive']]}, since {since}"
    if runner["is_paused"]:
        words += ", paused"
    if runner["ticks"]:
        words += f", {counted(runner['ticks'], 'tick')}"
        if runner["ticks_per_minute"] is not None:
            words += f", {runner['ticks_per_minute']:g} a minute"
        if runner["seconds_per_tick"] is not None:
            words += f", {runner['seconds_per_tick']:.1f} s each"
    return words


def _changes(state: Status) -> list[tuple[str, Sequence[str]]]:
    details = dict(state.details or {})
    details |= details.pop("program_diff", None) or {}
    return [(key, names) for key, names in sorted(details.items()) if names]


def _relation_lines(state: Status) -> list[str]:
    from sqlmig.planning.volume import size

    cells = [
        (
            relation["kind"],
            name,
            "? rows" if relation["rows"] is None else counted(relation["rows"], "row"),
            "" if relation["bytes"] is None else size(relation["bytes"]),
            f"version {relation['version']}",
            f"at {_clock(relation['last_refresh'])}" if relation["last_refresh"] else "",
            _stream_words(relation),
            "FAILS" if relation["error"] else "",
        )
        for name, relation in state.relations.items()
    ]
    return _aligned(cells, "<<>><<<<")


def _stream_words(relation: Mapping[str, Any]) -> str:
    """What is to be known of a streaming table besides."""
    words = ["historical"] if relation["is_historical"] else []
    if relation["watermark"]:
        words.append(f"watermark {relation['watermark']}")
    if relation["late"]:
        words.append(f"{counted(relation['late'], 'row')} late")
    return ", ".join(words)


def _clock(iso: str) -> str:
    """The time of day of an ISO time; the day, too, unless it is today."""
    at = datetime.fromisoformat(iso)
    is_today = at.date() == datetime.now(timezone.utc).date()
    return f"{at:%H:%M:%S}" if is_today else f"{at:%Y-%m-%d %H:%M:%S}"


def _connector_lines(state: Status) -> list[str]:
    tells_lag = any(connector["behind"] is not None for connector in state.connectors.values())
    cells = [
        (
            name,
            f"{counted(connector['rows'], 'row')} read",
            *([_behind(connector["behind"])] if tells_lag else []),
            f"{connector['rejected']:,} bad kept aside" if connector["rejected"] else "",
            f"at {_clock(connector['last_read'])}" if connector["last_read"] else "",
            "FAILS" if connector["error"] else "",
        )
        for name, connector in state.connectors.items()
    ]
    return _aligned(cells, "<>><<<" if tells_lag else "<><<<")


def _behind(messages: int | None) -> str:
    if messages is None:
        return ""
    return f"{counted(messages, 'message')} behind"


def _sink_lines(state: Status) -> list[str]:
    cells = [
        (
            name,
            f"{counted(sink['rows'], 'row')} sent",
            f"last at {_time(datetime.fromisoformat(sink['sent_at']))}"
            if sink["sent_at"]
            else "nothing yet",
            _sink_words(sink),
        )
        for name, sink in state.sinks.items()
    ]
    return _aligned(cells, "<><<")


def _sink_words(sink: Mapping[str, Any]) -> str:
    """Whether it is behind, and what is to be known besides."""
    words = []
    if sink["error"]:
        words.append("FAILS")
    elif sink["is_behind"]:
        count = sink["versions_behind"]
        lag = f" by {counted(count, 'version')}" if count else ""
        state = "cutting over" if sink["state"] == "cutting over" else f"behind{lag}"
        words.append(f"{state}: the next tick sends")
    if sink["mode"] != "difference":
        words.append(f"cutover: {sink['mode']}")
    if sink["is_continued"]:
        words.append("a cutover was not sent")
    return "; ".join(words)


def _aligned(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _since(at: datetime | None) -> str:
    return f", since {_time(at)}" if at else ""


def _time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else "unknown"


@click.command("diff", cls=PlainArguments)
@click.argument("before", metavar="[A]", default="deployed")
@click.argument("after", metavar="[B]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the program diff as JSON.")
@global_options
def diff_command(before: str, after: str | None, as_json: bool) -> None:
    """Show the program diff from A to B.

    A and B are revisions (head, an id or its prefix, -1, label@head ...), `deployed` (what runs
    now; the default of A), `working` (pipeline/*.sql as it is; the default of B), or Git refs
    (main, v1.4, HEAD~2, origin/feature), whose pipeline/ is read from Git's objects.

    A..B is A B, and A...B begins where two Git refs part. Where a revision and a Git ref are called
    alike, the revision is meant, and git:NAME is the ref.

    Signs: + added, - removed, ~ modified, in itself or by what it reads.
    """
    difference = commands.diff(opened(), before, after)
    if as_json:
        print_json(difference.to_json())
        return
    from sqlmig.planning.explain import describe_diff

    lines = describe_diff(difference)
    for line in lines:
        click.echo(painted(line))
    if not lines:
        say("No changes.")
