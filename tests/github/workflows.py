"""Runs a workflow's `run:` commands as GitHub's runner would: jobs, steps, our composite action.

Actions of others (`actions/checkout`, ...) are left out: the checkout is made already, Python, Java
and sqlmig are there.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.github.expressions import evaluate, filled, shown

LEFT_OUT = {
    "actions/cache",
    "actions/checkout",
    "actions/setup-java",
    "actions/setup-python",
}
_FUNCTIONS = {
    "always": lambda: True,
    "success": lambda: True,
    "hashFiles": lambda *_: "0",
}


@dataclass
class Job:
    """What became of a job.

    Args:
        result: `success`, `failure` or `skipped`.
        log: all that its commands printed.
        summary: the Markdown of its page.
    """

    result: str
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""
    summary: str = ""


@dataclass(frozen=True)
class Runner:
    """A runner with a checkout.

    Args:
        checkout: GITHUB_WORKSPACE.
        tools: the folder of `python` and `sqlmig`.
        api: the URL of GitHub's REST API.
        variables: those of the repository.
        inputs: what every use of our action gets besides what the workflow says.
    """

    checkout: Path
    tools: Path
    api: str
    variables: Mapping[str, str]
    inputs: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(
        self, path: str, event: str, payload: Mapping[str, Any], *, approve: bool = True
    ) -> dict[str, Job]:
        """Run the workflow at `path` for an event; job -> what became of it.

        Args:
            approve: whether a person lets the jobs of a protected environment go.
        """
        workflow = load(self.checkout / path)
        done: dict[str, Job] = {}
        for name, job in workflow["jobs"].items():
            needs = job.get("needs", [])
            needed = [needs] if isinstance(needs, str) else needs
            contexts = self._contexts(event, payload, path)
            contexts["needs"] = {
                n: {"outputs": done[n].outputs, "result": done[n].result} for n in needed
            }
            may_run = all(done[n].result == "success" for n in needed)
            if not may_run or not evaluate(str(job.get("if", "success()")), contexts):
                done[name] = Job("skipped")
            elif "environment" in job and not approve:
                done[name] = Job("waiting")
            else:
                done[name] = self._job(job, contexts)
        return done

    def again(
        self,
        path: str,
        name: str,
        before: Mapping[str, Job],
        event: str,
        payload: Mapping[str, Any],
    ) -> Job:
        """Let a job go that waited for a person, with the outputs of the jobs before it."""
        job = load(self.checkout / path)["jobs"][name]
        contexts = self._contexts(event, payload, path)
        contexts["needs"] = {n: {"outputs": j.outputs} for n, j in before.items()}
        return self._job(job, contexts)

    def _contexts(self, event: str, payload: Mapping[str, Any], path: str) -> dict[str, Any]:
        return {
            "github": {
                "event_name": event,
                "event": payload,
                "token": "t0ken",
                "ref": payload.get("ref", "refs/heads/main"),
                "action_path": "",
                "workflow_ref": f"school/pipeline/{path}@refs/heads/main",
            },
            "vars": self.variables,
            "runner": {"os": "Linux"},
            "functions": _FUNCTIONS,
        }

    def _job(self, job: Mapping[str, Any], contexts: dict[str, Any]) -> Job:
        done = Job("success")
        with tempfile.TemporaryDirectory() as scratch:
            contexts = {**contexts, "scratch": Path(scratch), "steps": {}}
            self._steps(job["steps"], contexts, done)
        done.outputs = {
            name: filled(text, contexts) for name, text in job.get("outputs", {}).items()
        }
        return done

    def _steps(self, steps: list[dict[str, Any]], contexts: dict[str, Any], done: Job) -> None:
        for step in steps:
            if done.result != "success":
                return
            if not evaluate(str(step.get("if", "success()")), contexts):
                continue
            if "uses" in step:
                outputs = self._use(step, contexts, done)
            else:
                outputs = self._command(step, contexts, done)
            if "id" in step:
                contexts["steps"][step["id"]] = {"outputs": outputs}

    def _use(self, step: Mapping[str, Any], contexts: dict[str, Any], done: Job) -> dict[str, str]:
        name = step["uses"].partition("@")[0]
        if name in LEFT_OUT:
            return {}
        assert name.startswith("./"), name
        folder = self.checkout / name
        action = load(folder / "action.yml")
        given = {n: filled(shown(v), contexts) for n, v in step.get("with", {}).items()}
        assert given.keys() <= action["inputs"].keys(), f"{name} has no such input"
        inputs = {
            n: given.get(n, filled(shown(spec.get("default", "")), contexts))
            for n, spec in action["inputs"].items()
        }
        inner = {
            **contexts,
            "inputs": {**inputs, **self.inputs},
            "steps": {},
            "github": {**contexts["github"], "action_path": str(folder)},
        }
        self._steps(action["runs"]["steps"], inner, done)
        return {n: filled(spec["value"], inner) for n, spec in action.get("outputs", {}).items()}

    def _command(
        self, step: Mapping[str, Any], contexts: dict[str, Any], done: Job
    ) -> dict[str, str]:
        scratch: Path = contexts["scratch"]
        files = {name: scratch / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("", encoding="utf-8")
        event = scratch / "event.json"
        event.write_text(_json(contexts["github"]["event"]), encoding="utf-8")
        script = scratch / "script.sh"
        script.write_text(filled(step["run"], contexts), encoding="utf-8")
        environment = {
            **os.environ,
            **self.environment,
            "PATH": f"{self.tools}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.checkout),
            "GITHUB_REPOSITORY": "school/pipeline",
            "GITHUB_API_URL": self.api,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REF_NAME": contexts["github"]["ref"].rpartition("/")[2],
            "GITHUB_WORKFLOW_REF": contexts["github"]["workflow_ref"],
            "RUNNER_TEMP": str(scratch),
            **{name: str(file) for name, file in files.items()},
            **{n: filled(shown(v), contexts) for n, v in step.get("env", {}).items()},
        }
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.checkout / filled(step.get("working-directory", "."), contexts),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        done.log += ran.stdout
        done.summary += files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        if ran.returncode:
            done.result = "failure"
        lines = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)


def load(path: Path) -> dict[Any, Any]:
    """A YAML file; its key `on` is read as true."""
    loaded: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def _json(value: Any) -> str:
    import json

    return json.dumps(value)
