"""Numbers as messages have them."""

from __future__ import annotations

from sqlmig.wording import counted


def test_one_is_singular_and_large_numbers_can_be_read() -> None:
    assert [counted(n, "old file") for n in (0, 1, 2, 12_000)] == [
        "0 old files",
        "1 old file",
        "2 old files",
        "12,000 old files",
    ]
