"""Text in lines for a terminal."""

from __future__ import annotations

import textwrap

WIDTH = 79
"""Characters in a line."""


def wrapped(text: str, first: str, other: str) -> list[str]:
    """A text in lines; words are kept whole.

    Args:
        first, other: what the first line begins with, and each other one.
    """
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    )
