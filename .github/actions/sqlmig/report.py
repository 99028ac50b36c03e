"""What a run of sqlmig says on GitHub: the job's summary, one comment, outputs, another run.

It needs Python alone, and reads nothing but GitHub's own variables and the files it is given.

    report.py plan REPORT SAID          the plan, or why there is none: to the summary
    report.py comment REPORT ABOUT      the same as a comment, the one of before written over
    report.py deployed CODE DONE SAID   what a deployment did: to the summary and to the outputs
    report.py run-again                 start the workflow anew: the plan was outdated
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

LONGEST = 65_000
"""GitHub takes comments of 65,536 characters."""
STATUS = {3: "awaiting_approval", 5: "outdated"}
HEADINGS = {
    "applied": "deployed",
    "nothing_to_do": "nothing to do",
    "awaiting_approval": "waits for approval",
    "outdated": "refused: the plan is outdated",
    "failed": "not deployed",
}


def tell_plan(report: Path, said: Path) -> None:
    """Put the plan into the summary; where there is none, write the report from what was said."""
    if not report.is_file():
        report.write_text(f"### sqlmig: no plan\n\n{fenced(spoken(said))}\n", encoding="utf-8")
    append("GITHUB_STEP_SUMMARY", report.read_text(encoding="utf-8"))


def comment(report: Path, about: str) -> None:
    """Write the one comment of this pull request about a pipeline's target.

    It is known by a hidden mark at its beginning. Where the token may not write, as in a pull
    request from a fork, that is said, and nothing fails: the summary has the same text.
    """
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = event.get("pull_request", {}).get("number")
    if number is None:
        return
    mark = f"<!-- sqlmig: {' '.join(about.split()).replace('--', '- -')} -->"
    commit = event["pull_request"]["head"]["sha"][:12]
    text = report.read_text(encoding="utf-8")
    if len(text) > LONGEST:
        text = (
            text[:LONGEST].rpartition("\n")[0] + "\n\n*Cut here; the summary of the job has all.*\n"
        )
    body = f"{mark}\n{text}\n<sub>of commit {commit}; written anew with each push</sub>\n"
    issues = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    try:
        ours = [c["id"] for c in all_comments(f"{issues}/{number}/comments") if is_ours(c, mark)]
        if ours:
            ask("PATCH", f"{issues}/comments/{ours[0]}", {"body": body})
        else:
            ask("POST", f"{issues}/{number}/comments", {"body": body})
        for extra in ours[1:]:
            ask("DELETE", f"{issues}/comments/{extra}")
    except (urllib.error.URLError, TimeoutError) as error:
        told = f"the comment could not be written ({error}); the summary has it"
        print(f"::warning title=sqlmig::{told}")


def is_ours(written: dict[str, Any], mark: str) -> bool:
    """Whether a comment begins with this mark; one that quotes it does not."""
    return str(written["body"]).startswith(mark)


def all_comments(path: str) -> list[dict[str, Any]]:
    """Every comment of an issue, oldest first."""
    found: list[dict[str, Any]] = []
    for page in range(1, 101):
        part = ask("GET", f"{path}?per_page=100&page={page}")
        found += part
        if len(part) < 100:
            break
    return found


def tell_deployed(code: int, done: Path, said: Path) -> None:
    """Put what a deployment did into the summary, and its status and plan into the outputs."""
    text = done.read_text(encoding="utf-8").strip() if done.is_file() else ""
    result = json.loads(text) if text else {}
    status = STATUS.get(code, "failed") if code else result.get("status", "applied")
    plan = result.get("plan", "")
    target = os.environ.get("SQLMIG_TARGET", "")
    where = f" to `{target}`" if target else ""
    append(
        "GITHUB_STEP_SUMMARY",
        f"### sqlmig{where}: {HEADINGS[status]}\n\n{fenced(spoken(said))}\n",
    )
    append("GITHUB_OUTPUT", f"status={status}\nplan={plan}\n")


def run_again() -> None:
    """Start the workflow that this is a run of anew, on the same branch."""
    reference = os.environ["GITHUB_WORKFLOW_REF"]
    name = reference.partition("@")[0].rpartition("/")[2]
    branch = os.environ["GITHUB_REF_NAME"]
    path = f"/repos/{os.environ['GITHUB_REPOSITORY']}/actions/workflows/{name}/dispatches"
    try:
        ask("POST", path, {"ref": branch})
    except (urllib.error.URLError, TimeoutError) as error:
        print(f"::error title=sqlmig::the plan is outdated, and no new run was started ({error})")
        return
    print(
        "::error title=sqlmig::the plan is outdated; a new run plans again and waits for approval"
    )


def ask(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """GitHub's answer to a request of its REST API; None where it has no body."""
    request = urllib.request.Request(
        os.environ.get("GITHUB_API_URL", "https://api.github.com") + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def append(variable: str, text: str) -> None:
    """Append to the file that a variable of GitHub's names."""
    with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
        file.write(text if text.endswith("\n") else f"{text}\n")


def spoken(said: Path) -> str:
    """What the commands said, without what is meant for GitHub itself."""
    lines = said.read_text(encoding="utf-8").splitlines() if said.is_file() else []
    return "\n".join(line for line in lines if not line.startswith("::")).strip()


def fenced(text: str) -> str:
    """Text as a block of code that nothing in it can end."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}text\n{text or 'nothing was said'}\n{fence}"


def main(words: list[str]) -> None:
    """Do what the first word says."""
    match words:
        case ["plan", report, said]:
            tell_plan(Path(report), Path(said))
        case ["comment", report, about]:
            comment(Path(report), about)
        case ["deployed", code, done, said]:
            tell_deployed(int(code), Path(done), Path(said))
        case ["run-again"]:
            run_again()
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
