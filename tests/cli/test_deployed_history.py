"""`history` with Git's commits, and `history --deployed`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from sqlmig.cli.deploys import deploy_lines
from sqlmig.commands.deployed import DeployEntry, Undoing, undoing_of
from sqlmig.ledger.chronicle import deploys
from sqlmig.ledger.records import Kind, Status
from sqlmig.planning.planner import make_plan
from tests.cli.shell import VIEWS, Shell, new_project
from tests.commands.ledgers import start
from tests.fakes import Pipeline, Revision, World
from tests.git.repository import alone, commit, git


@pytest.fixture
def school(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    """A project in a repository: aaaa1111 is committed, bbbb2222 is not; nothing is deployed."""
    alone(monkeypatch, tmp_path)
    shell = new_project(tmp_path / "school")
    shell.write(".gitignore", "warehouse/\n")
    git(shell.folder, "init", "--quiet", "--initial-branch=main")
    git(shell.folder, "remote", "add", "origin", "https://me:secret@example.com/school.git")
    shell.freeze("aaaa1111", message="first")
    commit(shell.folder, "first")
    shell.write("pipeline/views.sql", VIEWS.replace("> 90", "> 95"))
    shell.freeze("bbbb2222", message="stricter")
    return shell


def test_history_tells_commit_author_and_day(school: Shell) -> None:
    head = git(school.folder, "rev-parse", "HEAD")
    at = git(school.folder, "log", "-1", "--format=%aI")

    assert school("history").out == (
        "aaaa1111 -> bbbb2222 (head), stricter  [not committed]\n"
        f"<base> -> aaaa1111, first  [{head[:8]}, Tést Author, {at[:10]}]\n"
    )
    told = school("history", "-v").out
    assert "\nCommit: none yet\n" in told
    line = f"\nCommit: {head}, by Tést Author <author@example.com>, {at}\n"
    assert line in told
    assert line in school("show", "aaaa").out
    newest, first = school("history", "--json").json
    assert (newest["commit"], newest["author"], newest["committed_at"]) == (None, None, None)
    assert (first["commit"], first["committed_at"]) == (head, at)
    assert first["author"] == "Tést Author <author@example.com>"


def test_deploys_are_told_newest_first_with_who_and_from_where(school: Shell) -> None:
    school("stamp", "aaaa")
    project = school.project
    plan = start(project)
    project.journal.append(
        Kind.STEP, Status.DONE, plan=plan.id, step=3, details={"rows": 1234, "seconds": 1.0}
    )
    project.journal.append(Kind.PLAN, Status.APPLIED, plan=plan.id, revision="bbbb2222")
    head = git(school.folder, "rev-parse", "HEAD")

    told = school("history", "--deployed").out

    plain = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME", told)
    plain = re.sub(r"took [\d.]+ s", "took N s", re.sub(r"by \S+@\S+\n", "by WHO\n", plain))
    origin = (
        f"    from commit {head[:12]} on main, by Tést Author <author@example.com>, "
        "https://example.com/school.git, with changes that are in no commit\n"
    )
    assert plain == (
        "TIME  upgrade aaaa1111 -> bbbb2222 (current), stricter\n"
        "    by WHO\n"
        f"{origin}"
        "    took N s, wrote 1,234 rows\n"
        "    to undo it `honours` is computed\n"
        "TIME  stamp aaaa1111, first\n"
        "    by WHO\n"
        f"{origin}"
    )
    newest, stamp = school("history", "--deployed", "--json").json
    assert newest["undoing"] == {
        "is_free": False,
        "computes": ["honours"],
        "runs_hooks": False,
        "loses": [],
        "blocker": None,
    }
    assert (newest["kind"], newest["before"], newest["revision"]) == (
        "upgrade",
        "aaaa1111",
        "bbbb2222",
    )
    assert (newest["commit"], newest["branch"], newest["is_dirty"]) == (head, "main", True)
    assert newest["remote"] == "https://example.com/school.git"
    assert (newest["rows"], newest["is_current"], newest["plan"]) == (1234, True, plan.id)
    assert (stamp["kind"], stamp["undoing"], stamp["seconds"]) == ("stamp", None, 0.0)


def test_only_the_newest_deploys_are_told_and_how_many_there_are(school: Shell) -> None:
    for revision in ("aaaa", "bbbb", "aaaa"):
        school("stamp", revision)

    said = school("history", "--deployed", "-n", "2")

    assert said.out.count(" stamp ") == 2
    assert said.err == "These are the newest 2 of 3; `-n 0` lists all.\n"
    assert school("history", "--deployed", "-n", "0").out.count(" stamp ") == 3
    assert "goes with" in school("history", "--deployed", "-r", "a:b", code=2).err


def test_however_many_deploys_are_told_each_hook_on_the_way_back_is_read_once(
    school: Shell, tmp_path: Path
) -> None:
    calls = tmp_path / "calls.txt"
    for number, revision in enumerate(("cccc3333", "dddd4444", "eeee5555")):
        school.freeze(revision, "--empty")
        file = school.file_of(revision)
        note = f"with open({str(calls)!r}, 'a') as file:\n        file.write('{number}')"
        file.write_text(file.read_text().replace("(op):\n    pass", f"(op):\n    {note}"))
    for revision in ("aaaa1111", "bbbb2222", "cccc3333", "dddd4444", "eeee5555"):
        plan = start(school.project, revision)
        school.project.journal.append(Kind.PLAN, Status.APPLIED, plan=plan.id, revision=plan.target)
    calls.write_text("")

    all_told = school("history", "--deployed", "-n", "0").out
    read = calls.read_text()

    assert all_told.count("to undo it ") == 5
    assert sorted(read) == ["0", "1", "2"]
    calls.write_text("")
    assert school("history", "--deployed", "-n", "1").out.count("to undo it ") == 1
    assert calls.read_text() == "2", "what is not told is not planned"


def test_before_the_first_deploy_it_says_so(school: Shell) -> None:
    said = school("history", "--deployed")

    assert (said.out, said.err) == ("", "Nothing was deployed to target `local` yet.\n")
    assert school("history", "--deployed", "--json").json == []


@pytest.mark.parametrize(
    ("undoing", "words"),
    [
        (Undoing(), "to undo it nothing is computed"),
        (Undoing(computes=("a", "b")), "to undo it `a`, `b` are computed"),
        (
            Undoing(runs=True, loses=("3 rows of `t`",)),
            "to undo it hooks run, this is lost: 3 rows of `t`",
        ),
        (Undoing(blocker="`t` is gone"), "to undo it there is no way: `t` is gone"),
    ],
)
def test_what_it_takes_to_undo_a_deploy_is_said(
    school: Shell, undoing: Undoing, words: str
) -> None:
    school("stamp", "aaaa")
    (deploy,) = deploys(school.project.ledger.read()[1])

    assert deploy_lines(DeployEntry(deploy, True, undoing))[-1] == f"    {words}"
    assert undoing.is_free is (undoing == Undoing())


def test_tables_whose_rows_are_written_anew_count_as_computed() -> None:
    laid_out = "CREATE TABLE laid (a INT, b INT) PARTITIONED BY (a);\n"
    wide, text = "CREATE TABLE t (a INT, b INT);\n", "CREATE TABLE made (a STRING);\n"
    sources = "".join(
        f"CREATE SOURCE s INTO {table} USING json OPTIONS (path '/{table}') RETAIN RAW;\n"
        for table in ("t", "made")
    )
    before = "CREATE TABLE laid (a INT, b INT);\n" + wide + "CREATE TABLE made (a INT);\n" + sources
    after = laid_out + wide.replace(", b INT", "") + text + sources
    pipeline = Pipeline(World(), [Revision("r1", before), Revision("r2", after)])
    pipeline.world.inputs.update({"/t": [1, 2], "/made": [3]})
    pipeline.go("r1")
    pipeline.insert("laid", 7, 8)
    pipeline.tick()
    pipeline.go("r2")
    for table in ("laid", "made", "t"):
        pipeline.insert(table, 9, 8)
    pipeline.tick()

    misfit = {"made": "`made.a` can't be cast in 1 row"}
    plan = make_plan(replace(pipeline.request("r1"), emptied=misfit))

    assert plan.blockers == ()
    assert undoing_of(plan).computes == ("laid", "made", "t")
    assert undoing_of(plan).is_free is False
