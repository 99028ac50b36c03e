"""merge: joins heads statement by statement, or names what is in the way."""

from __future__ import annotations

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
    assert "    since cccc3333:\n      ~ view honours: " in text
    assert rooted("heads").out == "dddd4444 (head)\n"


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
    rooted.write("pipeline/more.sql", "-- not frozen yet\n" + NEW)

    rooted("merge", "--rev-id", "dddd4444")

    assert rooted.read("pipeline/more.sql") == "-- not frozen yet\n" + NEW
    assert rooted.read("pipeline/views.sql") == VIEWS


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


def test_a_relation_that_both_change_is_named_and_nothing_written(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=STRICTER)
    branch(rooted, "cccc3333", views=VIEWS.replace("> 90", "> 80"))
    before = sorted((rooted.folder / "revisions").iterdir())

    said = rooted("merge", code=1)

    assert said.err == (
        "error: relation `honours` is changed by `cccc3333`, and in another way by `bbbb2222`\n\n"
        "hint: make a revision on top of one of them that changes it as the other one does: "
        "`sqlmig revision -m ... --head bbbb2222`; then merge again\n"
    )
    assert sorted((rooted.folder / "revisions").iterdir()) == before
    # the hint leads on
    rooted.write("pipeline/views.sql", VIEWS.replace("> 90", "> 80"))
    rooted("revision", "-m", "agree", "--head", "bbbb2222")
    rooted("merge", "--rev-id", "dddd4444")
    assert "> 80" in programs(rooted, "dddd4444")["pipeline/views.sql"]


def test_what_one_side_removed_and_the_other_reads_is_said(rooted: Shell) -> None:
    branch(rooted, "bbbb2222", views=VIEWS.partition("CREATE MATERIALIZED")[0])
    branch(rooted, "cccc3333", more="CREATE VIEW top AS SELECT name FROM honours;\n")

    said = rooted("merge", code=1)

    assert said.err.startswith(
        "error: pipeline/more.sql: `bbbb2222` and `cccc3333` don't go together: "
    )
    assert "`honours`" in said.err
    assert "\n\nhint: one of them changes what the other one needs;" in said.err


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

    assert "by `dddd4444`, and in another way by `bbbb2222` or `cccc3333`\n" in said.err
    rooted("merge", "bbbb", "cccc", "--rev-id", "eeee5555")


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
