"""Renames one after the other, as one: name before all of them -> name after them. Pure.

It knows names, and not of what.
"""

from __future__ import annotations

from collections.abc import Iterable


def chained(renames: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What these renames come to.

    Args:
        renames: (before, after), in order.

    Returns:
        Name before all -> name after all, for what gets another one.
    """
    found: dict[str, str] = {}
    for before, after in renames:
        compose(found, before, after)
    return found


def compose(renames: dict[str, str], before: str, after: str) -> bool:
    """Let what is called `before` by now be called `after`; False for what came on the way.

    Args:
        renames: name before all -> name by now; it is changed.
    """
    original = next((b for b, a in renames.items() if a == before), before)
    if original == before and before in renames:
        return False  # that one was renamed earlier; this is another one under its old name
    for other in [b for b, a in renames.items() if a == after]:
        del renames[other]  # it was dropped on the way, its name is free again
    if original == after:
        renames.pop(original, None)
    else:
        renames[original] = after
    return True
