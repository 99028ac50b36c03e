"""Shows a run, on stderr: a live list of steps on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlmig.cli.output import say
from sqlmig.execution import events
from sqlmig.planning.explain import describe_action
from sqlmig.planning.parting import in_words
from sqlmig.planning.steps import Step
from sqlmig.planning.volume import size
from sqlmig.wording import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text


@contextmanager
def progress() -> Iterator[events.Observer]:
    """An observer that shows what happens while the block runs."""
    if sys.stderr.isatty():
        with _LiveList() as live:
            yield live
    else:
        yield _plain


def _plain(event: events.Event) -> None:
    match event:
        case events.PlanStarted(plan, is_resumed):
            word = "Resuming" if is_resumed else "Running"
            say(f"{word} {plan.direction} {plan.deployed or 'base'} -> {plan.target or 'base'}")
            for revision in plan.ups:
                title = revision.message.partition("\n")[0]
                say(f"  apply {revision.revision}{', ' if title else ''}{title}")
            for name in plan.downs:
                say(f"  take back {name}")
        case events.StepFinished(step, seconds, rows, note):
            say(_line("done", step, seconds, rows, note))
        case events.StepFailedEvent(step, seconds, message):
            say(f"{_line('FAILED', step, seconds, None, None)}: {message}")
        case events.StepStarted() | events.StepEffected() | events.PlanApplied():
            pass
        case events.PlanRolledBack(plan):
            say(f"taken back to {plan.deployed or 'base'}")
        case events.LateRows(relation, rows):
            say(f"  tick    late `{relation}`  {_rows(rows)} in no window any more")
        case events.Ingestion() | events.Refresh() | events.Sending() | events.TickFailure():
            say(tick_line(event))
        case events.Vacuumed(files, count):
            say(f"  vacuum  {counted(files, 'old file')}, {size(count)}")
        case events.LeaseWatched(process, seconds):
            say(f"No sign of {process}: it is replaced if it gives none for {seconds:g} s.")
        case events.TimeAwaited(at):
            say(f"Waiting until {in_words(at)}; nothing is begun, Ctrl-C gives it up.")
        case events.RunnerTicks(revision):
            say(f"Running revision {revision}")
        case events.RunnerPauses(plan):
            say(f"  paused  for plan {plan}" if plan else "  paused  until `sqlmig resume`")


def tick_line(
    event: events.Ingestion | events.Refresh | events.Sending | events.TickFailure,
) -> str:
    """A line about a tick."""
    match event:
        case events.Ingestion(connector, rows, rejected, seconds):
            aside = f", {rejected:,} bad kept aside" if rejected else ""
            return f"  tick    read {connector}  {_rows(rows) or '0 rows'}{aside}  {seconds:.1f} s"
        case events.Refresh(relation, rows, seconds):
            count = "" if rows is None else f"  {_rows(rows) or '0 rows'}"
            return f"  tick    refresh `{relation}`{count}  {seconds:.1f} s"
        case events.Sending(connector, rows, seconds):
            return f"  tick    send {connector}  {_rows(rows)}  {seconds:.1f} s"
        case events.TickFailure(name, message, hint):
            more = f"\n          hint: {hint}" if hint else ""
            return f"  tick    FAILED {name}: {message}{more}"


def _line(word: str, step: Step, seconds: float, rows: int | None, note: str | None) -> str:
    count = f"  {_rows(rows)}" if rows else ""
    extra = f"  ({note})" if note else ""
    action = describe_action(step.action)
    return f"  {word:<6} {step.number:>3}  {action}{extra}{count}  {seconds:.1f} s"


class _LiveList:
    """The list of steps, each with its elapsed time and rows, drawn anew while a step runs.

    Args:
        console: where it is drawn; by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._steps: list[Step] = []
        self._done: dict[int, tuple[str, float, int | None, str | None]] = {}
        self._running: tuple[int, float] | None = None
        self._live: Live | None = None
        self._is_over = True

    def __enter__(self) -> _LiveList:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.PlanStarted():
                _plain(event)
                self._steps = list(event.plan.steps)
                self._done.clear()
                self._start()
            case events.StepStarted(step):
                self._running = (step.number, time.monotonic())
            case events.StepFinished(step, seconds, rows, note):
                self._running = None
                self._done[step.number] = ("done", seconds, rows, note)
            case events.StepFailedEvent(step, seconds, _):
                # the message is long, and said when the command ends
                self._running = None
                self._done[step.number] = ("FAILED", seconds, None, None)
            case events.StepEffected():
                pass
            case events.PlanApplied():
                self._stop()
            case _:
                self._stop()
                _plain(event)

    def _start(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = self._console or Console(stderr=True)
        self._is_over = False
        self._live = Live(
            get_renderable=self._table,
            console=self._console,
            refresh_per_second=8,
            vertical_overflow="visible",
        )
        self._live.start()

    def _stop(self) -> None:
        live, self._live = self._live, None
        self._is_over = True
        if live is not None:
            live.refresh()
            live.stop()

    def _table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, show_header=False, padding=(0, 1))
        for justify in ("left", "right", "left", "right", "right", "left"):
            table.add_column(justify=justify, no_wrap=justify == "right")
        for step in self._shown():
            table.add_row(*self._row(step))
        return table

    def _shown(self) -> list[Step]:
        """All steps in the end; before it, what fits on the screen around the running one."""
        room = max(3, self._console.height - 4) if self._console else len(self._steps)
        if self._is_over or len(self._steps) <= room:
            return self._steps
        at = self._running[0] if self._running else max(self._done, default=0)
        start = min(max(0, at - room // 2), len(self._steps) - room)
        return self._steps[start : start + room]

    def _row(self, step: Step) -> list[Text]:
        word, style, rows, seconds, note = "", "", "", "", ""
        running = self._running[0] if self._running else 0
        if step.number in self._done:
            word, took, count, remark = self._done[step.number]
            style = "green" if word == "done" else "bold red"
            rows, seconds, note = _rows(count), f"{took:.1f} s", remark or ""
        elif step.number == running and self._running is not None:
            word, style = "...", "yellow"
            seconds = f"{time.monotonic() - self._running[1]:.1f} s"
        elif step.number < max(running, max(self._done, default=0)):
            word, style, note = "done", "green", "before"
        from rich.text import Text

        # as Text, for a message may have [brackets], which rich takes for its markup
        cells = (f"{step.number}", describe_action(step.action), rows, seconds, note)
        return [Text(word, style=style), *map(Text, cells)]


def _rows(rows: int | None) -> str:
    return counted(rows, "row") if rows else ""
