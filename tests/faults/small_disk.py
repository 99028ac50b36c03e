"""A small disk of a test's own, that a ballast file fills up: real, and gone with the test.

By what the machine allows: a file system in memory that root mounts, or sudo; a container's small
/dev/shm; else the whole test runs in a user's own name space, where it may mount.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = 4096
_SMALL = 256 * 2**20
"""Bytes up to which a disk may be filled up: no user's own one is as small."""
_SHARED = Path("/dev/shm")
_NAME_SPACE = ("unshare", "--user", "--map-root-user", "--mount")


@dataclass(frozen=True)
class SmallDisk:
    """A folder on a disk of its own.

    Args:
        folder: where a test may write.
    """

    folder: Path

    @property
    def free(self) -> int:
        """Bytes that can still be written."""
        now = os.statvfs(self.folder)
        return now.f_bavail * now.f_frsize

    @property
    def ballast(self) -> Path:
        """What fills the disk up."""
        return self.folder / "ballast"

    def fill(self, leave: int) -> None:
        """Leave `leave` bytes free, to a block; what else writes meanwhile finds no more."""
        assert _size(self.folder) <= _SMALL, f"{self.folder} is on a disk that others use"
        with self.ballast.open("ab") as file:
            while self.free > leave:
                chunk = min(max(self.free - leave, _BLOCK), 2**20)
                try:
                    os.write(file.fileno(), bytes(chunk))
                except OSError:  # somebody else took the last block
                    return

    def clear(self) -> None:
        """Take the ballast away."""
        self.ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[SmallDisk]:
    """A disk of so many megabytes; where none can be had in this name space, a mere folder.

    Args:
        place: an empty folder.
    """
    mounts = way_to_mount()
    if mounts is not None:
        assert _mount(mounts, place, megabytes) == ""
        try:
            yield SmallDisk(place)
        finally:
            subprocess.run([*mounts, "umount", "-l", str(place)], check=True)
    elif has_small_memory():
        folder = _SHARED / f"sqlmig-{os.getpid()}"
        with (_SHARED / "sqlmig.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one test at a time fills it up
            folder.mkdir()
            try:
                yield SmallDisk(folder)
            finally:
                shutil.rmtree(folder)
    else:
        yield SmallDisk(place)


def run_in_name_space(test: str) -> None:
    """Run a test in a name space of its own, where it may mount.

    Args:
        test: its id, as pytest names it.

    Raises:
        AssertionError: it failed, or the machine allows no name space; with what was said.
    """
    hidden = ("PYTEST_XDIST", "PYTEST_CURRENT_TEST")
    environment = {n: v for n, v in os.environ.items() if not n.startswith(hidden)}
    done = subprocess.run(
        [*_NAME_SPACE, sys.executable, "-m", "pytest", "-q", test],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (
        f"no disk can be had to fill up; in a name space of its own the test said:\n"
        f"{done.stdout}\n{done.stderr}"
    )


@functools.cache
def way_to_mount() -> tuple[str, ...] | None:
    """What stands before a command that mounts; None where it is not allowed."""
    with tempfile.TemporaryDirectory() as place:
        for before in ((), ("sudo", "-n")):
            if _mount(before, Path(place), 1) == "":
                subprocess.run([*before, "umount", place], check=True)
                return before
    return None


def has_small_memory() -> bool:
    """Whether there is a /dev/shm that is small enough to be filled up."""
    return _SHARED.is_dir() and os.access(_SHARED, os.W_OK) and _size(_SHARED) <= _SMALL


def _size(folder: Path) -> int:
    now = os.statvfs(folder)
    return now.f_blocks * now.f_frsize


def _mount(before: tuple[str, ...], place: Path, megabytes: int) -> str:
    """Mount a disk in memory; what is said against it, nothing where it is there."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "tmpfs", str(place)]
    if shutil.which((*before, *words)[0]) is None:
        return f"no {(*before, *words)[0]} here"
    done = subprocess.run([*before, *words], capture_output=True, text=True, check=False)
    return (done.stderr.strip() or "it failed") if done.returncode else ""
