"""What the action says on GitHub: one comment, a summary, outputs, another run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.github.desk import Desk
from tests.github.server import github


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with github() as server:
        yield Desk(tmp_path, server)


def test_a_pull_request_has_one_comment_however_often_it_is_pushed_to(desk: Desk) -> None:
    # given: people talk, one of them quotes us, and it fills a page of a hundred
    for number in range(120):
        desk.server.add(7, f"comment {number}")
    desk.server.add(7, "> <!-- sqlmig: . prod -->\n> quoted")
    talk = desk.server.bodies(7)

    # when
    for push in range(10):
        desk.write("plan.md", f"### plan {push}\n")
        desk("comment", "plan.md", ". prod")

    # then
    *others, ours = desk.server.bodies(7)
    assert others == talk
    assert ours == (
        "<!-- sqlmig: . prod -->\n### plan 9\n\n"
        "<sub>of commit c0ffeec0ffee; written anew with each push</sub>\n"
    )
    assert [r.split()[0] for r in desk.server.requests] == ["POST", *["PATCH"] * 9]
    assert desk.server.tokens == {"Bearer t0ken"}


def test_each_target_has_a_comment_and_one_too_many_goes(desk: Desk) -> None:
    desk.write("plan.md", "### plan\n")
    desk("comment", "plan.md", "shop prod")
    desk("comment", "plan.md", "school prod")
    assert len(desk.server.bodies(7)) == 2
    desk.server.add(7, "<!-- sqlmig: shop prod -->\nfrom a run at the same time", "Bot")

    desk("comment", "plan.md", "shop prod")

    first, second = desk.server.bodies(7)
    assert first.startswith("<!-- sqlmig: shop prod -->\n### plan")
    assert second.startswith("<!-- sqlmig: school prod -->\n### plan")


def test_a_long_plan_is_cut_where_a_comment_ends(desk: Desk) -> None:
    desk.write("plan.md", "a line of a plan\n" * 6000)

    desk("comment", "plan.md", ". prod")

    (body,) = desk.server.bodies(7)
    assert len(body) < 65_536
    assert "\n\n*Cut here; the summary of the job has all.*\n" in body


def test_a_token_that_may_not_write_fails_nothing(desk: Desk) -> None:
    desk.server.may_write = False
    desk.write("plan.md", "### plan\n")

    said = desk("comment", "plan.md", ". prod")

    assert said == (
        "::warning title=sqlmig::the comment could not be written (HTTP Error 403: Forbidden); "
        "the summary has it\n"
    )


def test_a_push_has_no_comment(desk: Desk) -> None:
    desk.write("plan.md", "### plan\n")
    desk.write("push.json", json.dumps({"ref": "refs/heads/main"}))

    desk("comment", "plan.md", ". prod", GITHUB_EVENT_PATH=str(desk.folder / "push.json"))

    assert desk.server.requests == []


def test_where_there_is_no_plan_the_report_says_why(desk: Desk) -> None:
    desk.write("said.txt", "error: no ```such``` column\n::error title=sqlmig::no such column\n")

    desk("plan", "plan.md", "said.txt")

    told = "### sqlmig: no plan\n\n````text\nerror: no ```such``` column\n````\n"
    assert desk.read("plan.md") == told
    assert desk.read("GITHUB_STEP_SUMMARY") == told


@pytest.mark.parametrize(
    ("code", "done", "status", "heading"),
    [
        ("0", '{"status": "applied", "plan": "ab12"}', "applied", "deployed"),
        ("0", '{"status": "nothing_to_do", "plan": "ab12"}', "nothing_to_do", "nothing to do"),
        (
            "3",
            '{"status": "awaiting_approval", "plan": "ab12"}',
            "awaiting_approval",
            "waits for approval",
        ),
        ("5", "", "outdated", "refused: the plan is outdated"),
        ("1", "", "failed", "not deployed"),
    ],
)
def test_a_deployment_is_told_in_the_summary_and_in_outputs(
    desk: Desk, code: str, done: str, status: str, heading: str
) -> None:
    desk.write("done.json", done)
    desk.write("said.txt", "r2 is deployed.\n")

    desk("deployed", code, "done.json", "said.txt", SQLMIG_TARGET="prod")

    assert desk.read("GITHUB_STEP_SUMMARY") == (
        f"### sqlmig to `prod`: {heading}\n\n```text\nr2 is deployed.\n```\n"
    )
    plan = "ab12" if done else ""
    assert desk.read("GITHUB_OUTPUT") == f"status={status}\nplan={plan}\n"


def test_an_outdated_plan_starts_the_same_workflow_again(desk: Desk) -> None:
    said = desk("run-again")

    assert desk.server.dispatched == [("sqlmig.yml", "main")]
    assert said.startswith("::error title=sqlmig::the plan is outdated; a new run plans again")

    desk.server.may_write = False
    assert "no new run was started (HTTP Error 403" in desk("run-again")
