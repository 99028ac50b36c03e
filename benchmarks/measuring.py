"""Measuring: contestants take turns and are compared. It knows nothing of what it measures.

Turns (A, B, A, B, ...) rather than blocks (A, A, ..., B, B, ...), because a machine that becomes
busy halfway then slows both down; and ratios rather than seconds, because machines differ. Time of
the processors is counted too: it says more than the clock while others use the machine.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Spent:
    """What a piece of work took: seconds by the clock, and of the processors."""

    seconds: float
    cpu: float


Turn = Callable[[], Spent]
"""Does the work once, and returns what counts of it."""


@dataclass(frozen=True)
class Times:
    """What the turns of one contestant took."""

    spent: tuple[Spent, ...]

    @property
    def seconds(self) -> float:
        """The median by the clock."""
        return median(one.seconds for one in self.spent)

    @property
    def spread(self) -> float:
        """How noisy it was: width of the middle half of the seconds, over the median."""
        ordered = sorted(one.seconds for one in self.spent)
        quarter = len(ordered) // 4
        return (ordered[-1 - quarter] - ordered[quarter]) / self.seconds


@dataclass(frozen=True)
class Figure:
    """A row of the result: `what` took `times`, against `other` or a limit in seconds.

    Args:
        goal: the ratio that is aimed at; None where the row is only for comparison.
        unit: of the numbers, where they aren't seconds.
    """

    what: str
    times: Times
    other: str
    against: Times | float
    goal: float | None
    unit: str = "s"

    @property
    def other_seconds(self) -> float:
        """What `what` is measured against."""
        return self.against if isinstance(self.against, float) else self.against.seconds

    @property
    def ratio(self) -> float:
        """Below 1: `what` was faster. The median of the rounds' ratios, where both took part."""
        return self._ratio(lambda spent: spent.seconds)

    @property
    def cpu_ratio(self) -> float:
        """The same for the time of the processors."""
        return self._ratio(lambda spent: spent.cpu)

    def _ratio(self, part: Callable[[Spent], float]) -> float:
        own = [part(one) for one in self.times.spent]
        if isinstance(self.against, float):
            return median(own) / self.against
        other = [part(one) for one in self.against.spent]
        if len(own) != len(other):
            return median(own) / median(other)
        return median(a / b for a, b in zip(own, other, strict=True))

    @property
    def noise(self) -> float:
        """The larger spread of the two."""
        if isinstance(self.against, float):
            return self.times.spread
        return max(self.times.spread, self.against.spread)

    @property
    def is_met(self) -> bool:
        """Whether the goal is reached; True where there is none."""
        return self.goal is None or self.ratio <= self.goal


def in_turns(
    contestants: Mapping[str, Turn], rounds: int, *, warm_up: int = 1, swap: bool = False
) -> dict[str, Times]:
    """Let each contestant do its work once a round.

    Args:
        contestants: name -> its turn.
        rounds: how often. warm_up: rounds before that which don't count.
        swap: every second round goes the other way round (A B, B A), so that none is always last.
    """
    spent: dict[str, list[Spent]] = {name: [] for name in contestants}
    for number in range(warm_up + rounds):
        order = list(contestants.items())
        for name, turn in reversed(order) if swap and number % 2 else order:
            took = turn()
            if number >= warm_up:
                spent[name].append(took)
    return {name: Times(tuple(values)) for name, values in spent.items()}


def measured(work: Callable[[], object]) -> Spent:
    """What `work` takes."""
    cpu, began = _cpu_seconds(), time.perf_counter()
    work()
    return Spent(time.perf_counter() - began, _cpu_seconds() - cpu)


def command(name: str, *arguments: str, folder: Path) -> Turn:
    """A turn that runs an installed command as a whole process, in `folder`.

    Raises:
        RuntimeError: from the turn, when the command fails.
    """
    words = [str(Path(sys.executable).with_name(name)), *arguments]
    # No JVM can be started: what needs Spark fails, and is not measured by mistake.
    environment = {
        **os.environ,
        "JAVA_HOME": str(folder / "no-java"),
        "PYTHONDONTWRITEBYTECODE": "",
    }

    def run() -> None:
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")

    return lambda: measured(run)


def _cpu_seconds() -> float:
    """What this process, its ended children, and a JVM that it started have used."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(_running_children())


def _running_children() -> Iterator[float]:
    """The seconds of each running process below this one, where the system tells (Linux)."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    for pid in seconds:
        above = parents.get(pid)
        while above and above != os.getpid():
            above = parents.get(above)
        if above:
            yield seconds[pid]


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    head = ("", "median", "against", "median", "ratio", "goal", "of CPU time", "noise")
    rows = [
        (
            figure.what,
            f"{figure.times.seconds:.2f} {figure.unit}",
            figure.other,
            f"{figure.other_seconds:.2f} {figure.unit}",
            f"{figure.ratio:.2f}",
            ""
            if figure.goal is None
            else f"<= {figure.goal:g}{'' if figure.is_met else ' MISSED'}",
            f"{figure.cpu_ratio:.2f}",
            f"{figure.noise:.0%}",
        )
        for figure in figures
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (head, tuple("-" * width for width in widths), *rows)
    ]
    return "\n".join(lines)
