"""The main job on this project, as a user types it: deploy, look, plan a change, apply, go back.

All commands run in this one process, so that Spark starts once. `make example` calls it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from sqlmig.cli import main

ROOT = Path(__file__).resolve().parent
CHANGED = "8f3c2a91d0be"


def begin(root: Path) -> None:
    """Work in the project's folder from now on, with nothing deployed."""
    os.chdir(root)
    shutil.rmtree("warehouse", ignore_errors=True)
    # into a file, too, what is printed here and what commands say stand in their order
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def sqlmig(*arguments: str, expected: int = 0) -> None:
    """Type a command, and end here if its exit code is not the expected one."""
    shown = " ".join(
        a if a.replace("-", "").replace("_", "").isalnum() else f'"{a}"' for a in arguments
    )
    print(f"\n$ sqlmig {shown}", flush=True)
    try:
        main(list(arguments), standalone_mode=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
        if code != expected:
            sys.exit(f"error: `sqlmig {shown}` ended with {code}, expected {expected}")


def walk() -> None:
    """Walk the path."""
    begin(ROOT)
    print("A pipeline of two tables, two sources and two views, with two revisions.")
    sqlmig("history")
    sqlmig("upgrade", f"{CHANGED}-1", "--yes")
    sqlmig("query", "SELECT * FROM avg_grade_enriched ORDER BY ALL")
    print("\nThe next revision extends a date range and adds a view. What will it take?")
    sqlmig("upgrade", "head", expected=3)
    sqlmig("status")
    sqlmig("approve")
    sqlmig("query", "SELECT * FROM avg_grade_enriched ORDER BY ALL")
    sqlmig("query", "SELECT * FROM avg_grade_all_courses ORDER BY ALL")
    print("\nAnd back: nothing is computed, no Spark job runs.")
    sqlmig("downgrade", "-1")
    sqlmig("current")
    sqlmig("query", "SELECT * FROM avg_grade_enriched ORDER BY ALL")


if __name__ == "__main__":
    walk()
