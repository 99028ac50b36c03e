"""A pipeline that is changed on GitHub: the commands of the workflows, run as its runner would.

A bare repository, a developer's clone, a runner's checkouts, a Spark Connect server; of GitHub
itself, the few calls that the action makes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.servers import Server
from tests.github.repository import Repository
from tests.github.server import GitHub, github
from tests.github.workflows import Job, Runner

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

WORKFLOW = ".github/workflows/sqlmig.yml"
GOLDEN = Path(__file__).parents[1] / "github" / "golden"
CONFIG = """\
pipeline: shop
targets:
  prod:
    spark: {{remote: "{remote}", conf: {{spark.sql.shuffle.partitions: "1"}}}}
    warehouse: {warehouse}
    bootstrap_policy: {policy}
"""
TOTALS = "SELECT customer_id, order_count, CAST(total_amount AS DOUBLE) AS t FROM customer_totals"


@dataclass
class Site:
    """The project of `sqlmig init` in a repository, with a target that can be reached."""

    repository: Repository
    server: GitHub
    warehouse: Path
    runs: int = 0
    pulls: dict[str, int] = field(default_factory=dict)

    def runner(self, checkout: Path) -> Runner:
        """A runner on which everything is installed."""
        return Runner(
            checkout,
            self.repository.tools,
            self.server.url,
            {"SQLMIG_TARGET": "prod"},
            {"install": "", "python-version": "", "java-version": "", "samples": "2"},
        )

    def pull_request(self, branch: str) -> Job | None:
        """The job `plan` of a push to a pull request; None where it conflicts with main."""
        self.runs += 1
        checkout = self.repository.merged(f"run-{self.runs}", branch)
        if checkout is None:
            return None
        number = self.pulls.setdefault(branch, len(self.pulls) + 1)
        head = self.repository.git("rev-parse", f"origin/{branch}").strip()
        payload = {
            "ref": f"refs/pull/{number}/merge",
            "pull_request": {"number": number, "head": {"sha": head}},
        }
        jobs = self.runner(checkout).run(WORKFLOW, "pull_request", payload)
        assert (jobs["deploy"].result, jobs["approve"].result) == ("skipped", "skipped")
        return jobs["plan"]

    def pushed(self, event: str = "push") -> tuple[Mapping[str, Job], Runner, dict[str, Any]]:
        """The jobs of a push to main; no person has let the last one go yet."""
        self.runs += 1
        runner = self.runner(self.repository.checkout(f"run-{self.runs}"))
        payload = {"ref": "refs/heads/main"}
        jobs = runner.run(WORKFLOW, event, payload, approve=False)
        assert jobs["plan"].result == "skipped"
        return jobs, runner, payload

    def comment(self, branch: str) -> str:
        """The one comment of a pull request."""
        (body,) = self.server.bodies(self.pulls[branch])
        return body

    def deployed(self) -> str:
        """The deployed revision."""
        said = self.repository.sqlmig("current", "--json")
        return str(json.loads(said)["revision"])

    def rows(self, sql: str) -> list[list[Any]]:
        """The rows of a query, sorted."""
        said = self.repository.sqlmig("query", sql, "--json")
        return sorted(list(row.values()) for row in json.loads(said))


@pytest.fixture
def site(client: Path, connect: Server, tmp_path: Path) -> Iterator[Site]:
    """A repository whose main has the first revision; nothing is deployed."""
    repository = Repository(tmp_path / "git", client.parent)
    repository.begin()
    repository.sqlmig("init", ".")
    warehouse = tmp_path / "warehouse"
    with github() as server:
        made = Site(repository, server, warehouse)
        configure(made, connect, "await_approval")
        repository.sqlmig("revision", "-m", "first", "--rev-id", "r1")
        repository.push("start")
        yield made


def configure(site: Site, connect: Server, policy: str) -> None:
    text = CONFIG.format(remote=connect.address, warehouse=site.warehouse, policy=policy)
    site.repository.write("sqlmig.yml", text)


def branch(site: Site, name: str) -> Repository:
    """A new branch from what main is now."""
    repository = site.repository
    repository.git("fetch", "--quiet", "origin")
    repository.git("checkout", "--quiet", "-B", name, "origin/main")
    return repository


def change_date(repository: Repository, year: int) -> None:
    views = repository.desk / "pipeline/views.sql"
    text = re.sub(r"DATE '\d+-", f"DATE '{year}-", views.read_text(encoding="utf-8"))
    views.write_text(text, encoding="utf-8")


def fill(site: Site) -> None:
    site.repository.sqlmig("exec", "INSERT INTO customers VALUES (1, 'Bob'), (2, 'Alice')")
    site.repository.sqlmig(
        "exec",
        "INSERT INTO orders VALUES (1, 1, 20.00, DATE '2026-02-01'), "
        "(2, 1, 1.50, DATE '2025-12-03'), (3, 2, 5.50, DATE '2025-12-03')",
    )
    site.repository.sqlmig("run", "--once")


def golden(name: str, text: str) -> None:
    """Compare with what was looked at and found right, but for ids, sizes and the commit."""
    plain = re.sub(r"Plan `[0-9a-f]{12}`", "Plan `PLAN`", text)
    plain = re.sub(r"commit [0-9a-f]{12}", "commit COMMIT", plain)
    plain = re.sub(r"[\d.]+ (?:B|KiB)\b", "SIZE", plain)
    assert plain == (GOLDEN / name).read_text(encoding="utf-8")


def test_a_change_goes_from_a_pull_request_over_an_approval_into_the_pipeline(site: Site) -> None:
    # given: the first revision is merged; its plan waits for a person, and is let go
    jobs, runner, payload = site.pushed()
    assert jobs["deploy"].outputs["status"] == "awaiting_approval", jobs["deploy"].log
    assert jobs["deploy"].summary.startswith(
        "### sqlmig to `prod`: waits for approval\n\n```text\n"
    )
    assert jobs["approve"].result == "waiting"
    assert site.deployed() == "None"
    approved = runner.again(WORKFLOW, "approve", jobs, "push", payload)
    assert approved.result == "success", approved.log
    assert "### sqlmig to `prod`: deployed\n" in approved.summary
    assert site.deployed() == "r1"
    fill(site)

    # when: a pull request is pushed to whose change is not frozen
    repository = branch(site, "december")
    change_date(repository, 2025)
    repository.push("Count December", "december")
    stopped = site.pull_request("december")

    # then: the check fails before Spark is asked, and the comment says why
    assert stopped is not None
    assert stopped.result == "failure"
    assert "### sqlmig: no plan\n" in site.comment("december")
    assert "error: pipeline/ differs from the head r1:" in site.comment("december")

    # when: it is frozen
    repository.sqlmig("revision", "-m", "count December", "--rev-id", "r2")
    repository.push("Freeze it", "december")
    planned = site.pull_request("december")

    # then: the same comment has the plan, with the rows that it would change; so has the summary
    assert planned is not None
    assert planned.result == "success", planned.log
    golden("comment.md", site.comment("december"))
    assert planned.summary in site.comment("december")
    assert site.deployed() == "r1"

    # when: it is merged, and while its plan waits somebody turns that down
    site.repository.merge("december")
    jobs, runner, payload = site.pushed()
    assert jobs["deploy"].outputs["status"] == "awaiting_approval", jobs["deploy"].log
    assert jobs["deploy"].outputs["plan"] in jobs["deploy"].summary
    site.repository.sqlmig("reject")
    refused = runner.again(WORKFLOW, "approve", jobs, "push", payload)

    # then: the approval is refused, and the workflow is started again
    assert refused.result == "failure"
    assert "### sqlmig to `prod`: refused: the plan is outdated\n" in refused.summary
    assert site.server.dispatched == [("sqlmig.yml", "main")]
    assert site.deployed() == "r1"

    # and that plans again, and is approved
    jobs, runner, payload = site.pushed("workflow_dispatch")
    approved = runner.again(WORKFLOW, "approve", jobs, "workflow_dispatch", payload)
    assert approved.result == "success", approved.log
    assert site.deployed() == "r2"
    assert site.rows(TOTALS) == [[1, 2, 21.5], [2, 1, 5.5]]

    # and another run has nothing to do
    jobs, _, _ = site.pushed()
    assert (jobs["deploy"].outputs["status"], jobs["approve"].result) == (
        "nothing_to_do",
        "skipped",
    )

    # when: the merge is reverted
    repository.git("revert", "--no-edit", "--mainline", "1", "HEAD")
    repository.git("push", "--quiet", "origin", "main")
    jobs, runner, payload = site.pushed()
    assert jobs["deploy"].outputs["status"] == "awaiting_approval", jobs["deploy"].log
    assert "has no file here: commit" in jobs["deploy"].summary
    approved = runner.again(WORKFLOW, "approve", jobs, "push", payload)

    # then: the pipeline is back, by the rows that Delta still has
    assert approved.result == "success", approved.log
    assert site.deployed() == "r1"
    assert "restore `customer_totals`" in approved.summary
    assert site.rows(TOTALS) == [[1, 1, 20.0]]

    # when: the revert is reverted
    repository.git("revert", "--no-edit", "HEAD")
    repository.git("push", "--quiet", "origin", "main")
    jobs, runner, payload = site.pushed()
    approved = runner.again(WORKFLOW, "approve", jobs, "push", payload)

    # then: and forth again
    assert approved.result == "success", approved.log
    assert site.deployed() == "r2"
    assert site.rows(TOTALS) == [[1, 2, 21.5], [2, 1, 5.5]]


def test_what_two_pull_requests_or_a_broken_one_do_is_found_before_main(
    site: Site, connect: Server
) -> None:
    # given: a target that needs no approval, deployed; two pull requests, each with a revision
    configure(site, connect, "allow")
    site.repository.push("Deploy at once")
    jobs, _, _ = site.pushed()
    assert jobs["deploy"].outputs["status"] == "applied", jobs["deploy"].log
    fill(site)
    for name in ("big", "small"):
        sign = ">" if name == "big" else "<="
        repository = branch(site, name)
        sql = f"CREATE MATERIALIZED VIEW {name} AS SELECT id FROM orders WHERE amount {sign} 5;\n"
        repository.write(f"pipeline/{name}.sql", sql)
        repository.sqlmig("revision", "-m", name, "--rev-id", name)
        repository.push(f"Add {name}", name)

    # when: one is merged
    site.repository.merge("big")
    stopped = site.pull_request("small")

    # then: the other one conflicts with it in Git, so that GitHub can't merge it
    assert stopped is None
    repository = site.repository
    repository.git("checkout", "--quiet", "small")
    repository.git("fetch", "--quiet", "origin")
    join(repository)
    repository.push("Merge main", "small")
    planned = site.pull_request("small")
    assert planned is not None
    assert planned.result == "success", planned.log
    assert "| added | materialized view | `small` |" in site.comment("small")

    # when: it is merged, too
    repository.merge("small")
    jobs, _, _ = site.pushed()

    # then
    assert jobs["deploy"].outputs["status"] == "applied", jobs["deploy"].log
    assert site.rows("SELECT * FROM big") == [[1], [3]]
    assert site.rows("SELECT * FROM small") == [[2]]

    # when: a pull request breaks a query
    repository = branch(site, "broken")
    repository.write(
        "pipeline/big.sql",
        "\nCREATE MATERIALIZED VIEW big AS\nSELECT id + array(1) AS id\nFROM orders;\n",
    )
    repository.sqlmig("revision", "-m", "broken", "--rev-id", "broken")
    repository.push("Break it", "broken")
    blocked = site.pull_request("broken")

    # then: the check fails, at the line
    assert blocked is not None
    assert blocked.result == "failure"
    assert "::error file=pipeline/big.sql,line=3," in blocked.log
    assert "**Blocked:**" in site.comment("broken")
    assert site.deployed() == "both"

    # when: one computes what today's rows don't allow
    repository = branch(site, "zero")
    sql = "CREATE MATERIALIZED VIEW big AS\nSELECT id div (id - id) AS id FROM orders;\n"
    repository.write("pipeline/big.sql", sql)
    repository.sqlmig("revision", "-m", "zero", "--rev-id", "zero")
    repository.push("Divide", "zero")
    unwell = site.pull_request("zero")

    # then: its preview fails as the deployment would
    assert unwell is not None
    assert unwell.result == "failure"
    assert "### sqlmig: no plan\n" in site.comment("zero")
    assert "division by zero" in site.comment("zero").lower()

    # when: it is merged all the same
    repository.merge("zero")
    jobs, _, _ = site.pushed()

    # then: the pipeline stays at the old revision, and the job says so
    failed = jobs["deploy"]
    assert (failed.result, failed.outputs["status"]) == ("failure", "failed")
    assert "### sqlmig to `prod`: not deployed\n" in failed.summary
    assert "taken back to both" in failed.summary
    assert "No plan is unfinished." in failed.summary
    assert site.deployed() == "both"
    assert site.rows("SELECT * FROM big") == [[1], [3]]


def join(repository: Repository) -> None:
    """Take main into the branch, and make one head of two: Git leaves the heads to sqlmig."""
    repository.git("merge", "--quiet", "--no-edit", "origin/main", code=1)
    assert repository.git("diff", "--name-only", "--diff-filter=U") == "revisions/heads.lock\n"
    repository.sqlmig("merge", "-m", "both views", "--rev-id", "both")
