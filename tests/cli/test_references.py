"""Git refs as programs: `diff A..B`, `plan --ref`, read without checking anything out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import TABLES, VIEWS, Shell, new_project
from tests.git.repository import alone, commit, git

CHANGED = VIEWS.replace("> 90", "> 95")
STRICTER = "~ materialized view honours: `a.class_avg > 90` became `95`\n"
LAXER = "~ materialized view honours: `a.class_avg > 95` became `90`\n"


@pytest.fixture
def school(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    """A project in a folder of a repository.

    `main` and tag `v1.4` have revision aaaa1111, which is deployed; on `feature` follows bbbb2222.
    """
    alone(monkeypatch, tmp_path)
    shell = new_project(tmp_path / "repository" / "school")
    shell.write(".gitignore", "warehouse/\n")
    git(tmp_path / "repository", "init", "--quiet", "--initial-branch=main")
    shell.freeze("aaaa1111", message="first")
    commit(shell.folder, "first")
    git(shell.folder, "tag", "v1.4")
    shell("stamp", "head")
    git(shell.folder, "checkout", "--quiet", "-b", "feature")
    shell.write("pipeline/views.sql", CHANGED)
    shell.freeze("bbbb2222", message="stricter")
    commit(shell.folder, "stricter")
    git(shell.folder, "checkout", "--quiet", "main")
    return shell


@pytest.mark.parametrize(
    "words",
    [
        ["main..feature"],
        ["..feature"],
        ["main", "feature"],
        ["v1.4...feature"],
        ["git:v1.4..feature~0"],
        ["aaaa1111..feature"],
        ["deployed..feature"],
        ["base..feature", "--json"],
        ["-0..feature"],
    ],
)
def test_a_ref_is_the_program_of_its_pipeline_folder(school: Shell, words: list[str]) -> None:
    said = school("diff", *words)

    if words[0].startswith("base"):
        assert said.json["program_diff"]["added_tables"] == ["grades", "students"]
    else:
        assert said.out == STRICTER
    assert git(school.folder, "status", "--porcelain") == ""
    assert git(school.folder, "branch", "--show-current") == "main"


def test_a_ref_is_compared_with_pipeline_as_it_is(school: Shell) -> None:
    school.write("pipeline/more.sql", "CREATE VIEW more AS SELECT id FROM students;")

    assert school("diff", "v1.4", "working").out == "+ view more\n"
    assert school("diff", "feature").out == f"{LAXER}+ view more\n"
    assert school("diff", "main...working").out == "+ view more\n"


def test_three_dots_begin_where_two_branches_part(school: Shell) -> None:
    school.write("pipeline/more.sql", "CREATE VIEW more AS SELECT id FROM students;")
    commit(school.folder, "more")

    assert school("diff", "main..feature").out == f"{STRICTER}- view more\n"
    assert school("diff", "main...feature").out == STRICTER


def test_a_revision_goes_before_a_ref_of_the_same_name(school: Shell) -> None:
    git(school.folder, "branch", "aaaa", "feature")

    assert school("diff", "aaaa", "working").out == ""
    assert school("diff", "git:aaaa", "working").out == LAXER


def test_a_ref_that_a_revision_is_no_prefix_of_asks_no_ledger(school: Shell) -> None:
    school.write("warehouse/ledger/_delta_log/00000000000000000000.json", "damaged")

    assert school("diff", "main..feature").out == STRICTER
    assert school("diff", "git:main..feature").out == STRICTER


def test_what_nothing_is_called_by_is_told_once_for_all_kinds_of_names(school: Shell) -> None:
    assert school("diff", "v1.5", code=1).err == (
        "error: no revision, branch or Git ref `v1.5`\n\nhint: did you mean `v1.4`?\n"
    )
    assert school("diff", "main..bbbb2222", code=1).err == (
        "error: no revision, branch or Git ref `bbbb2222`\n\n"
        "hint: `sqlmig history` lists the revisions\n"
    )
    assert school("diff", "main..feature", "working", code=1).err == (
        "error: `main..feature` names both ends, and `working` is a third one\n\n"
        "hint: `sqlmig diff main..feature`, or `sqlmig diff main working`\n"
    )


def test_a_repository_that_git_does_not_open_is_told_with_gits_own_reason(school: Shell) -> None:
    (school.folder.parent / ".git" / "HEAD").unlink()

    assert school("diff", "main", code=1).err.startswith(
        "error: no revision, branch or Git ref `main`\n\nhint: Git can't be asked: fatal: not a git"
    )
    assert school("history").out == "<base> -> aaaa1111 (head), first\n"
    school("diff", "aaaa")


def test_a_mistake_in_a_refs_sql_is_placed_at_the_ref(school: Shell) -> None:
    school.write("pipeline/more.sql", "CREATE VIEW more AS SELECT id FROM nobody;")
    commit(school.folder, "broken")
    git(school.folder, "checkout", "--quiet", "feature")

    assert school("diff", "main", code=1).err.startswith("error: main:pipeline/more.sql:1:")


def test_plan_ref_is_the_plan_after_checking_it_out(school: Shell) -> None:
    told = school("plan", "--ref", "feature", "--offline", "--json").json
    text = school("plan", "--ref", "feature", "--offline").out
    assert school("plan", "--offline", "--json").json["steps"][0]["action"] == "Stop"
    git(school.folder, "checkout", "--quiet", "feature")

    assert told == school("plan", "--offline", "--json").json
    assert text == school("plan", "--offline").out
    assert (told["deployed"], told["target"]) == ("aaaa1111", "bbbb2222")


def test_plan_ref_takes_every_name_of_a_revision_of_that_ref(school: Shell) -> None:
    for name in ("bbbb", "head", "+1"):
        said = school("plan", name, "--ref", "feature", "--offline", "--json")
        assert said.json["target"] == "bbbb2222", name
    assert "no revision or branch `bbbb`" in school("plan", "bbbb", "--offline", code=1).err


def test_plan_ref_runs_no_code_of_the_ref(school: Shell) -> None:
    git(school.folder, "checkout", "--quiet", "feature")
    file = school.file_of("bbbb2222")
    trap = "import pathlib\n\npathlib.Path('trapped').touch()\n"
    hooks = "def up(op):\n    op.execute('DELETE FROM grades')\n    op.run(check)\n\n\n"
    hooks += "def check(context):\n    pathlib.Path('trapped').touch()\n"
    file.write_text(file.read_text().replace("def up(op):\n    pass\n", trap + hooks))
    commit(school.folder, "a trap")
    git(school.folder, "checkout", "--quiet", "main")

    steps = school("plan", "--ref", "feature", "--offline", "--json").json["steps"]

    asked = [(s["action"], s.get("sql") or s.get("name")) for s in steps if s.get("hook") == "up"]
    assert asked == [("Execute", "DELETE FROM grades"), ("RunFunction", "check")]
    assert not (school.folder / "trapped").exists()


def test_functions_of_a_ref_are_not_run_and_the_plan_says_so(school: Shell) -> None:
    git(school.folder, "checkout", "--quiet", "feature")
    school.write(
        "pipeline/functions/marks.py",
        "import pathlib\n\nfrom sqlmig import function\n\n"
        "pathlib.Path('trapped').touch()\n\n\n"
        "@function\ndef mark(grade: int) -> int:\n    return grade + 1\n",
    )
    school.write("pipeline/more.sql", "CREATE VIEW more AS SELECT mark(id) AS m FROM students;")
    school.freeze("cccc3333", message="marks")
    commit(school.folder, "marks")
    git(school.folder, "checkout", "--quiet", "main")

    told = school("plan", "--ref", "feature", "--json").json

    assert told["warnings"] == [
        "Spark did not analyse the queries: pipeline/functions/marks.py is code that is not "
        "checked out, and is not run here"
    ]
    assert (told["target"], told["blockers"]) == ("cccc3333", [])
    assert not (school.folder / "trapped").exists()


def test_a_hook_that_must_be_run_is_refused_at_its_place_in_the_ref(school: Shell) -> None:
    git(school.folder, "checkout", "--quiet", "feature")
    file = school.file_of("bbbb2222")
    text = file.read_text()
    for hook, told in {
        "def up(op):\n    op.execute(open('x').read())\n": "what `up` asks for is known only when",
        "def up(op):\n    op.explode('x')\n": "`up`: there is no `op.explode`",
        "def up(op):\n    op.rebuild(3)\n": "`up`: relation must be a name",
    }.items():
        file.write_text(text.replace("def up(op):\n    pass\n", hook))
        commit(school.folder, "computed")
        git(school.folder, "checkout", "--quiet", "main")

        said = school("plan", "--ref", "feature", "--offline", code=1)

        line = file_line(school, hook)
        assert f"error: feature:revisions/{file.name}:{line}: {told}" in said.err
        git(school.folder, "checkout", "--quiet", "feature")


def file_line(school: Shell, hook: str) -> int:
    """Where the second line of the hook stands in the file on `feature`."""
    listed = git(school.folder, "ls-tree", "--name-only", "feature", "revisions/").splitlines()
    path = [name for name in listed if name.endswith(".py")][-1]
    text = git(school.folder, "show", f"feature:./{path}")
    return text[: text.index(hook)].count("\n") + 2


def test_a_ref_without_the_project_or_revisions_is_told_so(school: Shell, tmp_path: Path) -> None:
    elsewhere = new_project(tmp_path / "repository" / "other", tables=TABLES)
    commit(elsewhere.folder, "another project")

    assert elsewhere("diff", "v1.4", code=1).err.startswith(
        "error: `v1.4` has no folder `other`: the project is not there at commit "
    )
    assert "`v1.4` has no folder `other`" in elsewhere("plan", "--ref", "v1.4", code=1).err
    assert elsewhere("plan", "--ref", "HEAD", code=1).err == (
        "error: `HEAD` has no revisions\n\nhint: `sqlmig revision -m ...` there makes the first\n"
    )
    assert "no commit, branch or tag `x`" in elsewhere("plan", "--ref", "x", code=1).err


def test_an_applied_revision_that_a_ref_has_edited_is_refused(school: Shell) -> None:
    git(school.folder, "checkout", "--quiet", "feature")
    file = school.file_of("aaaa1111")
    file.write_text(file.read_text().replace("> 90", "> 91"))
    commit(school.folder, "edited")
    git(school.folder, "checkout", "--quiet", "main")

    said = school("plan", "--ref", "feature", "--offline", code=1)

    assert "revision aaaa1111 was applied, and its file was edited afterwards" in said.err
    school("plan", "--offline")
