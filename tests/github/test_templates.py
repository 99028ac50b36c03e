"""The workflows that we run and that `sqlmig init` writes: what is in them, and who may do what."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqlmig.templating import copy_project
from tests.cli.shell import new_project
from tests.github.actionlint import find_actionlint, lint
from tests.github.workflows import load

ROOT = Path(__file__).parents[2]
ACTION = ".github/actions/sqlmig"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A new project with GitHub's workflow."""
    copy_project(tmp_path / "shop")
    return tmp_path / "shop"


def steps(action: dict[Any, Any], name: str) -> dict[str, Any]:
    """The step of the action with a name."""
    (found,) = [step for step in action["runs"]["steps"] if step.get("name") == name]
    return dict(found)


def test_our_own_workflows_use_the_action_that_projects_get(shop: Path) -> None:
    for name in ("action.yml", "report.py"):
        ours = (ROOT / ACTION / name).read_text(encoding="utf-8")
        assert (shop / ACTION / name).read_text(encoding="utf-8") == ours
    jobs = load(ROOT / ".github/workflows/ci.yml")["jobs"]
    for job in jobs.values():
        assert [step["uses"] for step in job["steps"] if "uses" in step] == [
            "actions/checkout@v4",
            f"./{ACTION}",
        ]


def test_a_pull_request_is_checked_and_planned_with_no_more_rights_than_a_comment_needs(
    shop: Path,
) -> None:
    workflow = load(shop / ".github/workflows/sqlmig.yml")
    action = load(shop / ACTION / "action.yml")

    # YAML 1.1 reads the key `on` as true
    assert set(workflow[True]) == {"pull_request", "push", "workflow_dispatch"}
    assert workflow["permissions"] == {"contents": "read"}
    plan = workflow["jobs"]["plan"]
    assert plan["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert plan["steps"][1]["with"] == {"command": "plan", "target": "${{ vars.SQLMIG_TARGET }}"}
    run = steps(action, "Check and plan")["run"]
    assert "sqlmig check && sqlmig plan head --format markdown" in run
    assert "options=(--preview " in run


def test_one_deployment_runs_at_a_time_and_a_protected_environment_approves(shop: Path) -> None:
    workflow = load(shop / ".github/workflows/sqlmig.yml")
    action = load(shop / ACTION / "action.yml")

    deploy, approve = workflow["jobs"]["deploy"], workflow["jobs"]["approve"]
    one = {"group": "sqlmig-deploy", "cancel-in-progress": False}
    assert deploy["concurrency"] == approve["concurrency"] == one
    assert "vars.SQLMIG_TARGET != ''" in deploy["if"]
    assert "environment" not in deploy
    assert approve["environment"] == "production"
    assert approve["permissions"] == {"contents": "read", "actions": "write"}
    assert approve["steps"][1]["with"]["plan"] == "${{ needs.deploy.outputs.plan }}"
    assert "sqlmig upgrade head --json" in steps(action, "Deploy")["run"]
    assert "--yes" not in steps(action, "Deploy")["run"]
    assert 'sqlmig approve "$PLAN"' in steps(action, "Approve")["run"]


def test_no_command_has_an_expression_in_its_text(shop: Path) -> None:
    """What a user of GitHub names (a branch, a target) reaches a shell as a variable only."""
    for file in (shop / ".github").rglob("*.yml"):
        for run in re.findall(r"run: \|\n((?: {8,}.*\n|\n)+)", file.read_text(encoding="utf-8")):
            assert "${{" not in run


def test_gitlab_plans_merge_requests_and_waits_for_a_person(tmp_path: Path) -> None:
    copy_project(tmp_path / "shop", ci="gitlab")
    jobs = yaml.safe_load((tmp_path / "shop" / ".gitlab-ci.yml").read_text(encoding="utf-8"))

    assert "sqlmig check && sqlmig plan head --format markdown" in jobs["plan"]["script"][0]
    assert jobs["plan"]["artifacts"]["paths"] == ["plan.md"]
    assert jobs["deploy"]["resource_group"] == jobs["approve"]["resource_group"] == "sqlmig"
    assert jobs["deploy"]["allow_failure"] == {"exit_codes": 3}
    assert jobs["approve"]["rules"][0]["when"] == "manual"
    assert jobs["approve"]["script"] == ['sqlmig approve "$SQLMIG_PLAN"']


def test_gitlabs_scripts_are_read_by_a_shell(tmp_path: Path) -> None:
    copy_project(tmp_path / "shop", ci="gitlab")
    jobs = yaml.safe_load((tmp_path / "shop" / ".gitlab-ci.yml").read_text(encoding="utf-8"))

    for name in ("plan", "deploy", "approve"):
        script = "\n".join(jobs[name]["script"])
        read = subprocess.run(
            ["sh", "-n"], input=script, capture_output=True, text=True, check=False
        )
        assert (read.returncode, read.stderr) == (0, "")


def test_the_hook_before_a_commit_finds_what_is_not_frozen(shop: Path, tmp_path: Path) -> None:
    (ours,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    config = yaml.safe_load((shop / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (theirs,) = config["repos"][0]["hooks"]
    shell = new_project(tmp_path / "school")
    shell.freeze("aaaa1111")

    for hook in (ours, theirs):
        assert (hook["id"], hook["pass_filenames"]) == ("sqlmig-check", False)
        assert hook["entry"] == "sqlmig check"
        assert re.search(hook["files"], "pipeline/views.sql")
        assert re.search(hook["files"], "revisions/20260101_aaaa1111_first.py")
        assert not re.search(hook["files"], "README.md")
        shell("check")
    shell.write("pipeline/views.sql", "CREATE VIEW none AS SELECT 1 AS one;")
    assert 'hint: `sqlmig revision -m "..."` freezes it' in shell("check", code=1).err


def test_the_image_runs_the_pipeline(shop: Path) -> None:
    text = (shop / "Dockerfile").read_text(encoding="utf-8")
    orders = dict(re.findall(r"^([A-Z]+) (.*)$", text, re.MULTILINE))

    assert orders["ENTRYPOINT"] == '["sqlmig"]'
    assert orders["CMD"] == '["run"]'
    assert orders["USER"] == "sqlmig"
    ignored = (shop / ".dockerignore").read_text(encoding="utf-8").split()
    assert {"warehouse", ".sqlmig"} <= set(ignored)
    assert ".git" not in ignored, "the ledger keeps the commit"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_actionlint_finds_nothing_in_our_workflows_and_those_of_a_new_project(shop: Path) -> None:
    actionlint = find_actionlint()
    if actionlint is None:
        pytest.skip("there is neither actionlint nor Go")
    assert {path: lint(actionlint, path) for path in (ROOT, shop)} == {ROOT: "", shop: ""}

    broken = shop / ".github/workflows/sqlmig.yml"
    text = broken.read_text(encoding="utf-8")
    broken.write_text(text.replace("command: plan", "comand: plan"), encoding="utf-8")
    assert 'input "comand" is not defined in action "sqlmig"' in lint(actionlint, shop)
