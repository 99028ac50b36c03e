"""Shows a run, on stderr: a live list of steps on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlmig.cli.output import say
from sqlmig.execution import events
from sqlmig.planning.explain import describe_action
from sqlmig.planning.steps import Step

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


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
                say(f"  apply {revision.revision}, {revision.message.splitlines()[0]}")
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
        case events.Ingestion() | events.Refresh() | events.TickFailure():
            say(tick_line(event))


def tick_line(event: events.Ingestion | events.Refresh | events.TickFailure) -> str:
    """A line about a tick."""
    match event:
        case events.Ingestion(connector, rows, rejected, seconds):
            aside = f", {rejected:,} bad kept aside" if rejected else ""
            return f"  tick    read {connector}  {rows:,} rows{aside}  {seconds:.1f} s"
        case events.Refresh(relation, rows, seconds):
            count = "" if rows is None else f"  {rows:,} rows"
            return f"  tick    refresh `{relation}`{count}  {seconds:.1f} s"
        case events.TickFailure(name, message):
            return f"  tick    FAILED {name}: {message}"


def _line(word: str, step: Step, seconds: float, rows: int | None, note: str | None) -> str:
    count = f"  {rows:,} row{'' if rows == 1 else 's'}" if rows else ""
    extra = f"  ({note})" if note else ""
    action = describe_action(step.action)
    return f"  {word:<6} {step.number:>3}  {action}{extra}{count}  {seconds:.1f} s"


class _LiveList:
    """The list of steps, each with its elapsed time and rows, drawn anew while a step runs."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._done: dict[int, tuple[str, float, int | None, str | None]] = {}
        self._running: tuple[int, float] | None = None
        self._live: Live | None = None

    def __enter__(self) -> _LiveList:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.PlanStarted():
                _plain(event)
                self._steps = list(event.plan.steps)
                self._start()
            case events.StepStarted(step):
                self._running = (step.number, time.monotonic())
            case events.StepFinished(step, seconds, rows, note):
                self._running = None
                self._done[step.number] = ("done", seconds, rows, note)
            case events.StepFailedEvent(step, seconds, message):
                self._running = None
                self._done[step.number] = ("FAILED", seconds, None, message)
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

        self._live = Live(
            get_renderable=self._table,
            console=Console(stderr=True),
            refresh_per_second=8,
            transient=False,
        )
        self._live.start()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.refresh()
            self._live.stop()
            self._live = None

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False, padding=(0, 1))
        for step in self._steps:
            row: list[Any] = [f"{step.number:>3}", Text(describe_action(step.action))]
            done = self._done.get(step.number)
            if done is not None:
                word, seconds, rows, note = done
                style = "green" if word == "done" else "bold red"
                row = [Text(word, style=style), *row, _rows(rows), f"{seconds:.1f} s", note or ""]
            elif self._running and self._running[0] == step.number:
                elapsed = time.monotonic() - self._running[1]
                row = [Text("...", style="yellow"), *row, "", f"{elapsed:.1f} s", ""]
            else:
                row = ["", *row, "", "", ""]
            table.add_row(*row)
        return table


def _rows(rows: int | None) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}" if rows else ""
