"""Sizes in words. It knows numbers only."""

from __future__ import annotations


def size(count: int) -> str:
    """Bytes in words: `1.4 MiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
