"""Only PySpark's public API is used, so that the same code runs over Spark Connect."""

from __future__ import annotations

import re
from pathlib import Path

import sqlmig

PRIVATE = re.compile(
    r"\b_jvm\b|\b[sS]parkContext\b|\.rdd\b|\b_sc\b"
    r"|\b_j(?:df|sc|sparkSession|sdf|map|dt|c|seq|rdd|schema|reader|write|cols|conf)\b"
)


def test_nothing_private_of_pyspark_is_used() -> None:
    # given
    package = Path(sqlmig.__file__).parent

    # when
    found = [
        f"{path.relative_to(package)}:{number}: {line.strip()}"
        for path in sorted(package.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PRIVATE.search(line)
    ]

    # then
    assert found == []
