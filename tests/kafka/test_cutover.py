"""Sinks that are cut over, on a real topic: its readers end up with the relation, whatever differs.

The three scenarios are those in which a cutover that only passes on later changes leaves a topic
wrong: a stale value, a missing key, a left-over key.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmig import commands
from sqlmig.commands import Project
from sqlmig.errors import BlockedError
from tests.kafka.broker import Broker
from tests.kafka.test_sinks import compacted, decoded
from tests.stories.school import make_project, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.example

ORDERS = "CREATE TABLE orders (id BIGINT PRIMARY KEY, amount INT);\n"
LARGE = "CREATE MATERIALIZED VIEW large AS SELECT id, amount FROM orders WHERE id < 3;\n"
BLUE_AND_GREEN = ORDERS.replace("orders", "blue") + ORDERS.replace("orders", "green")
ROWS = "INSERT INTO orders VALUES (1, 10), (2, 20), (3, 30)"


def feed(kafka: Broker, relation: str, topic: str, more: str = "") -> str:
    """The sink's statement."""
    return (
        f"CREATE SINK feed FROM {relation} USING kafka OPTIONS ('kafka.bootstrap.servers' "
        f"'{kafka.bootstrap_servers}', topic '{topic}', key 'id'{more});\n"
    )


def revise(root: Path, name: str, sql: str, up: str = "pass") -> Project:
    """The project with a new revision, whose `up` has this body."""
    write_pipeline(root, {"all.sql": sql})
    file = commands.revision(commands.open_project(root), name, rev_id=name).file
    assert file is not None
    path = root / file.path
    text = path.read_text(encoding="utf-8")
    before, middle, after = text.partition("def up(op):\n    pass")
    assert middle
    path.write_text(f"{before}def up(op):\n    {up}{after}", encoding="utf-8")
    return commands.open_project(root)


class Topic:
    """A topic, of which each reading gives the records that came since."""

    def __init__(self, kafka: Broker, name: str) -> None:
        self._kafka = kafka
        self.name = name
        self._read = 0
        kafka.create_topic(name)

    def new(self) -> list[tuple[str | None, int | None]]:
        """Key and `amount` of the records since the last reading, None for a tombstone; sorted."""
        records = decoded(self._kafka.consume(self.name))
        fresh, self._read = records[self._read :], len(records)
        amounts = [(key, json.loads(value)["amount"] if value else None) for key, value in fresh]
        return sorted(amounts, key=str)

    def of(self, key: str) -> list[int | None]:
        """The values of `amount` that a key had, in order; None for a tombstone."""
        records = decoded(self._kafka.consume(self.name))
        return [
            json.loads(text)["amount"] if text else None for name, text in records if name == key
        ]

    def readers(self) -> dict[str | None, int]:
        """What readers have who applied all records in order."""
        found = compacted(self._kafka.consume(self.name))
        return {key: json.loads(value)["amount"] for key, value in found.items()}


@pytest.fixture(scope="module")
def moved(
    kafka: Broker, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Topic, Project]:
    """A sink of `blue`, which has 1, 2 and 5, moved to `green`, which has 2, 3 and 5; ticked."""
    root = tmp_path_factory.mktemp("moved")
    topic = Topic(kafka, "cutover_scenarios")
    blue = BLUE_AND_GREEN + feed(kafka, "blue", topic.name)
    project = make_project(root, {"all.sql": blue})
    commands.revision(project, "a", rev_id="a")
    commands.upgrade(project, "head")
    commands.execute(project, "INSERT INTO blue VALUES (1, 10), (2, 20), (5, 50)")
    commands.execute(project, "INSERT INTO green VALUES (2, 21), (3, 30), (5, 50)")
    commands.run(project)
    assert topic.new() == [("1", 10), ("2", 20), ("5", 50)]
    project = revise(root, "b", blue.replace("FROM blue", "FROM green"))
    done = commands.upgrade(project, "head")
    assert [step.cause for step in done.plan.steps][2:4] == [
        "moved from `blue` to `green`; sends the rows that differ",
        "goes on as `green.feed`",
    ]
    assert done.tick is not None
    assert done.tick.sent == {"green.feed": 3}
    return topic, project


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_stale_value_is_put_right(moved: tuple[Topic, Project]) -> None:
    topic, _ = moved
    assert topic.of("2") == [20, 21]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_missing_key_is_sent(moved: tuple[Topic, Project]) -> None:
    topic, _ = moved
    assert topic.of("3") == [30]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_left_over_key_gets_a_tombstone(moved: tuple[Topic, Project]) -> None:
    topic, _ = moved
    assert topic.of("1") == [10, None]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_an_equal_row_is_not_sent_again_and_the_way_back_sends_the_opposite(
    moved: tuple[Topic, Project],
) -> None:
    topic, project = moved
    assert topic.of("5") == [50]
    assert topic.readers() == {"2": 21, "3": 30, "5": 50}
    topic.new()
    commands.downgrade(project, "-1")
    assert commands.run(project).sent == {"blue.feed": 3}
    assert topic.new() == [("1", 10), ("2", 20), ("3", None)]
    status = commands.status(project).sinks["blue.feed"]
    assert (status["generation"], status["rows"], status["state"]) == (1, 9, "current")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_rebuilt_relation_is_sent_whole_or_passed_over_or_not_at_all_as_it_is_asked(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    topic = Topic(kafka, "cutover_modes")
    sink = feed(kafka, "large", topic.name, ", compatibility 'full'")
    first = ORDERS + LARGE + sink
    project = make_project(tmp_path, {"all.sql": first})
    commands.revision(project, "a", rev_id="a")
    commands.upgrade(project, "head")
    commands.execute(project, ROWS)
    commands.run(project)
    assert topic.new() == [("1", 10), ("2", 20)]

    # when: the view is made anew, and a snapshot is asked for
    second = first.replace("id < 3", "id > 1")
    project = revise(tmp_path, "b", second, 'op.cutover("large.feed", "snapshot")')
    done = commands.upgrade(project, "head")

    # then: every row, also the one that is the same, and a tombstone
    assert done.tick is not None
    assert done.tick.sent == {"large.feed": 3}
    assert topic.new() == [("1", None), ("2", 20), ("3", 30)]

    # when: made anew once more, and only later changes are asked for
    third = second.replace("SELECT id, amount", "SELECT id, amount + 1 AS amount")
    project = revise(tmp_path, "c", third, 'op.cutover("large.feed", "continue")')
    done = commands.upgrade(project, "head")
    assert done.tick is None, "there is nothing to send"
    commands.execute(project, "INSERT INTO orders VALUES (3, 50), (4, 40)")
    assert commands.run(project).sent == {"large.feed": 2}

    # then: what the cutover changed of key 2 is not there
    assert topic.new() == [("3", 51), ("4", 41)]
    assert topic.readers() == {"2": 20, "3": 51, "4": 41}
    sink_status = commands.status(project).sinks["large.feed"]
    assert sink_status["is_continued"]

    # when: a type becomes another one, and a column goes
    fourth = third.replace("amount + 1 AS amount", "CAST(amount AS BIGINT) AS amount")
    project = revise(tmp_path, "d", fourth)
    with pytest.raises(BlockedError) as raised:
        commands.upgrade(project, "head")

    # then: nothing was done
    told = str(raised.value)
    assert "pipeline/all.sql:2:35: sink `large.feed`: column `amount` became `bigint`, " in told
    assert "that breaks its compatibility `full`" in told
    assert commands.status(project).revision == "c"
    assert topic.new() == []
