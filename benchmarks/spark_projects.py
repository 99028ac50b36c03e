"""What the benchmarks on Spark share: one session for all contestants, and cheap copies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmig.spark.session import close_sessions, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def shared_session(folder: Path) -> Iterator[SparkSession]:
    """The session that sqlmig opens in this process; a bare script uses the same."""
    try:
        yield open_session({"master": "local[*]"}, log_path=folder / "spark.log")
    finally:
        close_sessions()


def copy_tree(source: Path, target: Path) -> Path:
    """`target` as a copy of `source`, of links: Delta never writes into a file again."""
    shutil.copytree(source, target, copy_function=os.link)
    return target
