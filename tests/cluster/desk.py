"""A process that runs sqlmig's commands one after the other, with one Spark for all of them.

`python -m tests.cluster.desk` reads one JSON object a line, {"folder": ..., "words": [...]}, runs
`sqlmig WORDS` in that folder, and answers {"code": ..., "out": ..., "err": ...}. It needs sqlmig
and nothing of the tests' own packages, so that it runs where only a client is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, read as JSON."""
        return json.loads(self.out)


@dataclass
class Desk:
    """The process, seen from the test.

    Args:
        python: what runs it.
        spark: the target's `spark`, as sqlmig.yml has it.
        environment: of the process.
    """

    python: Path
    spark: Mapping[str, Any]
    environment: Mapping[str, str]
    _process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        self._process = subprocess.Popen(
            [self.python, "-m", "tests.cluster.desk"],
            cwd=ROOT,
            env={**self.environment, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, folder: Path, *words: str, code: int = 0) -> Said:
        """Run `sqlmig WORDS` in `folder`; it must end with `code`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"folder": str(folder), "words": words}) + "\n")
        self._process.stdin.flush()
        said = Said(**json.loads(self._process.stdout.readline()))
        assert said.code == code, f"sqlmig {' '.join(words)}: {said}"
        assert "Traceback" not in said.err
        return said

    def start(self, folder: Path, *words: str) -> subprocess.Popen[str]:
        """Start `python -m WORDS` beside the desk, with a Spark of its own: a deployer, a runner.

        Args:
            words: `sqlmig run`, or a module of the tests and its arguments.
        """
        return subprocess.Popen(
            [self.python, "-m", *words],
            cwd=folder,
            env={**self.environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def close(self) -> None:
        """End the process, and its Spark with it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def main() -> None:
    """Answer until standard input ends."""
    from click.testing import CliRunner

    from sqlmig.cli import main as sqlmig
    from sqlmig.spark.session import close_sessions

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        asked = json.loads(line)
        os.chdir(asked["folder"])
        result = CliRunner().invoke(sqlmig, asked["words"])
        said = {"code": result.exit_code, "out": result.stdout, "err": result.stderr}
        answers.write(json.dumps(said) + "\n")
        answers.flush()
    close_sessions()


if __name__ == "__main__":
    main()
