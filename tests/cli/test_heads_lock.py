"""heads.lock in a real repository: branches that each add a revision conflict in Git."""

from __future__ import annotations

import pytest

from tests.cli.repository import two_branches
from tests.cli.shell import TABLES, VIEWS, Shell

STRICTER = VIEWS.replace("> 90", "> 95")
NEW = "-- who has none\nCREATE VIEW idle AS SELECT id FROM students;\n"


def test_two_branches_that_each_add_a_revision_conflict_when_git_merges_them(
    school: Shell,
) -> None:
    git = two_branches(school, {}, {"pipeline/views.sql": STRICTER}, {"pipeline/new.sql": NEW})

    said = git("merge", "feature", code=1)

    assert "CONFLICT (content): Merge conflict in revisions/heads.lock" in said
    assert git.unmerged == ("revisions/heads.lock",)
    assert "Git left conflict marks\n\nhint: `sqlmig merge` joins" in school("check", code=1).err
    # the hint leads on
    school("merge", "--rev-id", "dddd4444")
    school("check")
    git.commit("merged")
    assert school("heads").out == "dddd4444 (head)\n"
    assert "<<<<" not in school.read("revisions/heads.lock")
    assert school.read("pipeline/views.sql") == STRICTER
    assert school.read("pipeline/new.sql") == NEW


def test_the_first_revisions_of_two_branches_conflict_too(school: Shell) -> None:
    git = two_branches(school, {}, {"pipeline/views.sql": STRICTER}, {"pipeline/new.sql": NEW})
    git("switch", "--quiet", "--orphan", "other")
    git("checkout", "--quiet", "main", "--", "sqlmig.yml")
    school.write("pipeline/tables.sql", TABLES)
    school.freeze("eeee5555")
    git.commit("another beginning")

    said = git("merge", "--allow-unrelated-histories", "main", code=1)

    assert "CONFLICT (add/add): Merge conflict in revisions/heads.lock" in said


def test_a_branch_without_a_revision_does_not_conflict(school: Shell) -> None:
    git = two_branches(school, {}, {"pipeline/views.sql": STRICTER}, {"pipeline/new.sql": NEW})
    git("switch", "--quiet", "-c", "notes", "main~1")
    school.write("notes.txt", "only words")
    git.commit("notes")

    git("merge", "--quiet", "--no-edit", "main")

    school("check")


def test_a_revert_takes_the_lock_back_with_the_revision(school: Shell) -> None:
    git = two_branches(school, {}, {"pipeline/views.sql": STRICTER}, {"pipeline/new.sql": NEW})

    git("revert", "--no-edit", "HEAD")

    school("check")
    assert school("heads").out == "aaaa1111 (head)\n"


def test_a_lock_of_one_head_is_written_anew_by_merge(school: Shell) -> None:
    school.freeze("aaaa1111")
    right = school.read("revisions/heads.lock")
    school.write("revisions/heads.lock", "nonsense\n")
    said = school("check", code=1)
    assert said.err == (
        "error: revisions/heads.lock:1: this line is not a revision's id and `sha256:` with its "
        "file's digest\n\nhint: `sqlmig merge` writes it anew\n"
    )

    said = school("merge")

    assert said.err == (
        "There is one head, and nothing to merge.\n  Writing revisions/heads.lock ...  done\n"
    )
    assert school.read("revisions/heads.lock") == right
    assert "there is nothing to merge" in school("merge", code=1).err


def test_hooks_that_were_edited_are_locked_by_amending(school: Shell) -> None:
    file = school.freeze("aaaa1111")
    file.write_text(file.read_text().replace("    pass", "    op.run(print)", 1))
    assert "the file of `aaaa1111` was edited" in school("check", code=1).err

    school("revision", "--amend")

    school("check")
    assert "op.run(print)" in file.read_text()


def test_lines_that_git_cant_merge_are_merged_by_their_statements(school: Shell) -> None:
    one, other = "CREATE VIEW one AS SELECT id FROM students;\n", "CREATE VIEW two AS SELECT 2 b;\n"
    git = two_branches(
        school,
        {"pipeline/views.sql": one + other},
        {"pipeline/views.sql": one + other.replace("2 b", "3 b")},
        {"pipeline/views.sql": one.replace("id", "name") + other},
    )
    git("merge", "feature", code=1)
    assert git.unmerged == ("pipeline/views.sql", "revisions/heads.lock")
    marked = school.read("pipeline/views.sql")
    said = school("check", code=1)
    assert "heads.lock" in said.err

    said = school("merge", "--rev-id", "dddd4444")

    assert school.read("pipeline/views.sql") == (
        one.replace("id", "name") + other.replace("2 b", "3 b")
    )
    assert said.err.endswith(
        "\npipeline/views.sql was in no revision so: a copy is in .sqlmig/before/.\n"
    )
    assert school.read(".sqlmig/before/pipeline/views.sql") == marked
    git.commit("merged")
    school("check")


@pytest.mark.parametrize("below", ["", "school/"])
def test_lines_that_git_merges_and_that_change_one_statement_are_a_conflict(
    school: Shell, below: str
) -> None:
    view = "CREATE VIEW v AS SELECT\n  id\nFROM students\nWHERE\n  id > 0\nAND\n  id < 10;\n"
    git = two_branches(
        school,
        {"pipeline/views.sql": view},
        {"pipeline/views.sql": view.replace("  id\nFROM", "  id, name\nFROM")},
        {"pipeline/views.sql": view.replace("< 10", "< 20")},
        root=school.folder.parent if below else school.folder,
    )
    git("merge", "feature", code=1)
    assert git.unmerged == (f"{below}revisions/heads.lock",)
    merged_by_git = school.read("pipeline/views.sql")

    said = school("merge", code=1)

    assert "pipeline/views.sql:1: relation `v` is changed by both sides" in said.err
    text = school.read("pipeline/views.sql")
    assert text.startswith("<<<<<<< bbbb2222\n"), "ours is what is checked out"
    assert text.endswith(">>>>>>> cccc3333\n")
    school("merge", "--abort")
    assert school.read("pipeline/views.sql") == merged_by_git
    school("merge", "--continue", "--rev-id", "dddd4444")
    school("check")
    assert school.project.revision_files("dddd4444")["pipeline/views.sql"] == merged_by_git


def test_edits_that_are_not_committed_are_not_overwritten(school: Shell) -> None:
    git = two_branches(school, {}, {"pipeline/views.sql": STRICTER}, {"pipeline/new.sql": NEW})
    git("merge", "feature", code=1)
    mine = STRICTER.replace("> 95", "> 99")
    school.write("pipeline/views.sql", mine)

    said = school("merge")

    assert "pipeline/ was left as it is: pipeline/views.sql was edited.\n" in said.err
    assert school.read("pipeline/views.sql") == mine


def test_a_merge_that_git_gave_up_is_forgotten_and_pipeline_left_as_git_put_it(
    school: Shell,
) -> None:
    git = two_branches(
        school,
        {},
        {"pipeline/views.sql": STRICTER},
        {"pipeline/views.sql": VIEWS.replace("> 90", "> 80")},
    )
    git("merge", "feature", code=1)
    school("merge", code=1)
    git("merge", "--abort")
    assert "a merge of `bbbb2222` and `cccc3333` is unfinished" in school("check", code=1).err
    assert "have changed since the merge was begun" in school("merge", "--continue", code=1).err

    said = school("merge", "--abort")

    assert said.err == (
        "The revisions have changed since the merge was begun: pipeline/ was left as it is.\n"
    )
    assert school.read("pipeline/views.sql") == STRICTER
    school("check")


def test_an_unfinished_merge_whose_notes_are_broken_can_be_begun_anew(school: Shell) -> None:
    school.freeze("aaaa1111")
    file = school.write(".sqlmig/unfinished.json", "{}")

    said = school("check", code=1)

    assert said.err.startswith("error: .sqlmig/unfinished.json: this can't be read\n\nhint: delete")
    file.unlink()
    school("check")
