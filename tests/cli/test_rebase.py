"""rebase: puts the revisions of a branch on top of another head."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.repository import two_branches
from tests.cli.shell import TABLES, VIEWS, Shell

STRICTER = VIEWS.replace("> 90", "> 95")
NEW = "CREATE VIEW idle AS SELECT id FROM students;\n"
MORE = "CREATE VIEW other AS SELECT class FROM grades;\n"


def freeze(school: Shell, revision: str, parent: str, **files: str) -> Path:
    """Freeze a child of `parent` with these files in pipeline/, and leave pipeline/ so."""
    for file in (school.folder / "pipeline").glob("*.sql"):
        file.unlink()
    for name, text in ({"tables": TABLES, "views": VIEWS} | files).items():
        school.write(f"pipeline/{name}.sql", text)
    return school.freeze(revision, "--head", parent, "--splice")


@pytest.fixture
def two(school: Shell) -> Shell:
    """pipeline/ holds cccc4444.

    aaaa1111 - bbbb2222 (stricter)
             \\- cccc3333 (new) - cccc4444 (more)
    """
    school.freeze("aaaa1111")
    freeze(school, "bbbb2222", "aaaa", views=STRICTER)
    freeze(school, "cccc3333", "aaaa", new=NEW)
    freeze(school, "cccc4444", "cccc3333", new=NEW, more="-- which\n" + MORE)
    return school


def programs(school: Shell, revision: str) -> dict[str, str]:
    return dict(school.project.revision_files(revision))


def conflicting(school: Shell) -> None:
    """Two heads that change one view, the second with a revision more; pipeline/ holds it."""
    school.freeze("aaaa1111")
    freeze(school, "bbbb2222", "aaaa", views=STRICTER)
    freeze(school, "cccc3333", "aaaa", views=VIEWS.replace("> 90", "> 80"))
    freeze(school, "cccc4444", "cccc3333", views=VIEWS.replace("> 90", "> 80"), new=NEW)


def test_a_branch_is_put_on_top_with_names_ids_and_hooks(two: Shell) -> None:
    file = two.file_of("cccc4444")
    hooks = "def up(op):\n    op.run(print)  # mine\n\n\ndef down(op):\n    pass\n"
    text = file.read_text()
    file.write_text(text[: text.index("def up(op)")] + hooks)
    first = two.file_of("cccc3333").read_text()

    said = two("rebase", "cccc4444")

    assert said.err == (
        "  + view idle\n"
        f"  Rebasing revisions/{two.file_of('cccc3333').name} onto bbbb2222 ...  done\n"
        "  + view other\n"
        f"  Rebasing revisions/{file.name} onto cccc3333 ...  done\n"
    )
    assert two("heads").out == "cccc4444 (head)\n"
    assert [e["revision"] for e in two("history", "--json").json] == [
        "cccc4444",
        "cccc3333",
        "bbbb2222",
        "aaaa1111",
    ]
    third = two.file_of("cccc3333").read_text()
    assert "\nRevises: bbbb2222\n" in third
    assert third.splitlines()[4] == first.splitlines()[4], "the date stays"
    assert file.read_text().endswith(hooks)
    views = {"pipeline/tables.sql": TABLES, "pipeline/views.sql": STRICTER}
    assert programs(two, "cccc3333") == {**views, "pipeline/new.sql": NEW}
    assert programs(two, "cccc4444") == {
        **views,
        "pipeline/new.sql": NEW,
        "pipeline/more.sql": "-- which\n" + MORE,
    }
    assert two.read("pipeline/views.sql") == STRICTER
    two("check")


def test_what_the_new_parent_has_already_is_left_as_an_empty_revision(two: Shell) -> None:
    freeze(two, "bbbb3333", "bbbb2222", views=STRICTER, new=NEW)

    said = two("rebase", "cccc", "--onto", "bbbb3333", code=1)
    assert "`cccc` is ambiguous" in said.err
    said = two("rebase", "--onto", "bbbb3333")

    assert said.err.startswith("  nothing is left that it changes\n  Rebasing revisions/")
    two("check")


def test_either_of_two_heads_may_have_to_be_named(two: Shell) -> None:
    said = two("rebase", code=1)

    assert said.err == (
        "error: `bbbb2222` and `cccc4444` may both be put on top of the other one\n\n"
        "hint: name the one that moves: `sqlmig rebase bbbb2222` or `sqlmig rebase cccc4444`\n"
    )
    # when one is applied, only the other one may
    two("stamp", "bbbb2222")
    two("rebase")
    assert two("heads").out == "cccc4444 (head)\n"
    two("plan", "--offline", "head")


def test_what_was_applied_stays_where_it_is(two: Shell) -> None:
    two("stamp", "cccc3333")
    before = {path: path.read_text() for path in (two.folder / "revisions").iterdir()}

    said = two("rebase", "cccc4444", code=1)

    name = two.file_of("cccc3333").name
    assert said.err == (
        f"error: revisions/{name}: revision cccc3333 can't be rebased: it was applied to target "
        "`local`\n\nhint: join them instead: `sqlmig merge bbbb2222 cccc4444`\n"
    )
    assert {path: path.read_text() for path in (two.folder / "revisions").iterdir()} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cccc3333", "--onto", "cccc4444"], "nothing to rebase: `cccc3333` is part of `cccc4444`"),
        (["cccc4444", "--onto", "aaaa"], "nothing to rebase: `cccc4444` is on top of `aaaa1111`"),
        (["cccc3333"], "cccc3333 can't be rebased: `cccc4444` is on top of it, too"),
        (["aaaa"], "it is not clear what `aaaa1111` goes together with: there is no other head"),
        (["zz"], "no revision or branch `zz`"),
        (["base"], "base is no revision"),
    ],
)
def test_what_cant_be_moved_is_said(two: Shell, words: list[str], message: str) -> None:
    assert message in two("rebase", *words, code=1).err


def test_a_merge_is_not_moved(two: Shell) -> None:
    two("merge", "--rev-id", "dddd4444")
    freeze(two, "eeee5555", "aaaa", views=STRICTER, more=MORE)

    said = two("rebase", "dddd4444", "--onto", "eeee5555", code=1)

    assert "revision dddd4444 can't be rebased: it merges `bbbb2222` and `cccc4444`" in said.err


def test_a_rebase_must_not_turn_around_what_depends_on_it(two: Shell) -> None:
    file = two.file_of("bbbb2222")
    file.write_text(file.read_text().replace("depends_on = None", 'depends_on = "cccc4444"'))

    said = two("rebase", "cccc4444", "--onto", "bbbb2222", code=1)

    assert "revisions form a cycle" in said.err


def test_conflicts_are_solved_one_after_the_other(school: Shell) -> None:
    conflicting(school)
    before = {path: path.read_text() for path in (school.folder / "revisions").iterdir()}

    said = school("rebase", "cccc4444", code=1)

    assert said.err == (
        "error: `cccc3333` doesn't go on top of `bbbb2222`:\n\n"
        "  pipeline/views.sql:5: relation `honours` is changed by both sides, each in its own way\n"
        "    bbbb2222: ~ materialized view honours: `a.class_avg > 90` became `95`\n"
        "    cccc3333: ~ materialized view honours: `a.class_avg > 90` became `80`\n\n"
        "hint: solve the conflicts in pipeline/, then `sqlmig rebase --continue`; "
        "or `sqlmig rebase --abort`\n"
    )
    assert "<<<<<<< bbbb2222\n" in school.read("pipeline/views.sql")
    assert not (school.folder / "pipeline" / "new.sql").exists(), "it comes with cccc4444"
    assert {path: path.read_text() for path in (school.folder / "revisions").iterdir()} == before
    for words in (["check"], ["merge"], ["merge", "--continue"], ["rebase"]):
        assert "a rebase of `cccc3333` and `cccc4444` is unfinished" in school(*words, code=1).err
    assert "a conflict mark is left" in school("rebase", "--continue", code=1).err

    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 85"))
    said = school("rebase", "--continue")

    assert "  ~ materialized view honours: `a.class_avg > 95` became `85`\n  Rebasing " in said.err
    assert "  + view idle\n  Rebasing " in said.err
    assert "> 85" in programs(school, "cccc3333")["pipeline/views.sql"]
    assert "> 85" in programs(school, "cccc4444")["pipeline/views.sql"]
    assert school.read("pipeline/new.sql") == NEW
    school("check")
    assert "there is no unfinished rebase" in school("rebase", "--continue", code=1).err


def test_an_aborted_rebase_changes_nothing(school: Shell) -> None:
    conflicting(school)
    before = {path: path.read_text() for path in school.folder.rglob("*.*") if path.is_file()}
    school("rebase", "cccc4444", code=1)
    school.write("pipeline/mine.sql", "-- made in between\n")

    said = school("rebase", "--abort")

    assert said.err == "pipeline/ is what it was before the rebase.\n"
    assert {path: path.read_text() for path in before} == before
    assert school.read("pipeline/mine.sql") == "-- made in between\n"
    assert "there is no unfinished rebase" in school("rebase", "--abort", code=1).err


def test_edits_in_pipeline_stop_a_rebase_with_conflicts(school: Shell) -> None:
    conflicting(school)
    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 1"))

    said = school("rebase", "cccc4444", code=1)

    assert said.err.startswith(
        "error: pipeline/views.sql: `cccc3333` doesn't go on top of `bbbb2222`, and this has edits"
    )
    assert "> 1" in school.read("pipeline/views.sql")
    assert "there is no unfinished rebase" in school("rebase", "--abort", code=1).err


def test_a_rebase_that_died_while_it_wrote_is_finished(two: Shell) -> None:
    name = two.file_of("cccc3333").name
    in_the_way = two.folder / "revisions" / f".{name}.{os.getpid()}.partial"
    in_the_way.mkdir()

    two("rebase", "cccc4444", code=1)

    assert two("heads").out.count("head") == 2, "nothing can be deployed half-way"
    assert "> 95" in programs(two, "cccc4444")["pipeline/views.sql"]
    assert "is unfinished" in two("check", code=1).err
    assert "its files are being written" in two("rebase", "--abort", code=1).err
    in_the_way.rmdir()
    two("rebase", "--continue")
    two("check")
    assert "> 95" in programs(two, "cccc3333")["pipeline/views.sql"]


def test_what_is_on_the_remotes_main_branch_stays_where_it_is(
    school: Shell, tmp_path: Path
) -> None:
    git = two_branches(school, {}, {"pipeline/views.sql": STRICTER}, {"pipeline/new.sql": NEW})
    git("init", "--quiet", "--bare", "--initial-branch=main", str(tmp_path / "remote"))
    git("remote", "add", "origin", str(tmp_path / "remote"))
    git("push", "--quiet", "origin", "main")
    git("switch", "--quiet", "feature")
    git("merge", "main", code=1)
    name = school.file_of("bbbb2222").name

    said = school("rebase", "bbbb2222", code=1)

    assert (
        f"revisions/{name}: revision bbbb2222 can't be rebased: it is on `origin/main`" in said.err
    )
    said = school("rebase")
    assert said.err.startswith("  + view idle\n  Rebasing ")
    git.commit("merged")
    school("check")
    assert school("heads").out == "cccc3333 (head)\n"
    assert git("diff", "--name-only", "origin/main", "--", "revisions").split() == [
        f"revisions/{school.file_of('cccc3333').name}",
        "revisions/heads.lock",
    ]


def test_in_a_rebase_of_git_each_commit_is_put_on_top(school: Shell) -> None:
    git = two_branches(school, {}, {"pipeline/views.sql": STRICTER}, {"pipeline/new.sql": NEW})
    git("switch", "--quiet", "feature")

    git("rebase", "main", code=1)
    assert git.unmerged == ("revisions/heads.lock",)
    school("rebase", "cccc3333")
    school("check")
    git("add", "--all")
    git("-c", "core.editor=true", "rebase", "--continue")

    assert git("status", "--porcelain") == ""
    assert school("heads").out == "cccc3333 (head)\n"


def test_a_rebase_that_git_gave_up_is_forgotten(school: Shell) -> None:
    git = two_branches(
        school,
        {},
        {"pipeline/views.sql": STRICTER},
        {"pipeline/views.sql": VIEWS.replace("> 90", "> 80")},
    )
    git("merge", "feature", code=1)
    school("rebase", "cccc3333", code=1)
    git("merge", "--abort")

    said = school("rebase", "--abort")

    assert "have changed since the rebase was begun: pipeline/ was left as it is" in said.err
    assert school.read("pipeline/views.sql") == STRICTER
    school("check")


@pytest.mark.parametrize("below", ["", "school/"])
def test_in_a_rebase_of_git_no_commit_takes_back_what_the_new_parent_has(
    school: Shell, below: str
) -> None:
    git = two_branches(
        school,
        {},
        {"pipeline/views.sql": STRICTER},
        {"pipeline/new.sql": NEW},
        root=school.folder.parent if below else school.folder,
    )
    git("switch", "--quiet", "feature")
    school.write("pipeline/more.sql", MORE)
    school.freeze("cccc4444")
    git.commit("more")
    git("rebase", "main", code=1)
    school("rebase", "cccc3333")
    git("add", "--all")
    git("-c", "core.editor=true", "rebase", "--continue", code=1)
    # now cccc4444 stands behind the new cccc3333, with the program of the old one and a view more
    assert school("heads").out == "cccc4444 (head)\n"
    name = school.file_of("cccc4444").name
    for words in (["check"], ["merge"], ["rebase", "cccc4444", "--onto", "cccc3333"]):
        assert school(*words, code=1).err == (
            f"error: revisions/{name}: revision cccc4444 was made on another program of "
            "`cccc3333`\n\nhint: `sqlmig rebase` freezes it anew on the one that its parent has "
            "now\n"
        )

    school("stamp", "cccc4444")
    assert "hint: let Git take it back (`git rebase --abort`" in school("rebase", code=1).err
    shutil.rmtree(school.folder / "warehouse")

    said = school("rebase")

    assert said.err.startswith(
        f"  + view other\n  Rebasing revisions/{name} onto cccc3333 ...  done\n"
    )
    school("check")
    git("add", "--all")
    git("-c", "core.editor=true", "rebase", "--continue")
    assert git("status", "--porcelain") == ""
    assert programs(school, "cccc4444")["pipeline/views.sql"] == STRICTER
    school("check")


def test_a_revision_on_a_branch_that_was_rebased_meanwhile_is_put_on_it_again(
    school: Shell,
) -> None:
    git = two_branches(
        school,
        {},
        {"pipeline/views.sql": STRICTER},
        {
            "pipeline/views.sql": VIEWS.replace("-- one row", "-- exactly one row"),
            "pipeline/new.sql": NEW,
        },
    )
    # a colleague works on top of the feature, which is then rebased and merged
    git("switch", "--quiet", "-c", "colleague", "feature")
    school.write("pipeline/views.sql", school.read("pipeline/views.sql").replace("> 90", "> 80"))
    school.freeze("dddd4444")
    git.commit("colleague")
    git("switch", "--quiet", "main")
    git("merge", "feature", code=1)
    school("rebase", "cccc3333")
    git.commit("feature, rebased")
    git("switch", "--quiet", "colleague")
    git("merge", "main", code=1)

    said = school("rebase", code=1)

    assert said.err.startswith("error: `dddd4444` doesn't go on top of `cccc3333`:\n\n")
    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 85"))
    school("rebase", "--continue")
    school("check")
    git.commit("merged")
    assert [e["revision"] for e in school("history", "--json").json] == [
        "dddd4444",
        "cccc3333",
        "bbbb2222",
        "aaaa1111",
    ]
