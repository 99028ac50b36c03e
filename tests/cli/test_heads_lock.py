"""heads.lock in a real repository: branches that each add a revision conflict in Git."""

from __future__ import annotations

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
