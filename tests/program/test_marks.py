"""Conflict marks in a text."""

from __future__ import annotations

from sqlmig.program.marks import Labels, line_of_mark, marked_lines

LABELS = Labels("one", "root", "two")


def test_lines_that_all_share_stay_outside_of_the_marks() -> None:
    text = marked_lines("a\nmine\nz\n", "a\nwas\nz\n", "a\nyours\nand more\nz", LABELS)

    assert text == (
        "a\n<<<<<<< one\nmine\n||||||| root\nwas\n=======\nyours\nand more\n>>>>>>> two\nz\n"
    )
    assert line_of_mark(text) == 2


def test_a_text_that_is_gone_leaves_its_place_empty() -> None:
    assert marked_lines("", "a\n", "b", LABELS) == (
        "<<<<<<< one\n||||||| root\na\n=======\nb\n>>>>>>> two\n"
    )


def test_a_mark_that_was_forgotten_is_found_and_a_comment_is_none() -> None:
    assert line_of_mark("a\r\n>>>>>>> two\r\n") == 2
    assert line_of_mark("-- =======\n=======\n-- <<<<<<< one\n<<<<<<<<\n") is None
