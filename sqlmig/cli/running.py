"""The commands of a pipeline that runs: run, stop, resume, checkpoint."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Event
from types import FrameType

import click

from sqlmig import commands
from sqlmig.cli.app import global_options, opened
from sqlmig.cli.durations import DURATION, TIME
from sqlmig.cli.output import print_json, say
from sqlmig.wording import counted


@click.command("run")
@click.option("--once", is_flag=True, help="One tick, then end.")
@click.option(
    "--interval",
    type=DURATION,
    metavar="5s",
    help="From the begin of one tick to the begin of the next; by default the target's, or 5s.",
)
@click.option("--until", type=TIME, metavar="TIME", help="End then: 18:30, +10m, an ISO time.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@global_options
def run_command(once: bool, interval: float | None, until: datetime | None, as_json: bool) -> None:
    """Tick the pipeline: sources in, stale views computed again, sinks out, the cut recorded.

    Without --once it goes on until it is interrupted (Ctrl-C, SIGTERM), and ends the tick under
    way before it ends itself. An upgrade by another process makes it pause, and it goes on with the
    new revision. What fails is tried again, each time later than before.
    """
    if once and (interval is not None or until is not None):
        raise click.UsageError("'--once' excludes '--interval' and '--until'.")
    if once:
        _run_once(as_json)
    else:
        _keep_running(interval, until, as_json)


def _run_once(as_json: bool) -> None:
    from sqlmig.cli.outcomes import tick_json
    from sqlmig.cli.progress import progress

    with progress() as observer:
        tick = commands.run(opened(), observer=observer)
    if as_json:
        print_json(tick_json(tick))
    if not tick.ingested and not tick.refreshed and not tick.sent and not tick.failures:
        say("Nothing new: every view is current.")
    if tick.failures:
        names = ", ".join(f"`{name}`" for name in sorted(tick.failures))
        say(f"\nerror: the tick failed for {names}\n\nhint: mend the cause and tick again")
        click.get_current_context().exit(1)


def _keep_running(interval: float | None, until: datetime | None, as_json: bool) -> None:
    from sqlmig.cli.progress import progress

    over = Event()
    with progress() as observer, _interrupts(over):
        ticks = commands.keep_running(
            opened(), interval=interval, until=until, is_over=over.is_set, observer=observer
        )
    if as_json:
        print_json({"ticks": ticks})
    say(f"Ended after {counted(ticks, 'tick')}.")


@contextmanager
def _interrupts(over: Event) -> Iterator[None]:
    """The first interruption sets `over`; a second one ends at once."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if over.is_set():
            raise KeyboardInterrupt
        over.set()
        say("Ending after this tick; interrupt again to end at once.")

    kinds = (signal.SIGINT, signal.SIGTERM)
    former = {kind: signal.getsignal(kind) for kind in kinds}
    for kind in kinds:
        signal.signal(kind, interrupt)
    try:
        yield
    finally:
        for kind, handler in former.items():
            signal.signal(kind, handler)


@click.command("stop")
@click.option("--at", type=TIME, metavar="TIME", help="From then on: 18:30, +10m, an ISO time.")
@global_options
def stop_command(at: datetime | None) -> None:
    """Ask that the pipeline ticks no more, until `sqlmig resume`.

    A tick under way is ended. The process that runs the pipeline stays, and waits.
    """
    now = commands.stop(opened(), at=at)
    if at is not None:
        say(f"The pipeline stops at {at:%Y-%m-%d %H:%M:%S %Z}.")
    elif now.is_stopped:
        say("The pipeline is stopped.")
    else:
        say("The pipeline stops when its tick is over; `sqlmig status` shows it.")


@click.command("resume")
@global_options
def resume_command() -> None:
    """Let the pipeline tick again after `sqlmig stop`."""
    now = commands.resume(opened())
    say("The pipeline goes on." if now.runner else "The pipeline may tick: `sqlmig run` does it.")


@click.command("checkpoint")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print its number as JSON.")
@global_options
def checkpoint_command(name: str | None, as_json: bool) -> None:
    """Record the newest consistent cut under a number, for `sqlmig query --at`.

    Each tick is one anyway; a checkpoint gives it a number that is printed, and a NAME.
    """
    number = commands.checkpoint(opened(), name)
    if as_json:
        print_json({"checkpoint": number, "name": name})
    say(f"Checkpoint {number}{f', {name}' if name else ''}: `sqlmig query --at {name or number}`")
