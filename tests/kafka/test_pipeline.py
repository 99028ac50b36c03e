"""Kafka in a deployed pipeline: plans, ticks and status; secrets stay out of all that is kept."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.errors import SqlmigError
from sqlmig.execution.values import Mark
from tests.kafka.broker import Broker
from tests.stories.school import make_project, rows, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "s3cret-of-the-broker"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="u" password="{SECRET}";'
)
SQL = """\
CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id));
CREATE SOURCE feed INTO people USING kafka OPTIONS (
  'kafka.bootstrap.servers' '{servers}', subscribe 'secretive', format 'json',
  'kafka.sasl.jaas.config' '${{env:KAFKA_JAAS}}'{more}
);
CREATE MATERIALIZED VIEW names AS SELECT count(name) AS n FROM people;
"""
REFUSED = ", 'kafka.security.protocol' 'SASL_PLAINTEXT', 'kafka.sasl.mechanism' 'PLAIN'"


def ingest(project: Project) -> None:
    """A round of the source outside of a tick, whose error is raised."""
    deployment = project.deployment()
    program = project.parse_deployed(deployment.program)
    source, cut = program.sources["people.feed"], deployment.cut
    project.engine.ingest(
        program,
        source,
        cut.connectors["people.feed"],
        cut.relations["people"],
        Mark("school", "by hand", 0, "b"),
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_secret_of_a_kafka_source_is_nowhere_also_when_it_can_not_connect(
    kafka: Broker,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # given
    monkeypatch.setenv("KAFKA_JAAS", JAAS)
    kafka.create_topic("secretive")
    kafka.produce("secretive", [(None, '{"id": 1, "name": "Ann"}'), (None, "{no")])
    servers = kafka.bootstrap_servers
    project = make_project(tmp_path, {"p.sql": SQL.format(servers=servers, more="")})
    commands.revision(project, "first", rev_id="a")

    # when: what the broker does not ask for is sent to nobody
    commands.upgrade(project)

    # then: the tick after the upgrade has read it
    state = commands.status(project).connectors["people.feed"]
    assert (state["rows"], state["rejected"], state["behind"]) == (1, 1, 0)
    assert rows(project, "SELECT * FROM names") == [{"n": 1}]

    # when: the broker speaks no SASL; then the secret is no JAAS at all
    said: list[str] = []
    raised: list[SqlmigError] = []
    more = REFUSED + ", 'kafka.default.api.timeout.ms' '6000', 'kafka.request.timeout.ms' '3000'"
    write_pipeline(tmp_path, {"p.sql": SQL.format(servers=servers, more=more)})
    commands.revision(project, "second", rev_id="b")
    commands.upgrade(project)
    for value in (JAAS, SECRET):
        monkeypatch.setenv("KAFKA_JAAS", value)
        said.append(str(commands.run(project).failures))
        with pytest.raises(SqlmigError) as caught:
            ingest(project)
        raised.append(caught.value)
        said += [caught.value.render(), "".join(traceback.format_exception(caught.value))]

    # then
    cannot = f"source `people.feed`: can't log in to the Kafka broker at {servers}: "
    assert f"pipeline/p.sql:2:1: {cannot}" in said[0]
    assert raised[0].message.startswith(cannot)
    assert raised[1].message == (
        "source `people.feed`: Kafka can't use the source's options: "
        "failed to create new KafkaAdminClient"
    )
    assert str(raised[1].location) == "pipeline/p.sql:2:1"
    assert "people.feed" in str(commands.status(project).error)
    kept = rows(project, "SELECT id FROM people") + [
        row.asDict()
        for row in spark.read.format("delta")
        .load(project.warehouse.rejected_path("people.feed"))
        .collect()
    ]
    printed = capfd.readouterr()
    every = tmp_path_factory.getbasetemp().rglob("*.log")
    logs = [path.read_text(errors="replace") for path in every if path.is_file()]
    assert any("kafka" in log.lower() for log in logs), "Spark's log is among those searched"
    stored = [p.read_bytes().decode(errors="replace") for p in tmp_path.rglob("*") if p.is_file()]
    places = {
        "ledger": repr(project.ledger.read()),
        "rows": repr(kept),
        "errors": "\n".join(said),
        "terminal": printed.out + printed.err,
        "logs": "\n".join(logs),
        "files": "\n".join(stored),
    }
    assert {name for name, text in places.items() if SECRET in text} == set()
