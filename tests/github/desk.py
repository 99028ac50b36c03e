"""A job on a pull request, as far as report.py sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.github.server import GitHub

SCRIPT = Path(__file__).parents[2] / ".github/actions/sqlmig/report.py"


@dataclass
class Desk:
    """Runs report.py as a step of a job on pull request 7 would."""

    folder: Path
    server: GitHub

    def __call__(self, *words: str, **environment: str) -> str:
        event = {"pull_request": {"number": 7, "head": {"sha": "c0ffee" * 6}}}
        self.write("event.json", json.dumps(event))
        files = {
            name: str(self.folder / name)
            for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "event.json")
        }
        files["GITHUB_EVENT_PATH"] = files.pop("event.json")
        done = subprocess.run(
            [sys.executable, str(SCRIPT), *words],
            cwd=self.folder,
            env={
                **os.environ,
                **files,
                "GITHUB_API_URL": self.server.url,
                "GITHUB_REPOSITORY": "school/pipeline",
                "GITHUB_TOKEN": "t0ken",
                "GITHUB_REF_NAME": "main",
                "GITHUB_WORKFLOW_REF": "school/pipeline/.github/workflows/sqlmig.yml@main",
                **environment,
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")
