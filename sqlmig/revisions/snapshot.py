"""A folder of revision files that is no folder: their texts, as a commit of Git has them.

It knows texts under their names, and not where they come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from sqlmig.errors import RevisionError
from sqlmig.revisions.directory import RevisionDirectory


class RevisionSnapshot(RevisionDirectory):
    """Revision files that can be read and not written.

    Args:
        path: the folder that they would lie in. root: paths in messages are relative to it.
        texts: path relative to `root` -> text.
        origin: where they are, for messages.
    """

    def __init__(self, path: Path, texts: Mapping[str, str], *, root: Path, origin: str) -> None:
        super().__init__(path, root=root)
        self._texts = {name.rpartition("/")[2]: text for name, text in texts.items()}
        self._origin = origin

    @staticmethod
    def is_revision(path: str) -> bool:
        """Whether a path in the project is that of a revision file."""
        folder, _, name = path.rpartition("/")
        return folder == "revisions" and name.endswith(".py") and not name.startswith(("_", "."))

    def _names(self) -> list[str]:
        return sorted(self._texts)

    def _text(self, name: str, shown: str) -> str:
        return self._texts[name]

    def _write(self, path: Path, text: str) -> NoReturn:
        raise RevisionError(
            f"`{path.name}` can't be written: these revisions are those of `{self._origin}`",
            hint="check that out first",
        )
