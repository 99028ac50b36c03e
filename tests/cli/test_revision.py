"""init, revision, check: from pipeline/*.sql to a file in revisions/."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.shell import TABLES, VIEWS, Shell


def test_init_makes_a_project_that_works_at_once(tmp_path: Path) -> None:
    said = Shell(tmp_path)("init", "my school")

    assert said.out == ""
    assert "  Creating my school/sqlmig.yml ...  done\n" in said.err
    assert said.err.endswith(
        "\nNext:\n\n  cd 'my school'\n  sqlmig revision -m \"first\"\n  sqlmig upgrade head\n"
    )
    made = Shell(tmp_path / "my school")
    assert {path.name for path in made.folder.iterdir()} == {
        ".dockerignore",
        ".github",
        ".gitignore",
        ".pre-commit-config.yaml",
        "Dockerfile",
        "README.md",
        "pipeline",
        "revisions",
        "sqlmig.yml",
    }
    made.freeze("aaaa1111")
    made("check")
    made("plan", "--offline")
    assert made("status", "--json").json["pipeline"] == "my_school"


def test_init_here_needs_no_cd_and_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")

    said = Shell(tmp_path)("init", ".")

    assert "cd " not in said.err
    assert (tmp_path / "README.md").read_text() == "mine"


def test_init_keeps_revisions_that_are_there_and_locks_their_heads(
    school: Shell, tmp_path: Path
) -> None:
    file = school.freeze("aaaa1111")
    lock = school.read("revisions/heads.lock")
    other = Shell(tmp_path / "other")
    other.write(f"revisions/{file.name}", file.read_text())

    said = Shell(tmp_path)("init", "other")

    assert "  Creating other/revisions/heads.lock ...  done\n" in said.err
    assert other.read("revisions/heads.lock") == lock


def test_init_refuses_a_project_and_a_file(school: Shell, tmp_path: Path) -> None:
    before = sorted(school.folder.rglob("*"))

    said = Shell(tmp_path)("init", "school", code=1)

    assert said.err.startswith("error: school/pipeline/tables.sql: this is in the way of a new")
    assert sorted(school.folder.rglob("*")) == before
    (tmp_path / "file").write_text("")
    assert "is a file" in Shell(tmp_path)("init", "file", code=2).err
    assert "in the way" in Shell(tmp_path)("init", "file/below", code=1).err


def test_a_revision_says_what_it_changes_and_where_it_is(school: Shell) -> None:
    said = school("revision", "-m", "Grades, and who got them", "--rev-id", "aaaa1111")

    assert said.out == ""
    assert re.fullmatch(
        r"  \+ view avg_grade\n  \+ table grades\n"
        r"  \+ materialized view honours\n  \+ table students\n"
        r"  Generating revisions/\d{8}_aaaa1111_grades_and_who_got_them.py \.\.\.  done\n",
        said.err,
    )
    text = school.file_of("aaaa1111").read_text()
    assert text.startswith(
        '"""Grades, and who got them\n\nRevision ID: aaaa1111\nRevises: <base>\n'
    )
    assert "-- one row for each student and class\nCREATE VIEW avg_grade AS" in text


def test_the_next_revision_follows_the_head_and_gives_reasons(school: Shell) -> None:
    school.freeze("aaaa1111")
    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 95"))

    said = school("revision", "-m", "stricter", "--json")

    assert said.json == {
        "revision": said.json["revision"],
        "path": said.json["path"],
        "down_revisions": ["aaaa1111"],
        "diff": school("diff", "aaaa", "working", "--json").json,
    }
    assert re.fullmatch(r"[0-9a-f]{12}", said.json["revision"])
    assert said.json["diff"]["program_diff"]["modified_views"] == ["honours"]
    assert said.err.startswith("  ~ materialized view honours: ")
    assert said.json["path"] in said.err


def test_without_a_change_no_revision_is_made(school: Shell) -> None:
    school.freeze("aaaa1111")
    school.write("pipeline/views.sql", "/* laid out anew */" + VIEWS.replace("SELECT", "select\n"))

    said = school("revision", "-m", "none")

    assert said.err == (
        "No changes since aaaa1111: no revision made.\n\nhint: `--empty` makes one for hooks\n"
    )
    assert len(list((school.folder / "revisions").glob("*.py"))) == 1
    answer = school("revision", "-m", "none", "--json").json
    assert answer["revision"] is answer["path"] is None


def test_an_empty_revision_keeps_the_parents_program(school: Shell) -> None:
    school.freeze("aaaa1111")
    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 95"))

    school.freeze("bbbb2222", "--empty")

    assert school("diff", "aaaa", "bbbb").err == "No changes.\n"
    assert school("diff", "bbbb", "working").out.startswith("~ materialized view honours: ")


def test_amend_freezes_again_and_keeps_the_hooks(school: Shell) -> None:
    school.freeze("aaaa1111")
    file = school.file_of("aaaa1111")
    file.write_text(
        file.read_text().replace("def up(op):\n    pass", "def up(op):\n    op.execute('x')")
    )
    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 95"))

    said = school("revision", "--amend")

    assert said.err.endswith(f"  Amending revisions/{file.name} ...  done\n")
    text = file.read_text()
    assert "> 95" in text
    assert "op.execute('x')" in text
    assert text.startswith('"""make aaaa1111\n')
    school("check")
    school("revision", "--amend", "-m", "better", "--json")
    assert file.read_text().startswith('"""better\n')


def test_what_was_applied_is_not_amended_also_after_it_was_taken_back(school: Shell) -> None:
    file = school.freeze("aaaa1111")
    before = file.read_text()
    school("stamp", "aaaa")
    for _ in range(2):
        said = school("revision", "--amend", code=1)
        assert said.err == (
            f"error: revisions/{file.name}: revision aaaa1111 can't be amended: "
            "it was applied to target `local`\n\n"
            "hint: make a new revision: `sqlmig revision -m ...`\n"
        )
        school("stamp", "base")
    assert file.read_text() == before


def test_only_a_head_is_amended(school: Shell) -> None:
    assert "there is no revision to amend" in school("revision", "--amend", code=1).err
    school.freeze("aaaa1111")
    school.freeze("bbbb2222", "--empty")

    said = school("revision", "--amend", "--head", "aaaa", code=1)

    assert "revision aaaa1111 is not a head: others were made on top of it" in said.err


def test_a_branch_has_to_be_meant(school: Shell) -> None:
    school.freeze("aaaa1111")
    school.freeze("bbbb2222", "--empty")

    said = school("revision", "-m", "x", "--empty", "--head", "aaaa", code=1)
    assert said.err.startswith("error: revision aaaa1111 is not a head;")
    assert "hint: add `--splice`" in said.err

    school.freeze("cccc3333", "--empty", "--head", "aaaa", "--splice", "--branch-label", "side")
    assert school("heads").out == "bbbb2222 (head)\ncccc3333 (side) (head)\n"
    said = school("revision", "-m", "x", "--empty", code=1)
    assert said.err.startswith("error: `head` is ambiguous, there are 2 heads:")
    assert "hint: join them with `sqlmig merge bbbb2222 cccc3333`, or name one" in said.err
    school.freeze("dddd4444", "--empty", "--head", "side@head")
    assert school("show", "dddd").out.startswith("Rev: dddd4444 (head)\nParent: cccc3333\n")


def test_dependencies_are_found_by_every_name(school: Shell) -> None:
    school.freeze("aaaa1111")
    school.freeze("bbbb2222", "--empty", "--branch-label", "side")
    school("stamp", "bbbb")

    school.freeze("cccc3333", "--empty", "--head", "aaaa", "--splice", "--depends-on", "side@head")
    school.freeze("dddd4444", "--empty", "--head", "cccc", "--depends-on", "-1")

    assert 'depends_on = "bbbb2222"' in school.file_of("cccc3333").read_text()
    assert 'depends_on = "aaaa1111"' in school.file_of("dddd4444").read_text()
    said = school("revision", "-m", "x", "--empty", "--head", "dddd", "--depends-on", "zz", code=1)
    assert said.err.startswith("error: no revision or branch `zz`")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rev-id", "aaaa1111"], "revision id `aaaa1111` is already taken"),
        (["--rev-id", "head"], "revision id `head` is a reserved word"),
        (["--rev-id", "a-b"], "holds other characters than letters, digits and `_`"),
        (["--branch-label", "a@b"], "branch label `a@b` holds other characters"),
        (["--branch-label", "main"], "branch label `main` of revision"),
        (["--head", "nope"], "no revision or branch `nope`"),
    ],
)
def test_names_that_cant_be_are_refused_and_nothing_is_written(
    school: Shell, words: list[str], message: str
) -> None:
    school.freeze("aaaa1111", "--branch-label", "main")

    said = school("revision", "-m", "x", "--empty", *words, code=1)

    assert message in said.err
    assert len(list((school.folder / "revisions").glob("*.py"))) == 1


def test_renames_are_suggested_as_comments(school: Shell) -> None:
    school.freeze("aaaa1111")
    school.write("pipeline/tables.sql", TABLES.replace("class STRING", "course STRING"))
    school.write("pipeline/views.sql", re.sub(r"\bclass\b", "course", VIEWS))

    school("revision", "-m", "renamed", "--rev-id", "bbbb2222")

    text = school.file_of("bbbb2222").read_text()
    assert 'def up(op):\n    # op.rename_column("grades", "class", "course")' in text
    assert 'def down(op):\n    # op.rename_column("grades", "course", "class")' in text


def test_a_changed_streaming_table_is_suggested_to_be_made_anew(school: Shell) -> None:
    stream = "CREATE STREAMING TABLE s AS SELECT * FROM STREAM grades WHERE grade > {};"
    school.write("pipeline/s.sql", stream.format(1))
    school.freeze("aaaa1111")
    school.write("pipeline/s.sql", stream.format(2))

    said = school("revision", "-m", "stricter", "--rev-id", "bbbb2222")

    text = school.file_of("bbbb2222").read_text()
    line = '# op.rebuild("s")  # makes all its rows anew; else it goes on in place\n    pass\n'
    assert f"def up(op):\n    {line}" in text
    assert "def down(op):\n    pass" in text
    assert "~ streaming table s: `grade > 1` became `2`" in said.err


def test_one_with_windows_is_suggested_to_be_kept_where_it_can_be(school: Shell) -> None:
    windows = (
        "CREATE TABLE sold (at TIMESTAMP, a INT);\n"
        "CREATE STREAMING TABLE s AS SELECT max(a) AS m FROM STREAM sold "
        "WATERMARK at DELAY OF INTERVAL 1 DAY WHERE a > {} GROUP BY window(at, '{} hours');"
    )
    school.write("pipeline/s.sql", windows.format(1, 2))
    school.freeze("aaaa1111")
    school.write("pipeline/s.sql", windows.format(2, 2))
    school("revision", "-m", "stricter", "--rev-id", "bbbb2222")
    school.write("pipeline/s.sql", windows.format(2, 4))
    school("revision", "-m", "longer", "--rev-id", "cccc3333")

    line = '# op.in_place("s")  # keeps what it has; else it is made anew\n    pass\n'
    assert f"def up(op):\n    {line}" in school.file_of("bbbb2222").read_text()
    assert "def up(op):\n    pass" in school.file_of("cccc3333").read_text()


def test_check_passes_when_everything_is_frozen(school: Shell) -> None:
    school.freeze("aaaa1111")

    said = school("check", "--json")

    assert said.err == "No changes: pipeline/ is the program of aaaa1111.\n"
    assert said.json == school("diff", "head", "head", "--json").json


def test_check_fails_when_something_is_not_frozen(school: Shell) -> None:
    said = school("check", code=1)
    assert said.err.startswith("error: pipeline/ is in no revision yet:\n\n  + view avg_grade\n")
    school.freeze("aaaa1111")
    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 95"))

    said = school("check", "--json", code=1)

    assert said.err.startswith(
        "error: pipeline/ differs from the head aaaa1111:\n\n  ~ materialized view honours:"
    )
    assert said.err.endswith('\n\nhint: `sqlmig revision -m "..."` freezes it\n')
    assert said.json["program_diff"]["modified_views"] == ["honours"]


def test_check_and_others_refuse_an_edited_file_that_was_applied(school: Shell) -> None:
    school.freeze("aaaa1111")
    school("stamp", "head")
    file = school.file_of("aaaa1111")
    file.write_text(file.read_text().replace("> 90", "> 80"))

    for words in (["check"], ["plan", "--offline"], ["upgrade"], ["stamp", "head"]):
        said = school(*words, code=1)
        assert said.err.startswith(
            f"error: revisions/{file.name}: revision aaaa1111 was applied, and its file was edited "
            "afterwards:\n\n"
        ), words
        assert "\n  -WHERE a.class_avg > 90;\n  +WHERE a.class_avg > 80;\n" in said.err
        assert f"\n\nhint: take the edit back (`git restore revisions/{file.name}`)" in said.err

    school("stamp", "head", "--purge")
    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 80"))
    assert "heads.lock: the file of `aaaa1111` was edited" in school("check", code=1).err
    school("merge")
    school("check")


def test_a_file_that_was_only_given_other_line_ends_is_not_edited(school: Shell) -> None:
    file = school.freeze("aaaa1111")
    school("stamp", "head")
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    school("check")


def test_check_fails_with_several_heads_and_with_broken_hooks(branched: Shell) -> None:
    assert branched("check", code=1).err.startswith("error: `head` is ambiguous, there are 2 heads")
    branched("merge", "--rev-id", "ffff6666")
    branched("check")
    (file,) = (branched.folder / "revisions").glob("*_ffff6666_*")
    file.write_text(file.read_text() + "def more(:\n")
    assert ": syntax error: " in branched("check", code=1).err
