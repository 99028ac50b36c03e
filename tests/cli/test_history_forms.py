"""history, heads, branches, show: in alembic's forms."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell


def test_history_is_told_as_alembic_tells_it(branched: Shell) -> None:
    said = branched("history")

    assert said.out == (
        "dddd4444 (cccc3333) -> eeee5555 (head), dep\n"
        "bbbb2222 -> dddd4444, right\n"
        "bbbb2222 -> cccc3333 (leftish) (effective head), left\n"
        "aaaa1111 -> bbbb2222 (branchpoint), second one\n"
        "<base> -> aaaa1111, first\n"
    )
    assert said.err == ""


def test_history_marks_what_is_deployed(branched: Shell) -> None:
    branched("stamp", "bbbb2222")

    assert (
        "aaaa1111 -> bbbb2222 (current) (branchpoint), second one\n"
        in branched("history", "-i").out
    )
    assert "(current)" not in branched("history").out


@pytest.mark.parametrize(
    ("range_", "expected"),
    [
        ("bbbb2222:dddd4444", ["dddd4444", "bbbb2222"]),
        (":bbbb2222", ["bbbb2222", "aaaa1111"]),
        ("dddd:", ["eeee5555", "dddd4444"]),
        (":current", ["bbbb2222", "aaaa1111"]),
        ("-1:current", ["bbbb2222", "aaaa1111"]),
        ("leftish:leftish", ["cccc3333"]),
        ("base:aaaa", ["aaaa1111"]),
    ],
)
def test_a_range_of_the_history(branched: Shell, range_: str, expected: list[str]) -> None:
    branched("stamp", "bbbb2222")

    entries = branched("history", "-r", range_, "--json").json

    assert [entry["revision"] for entry in entries] == expected


def test_what_is_no_range_is_refused(branched: Shell) -> None:
    assert branched("history", "-r", "bbbb2222", code=1).err.startswith(
        "error: `bbbb2222` is not a range\n\nhint: write `a:b`"
    )


def test_the_long_form_shows_the_docstring_and_the_branches(branched: Shell) -> None:
    date = branched.file_of("bbbb2222").name[:8]
    said = branched("history", "-v", "-r", "bbbb2222:eeee5555")
    told = re.sub(r"Create Date: \S+", "Create Date: NOW", said.out)

    assert told == (
        f"Rev: eeee5555 (head)\n"
        "Parent: dddd4444\n"
        "Also depends on: cccc3333\n"
        f"Path: revisions/{date}_eeee5555_dep.py\n"
        "\n"
        "    dep\n"
        "\n"
        "    Revision ID: eeee5555\n"
        "    Revises: dddd4444\n"
        "    Create Date: NOW\n"
        "\n"
        "Rev: dddd4444\n"
        "Parent: bbbb2222\n"
        f"Path: revisions/{date}_dddd4444_right.py\n"
        "\n"
        "    right\n"
        "\n"
        "    Revision ID: dddd4444\n"
        "    Revises: bbbb2222\n"
        "    Create Date: NOW\n"
        "\n"
        "Rev: cccc3333 (effective head)\n"
        "Parent: bbbb2222\n"
        "Branch names: leftish\n"
        f"Path: revisions/{date}_cccc3333_left.py\n"
        "\n"
        "    left\n"
        "\n"
        "    Revision ID: cccc3333\n"
        "    Revises: bbbb2222\n"
        "    Create Date: NOW\n"
        "\n"
        "Rev: bbbb2222 (branchpoint)\n"
        "Parent: aaaa1111\n"
        "Branches into: cccc3333, dddd4444\n"
        f"Path: revisions/{date}_bbbb2222_second_one.py\n"
        "\n"
        "    second one\n"
        "    with a body\n"
        "\n"
        "    Revision ID: bbbb2222\n"
        "    Revises: aaaa1111\n"
        "    Create Date: NOW\n"
        "\n"
    )


def test_the_long_form_shows_what_the_revision_changes(branched: Shell) -> None:
    assert "    + table grades\n" in branched("show", "aaaa").out
    assert branched("history", "-v", "-r", ":aaaa").out == branched("show", "aaaa").out


def test_heads_and_their_labels(branched: Shell) -> None:
    assert branched("heads").out == "cccc3333 (leftish) (effective head)\neeee5555 (head)\n"
    assert [entry["revision"] for entry in branched("heads", "--json").json] == [
        "cccc3333",
        "eeee5555",
    ]
    assert "Rev: eeee5555 (head)\nParent: dddd4444\n" in branched("heads", "-v").out


def test_branches_and_what_follows_each(branched: Shell) -> None:
    assert branched("branches").out == (
        "bbbb2222 (branchpoint)\n"
        "         -> cccc3333 (leftish) (effective head)\n"
        "         -> dddd4444\n"
        "\n"
    )
    verbose = branched("branches", "-v").out
    assert verbose.startswith("Rev: bbbb2222 (branchpoint)\nParent: aaaa1111\n")
    assert verbose.endswith(
        "\n         -> cccc3333 (leftish) (effective head), left\n         -> dddd4444, right\n\n"
    )
    (branch,) = branched("branches", "--json").json
    assert branch["revision"] == "bbbb2222"
    assert [child["revision"] for child in branch["children"]] == ["cccc3333", "dddd4444"]


def test_a_merge_is_named_so(branched: Shell) -> None:
    branched("merge", "-m", "join", "--rev-id", "ffff6666")

    assert branched("history", "-r", "cccc3333:").out.splitlines() == [
        "cccc3333, eeee5555 -> ffff6666 (leftish) (head) (mergepoint), join",
        "dddd4444 (cccc3333) -> eeee5555, dep",
        "bbbb2222 -> cccc3333 (leftish), left",
    ]
    assert "Merges: cccc3333, eeee5555\n" in branched("show", "head").out
    assert branched("heads").out == "ffff6666 (leftish) (head)\n"


def test_a_label_holds_for_the_whole_branch_as_in_alembic(branched: Shell) -> None:
    branched.freeze("cccc3344", "--empty", "--head", "leftish@head", message="more")

    assert "bbbb2222 -> cccc3333 (leftish), left\n" in branched("history").out
    assert "cccc3344 (leftish) (head)\n" in branched("heads").out


def test_json_has_all_fields(branched: Shell) -> None:
    branched("stamp", "bbbb2222")

    entry = branched("history", "-i", "-r", "bbbb:bbbb", "--json").json[0]

    assert entry.pop("created").startswith("20")
    assert entry.pop("path").endswith("_bbbb2222_second_one.py")
    assert entry == {
        "revision": "bbbb2222",
        "down_revisions": ["aaaa1111"],
        "children": ["cccc3333", "dddd4444"],
        "depends_on": [],
        "branch_labels": [],
        "message": "second one\nwith a body",
        "is_head": False,
        "is_current": True,
        "is_branch_point": True,
        "is_merge_point": False,
        "is_lost": False,
        "commit": None,
        "author": None,
        "committed_at": None,
    }


def test_show_prints_the_files_text_exactly(branched: Shell) -> None:
    text = branched.file_of("cccc3333").read_text()

    assert branched("show", "leftish", "--text").out == text
    assert branched("show", "leftish", "--json").json["text"] == text
    assert "exclude each other" in branched("show", "leftish", "--json", "--text", code=2).err


def test_show_takes_every_name_of_a_revision(branched: Shell) -> None:
    branched("stamp", "bbbb2222")
    for name, revision in {
        "current": "bbbb2222",
        "-1": "aaaa1111",
        "eeee": "eeee5555",
        "leftish@head": "cccc3333",
        "eeee-1": "dddd4444",
        "aaaa+1": "bbbb2222",
    }.items():
        assert branched("show", name).out.startswith(f"Rev: {revision}"), name
    assert branched("show", "base", code=1).err.startswith("error: base is no revision")
    assert "2 heads" in branched("show", "head", code=1).err


def test_without_revisions_the_lists_are_empty_and_say_how_to_begin(school: Shell) -> None:
    for command in ("history", "heads"):
        said = school(command)
        assert said.out == ""
        assert said.err == 'There are no revisions yet: `sqlmig revision -m "first"` makes one.\n'
    assert school("branches").out == ""
    assert school("history", "--json").json == []


@pytest.mark.slow
def test_alembic_says_the_same_of_the_same_graph(branched: Shell, tmp_path: Path) -> None:
    pytest.importorskip("alembic", reason="compares with alembic, from the extra `bench`")
    folder = tmp_path / "alembic"
    folder.mkdir()

    def alembic(*words: str) -> str:
        command = [sys.executable, "-m", "alembic", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout

    alembic("init", "al")
    versions = folder / "al" / "versions"
    for file in (branched.folder / "revisions").glob("*.py"):
        head = file.read_text().partition("\nprogram")[0].replace("\nwith a body", "")
        (versions / file.name).write_text(head + "\ndef upgrade(): pass\ndef downgrade(): pass\n")
    ini = folder / "alembic.ini"
    ini.write_text(
        re.sub("(?m)^sqlalchemy.url.*", "sqlalchemy.url = sqlite:///x.db", ini.read_text())
    )

    for words in (["history"], ["heads"], ["branches"], ["history", "-r", "bbbb2222:dddd4444"]):
        theirs = sorted(alembic(*words).splitlines())
        assert sorted(branched(*words).out.splitlines()) == theirs, words

    alembic("upgrade", "bbbb2222")
    branched("stamp", "bbbb2222")
    assert branched("current").out == alembic("current") == "bbbb2222 (branchpoint)\n"
    ours = branched("history", "-i", "-r", ":current").out
    assert ours == alembic("history", "-i", "-r", ":current")
