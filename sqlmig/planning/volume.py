"""Sizes and costs in words. It knows numbers only."""

from __future__ import annotations

from sqlmig.wording import counted


def size(count: int) -> str:
    """Bytes in words: `1.4 MiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def rewriting(rows: int | None, size_in_bytes: int | None) -> str:
    """What it costs to write rows anew; None where the number is not known."""
    if rows == 0:
        return "metadata only"
    if rows is None:
        return "rewrites all rows"
    return f"rewrites {counted(rows, 'row')}, {size(size_in_bytes or 0)}"
