"""Projects that lie on disk and are driven by the commands of a desk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.desk import Desk, Said


@dataclass(frozen=True)
class Site:
    """A project's folder, and the desk where its commands are run."""

    desk: Desk
    folder: Path

    def __call__(self, *words: str, code: int = 0) -> Said:
        """Run `sqlmig WORDS` here; it must end with `code`."""
        return self.desk(self.folder, *words, code=code)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query."""
        found: list[dict[str, Any]] = self("query", sql, "--json").json
        return found

    def write(self, path: str, text: str) -> Path:
        """Write a file below the folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def freeze(self, revision: str, **files: str) -> Path:
        """Write `files` into pipeline/ and freeze them; the new revision's file."""
        for name, text in files.items():
            self.write(f"pipeline/{name}.sql", text)
        self("revision", "-m", f"make {revision}", "--rev-id", revision)
        (file,) = (self.folder / "revisions").glob(f"*_{revision}_*.py")
        return file


def site(desk: Desk, folder: Path) -> Site:
    """A new project whose only target is the desk's cluster."""
    here = Site(desk, folder)
    target = {"spark": dict(desk.spark), "warehouse": "warehouse", "bootstrap_policy": "allow"}
    here.write("sqlmig.yml", json.dumps({"pipeline": "school", "targets": {"here": target}}))
    (folder / "revisions").mkdir()
    return here
