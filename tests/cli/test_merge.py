"""merge: joins heads statement by statement, or names what is in the way."""

from __future__ import annotations

import re

import pytest

from tests.cli.shell import TABLES, VIEWS, Shell

STRICTER = VIEWS.replace("> 90", "> 95")
NEW = "\n-- who has none\nCREATE VIEW idle AS SELECT id FROM students;\n"


def branch(school: Shell, revision: str, *words: str, **files: str) -> None:
    """Freeze a child of the root with these files in pipeline/, and leave pipeline/ so."""
    for file in (school.folder / "pipeline").glob("*.sql"):
        file.unlink()
    for name, text in ({"tables": TABLES, "views": VIEWS} | files).items():
        school.write(f"pipeline/{name}.sql", text)
    school.freeze(revision, "--head", "aaaa", "--splice", *words)


@pytest.fixture
def rooted(school: Shell) -> Shell:
    """One revision, to branch from."""
    school.freeze("aaaa1111")
    return school


def programs(school: Shell, revision: str) -> dict[str, str]:
    return dict(school.project.revision_files(revision))


def test_disjoint_changes_are_joined_with_their_comments(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER.replace("-- one row", "-- exactly one row"))
    branch(
        rooted,
        "cccc3333",
        tables=TABLES.replace("name STRING", "name STRING, mail STRING"),
        views=VIEWS + NEW,
    )

    said = rooted("merge", "-m", "both", "--rev-id", "dddd4444")

    assert "    + view idle\n" in said.err
    assert said.err.endswith("dddd4444_both.py ...  done\n")
    joined = programs(rooted, "dddd4444")
    assert joined == {
        "pipeline/tables.sql": TABLES.replace("name STRING", "name STRING, mail STRING"),
        "pipeline/views.sql": STRICTER.replace("-- one row", "-- exactly one row") + NEW,
    }
    text = rooted("show", "dddd").out
    assert "Merges: bbbb2222, cccc3333\n" in text
    assert "    since cccc3333:\n      ~ materialized view honours: " in text
    assert rooted("heads").out == "dddd4444 (head)\n"


def test_the_plan_from_either_parent_is_what_the_other_one_changed(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", views=VIEWS + NEW)
    rooted("merge", "--rev-id", "dddd4444")

    for parent, kind, view in (
        ("bbbb2222", "added_views", "idle"),
        ("cccc3333", "modified_views", "honours"),
    ):
        rooted("stamp", parent)
        diff = rooted("plan", "--offline", "--json", "head").json["diff"]["program_diff"]
        assert {key: names for key, names in diff.items() if names} == {kind: [view]}


def test_pipeline_is_brought_along_when_it_is_one_side(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", more=NEW)

    rooted("merge", "--rev-id", "dddd4444")

    assert rooted.read("pipeline/views.sql") == STRICTER
    assert rooted.read("pipeline/more.sql") == NEW.lstrip("\n")
    rooted("check")


def test_pipeline_stays_as_it_is_when_someone_works_on_it(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", more=NEW)
    rooted.write("pipeline/more.sql", NEW.replace("idle", "lazy"))

    said = rooted("merge", "--rev-id", "dddd4444")

    assert said.err.endswith(
        "\npipeline/ was left as it is: pipeline/more.sql was edited.\n\n"
        "hint: `sqlmig diff head working` shows how it differs\n"
    )
    assert rooted.read("pipeline/more.sql") == NEW.replace("idle", "lazy")
    assert rooted.read("pipeline/views.sql") == VIEWS
    assert programs(rooted, "dddd4444")["pipeline/more.sql"] == NEW.lstrip("\n")


def test_a_comment_that_is_in_no_revision_yet_is_taken_along(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", more=NEW)
    rooted.write("pipeline/more.sql", "-- not frozen yet\n" + NEW)

    rooted("merge", "--rev-id", "dddd4444")

    assert rooted.read("pipeline/more.sql") == "-- not frozen yet\n" + NEW
    assert programs(rooted, "dddd4444")["pipeline/more.sql"] == "-- not frozen yet\n" + NEW
    assert rooted.read("pipeline/views.sql") == STRICTER


def test_pipeline_loses_the_file_that_the_other_side_removed(rooted: Shell) -> None:
    rooted.write("pipeline/more.sql", NEW)
    rooted.freeze("aaaa2222")
    (rooted.folder / "pipeline" / "more.sql").unlink()
    rooted.freeze("bbbb2222")
    rooted.write("pipeline/more.sql", NEW)
    rooted.write("pipeline/views.sql", STRICTER)
    rooted.freeze("cccc3333", "--head", "aaaa2222", "--splice")

    rooted("merge", "--rev-id", "dddd4444")

    assert not (rooted.folder / "pipeline" / "more.sql").exists()
    rooted("check")


HEAD, _, TAIL = VIEWS.partition("CREATE MATERIALIZED")
"""What stands before and after the view that the conflicts are about."""


def test_a_relation_that_both_change_is_put_between_marks_and_solved_by_a_person(
    rooted: Shell,
) -> None:
    branch(rooted, "cccc3333", views=VIEWS.replace("> 90", "> 80"))
    branch(rooted, "bbbb2222", views=STRICTER, more=NEW)
    before = sorted((rooted.folder / "revisions").iterdir())

    said = rooted("merge", "-m", "both", "--rev-id", "dddd4444", "--branch-label", "one", code=1)

    assert said.err == (
        "error: `bbbb2222` and `cccc3333` don't go together:\n\n"
        "  pipeline/views.sql:5: relation `honours` is changed by both sides, each in its own way\n"
        "    bbbb2222: ~ materialized view honours: `a.class_avg > 90` became `95`\n"
        "    cccc3333: ~ materialized view honours: `a.class_avg > 90` became `80`\n\n"
        "hint: solve the conflicts in pipeline/, then `sqlmig merge --continue`; "
        "or `sqlmig merge --abort`\n"
    )
    assert sorted((rooted.folder / "revisions").iterdir()) == before
    statement = VIEWS.removeprefix(HEAD)
    assert rooted.read("pipeline/views.sql") == (
        f"{HEAD}<<<<<<< bbbb2222\n{statement.replace('> 90', '> 95')}||||||| aaaa1111\n"
        f"{statement}=======\n{statement.replace('> 90', '> 80')}>>>>>>> cccc3333\n"
    )
    assert rooted.read("pipeline/more.sql") == NEW.lstrip("\n")
    # nothing goes on before it is solved
    for words in (["merge"], ["check"], ["revision", "-m", "x"]):
        assert rooted(*words, code=1).err.startswith(
            "error: a merge of `bbbb2222` and `cccc3333` is unfinished\n\nhint: solve the conflicts"
        )
    assert rooted("merge", "--continue", code=1).err.startswith(
        "error: pipeline/views.sql:5: a conflict mark is left\n\nhint: solve the conflict"
    )
    # the hint leads on
    rooted.write("pipeline/views.sql", VIEWS.replace("> 90", "> 85"))
    said = rooted("merge", "--continue")
    assert (
        "  since cccc3333:\n    ~ materialized view honours: `a.class_avg > 80` became `85`\n"
        in said.err
    )
    assert said.err.endswith("dddd4444_both.py ...  done\n")
    rooted("check")
    assert rooted("heads").out == "dddd4444 (one) (head)\n"
    assert "> 85" in programs(rooted, "dddd4444")["pipeline/views.sql"]


def test_an_aborted_merge_leaves_pipeline_as_it_was(rooted: Shell) -> None:
    branch(rooted, "cccc3333", views=VIEWS.replace("> 90", "> 80"), more=NEW)
    branch(rooted, "bbbb2222", views=STRICTER)
    rooted("merge", code=1)
    assert (rooted.folder / "pipeline" / "more.sql").exists()

    said = rooted("merge", "--abort")

    assert said.err == "pipeline/ is what it was before the merge.\n"
    assert rooted.read("pipeline/views.sql") == STRICTER
    assert not (rooted.folder / "pipeline" / "more.sql").exists()
    assert "there is no unfinished merge" in rooted("merge", "--abort", code=1).err


def test_a_merge_that_was_solved_beforehand_goes_on(rooted: Shell) -> None:
    branch(rooted, "cccc3333", views=VIEWS.replace("> 90", "> 80"))
    branch(rooted, "bbbb2222", views=STRICTER)
    rooted.write("pipeline/views.sql", VIEWS.replace("> 90", "> 85"))

    said = rooted("merge", code=1)
    assert said.err.startswith(
        "error: pipeline/views.sql: `bbbb2222` and `cccc3333` don't go together, and this has edits"
    )
    assert "if pipeline/ is the solved program already: `sqlmig merge --continue`" in said.err
    assert "> 85" in rooted.read("pipeline/views.sql")

    rooted("merge", "--continue", "--rev-id", "dddd4444")

    rooted("check")
    assert "> 85" in programs(rooted, "dddd4444")["pipeline/views.sql"]


def test_heads_that_moved_stop_an_unfinished_merge(rooted: Shell) -> None:
    branch(rooted, "cccc3333", views=VIEWS.replace("> 90", "> 80"))
    branch(rooted, "bbbb2222", views=STRICTER)
    rooted("merge", code=1)
    rooted.write("pipeline/views.sql", VIEWS)
    file = rooted.file_of("cccc3333")
    file.write_text(file.read_text().replace("> 80", "> 70"))

    said = rooted("merge", "--continue", code=1)

    assert said.err == (
        "error: the files of `bbbb2222` and `cccc3333` have changed since the merge was begun\n\n"
        "hint: `sqlmig merge --abort`, and begin anew\n"
    )


def test_what_one_side_removed_and_the_other_reads_is_a_conflict(rooted: Shell) -> None:
    branch(rooted, "cccc3333", more="CREATE VIEW top AS SELECT name FROM honours;\n")
    branch(rooted, "bbbb2222", views=HEAD.rstrip() + "\n")

    said = rooted("merge", code=1)

    assert (
        "\n\n  pipeline/views.sql:5: relation `honours`: bbbb2222 removed it, and `top` of "
        "cccc3333 reads it\n\n"
    ) in said.err
    statement = VIEWS.removeprefix(HEAD)
    assert rooted.read("pipeline/views.sql") == (
        f"{HEAD}<<<<<<< bbbb2222\n||||||| aaaa1111\n{statement}=======\n{statement}"
        ">>>>>>> cccc3333\n"
    )
    rooted.write("pipeline/views.sql", VIEWS)
    rooted("merge", "--continue")
    rooted("check")


def test_what_does_not_go_together_otherwise_is_said_and_left_to_a_person(rooted: Shell) -> None:
    branch(rooted, "cccc3333", more="CREATE VIEW top AS SELECT class FROM grades;\n")
    branch(
        rooted,
        "bbbb2222",
        tables=TABLES.replace("class STRING", "course STRING"),
        views=re.sub(r"\bclass\b", "course", VIEWS),
    )

    said = rooted("merge", code=1)

    assert said.err.startswith("error: `bbbb2222` and `cccc3333` don't go together:\n\n  pipeline/")
    assert "`top` reads column `class`" in said.err
    rooted.write("pipeline/more.sql", "CREATE VIEW top AS SELECT course FROM grades;\n")
    rooted("merge", "--continue")
    rooted("check")


def test_functions_in_python_are_merged_by_the_file(rooted: Shell) -> None:
    path = "pipeline/functions/words.py"
    head = "from sqlmig import function\n\n\n@function\ndef loud(x: str) -> str:\n"
    text = f"{head}    return x.{{}}()\n"
    rooted.write(path, text.format("upper"))
    rooted.freeze("aaaa2222", "--head", "aaaa1111")
    rooted.write(path, text.format("title"))
    rooted.freeze("cccc3333")
    rooted.write(path, text.format("lower"))
    rooted.freeze("bbbb2222", "--head", "aaaa2222", "--splice")

    said = rooted("merge", code=1)

    assert f"{path}:6: file `{path}` is changed by both sides, each in its own way\n" in said.err
    assert rooted.read(path) == (
        f"{head}<<<<<<< bbbb2222\n    return x.lower()\n||||||| aaaa2222\n"
        "    return x.upper()\n=======\n    return x.title()\n>>>>>>> cccc3333\n"
    )
    rooted.write(path, text.format("strip"))
    rooted("merge", "--continue")
    rooted("check")


def test_three_heads_become_one(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", more=NEW)
    branch(rooted, "dddd4444", other="CREATE VIEW other AS SELECT class FROM grades;\n")

    rooted("merge", "--rev-id", "eeee5555")

    assert rooted("heads").out == "eeee5555 (head)\n"
    assert list(programs(rooted, "eeee5555")) == [
        f"pipeline/{name}.sql" for name in ("more", "other", "tables", "views")
    ]
    assert "merge bbbb2222, cccc3333 and dddd4444" in rooted("history").out


def test_a_conflict_of_the_third_head_names_it(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", more=NEW)
    branch(rooted, "cccc3333", views=STRICTER)
    branch(rooted, "dddd4444", views=VIEWS.replace("> 90", "> 80"))

    said = rooted("merge", code=1)

    assert said.err.startswith(
        "error: `dddd4444`, `bbbb2222` and `cccc3333` don't go together; nothing was written:\n\n"
        "  pipeline/views.sql:5: relation `honours` is changed by both sides"
    )
    assert said.err.endswith("hint: join two at a time: `sqlmig merge dddd4444 bbbb2222`\n")
    rooted("merge", "dddd4444", "bbbb2222", "--rev-id", "eeee5555")


def test_equal_programs_are_merged_without_a_change(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", "--branch-label", "side", views="-- another note\n" + STRICTER)

    rooted("merge", "--rev-id", "dddd4444", "--branch-label", "joined")

    assert (
        rooted("diff", "bbbb", "dddd").err == rooted("diff", "cccc", "dddd").err == "No changes.\n"
    )
    assert "since bbbb2222:\n      no changes\n" in rooted("show", "joined").out


def test_there_must_be_two_heads_none_below_another(rooted: Shell) -> None:
    assert "there is nothing to merge: `aaaa1111` is the only head" in rooted("merge", code=1).err
    branch(rooted, "bbbb2222", views=STRICTER)

    said = rooted("merge", "aaaa", "bbbb", code=1)

    assert said.err.startswith("error: revision aaaa1111 is below bbbb2222, which has all its")
    assert "no revision or branch `zz`" in rooted("merge", "aaaa", "zz", code=1).err


def test_a_dependency_is_no_common_history(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", more=NEW)
    branch(rooted, "cccc3333", "--depends-on", "bbbb2222", views=STRICTER)

    rooted("merge", "--rev-id", "dddd4444")

    joined = programs(rooted, "dddd4444")
    assert "CREATE VIEW idle" in joined["pipeline/more.sql"], "it is not taken for removed"
    assert joined["pipeline/views.sql"] == STRICTER


def test_where_histories_cross_a_change_taken_back_stays_taken_back(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", more=NEW)
    rooted("merge", "--rev-id", "dddd4444")
    rooted(
        "revision", "-m", "x", "--rev-id", "eeee5555", "--head", "bbbb2222", "--splice", "--empty"
    )
    rooted("merge", "cccc3333", "eeee5555", "--rev-id", "ffff6666")
    # one of the two joined heads takes a change of cccc3333 back
    rooted.write("pipeline/views.sql", STRICTER)
    (rooted.folder / "pipeline" / "more.sql").unlink()
    rooted("revision", "-m", "undo", "--rev-id", "ffff7777", "--head", "ffff6666")

    rooted("merge", "dddd4444", "ffff7777", "--rev-id", "99998888")

    assert "pipeline/more.sql" not in programs(rooted, "99998888")


def test_where_histories_cross_what_was_settled_in_two_ways_is_a_conflict(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", views=VIEWS.replace("> 90", "> 80"))
    for revision, limit in (("dddd4444", "> 95"), ("eeee5555", "> 80")):
        rooted.write("pipeline/views.sql", VIEWS.replace("> 90", limit))
        rooted(
            "revision",
            "-m",
            "x",
            "--rev-id",
            f"{revision[:4]}6666",
            "--head",
            "bbbb2222",
            "--splice",
            "--empty",
        )
        rooted("merge", "cccc3333", f"{revision[:4]}6666", code=1)
        rooted.write("pipeline/views.sql", VIEWS.replace("> 90", limit))
        rooted("merge", "--continue", "--rev-id", revision)

    said = rooted("merge", "dddd4444", "eeee5555", code=1)

    assert "relation `honours` is changed by both sides, each in its own way\n" in said.err


def test_sides_without_a_last_semicolon_are_joined(rooted: Shell) -> None:
    bare = VIEWS.rstrip().removesuffix(";")
    branch(rooted, "bbbb2222", views=bare.replace("> 90", "> 95 -- strict"))
    branch(rooted, "cccc3333", views=VIEWS + NEW)

    rooted("merge", "--rev-id", "dddd4444")

    text = programs(rooted, "dddd4444")["pipeline/views.sql"]
    assert "> 95; -- strict\n\n-- who has none\nCREATE VIEW idle" in text


def test_a_program_never_leads_out_of_pipeline(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", more=NEW)
    file = rooted.file_of("bbbb2222")
    file.write_text(file.read_text().replace('"pipeline/views.sql"', '"pipeline/../../out.sql"'))

    rooted("merge", "--rev-id", "dddd4444")

    assert not (rooted.folder.parent / "out.sql").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["merge", "--abort", "--continue"],
        ["merge", "--abort", "aaaa"],
        ["merge", "--continue", "aaaa"],
        ["rebase", "--abort", "aaaa"],
        ["rebase", "--continue", "--onto", "aaaa"],
    ],
)
def test_what_goes_on_and_what_is_given_up_names_no_revision(
    rooted: Shell, words: list[str]
) -> None:
    said = rooted(*words, code=2)

    assert "Error: '--continue', '--abort' and REV exclude each other.\n" in said.err
    assert "goes without other options" in rooted("merge", "--abort", "-m", "x", code=2).err


def test_a_missing_pipeline_folder_is_said_before_anything_is_written(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", more=NEW)
    (rooted.folder / "pipeline").rename(rooted.folder / "away")

    said = rooted("merge", code=1)

    assert said.err.startswith("error: pipeline: no such folder\n\nhint: ")
    assert len(rooted("heads").out.splitlines()) == 2
