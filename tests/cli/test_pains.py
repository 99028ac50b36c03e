"""The pains of docs/pains.md, each as its user would meet it: in a repository, by the command line.

Nothing here computes, so no Spark is started: what is deployed are hooks. Upgrades, kills and
rollbacks are real ones of processes of their own.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.repository import Repository, two_branches
from tests.cli.shell import VIEWS, Shell, new_project
from tests.git.repository import alone
from tests.github.desk import Desk
from tests.github.server import github

STRICTER = VIEWS.replace("> 90", "> 95")
REFORMATTED = """\
/* one row for each student and class */
create view AVG_GRADE as
    select
        student_id,
        class,
        avg(grade) as class_avg   -- the mean
    from grades
    group by student_id, class;

create materialized view `honours` as
select pupil.name, mean.class
from avg_grade mean
join students pupil on pupil.id = mean.student_id
where mean.class_avg > 90;
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone(monkeypatch, tmp_path)


@pytest.fixture
def shop(tmp_path: Path) -> Shell:
    """A project that computes nothing: aaaa1111 is committed on `main`, and deployed."""
    shell = new_project(tmp_path / "shop", views="CREATE VIEW one AS SELECT 1 AS a;")
    shell.freeze("aaaa1111", message="first")
    shell("stamp", "head")
    Repository(shell.folder)
    return shell


def freeze_hooks(shell: Shell, revision: str, text: str) -> Path:
    """A new revision with these hooks, and no change of the program; its file."""
    file = shell.freeze(revision, "--empty")
    frozen, hooks, _ = file.read_text().partition("\n\ndef up(op)")
    assert hooks
    file.write_text(f"{frozen}\n\n{text}")
    shell("revision", "--amend")
    return file


def ran(shell: Shell) -> str:
    """What the hooks have noted in `ran.txt`."""
    file = shell.folder / "ran.txt"
    return file.read_text() if file.is_file() else ""


NOTE = """\
def note(word):
    with open("ran.txt", "a") as file:
        file.write(word)


"""


def test_cant_locate_revision(shop: Shell) -> None:
    # given: a branch was deployed, and deleted before it was merged
    git = Repository(shop.folder)
    git("switch", "--quiet", "-c", "feature")
    file = freeze_hooks(
        shop,
        "bbbb2222",
        f"{NOTE}def there(context):\n    note('up ')\n\n\n"
        "def back(context):\n    note('down ')\n\n\n"
        "def up(op):\n    op.run(there)\n\n\ndef down(op):\n    op.run(back)\n",
    )
    text = file.read_text()
    git.commit("feature")
    assert shop.start("upgrade", "head", "--yes").code == 0
    git("switch", "--quiet", "main")
    git("branch", "--quiet", "-D", "feature")
    assert not file.exists()

    # then: what is deployed is known all the same
    assert shop("current").out == "bbbb2222 (head) (only in the ledger)\n"
    assert "bbbb2222 (head) (current) (only in the ledger)" in shop("history", "-i").out
    assert shop("show", "bbbb", "--text").out == text
    told = shop("plan", "--offline", code=4).out
    assert "the deployed revision bbbb2222 (make bbbb2222) has no file here" in told
    assert "on `feature`" in told

    # when: it is taken back, by the hook that the ledger has
    back = shop.start("upgrade", "head", "--allow-unknown-revision", "--yes")

    # then
    assert (back.code, shop("current").out) == (0, "aaaa1111 (head)\n")
    assert ran(shop) == "up down "

    # and its file can be written anew
    file.write_text(shop("show", "bbbb", "--text").out)
    shop("merge")
    shop("check")
    assert shop("plan", "--offline", "--json").json["target"] == "bbbb2222"


def test_several_heads_found_only_in_production(school: Shell) -> None:
    # given: two branches that each add a revision
    new = {"pipeline/new.sql": "CREATE VIEW idle AS SELECT id FROM students;\n"}
    git = two_branches(school, {}, {"pipeline/views.sql": STRICTER}, new)

    # then: Git finds it when they are merged
    assert "Merge conflict in revisions/heads.lock" in git("merge", "feature", code=1)
    assert git.unmerged == ("revisions/heads.lock",)

    # when: somebody gets around that
    git("checkout", "--quiet", "--ours", "revisions/heads.lock")
    git.commit("merged somehow")

    # then: the check of the pull request finds it, and nothing is deployed
    assert school("check", code=1).err == (
        "error: revisions/heads.lock: it names `bbbb2222`, and the files have `bbbb2222` and "
        "`cccc3333`\n\nhint: is a revision file missing, or one too many? if the files are right, "
        "`sqlmig merge` writes it anew\n"
    )
    assert "join them with `sqlmig merge bbbb2222 cccc3333`" in school("upgrade", code=1).err

    # and one command joins them, and what they changed
    school("merge", "--rev-id", "dddd4444")
    school("check")
    assert school("heads").out == "dddd4444 (head)\n"
    assert school.read("pipeline/views.sql") == STRICTER
    assert school.read("pipeline/new.sql") == new["pipeline/new.sql"]


def test_an_applied_file_was_edited(school: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    # given: a revision that was deployed weeks ago, and an edit of its file that is committed
    file = school.freeze("aaaa1111")
    git = Repository(school.folder)
    school("stamp", "head")
    file.write_text(file.read_text().replace("> 90", "> 80"))
    git.commit("mend a typing error")

    # then: the pull request fails on that file, with the difference
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(school.folder))
    said = school("check", code=1).err
    path = f"revisions/{file.name}"
    assert f"::error file={path},title=sqlmig::revision aaaa1111 was applied, and its" in said
    assert "\n  -WHERE a.class_avg > 90;\n  +WHERE a.class_avg > 80;\n" in said
    for words in (["plan", "--offline"], ["upgrade"]):
        assert "its file was edited afterwards" in school(*words, code=1).err

    # when: it is reverted, and made in a revision of its own
    git("revert", "--no-edit", "HEAD")
    # line ends that an editor or Git changed don't count
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    school.write("pipeline/views.sql", VIEWS.replace("> 90", "> 80"))
    school.freeze("bbbb2222")

    # then
    school("check")
    assert school("plan", "--offline", "--json").json["target"] == "bbbb2222"


def test_two_deploy_at_once(shop: Shell) -> None:
    # given: a deployment that is in the middle of its work
    freeze_hooks(
        shop,
        "bbbb2222",
        f"{NOTE}def wait(context):\n    import pathlib, time\n\n    note('once ')\n"
        "    while not pathlib.Path('go').exists():\n        time.sleep(0.05)\n\n\n"
        "def up(op):\n    op.run(wait)\n",
    )
    with subprocess.Popen(
        [sys.executable, "-m", "sqlmig", "upgrade", "head", "--yes"],
        cwd=shop.folder,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as first:
        try:
            while not ran(shop):
                assert first.poll() is None, first.communicate()[1]
                time.sleep(0.05)

            # when
            second = shop.start("upgrade", "head", "--yes")
            back = shop.start("downgrade", "base")
        finally:
            (shop.folder / "go").touch()
            said = first.communicate(timeout=60)[1]

    # then: one deploys, and the others are told who does before they touch anything
    assert (first.returncode, said.splitlines()[-1]) == (0, "bbbb2222 is deployed.")
    for other in (second, back):
        assert other.code == 1
        assert f" is being run by process {first.pid} on " in other.err
        assert "hint: wait for it; `sqlmig status` shows how far it is" in other.err
    assert ran(shop) == "once "
    assert shop("history", "--deployed").out.count(" upgrade ") == 1


def test_a_stale_lock_after_a_killed_job(shop: Shell) -> None:
    # given: a job that is killed while it deploys
    freeze_hooks(
        shop,
        "bbbb2222",
        f"{NOTE}def work(context):\n    import os, pathlib\n\n    note('begun ')\n"
        "    if not pathlib.Path('go').exists():\n        os.kill(os.getpid(), 9)\n\n\n"
        "def up(op):\n    op.run(work)\n",
    )
    assert shop.start("upgrade", "head", "--yes").code == -9
    assert ", which died\n" in shop("status").out

    # when: the job is started again, and nobody has removed anything by hand
    (shop.folder / "go").touch()
    again = shop.start("upgrade", "head", "--yes")

    # then: it finishes what the other one began
    assert again.code == 0
    assert ", which had died under way, was finished first.\n" in again.err
    assert shop("current").out == "bbbb2222 (head)\n"
    assert ran(shop) == "begun begun "


def test_half_applied(shop: Shell) -> None:
    # given: a revision of which the second half fails
    freeze_hooks(
        shop,
        "bbbb2222",
        f"{NOTE}def first(context):\n    note('first ')\n\n\n"
        "def second(context):\n    import pathlib\n\n    note('second ')\n"
        "    if not pathlib.Path('go').exists():\n        raise ValueError('no such host')\n\n\n"
        "def up(op):\n    op.run(first)\n    op.run(second)\n",
    )

    # when
    said = shop.start("upgrade", "head", "--yes")

    # then: it is applied not at all, and there is nothing to clean up
    assert said.code == 1
    assert said.err.endswith(
        "error: step 4 (run second()) failed: no such host; the pipeline is back at revision "
        "aaaa1111, its data as before\n\n"
        "hint: mend the cause and run the command again; nothing has to be undone\n"
    )
    assert shop("current").out == "aaaa1111\n"
    assert shop("repair").err == "No plan is unfinished.\n"

    # when: the cause is mended
    (shop.folder / "go").touch()
    assert shop.start("upgrade", "head", "--yes").code == 0

    # then
    assert shop("current").out == "bbbb2222 (head)\n"
    assert ran(shop) == "first second first second "


def test_a_needless_rebuild_after_reformatting(school: Shell) -> None:
    # given: a deployed revision, and a formatter that ran over the project
    school.freeze("aaaa1111")
    git = Repository(school.folder)
    school("stamp", "head")
    school.write("pipeline/views.sql", REFORMATTED)
    git.commit("reformat")

    # then: nothing is frozen, checked as different, or planned
    assert school("diff").err == "No changes.\n"
    school("check")
    said = school("revision", "-m", "reformatted").err
    assert said.startswith("No changes since aaaa1111: no revision made.\n")
    plan = school("plan", "--offline", "--json").json
    assert [change for names in plan["diff"]["program_diff"].values() for change in names] == []

    # and what really changes is found among it
    school.write("pipeline/views.sql", REFORMATTED.replace("> 90", "> 95"))
    (change,) = school("diff").out.splitlines()
    assert change.startswith("~ materialized view honours: ")


def test_a_bot_that_comments_ten_times(shop: Shell) -> None:
    git = Repository(shop.folder)
    git("switch", "--quiet", "-c", "feature")
    with github() as server:
        job = Desk(shop.folder, server)
        server.add(7, "looks good")
        for push in range(10):
            # when: a pull request is pushed to, and planned
            freeze_hooks(shop, f"bbbb{push:04}", f"def up(op):\n    op.execute('DELETE {push}')\n")
            git.commit(f"push {push}")
            shop("plan", "head", "--offline", "--format", "markdown", "-o", "plan.md")
            job("comment", "plan.md", ". prod")

        # then: it has one comment, with the newest plan
        talk, ours = server.bodies(7)
    assert talk == "looks good"
    assert ours.startswith("<!-- sqlmig: . prod -->\n### sqlmig upgrade `aaaa1111` → `bbbb0009`\n")
    assert [request.split()[0] for request in server.requests] == ["POST", *["PATCH"] * 9]


def test_a_plan_that_was_not_what_ran(shop: Shell) -> None:
    # given: a plan that waits since Monday
    monday = f"{NOTE}def work(context):\n    note('monday ')\n\n\ndef up(op):\n    op.run(work)\n"
    file = freeze_hooks(shop, "bbbb2222", monday)
    waits = ("upgrade", "head", "--bootstrap-policy", "await_approval")
    assert shop.start(*waits).code == 3
    plan = shop("status", "--json").json["plan"]

    # when: the files are other ones on Tuesday, when it is approved
    file.write_text(file.read_text().replace("monday", "tuesday"))
    approved = shop.start("approve", plan)

    # then: what was approved is what runs
    assert approved.code == 0
    assert ran(shop) == "monday "

    # given: two plans, of which the second took the first one's place
    file.write_text(file.read_text().replace("tuesday", "monday"))
    freeze_hooks(shop, "cccc3333", monday)
    assert shop.start(*waits).code == 3
    first = shop("status", "--json").json["plan"]
    freeze_hooks(shop, "dddd4444", monday)
    assert shop.start(*waits).code == 3

    # then: the first one can't be approved any more
    said = shop("approve", first, code=5).err
    assert said.startswith(f"error: plan {first} does not wait for approval; plan ")
    assert ran(shop) == "monday "
