"""Kafka, files and Delta as sources and sinks where Spark and its jars are a server's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.desk import Desk
from tests.cluster.projects import Site, site
from tests.cluster.servers import Server
from tests.kafka.broker import Broker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SQL = """\
CREATE TABLE people (id BIGINT, name STRING, city STRING, PRIMARY KEY (id));
CREATE SOURCE feed INTO people USING kafka OPTIONS (
  'kafka.bootstrap.servers' '{servers}', subscribe 'served_people', format 'json'
);
CREATE MATERIALIZED VIEW cities AS SELECT city, count(*) AS n FROM people GROUP BY city;
CREATE SINK topic FROM cities USING kafka OPTIONS (
  'kafka.bootstrap.servers' '{servers}', topic 'served_cities', key 'city'
);
CREATE SINK files FROM cities USING json OPTIONS (path 'out/cities', key 'city');
CREATE SINK table FROM people USING delta OPTIONS (path 'out/people');
CREATE TABLE events (n BIGINT);
CREATE SINK log FROM events USING delta OPTIONS (path 'out/log');
"""
COPIES = """\
CREATE TABLE copies (n BIGINT, _op STRING);
CREATE SOURCE log INTO copies USING delta OPTIONS (path 'out/log');
"""
COUNTED = "SELECT * FROM cities ORDER BY city"


@pytest.fixture
def here(client: Path, without_java: Mapping[str, str], connect: Server, tmp_path: Path) -> Site:
    """A project whose Spark is the server's; its own process has no Java."""
    return site(Desk(client, {"remote": connect.address}, without_java), tmp_path)


def test_kafka_files_and_delta_are_read_and_written_by_a_connect_server(
    kafka: Broker, here: Site
) -> None:
    # given: a topic with a record that is bad
    kafka.create_topic("served_people", 2)
    kafka.create_topic("served_cities")
    kafka.produce(
        "served_people", [person(1, "Ann", "Oslo"), person(2, "Bob", "Rome"), ("3", "{no")]
    )
    sql = SQL.format(servers=kafka.bootstrap_servers)
    here.freeze("r1", all=sql)

    # when
    first = here("upgrade", "head", "--json").json["tick"]

    # then: each record counts once, and the sinks say what the view says
    assert first["failures"] == {}
    assert first["ingested"]["people.feed"] == {"rows": 2, "rejected": 1}
    assert here.rows(COUNTED) == [{"city": "Oslo", "n": 1}, {"city": "Rome", "n": 1}]
    assert sent(kafka) == {"Oslo": 1, "Rome": 1}

    # when: one moves, one is deleted, and the view is changed by an upgrade between two records
    kafka.produce("served_people", [person(1, "Ann", "Rome"), ("2", None)])
    here("exec", "INSERT INTO events VALUES (1), (2)")
    here("run", "--once")
    here.freeze("r2", all=sql.replace("count(*) AS n", "count(*) * 10 AS n"), more=COPIES)
    upgraded = here("upgrade", "head", "--json").json
    kafka.produce("served_people", [person(4, "Cy", "Oslo")])
    last = here("run", "--once", "--json").json

    # then
    assert upgraded["tick"]["failures"] == last["failures"] == {}
    assert here.rows(COUNTED) == [{"city": "Oslo", "n": 10}, {"city": "Rome", "n": 10}]
    assert sent(kafka) == {"Oslo": 10, "Rome": 10}
    assert here.rows("SELECT * FROM copies ORDER BY n") == [
        {"n": 1, "_op": "insert"},
        {"n": 2, "_op": "insert"},
    ]
    lines = [
        json.loads(line)
        for file in sorted((here.folder / "out/cities").glob("batch=*/*.json"))
        for line in file.read_text().splitlines()
    ]
    assert {"_op": "upsert", "city": "Oslo", "n": 10} in lines
    status = here("status", "--json").json
    assert status["connectors"]["people.feed"]["behind"] == 0
    here.desk.close()


def person(number: int, name: str, city: str) -> tuple[str, str]:
    """A record of the topic, with its key."""
    return str(number), json.dumps({"id": number, "name": name, "city": city})


def sent(kafka: Broker) -> dict[str, Any]:
    """City -> what a reader of the sink's topic ends up with."""
    found: dict[str, Any] = {}
    for message in kafka.consume("served_cities"):
        city = (message.key or b"").decode()
        if message.value is None:
            found.pop(city, None)
        else:
            found[city] = json.loads(message.value)["n"]
    return found
