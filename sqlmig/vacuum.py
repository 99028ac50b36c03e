"""The files of stored tables that no kept version needs, and the removal of files and folders.

It reads Delta logs with delta-rs and lists local folders; which versions are kept, others decide.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from sqlmig.environment import cause, first_line
from sqlmig.errors import EngineError
from sqlmig.execution.collection import Place, Unneeded
from sqlmig.ledger.retention import Kept
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from deltalake import DeltaTable

_DAY = 86400.0
_UNCOMMITTED = _DAY
"""Seconds for which a file that no commit names may be one that is being written."""
_CHANGES = "_change_data"


class LocalStorage:
    """The stored tables of a warehouse on a file system, as files."""

    def __init__(self, warehouse: DeltaWarehouse) -> None:
        self._warehouse = warehouse

    def unneeded(self, folder: str, kept: Kept, slack: float) -> Unneeded:
        """The files of a table that none of the kept versions has.

        A version from `kept.since` on has files that `since` has, or that a later commit added: a
        new file, which is then not older than the commit `since`, or one that a RESTORE brought
        back. So what is needed is: the files of the newest version, of `since`, of each RESTORE
        after it, of each of `kept.versions`, and those that are not older than `since`. `slack` is
        for writes that began before that commit and ended after it. A file that no commit names
        may be one that is being written, and is kept for a day.

        delta-rs's own vacuum goes by the times in the log: a file that was removed, brought back
        and removed again counts there as removed the first time.

        Args:
            slack: seconds.

        Raises:
            EngineError: the table can't be read.
        """
        path = self._warehouse.table_path(folder)
        table = _open(path)
        if table is None:
            return Unneeded(folder)
        now = time.time()
        newest = int(table.version())
        since = newest if kept.since is None else min(kept.since, newest)
        begin = now if since == newest else _committed(path, since)
        of_since = _live(path, since)
        if begin is None or of_since is None:
            return Unneeded(folder)  # its log goes back less far: which files that needs is unknown
        dead = _dead(table)
        needed = _files(table) | of_since
        for version in (*kept.versions, *_restores(table, newest - since)):
            needed |= _live(path, version) or frozenset()
        found = []
        for name, size, at in _listed(Path(path)):
            is_named = name in dead
            if name in needed or at >= begin - slack or (not is_named and at >= now - _UNCOMMITTED):
                continue
            found.append((name, size))
        gone = {name for name, _ in found}
        lost = (v for v in kept.expired if not gone.isdisjoint(_live(path, v) or ()))
        return Unneeded(folder, tuple(sorted(found)), tuple(sorted(lost)))

    def remove_files(self, unneeded: Unneeded) -> None:
        """Remove the files; one that is gone already is no error."""
        root = Path(self._warehouse.table_path(unneeded.folder))
        with _removing(root):
            for name, _ in unneeded.files:
                file = root / name
                file.unlink(missing_ok=True)
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    def old_raw(self, folder: str, before: datetime) -> tuple[int, int] | None:
        """Files and bytes of a source's raw records that came before a time; None for none."""
        table = _open(self._warehouse.raw_path(folder))
        old = _old_batches(table, before) if table is not None else []
        return (len(old), sum(size for *_, size in old)) if old else None

    def remove_raw(self, folder: str, before: datetime) -> None:
        """Remove them, and the files that had them."""
        path = self._warehouse.raw_path(folder)
        table = _open(path)
        last = {g: batch for g, batch, _ in _old_batches(table, before)} if table else {}
        if table is None or not last:
            return
        from deltalake.exceptions import DeltaError

        old = " OR ".join(f"(generation = {g} AND batch <= {n})" for g, n in sorted(last.items()))
        try:
            table.delete(old)
            table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        except (DeltaError, OSError) as error:
            raise EngineError(
                f"old raw records at {path} can't be removed: {first_line(error, ())}",
                hint="run `sqlmig gc` again: it goes on",
            ) from cause(error, ())

    def size(self, place: Place) -> tuple[int, int] | None:
        """Files and bytes of a folder; None where there is none."""
        path = Path(self._path(place))
        if not path.is_dir():
            return None
        found = [Path(root) / name for root, _, names in os.walk(path) for name in names]
        return len(found), sum(file.lstat().st_size for file in found)

    def remove(self, place: Place) -> None:
        """Remove a folder with all that is in it."""
        path = self._path(place)
        with _removing(path):
            shutil.rmtree(path)

    def _path(self, place: Place) -> str:
        warehouse, name = self._warehouse, place.name
        match place.kind:
            case "tables":
                return warehouse.table_path(name)
            case "raw":
                return warehouse.raw_path(name)
            case "rejected":
                return warehouse.rejected_path(name)
            case "deleted":
                folder, _, generation = name.rpartition("/")
                return warehouse.deleted_path(folder, int(generation))
            case _:
                folder, _, generation = name.rpartition("/")
                return warehouse.checkpoint_path(folder, int(generation))


def _old_batches(table: DeltaTable, before: datetime) -> list[tuple[int, int, int]]:
    """(generation, batch, bytes) of the files of raw records that are older than a time, in order.

    Of each generation only what has nothing younger before it: clocks can be set back.
    """
    files = table.get_add_actions(flatten=True)
    names = ("min.generation", "max.batch", "max.at", "size_bytes")
    old: list[tuple[int, int, int]] = []
    young: set[int] = set()
    for generation, batch, at, size in sorted(
        zip(*(files.column(name).to_pylist() for name in names), strict=True)
    ):
        if at.astimezone(timezone.utc) >= before:
            young.add(generation)
        if generation not in young:
            old.append((int(generation), int(batch), int(size)))
    return old


@contextmanager
def _removing(path: str | Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        return  # another process was faster
    except OSError as error:
        raise EngineError(
            f"{error.filename or path} can't be removed: {(error.strerror or str(error)).lower()}",
            hint="check its rights, and run `sqlmig gc` again: it goes on",
        ) from error


def _open(path: str, version: int | None = None) -> DeltaTable | None:
    if not (Path(path) / "_delta_log").is_dir():
        return None
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        return DeltaTable(path, version=version)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError, ValueError) as error:
        raise EngineError(
            f"the Delta table at {path} can't be read: {first_line(error, ())}",
            hint="nothing of it was removed; `sqlmig status` shows whether it is in use",
        ) from cause(error, ())


def _live(path: str, version: int) -> frozenset[str] | None:
    """The files of a version; None where the log does not go back so far: nobody can read it."""
    try:
        table = _open(path, version)
    except EngineError:
        return None
    return None if table is None else _files(table)


def _files(table: DeltaTable) -> frozenset[str]:
    names = table.get_add_actions(flatten=True).column("path").to_pylist()
    return frozenset({*names, *map(unquote, names)})


def _dead(table: DeltaTable) -> frozenset[str]:
    """Files that commits removed, and that are still there."""
    names = table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False)
    return frozenset({*names, *map(unquote, names)})


def _restores(table: DeltaTable, count: int) -> list[int]:
    """Those of the newest `count` commits that brought an earlier version back."""
    commits = table.history(count) if count > 0 else []
    return [int(c["version"]) for c in commits if c.get("operation") == "RESTORE"]


def _committed(path: str, version: int) -> float | None:
    """When a version was committed, as its file in the log has it; None if that is gone."""
    try:
        return (Path(path) / "_delta_log" / f"{version:020d}.json").stat().st_mtime
    except FileNotFoundError:
        return None


def _listed(root: Path) -> Iterator[tuple[str, int, float]]:
    """Name, size and time of each data file: of rows and of the change feed.

    Deletion vectors are left alone: what uses them is not told apart here.
    """
    for at, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f == _CHANGES or not f.startswith(("_", ".")))
        for name in sorted(names):
            if name.endswith(".parquet") and not name.startswith("."):
                file = Path(at) / name
                try:
                    status = file.stat()
                except FileNotFoundError:
                    continue  # another vacuum was faster
                yield file.relative_to(root).as_posix(), status.st_size, status.st_mtime
