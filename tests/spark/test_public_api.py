"""Only PySpark's public API is used, so that the same code runs over Spark Connect."""

from __future__ import annotations

import re
from pathlib import Path

import sqlmig

PRIVATE = re.compile(
    r"\b_jvm\b|[sS]parkContext|\.rdd\b|\b_sc\b"
    r"|\b_j(?:df|sc|spark\w*|sdf|map|dt|c|seq|rdd|schema|reader|write|cols|conf)\b"
)

LOCAL = "spark/callbacks.py"
"""Asks first whether Spark is in a process of our own: what it takes away is nowhere else."""


def test_nothing_private_of_pyspark_is_used() -> None:
    # given
    package = Path(sqlmig.__file__).parent

    # when
    found = [
        f"{path.relative_to(package)}:{number}: {line.strip()}"
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).as_posix() != LOCAL
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PRIVATE.search(line)
    ]

    # then
    assert found == []
