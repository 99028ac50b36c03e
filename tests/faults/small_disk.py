"""A small disk of a test's own, that a ballast file fills up: real, and gone with the test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_BLOCK = 4096
_SMALL = 512 * 2**20
"""Bytes up to which a disk that is there already may be filled up: a container's /dev/shm."""


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
    """A disk of so many megabytes, in memory.

    By what the machine allows: a mount of root's, one in a user's own name space that is reached
    through its process, a mount by sudo, or a small /dev/shm that is there.

    Args:
        place: an empty folder.

    Raises:
        AssertionError: the machine allows none of them; it says what each said.
    """
    refused: list[str] = []
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "tmpfs", str(place)]
    for before in ([], ["sudo", "-n"]):
        if _succeeds([*before, *words], refused):
            try:
                yield SmallDisk(place)
            finally:
                _succeeds([*before, "umount", "-l", str(place)], refused)
            return
    script = f"{' '.join(words)} && echo mounted && exec sleep infinity"
    holder = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert holder.stdout is not None
        said = holder.stdout.readline().strip()
        folder = Path(f"/proc/{holder.pid}/root{place.resolve()}")
        if said == "mounted" and os.access(folder, os.W_OK):
            yield SmallDisk(folder)
            return
        refused.append(f"unshare: {said}")
    finally:
        holder.kill()
        holder.communicate()
    with _shared_memory(refused) as folder:
        yield SmallDisk(folder)


@contextmanager
def _shared_memory(refused: list[str]) -> Iterator[Path]:
    shared = Path("/dev/shm")
    with suppress(OSError):
        size = os.statvfs(shared)
        if size.f_blocks * size.f_frsize > _SMALL:
            refused.append(f"{shared} is too large to be filled up")
    if refused[-1].startswith(str(shared)) or not shared.is_dir():
        raise AssertionError("no small disk can be had: " + "; ".join(refused))
    folder = shared / f"sqlmig-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _succeeds(words: list[str], refused: list[str]) -> bool:
    if sys.platform != "linux" or shutil.which(words[0]) is None:
        refused.append(f"no {words[0]} here")
        return False
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        refused.append(f"{' '.join(words)}: {done.stderr.strip()}")
    return not done.returncode
