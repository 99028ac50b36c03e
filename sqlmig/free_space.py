"""A disk that is full: how an error says it, what is free, and what to do. It knows no Delta."""

from __future__ import annotations

import os
import re
from pathlib import Path

_FULL = re.compile(
    r"no space left on device|disk quota exceeded|not enough space|\(os error (?:28|122)\)",
    re.IGNORECASE,
)
FULL = "no space is left on the disk"
SPARK_ADVICE = (
    "free some space where the warehouse is, and in Spark's own folders (`spark.local.dir`, by "
    "default /tmp), then run the command again"
)


def is_full(text: str) -> bool:
    """Whether an error's text says that a disk, or somebody's share of it, is full."""
    return _FULL.search(text) is not None


def advice(place: str) -> str:
    """What to do where the disk that holds `place` is full."""
    return f"free some space in {place}, then run the command again: it ends what is begun"


def free_bytes(place: str) -> int | None:
    """Bytes that may still be written below a local folder; None where nobody can say."""
    folder = Path(place)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        now = os.statvfs(folder)
    except (AttributeError, OSError):
        return None
    return now.f_bavail * now.f_frsize if now.f_blocks else None
