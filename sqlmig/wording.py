"""Numbers as messages have them."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """A number and what it counts: `1 row`, `2,000 rows`.

    Args:
        noun: one of them; several have an `s` behind it.
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
