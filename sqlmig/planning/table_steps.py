"""The step of a table whose rows may break its new definition. It decides and does nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConvertTable:
    """Bring a table to its new definition and keep its rows, all of them or none.

    The rows are checked first. One that can't be cast, has no value where one is needed, or has a
    key that another row has fails the step; nothing was changed then.

    Args:
        operations: what is done, in words.
        renamed: (column before, column after).
        is_rewritten: rows are cast; else only metadata changes.
        has_new_key: two rows may have one key that had not before, so that this is looked at.
        stage: says which program defines the table.
    """

    relation: str
    operations: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...] = ()
    is_rewritten: bool = False
    has_new_key: bool = False
    stage: int = -1
