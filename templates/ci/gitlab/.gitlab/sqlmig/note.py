"""What a plan says on GitLab: one note on the merge request, written over with each push.

It needs Python alone, and reads nothing but GitLab's own variables and the files it is given.

    note.py REPORT SAID ABOUT      the plan, or why there is none: to the report and the note

REPORT is the plan, SAID is what the commands printed, ABOUT names the pipeline's target. The token
is the CI/CD variable SQLMIG_GITLAB_TOKEN; without it the report is all there is.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

LONGEST = 900_000
"""GitLab takes notes of 1,000,000 characters."""
TOKEN = "SQLMIG_GITLAB_TOKEN"


def note(report: Path, said: Path, about: str) -> str:
    """Write the one note of this merge request about a pipeline's target.

    It is known by a hidden mark at its beginning. Where there is no token, or it may not write, the
    report is left for the job's artifact, and nothing fails.

    Returns:
        What was done, in words.
    """
    if not report.is_file():
        report.write_text(f"### sqlmig: no plan\n\n{fenced(said)}\n", encoding="utf-8")
    left = f"the job's artifact {report.name} has the plan"
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        return f"no note: {TOKEN} is not set; {left}"
    if not (token.isascii() and token.isprintable()):
        return f"no note: {TOKEN} is no token; {left}"
    mark = f"<!-- sqlmig: {' '.join(about.split()).replace('--', '- -')} -->"
    last = f"<sub>of commit {commit()}; written anew with each push</sub>"
    body = f"{mark}\n{shortened(report)}\n{last}\n"
    try:
        ours = [found["id"] for found in all_notes(token) if is_ours(found, mark)]
        if ours:
            ask(token, "PUT", f"/{ours[0]}", {"body": body})
        else:
            ask(token, "POST", "", {"body": body})
        for extra in ours[1:]:
            ask(token, "DELETE", f"/{extra}")
    except (urllib.error.URLError, TimeoutError) as error:
        return f"no note: it could not be written ({error}); {left}"
    return "the plan is in a note of the merge request"


def is_ours(written: dict[str, Any], mark: str) -> bool:
    """Whether a note begins with this mark; one that quotes it does not."""
    return not written.get("system") and str(written["body"]).startswith(mark)


def all_notes(token: str) -> list[dict[str, Any]]:
    """Every note of the merge request, oldest first."""
    found: list[dict[str, Any]] = []
    for page in range(1, 101):
        part = ask(token, "GET", f"?sort=asc&order_by=created_at&per_page=100&page={page}")
        found += part
        if len(part) < 100:
            break
    return found


def ask(token: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """GitLab's answer to a request about the merge request's notes; None where it has no body."""
    project = os.environ["CI_MERGE_REQUEST_PROJECT_ID"]
    number = os.environ["CI_MERGE_REQUEST_IID"]
    notes = f"/projects/{project}/merge_requests/{number}/notes"
    request = urllib.request.Request(
        os.environ["CI_API_V4_URL"] + notes + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "PRIVATE-TOKEN": token},
    )
    with urllib.request.build_opener(NoDetour).open(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


class NoDetour(urllib.request.HTTPRedirectHandler):
    """A redirection is an error: the token goes to GitLab and to nobody else."""

    def redirect_request(self, *_: Any) -> None:
        """Nowhere."""


def shortened(report: Path) -> str:
    """The report as a note can have it: not too long, and with no line that GitLab would obey."""
    text = report.read_text(encoding="utf-8")
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition("\n")[0] + "\n\n*Cut here; the job's artifact has all.*\n"
    # `/merge` at the beginning of a line is an order, not a text
    return re.sub("^/", " /", text, flags=re.MULTILINE)


def commit() -> str:
    """The newest commit of the branch; a pipeline of merged results works on another one."""
    return (os.environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or os.environ["CI_COMMIT_SHA"])[
        :12
    ]


def fenced(said: Path) -> str:
    """What the commands said, as a block of code that nothing in it can end."""
    text = said.read_text(encoding="utf-8").strip() if said.is_file() else ""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}text\n{text or 'nothing was said'}\n{fence}"


def main(words: list[str]) -> None:
    """Write the note and say what became of it."""
    match words:
        case [report, said, about]:
            print(f"sqlmig: {note(Path(report), Path(said), about)}")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
