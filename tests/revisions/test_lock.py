"""heads.lock: what is written, what is read back, and what is wrong with it."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from sqlmig.errors import RevisionError
from sqlmig.revisions.directory import RevisionDirectory
from sqlmig.revisions.lock import HeadsLock, parse_lock

A, B, C = "a" * 64, "b" * 64, "c" * 64
MARKED = f"""\
# a comment
<<<<<<< HEAD
bbbb sha256:{B}
||||||| 1234567
aaaa sha256:{A}
=======
cccc sha256:{C}
>>>>>>> feature
"""


@pytest.fixture
def directory(tmp_path: Path) -> RevisionDirectory:
    """One revision, and its lock."""
    made = RevisionDirectory(tmp_path / "revisions")
    add(made, "aaaa")
    return made


def add(directory: RevisionDirectory, revision: str, *parents: str) -> None:
    directory.add(
        revision=revision,
        down_revisions=parents,
        message="",
        created=datetime(2026, 6, 10, tzinfo=timezone.utc),
        files={},
    )


def wrong(directory: RevisionDirectory) -> str:
    error = RevisionDirectory(directory.path).lock_error()
    return "" if error is None else error.render()


def test_the_lock_follows_the_heads(directory: RevisionDirectory) -> None:
    add(directory, "bbbb", "aaaa")
    add(directory, "cccc", "aaaa")

    lock = directory.lock()

    assert lock == HeadsLock({n: directory.files[n].digest for n in ("bbbb", "cccc")})
    lines = directory.lock_path.read_text().splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["#", "#", "bbbb", "cccc"]
    assert wrong(directory) == ""


def test_a_checkout_with_other_line_ends_is_the_same(directory: RevisionDirectory) -> None:
    for path in directory.path.iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = directory.lock_path.read_bytes()

    RevisionDirectory(directory.path).write_lock()

    assert wrong(directory) == ""
    assert directory.lock_path.read_bytes() == before, "what is right is not written"


def test_a_project_from_before_gets_its_lock_with_the_next_revision(
    directory: RevisionDirectory,
) -> None:
    directory.lock_path.unlink()
    assert directory.lock() is None
    assert wrong(directory) == ""

    add(directory, "bbbb", "aaaa")

    assert "bbbb sha256:" in directory.lock_path.read_text()


def test_marks_of_git_are_understood() -> None:
    assert parse_lock(MARKED, "heads.lock") == HeadsLock(
        {"bbbb": B, "cccc": C}, ours=frozenset({"bbbb"})
    )
    both = parse_lock(f"aaaa sha256:{A}\n{MARKED}", "heads.lock")
    assert both.ours == frozenset({"aaaa", "bbbb"})


def test_what_is_wrong_is_said_and_what_to_type(directory: RevisionDirectory) -> None:
    file = directory.path / "20260610_aaaa.py"
    file.write_text(file.read_text().replace("    pass", "    op.run(print)", 1))
    assert wrong(directory) == (
        "error: revisions/heads.lock: the file of `aaaa` was edited since it was written\n\n"
        "hint: if `revisions/20260610_aaaa.py` is as it should be, `sqlmig merge` writes it anew"
    )

    directory.lock_path.write_text(MARKED)
    assert wrong(directory) == (
        "error: revisions/heads.lock: two branches each added a revision, and Git left conflict "
        "marks\n\nhint: `sqlmig merge` joins the heads and writes the file anew; `sqlmig rebase` "
        "puts one on top of the other"
    )

    directory.lock_path.write_text(f"bbbb sha256:{B}\n")
    assert wrong(directory) == (
        "error: revisions/heads.lock: it names `bbbb`, and the files have `aaaa`\n\n"
        "hint: is a revision file missing, or one too many? if the files are right, "
        "`sqlmig merge` writes it anew"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"aaaa sha256:123\n", "heads.lock:1: this line is not a revision's id and `sha256:` with"),
        (b"\xff\xfe", "heads.lock: byte 1 is not UTF-8"),
    ],
)
def test_an_unreadable_lock_is_an_error_and_written_anew(
    directory: RevisionDirectory, content: bytes, message: str
) -> None:
    directory.lock_path.write_bytes(content)

    with pytest.raises(RevisionError) as caught:
        directory.lock()

    assert message in caught.value.render()
    assert caught.value.hint == "`sqlmig merge` writes it anew"
    directory.write_lock()
    assert wrong(directory) == ""
