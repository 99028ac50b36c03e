"""Arrivals: whether anything came to a source since it was read, without asking Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sqlmig.ledger.cut import ConnectorState
from sqlmig.program.model import Source

_FILES = frozenset({"json", "csv", "parquet", "orc", "avro", "text", "xml"})


class Arrivals:
    """Remembers which files a source had when this process last read it.

    Args:
        root: what a relative `path` starts from.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: dict[str, frozenset[str]] = {}

    def look(self, source: Source) -> frozenset[str] | None:
        """The names of all files of a source now; None where that can't be told cheaply.

        Only local files are looked at, and only where no option has a secret or decides which of
        them count.
        """
        options = {key.lower(): value for key, value in source.options}
        path = options.get("path")
        if source.format.lower() not in _FILES or not path:
            return None
        if "${env:" in path or "://" in path or path.startswith("file:"):
            return None
        place = (self._root / path).relative_to("/")
        return frozenset(
            name for top in sorted(Path("/").glob(str(place))) for name in _files(str(top))
        )

    def remember(self, connector: ConnectorState, seen: frozenset[str] | None) -> None:
        """Take up what `look` saw before a round that read all there was."""
        if seen is None:
            self._seen.pop(connector.offsets, None)
        else:
            self._seen[connector.offsets] = seen

    def is_quiet(self, source: Source, connector: ConnectorState) -> bool:
        """Whether no file has come since a round of this process that read all there was.

        Rule `no-new-name`. Spark's file source takes a file for new by its name: it remembers the
        names that it has read. The names were listed before that round began, and the round ended
        without an error, so it has read each of them. If there is no name now that was not there
        then, there is none that Spark would read.
        """
        seen = self._seen.get(connector.offsets)
        now = self.look(source) if seen is not None else None
        return seen is not None and now is not None and now <= seen


def _files(top: str) -> Iterator[str]:
    try:
        with os.scandir(top) as entries:
            for entry in entries:
                if entry.is_dir():
                    yield from _files(entry.path)
                else:
                    yield entry.path
    except NotADirectoryError:
        yield top
    except OSError:  # gone, or not readable: let the round say so
        yield f"{top}?{os.urandom(8).hex()}"
