"""A storage over the world of the fakes, and a calendar: for tests of what is removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from sqlmig.execution.collection import Collector, Findings, Place, Unneeded
from sqlmig.ledger.retention import Kept
from tests.fakes import Pipeline, Revision, World

DAY = 86400.0
GONE = ("<removed>",)
"""The contents of a version whose files were removed; what the log tells of it stays."""


class Calendar:
    """A clock that all processes share; a second a reading."""

    def __init__(self) -> None:
        self.now = datetime(2026, 6, 10, 12, tzinfo=timezone.utc)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def wait(self, days: float) -> None:
        """Let days go by."""
        self.now += timedelta(days=days)


class FakeStorage:
    """The world's tables and offsets, as files: one for each version."""

    def __init__(self, world: World) -> None:
        self._world = world

    def unneeded(self, folder: str, kept: Kept, slack: float) -> Unneeded:
        """The versions before the kept ones."""
        versions = self._world.tables.get(folder, [])
        newest = len(versions) - 1
        first = newest if kept.since is None else min(kept.since, newest)
        gone = [n for n in range(first) if n not in kept.versions and versions[n].contents != GONE]
        lost = tuple(n for n in gone if n in kept.expired)
        return Unneeded(folder, tuple((str(n), 8) for n in gone), lost)

    def remove_files(self, unneeded: Unneeded) -> None:
        """These versions can't be read any more."""
        self._world.beat()
        for name, _ in unneeded.files:
            self._archive(unneeded.folder, int(name))
            versions = self._world.tables[unneeded.folder]
            versions[int(name)] = replace(versions[int(name)], contents=GONE)
        self._world.beat()

    def size(self, place: Place) -> tuple[int, int] | None:
        """A file for each version or offset."""
        if place.kind == "tables" and place.name in self._world.tables:
            return len(self._world.tables[place.name]), 8
        if place.kind == "checkpoints" and self._offsets(place) in self._world.offsets:
            return 1, 8
        return None

    def old_raw(self, folder: str, before: datetime) -> tuple[int, int] | None:
        """No raw records are kept here."""
        return None

    def remove_raw(self, folder: str, before: datetime) -> None:
        """None are there."""
        raise AssertionError(folder)

    def remove(self, place: Place) -> None:
        """The table or the offsets are gone."""
        self._world.beat()
        if place.kind == "tables":
            for number in range(len(self._world.tables[place.name])):
                self._archive(place.name, number)
            del self._world.tables[place.name]
        else:
            del self._world.offsets[self._offsets(place)]
        self._world.beat()

    def _archive(self, folder: str, number: int) -> None:
        contents = self._world.tables[folder][number].contents
        self._world.archive.setdefault((folder, number), contents)

    @staticmethod
    def _offsets(place: Place) -> tuple[str, int]:
        folder, _, generation = place.name.rpartition("/")
        return folder, int(generation)


def process(world: World, revisions: Sequence[Revision], calendar: Calendar) -> Pipeline:
    """A new process, whose clock is the calendar."""
    pipeline = Pipeline(world, revisions)
    pipeline.journal._clock = calendar
    return pipeline


def collector(pipeline: Pipeline, keep: float = 7 * DAY) -> Collector:
    """What collects in that process."""
    return Collector(FakeStorage(pipeline.world), pipeline.journal, keep)


def collect(pipeline: Pipeline, older_than: float = 30 * DAY, keep: float = 7 * DAY) -> Findings:
    """`sqlmig gc`."""
    chosen = collector(pipeline, keep)
    findings = chosen.find(older_than)
    chosen.remove(findings)
    return findings
