"""Revision files that are gone: the ledger knows what was applied, so nothing stops."""

from __future__ import annotations

import pytest

from tests.cli.shell import VIEWS, Shell

CHANGED = VIEWS.replace("> 90", "> 95")


@pytest.fixture
def three(school: Shell) -> Shell:
    """Three revisions, all applied; pipeline/ is the last one's."""
    school.freeze("aaaa1111", message="first")
    school.write("pipeline/views.sql", CHANGED)
    school.freeze("bbbb2222", message="stricter")
    school.write("pipeline/more.sql", "CREATE VIEW more AS SELECT id FROM students;")
    school.freeze("cccc3333", message="more")
    school("stamp", "head")
    return school


def lose(shell: Shell, *revisions: str) -> None:
    for revision in revisions:
        shell.file_of(revision).unlink()


def test_history_marks_what_only_the_ledger_has(three: Shell) -> None:
    lose(three, "bbbb2222")

    assert three("history").out == (
        "bbbb2222 -> cccc3333 (head), more\n"
        "aaaa1111 -> bbbb2222 (only in the ledger), stricter\n"
        "<base> -> aaaa1111, first\n"
    )
    assert three("history", "--json").json[1]["is_lost"] is True
    assert three("heads").out == "cccc3333 (head)\n"
    three("check")


def test_the_deployed_head_is_gone(three: Shell) -> None:
    lose(three, "cccc3333")

    assert three("current").out == "cccc3333 (head) (only in the ledger)\n"
    assert "the head is bbbb2222" in three("current", "--check-heads", code=1).err
    assert "cccc3333 (head) (current) (only in the ledger), more" in three("history", "-i").out
    assert three("status", "--json").json["revision"] == "cccc3333"
    three("current", "-v")


@pytest.mark.parametrize("gone", [["cccc3333"], ["bbbb2222"], ["aaaa1111", "bbbb2222", "cccc3333"]])
def test_show_diff_and_the_way_down_work(three: Shell, gone: list[str]) -> None:
    before = {
        words: three(*words.split()).out
        for words in (
            "show cccc --text",
            "show bbbb",
            "diff aaaa bbbb",
            "diff bbbb deployed --json",
            "diff",
            "plan -1 --offline",
            "plan aaaa --offline --json",
            "plan base --offline",
            "status",
        )
    }
    lose(three, *gone)

    for words, told in before.items():
        assert three(*words.split()).out.replace(" (only in the ledger)", "") == told, words


def test_a_lost_file_comes_back_from_the_ledger(three: Shell) -> None:
    file = three.file_of("bbbb2222")
    text = file.read_text()
    lose(three, "bbbb2222")

    file.write_text(three("show", "bbbb", "--text").out)

    assert file.read_text() == text
    three("check")


def test_a_new_revision_follows_a_lost_one(three: Shell) -> None:
    lose(three, "aaaa1111")
    three.write("pipeline/views.sql", VIEWS)

    three.freeze("dddd4444")

    assert three("heads").out == "dddd4444 (head)\n"
    three("revision", "--amend", "-m", "again")
    three.freeze("eeee5555", "--empty", "--head", "bbbb", "--splice")
    three("merge", "--rev-id", "ffff6666")
    assert three("plan", "head", "--offline", "--json").json["target"] == "ffff6666"


def test_what_was_taken_back_and_deleted_is_no_second_head(three: Shell) -> None:
    three("stamp", "bbbb")
    lose(three, "cccc3333")
    three.write("pipeline/more.sql", "CREATE VIEW better AS SELECT id FROM students;")
    three.freeze("dddd4444", message="instead")

    assert three("plan", "head", "--offline", "--json").json["target"] == "dddd4444"
    assert "cccc3333" not in three("history", "-i").out
    assert three("show", "cccc").out.startswith("Rev: cccc3333 (head) (only in the ledger)\n")
    assert three("plan", "cccc3333", "--offline", "--json").json["target"] == "cccc3333"


def test_what_was_taken_back_and_deleted_comes_back_only_when_it_is_named(three: Shell) -> None:
    three("stamp", "bbbb")
    lose(three, "cccc3333")

    assert three("plan", "head", "--offline", "--json").json["target"] == "bbbb2222"
    assert three("current").out == "bbbb2222 (head)\n"
    assert "leads too far" in three("plan", "+1", "--offline", code=1).err
    assert three("plan", "cccc", "--offline", "--json").json["target"] == "cccc3333"


def test_a_parent_that_nobody_knows_is_said(three: Shell) -> None:
    three.freeze("dddd4444", "--empty")
    three.freeze("eeee5555", "--empty")
    lose(three, "dddd4444")

    for words in (["history"], ["heads"], ["check"], ["plan", "--offline"]):
        assert "names `dddd4444`, which no revision file has" in three(*words, code=1).err
    three("status")
