"""The folder of revision files."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from sqlmig.errors import RevisionError
from sqlmig.revisions.directory import RevisionDirectory
from sqlmig.revisions.errors import RevisionErrors
from sqlmig.revisions.file import RevisionFile
from sqlmig.revisions.graph import RevisionNode

CREATED = datetime(2026, 6, 10, 9, 30, tzinfo=timezone.utc)


@pytest.fixture
def directory(tmp_path: Path) -> RevisionDirectory:
    return RevisionDirectory(tmp_path / "revisions")


def _write(directory: RevisionDirectory, name: str, text: str) -> None:
    directory.path.mkdir(exist_ok=True)
    (directory.path / name).write_text(text)


def _add(directory: RevisionDirectory, revision: str, *parents: str) -> RevisionFile:
    return directory.add(
        revision=revision,
        down_revisions=parents,
        message=f"make {revision}",
        created=CREATED,
        files={"pipeline/a.sql": f"-- {revision}\n"},
    )


def test_a_folder_that_is_missing_is_empty(directory: RevisionDirectory) -> None:
    assert dict(directory.files) == {}
    assert directory.graph.heads == ()
    assert directory.get("a") is None


def test_what_was_added_is_read_back(directory: RevisionDirectory) -> None:
    first = _add(directory, "a")
    second = _add(directory, "b", "a")

    again = RevisionDirectory(directory.path)

    assert first.path == "revisions/20260610_a_make_a.py"
    assert list(again.files.values()) == [first, second]
    assert again.get("b") == second
    assert again.graph.heads == directory.graph.heads == ("b",)
    assert second.files == {"pipeline/a.sql": "-- b\n"}
    assert sorted(path.name for path in directory.path.glob("*.py")) == [
        "20260610_a_make_a.py",
        "20260610_b_make_b.py",
    ]


def test_paths_are_shown_from_the_projects_root(tmp_path: Path) -> None:
    directory = RevisionDirectory(tmp_path / "history" / "revisions", root=tmp_path)

    assert _add(directory, "a").path == "history/revisions/20260610_a_make_a.py"
    assert [
        file.path for file in RevisionDirectory(directory.path, root=tmp_path).files.values()
    ] == ["history/revisions/20260610_a_make_a.py"]


def test_files_that_are_no_revisions_are_left_alone(directory: RevisionDirectory) -> None:
    _add(directory, "a")
    for name in ("_shared.py", ".hidden.py", "notes.txt", "__init__.py"):
        _write(directory, name, "this is no revision")
    (directory.path / "__pycache__").mkdir()
    (directory.path / "folder.py").mkdir()

    assert list(RevisionDirectory(directory.path).files) == ["a"]


def test_all_broken_files_are_shown_at_once(directory: RevisionDirectory) -> None:
    _write(directory, "1.py", "revision = \n")
    _write(directory, "2.py", "x = 1\n")
    _write(directory, "3.py", "revision = 'a'\nprogram = ''\n")
    _write(directory, "4.py", "revision = 'a'\nprogram = ''\n")
    (directory.path / "5.py").write_bytes(b"revision = '\xff'\n")

    with pytest.raises(RevisionErrors) as caught:
        _ = directory.files

    assert [str(error) for error in caught.value.errors] == [
        "revisions/1.py:1:12: syntax error: invalid syntax",
        "revisions/2.py: this file has no `revision`",
        "revisions/4.py: revision id `a` is already taken by `revisions/3.py`",
        "revisions/5.py: byte 13 is not UTF-8",
    ]


def test_a_check_reads_what_loading_leaves_for_later(directory: RevisionDirectory) -> None:
    _write(directory, "1.py", "revision = 'a'\nprogram = f()\n")
    _write(directory, "2.py", "revision = 'b'\nprogram = ''\ndef up(op:\n")
    _write(directory, "3.py", "revision = 'c'\nprogram = ''\nreturn\n")
    _write(directory, "4.py", "revision = 'd'\nprogram = ''\n1 / 0\n")
    assert set(directory.files) == {"a", "b", "c", "d"}

    with pytest.raises(RevisionErrors) as caught:
        directory.check()

    places = [str(error.location).partition(":")[0] for error in caught.value.errors]
    assert places == ["revisions/1.py", "revisions/2.py", "revisions/3.py"]


def test_a_taken_id_is_refused(directory: RevisionDirectory) -> None:
    _add(directory, "a")

    with pytest.raises(RevisionError) as caught:
        _add(directory, "a")

    assert str(caught.value) == ("revisions/20260610_a_make_a.py: revision id `a` is already taken")


def test_a_revision_whose_parent_is_missing_is_not_written(directory: RevisionDirectory) -> None:
    with pytest.raises(RevisionError, match="names `gone`"):
        _add(directory, "a", "gone")

    assert not directory.path.exists()


def test_a_parent_may_be_known_from_elsewhere(directory: RevisionDirectory) -> None:
    kept = RevisionNode("a")

    directory.add(
        revision="b",
        down_revisions=["a"],
        message="",
        created=CREATED,
        files={},
        known=[kept],
    )

    assert directory.graph_with([kept]).revisions == ("a", "b")
    with pytest.raises(RevisionError, match="names `a`, which no revision file has"):
        _ = directory.graph


def test_a_file_goes_before_what_the_ledger_remembers(directory: RevisionDirectory) -> None:
    _add(directory, "a")
    _add(directory, "b", "a")

    graph = directory.graph_with([RevisionNode("b", ("gone",)), RevisionNode("a")])

    assert graph is directory.graph


def test_a_replaced_file_keeps_its_name_and_its_hooks(directory: RevisionDirectory) -> None:
    file = _add(directory, "a")
    path = directory.path / "20260610_a_make_a.py"
    path.write_text(file.text.replace("    pass", "    op.execute('ours')", 1))
    edited = RevisionDirectory(directory.path)

    again = edited.replace(edited.files["a"], files={"b.sql": "2"}, message="other")

    assert again == edited.get("a") == RevisionDirectory(directory.path).get("a")
    assert again.message == "other"
    assert again.files == {"b.sql": "2"}
    assert "op.execute('ours')" in again.text
    assert sorted(entry.name for entry in directory.path.iterdir()) == [path.name, "heads.lock"]
