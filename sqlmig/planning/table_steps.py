"""The steps that write a stored relation's own rows anew. They decide and do nothing."""

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


@dataclass(frozen=True)
class LayOut:
    """Write the rows of a stored relation anew, partitioned by `columns`. Its contents stay.

    Args:
        columns: names of columns in lower case; none for not at all.
        stage: says which program defines it.
    """

    relation: str
    columns: tuple[str, ...]
    stage: int = -1


@dataclass(frozen=True)
class FillColumns:
    """Give columns that a table got the values that raw records have for its rows.

    Args:
        columns: in lower case.
        sources: (connector, folder, generation) of those that have kept raw records.
    """

    relation: str
    columns: tuple[str, ...]
    sources: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class RebuildTable:
    """Make the rows of a table that was emptied anew, of raw records. Its sources go on.

    Args:
        sources: (connector, folder, generation), in the order in which they are read.
    """

    relation: str
    sources: tuple[tuple[str, str, int], ...]


TableAction = ConvertTable | LayOut | FillColumns | RebuildTable
"""All of these."""
