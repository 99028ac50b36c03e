"""What GitLab's template says on a merge request: one note, and never its token."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqlmig.templating import copy_project
from tests.cli.shell import Shell
from tests.gitlab.server import GitLab, gitlab

ROOT = Path(__file__).parents[2]
SECRET = "glpat-s3cret"


@dataclass
class Job:
    """Runs commands as a job of the merge request 7 of project 12 would."""

    folder: Path
    server: GitLab
    log: str = ""

    def __call__(self, *words: str, **environment: str) -> str:
        return self.run([sys.executable, ".gitlab/sqlmig/note.py", *words], environment)

    def run(
        self, words: list[str], environment: Mapping[str, str] | None = None, *, code: int = 0
    ) -> str:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env={
                **os.environ,
                "CI_API_V4_URL": self.server.url,
                "CI_COMMIT_SHA": "c0ffee" * 6,
                "CI_MERGE_REQUEST_IID": "7",
                "CI_MERGE_REQUEST_PROJECT_ID": "12",
                "SQLMIG_GITLAB_TOKEN": SECRET,
                **(environment or {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout
        assert SECRET not in done.stdout
        return done.stdout

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    @property
    def notes(self) -> list[str]:
        return self.server.bodies(12, 7)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    copy_project(tmp_path / "shop", ci="gitlab")
    with gitlab() as server:
        yield Job(tmp_path / "shop", server)


def test_a_merge_request_has_one_note_however_often_it_is_pushed_to(job: Job) -> None:
    # given: people talk, one of them quotes us, and it fills a page of a hundred
    for number in range(120):
        job.server.add(12, 7, f"note {number}")
    job.server.add(12, 7, "> <!-- sqlmig: . prod -->\n> quoted")
    job.server.add(12, 7, "<!-- sqlmig: . prod --> was mentioned", system=True)
    talk = job.notes

    # when
    said = set()
    for push in range(10):
        job.write("plan.md", f"### plan {push}\n")
        said.add(job("plan.md", "said.txt", ". prod"))

    # then
    *others, ours = job.notes
    assert others == talk
    assert ours == (
        "<!-- sqlmig: . prod -->\n### plan 9\n\n"
        "<sub>of commit c0ffeec0ffee; written anew with each push</sub>\n"
    )
    assert [r.split()[0] for r in job.server.requests] == ["POST", *["PUT"] * 9]
    assert said == {"sqlmig: the plan is in a note of the merge request\n"}


def test_each_target_has_a_note_and_one_too_many_goes(job: Job) -> None:
    job.write("plan.md", "### plan\n")
    job("plan.md", "said.txt", ". prod")
    job("plan.md", "said.txt", ". test")
    job.server.add(12, 7, "<!-- sqlmig: . prod -->\nfrom a pipeline at the same time")

    job("plan.md", "said.txt", ". prod", CI_MERGE_REQUEST_SOURCE_BRANCH_SHA="b0a7" * 10)

    first, second = job.notes
    assert first.startswith("<!-- sqlmig: . prod -->\n### plan\n\n<sub>of commit b0a7b0a7b0a7;")
    assert second.startswith("<!-- sqlmig: . test -->\n### plan\n")


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("", "SQLMIG_GITLAB_TOKEN is not set"),
        (f"{SECRET}\nin two lines", "SQLMIG_GITLAB_TOKEN is no token"),
        (f"{SECRET}-revoked", "it could not be written (HTTP Error 401: Unauthorized)"),
    ],
)
def test_without_a_token_that_may_write_the_artifact_is_left_and_nothing_fails(
    job: Job, token: str, why: str
) -> None:
    job.write("plan.md", "### plan\n")

    said = job("plan.md", "said.txt", ". prod", SQLMIG_GITLAB_TOKEN=token)

    assert said == f"sqlmig: no note: {why}; the job's artifact plan.md has the plan\n"
    assert job.notes == []
    assert (job.folder / "plan.md").read_text() == "### plan\n"


def test_the_token_goes_to_no_other_server(job: Job) -> None:
    job.write("plan.md", "### plan\n")
    with gitlab() as other:
        job.server.detour = other.url

        said = job("plan.md", "said.txt", ". prod")

        assert "it could not be written (HTTP Error 302: Found)" in said
        assert (other.shown, other.requests) == ("", [])


def test_a_note_holds_no_line_that_gitlab_would_obey_and_none_too_many(job: Job) -> None:
    job.write("plan.md", "### plan\n/merge\nof a/b\n" + "a line of a plan\n" * 60_000)

    job("plan.md", "said.txt", ". prod")

    (body,) = job.notes
    assert body.startswith("<!-- sqlmig: . prod -->\n### plan\n /merge\nof a/b\na line")
    assert "\n\n*Cut here; the job's artifact has all.*\n" in body
    assert len(body) < 1_000_000


def test_the_job_plans_writes_the_note_and_ends_as_the_plan_did(job: Job) -> None:
    # given: a first revision that is frozen; Spark is not asked here
    shell = Shell(job.folder)
    shell.freeze("aaaa1111")
    script = _script(job).replace("--preview", "--offline")

    # when
    said = job.run(["sh", "-ec", script])

    # then
    assert "No changes: pipeline/ is the program of aaaa1111." in said
    (planned,) = job.notes
    assert planned.startswith("<!-- sqlmig: . -->\n### ")
    assert "aaaa1111" in planned
    assert (job.folder / "plan.md").read_text() in planned

    # when: the next push is not frozen
    (job.folder / "plan.md").unlink()
    shell.write("pipeline/views.sql", "CREATE VIEW none AS SELECT 1 AS one;")
    said = job.run(["sh", "-ec", script], code=1)

    # then
    (refused,) = job.notes
    assert refused.startswith(
        "<!-- sqlmig: . -->\n### sqlmig: no plan\n\n```text\nerror: pipeline/"
    )
    assert 'hint: `sqlmig revision -m "..."` freezes it\n```' in refused
    assert "the plan is in a note of the merge request" in said


def _script(job: Job) -> str:
    """The commands of the job `plan`, with this checkout's sqlmig and Python."""
    text = (job.folder / ".gitlab-ci.yml").read_text(encoding="utf-8")
    jobs: dict[str, Any] = yaml.safe_load(text)
    python = shlex.quote(sys.executable)
    root = shlex.quote(str(ROOT))
    return "\n".join(
        [
            f"export PYTHONPATH={root}",
            f'sqlmig() {{ {python} -m sqlmig "$@"; }}',
            f'python() {{ {python} "$@"; }}',
            *jobs["plan"]["script"],
        ]
    )
