"""Only PySpark's public API is used, so that the same code runs over Spark Connect."""

from __future__ import annotations

import re
from pathlib import Path

import sqlmig

PRIVATE = re.compile(r"\b_jvm\b|\bsparkContext\b|\bSparkContext\b|\._j(?!ournal)\w+|\.rdd\b")


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
