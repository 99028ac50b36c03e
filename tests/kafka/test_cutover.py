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

ORDERS = "CREATE TABLE orders (id BIGINT PRIMARY KEY, amount INT);\n"
VIEWS = """\
CREATE MATERIALIZED VIEW v1 AS SELECT id, amount FROM orders WHERE id < 3;
CREATE MATERIALIZED VIEW v2 AS SELECT id, amount + id DIV 2 AS amount FROM orders WHERE id < 3;
CREATE MATERIALIZED VIEW v3 AS SELECT id, amount + id DIV 2 AS amount FROM orders;
CREATE MATERIALIZED VIEW v4 AS SELECT id, amount + id DIV 2 AS amount FROM orders WHERE id > 1;
"""
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

    def readers(self) -> dict[str | None, int]:
        """What readers have who applied all records in order."""
        found = compacted(self._kafka.consume(self.name))
        return {key: json.loads(value)["amount"] for key, value in found.items()}


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_moved_sink_puts_a_stale_value_a_missing_key_and_a_left_over_key_right(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    topic = Topic(kafka, "cutover_scenarios")
    sql = ORDERS + VIEWS
    project = make_project(tmp_path, {"all.sql": sql + feed(kafka, "v1", topic.name)})
    commands.revision(project, "a", rev_id="a")
    commands.upgrade(project, "head")
    commands.execute(project, ROWS)
    commands.run(project)
    assert topic.new() == [("1", 10), ("2", 20)]

    # when: the value of a key is another one in the new relation
    project = revise(tmp_path, "b", sql + feed(kafka, "v2", topic.name))
    done = commands.upgrade(project, "head")

    # then: it is sent, and the equal row is not
    assert [step.cause for step in done.plan.steps][2:4] == [
        "moved from `v1` to `v2`; sends the rows that differ",
        "goes on as `v2.feed`",
    ]
    assert done.tick is not None
    assert done.tick.sent == {"v2.feed": 1}
    assert topic.new() == [("2", 21)]
    assert topic.readers() == {"1": 10, "2": 21}

    # when: the new relation has a key that the old one lacks; rows come at the same time
    project = revise(tmp_path, "c", sql + feed(kafka, "v3", topic.name))
    commands.execute(project, "INSERT INTO orders VALUES (4, 40)")
    commands.upgrade(project, "head")

    # then
    assert topic.new() == [("3", 31), ("4", 42)]
    assert topic.readers() == {"1": 10, "2": 21, "3": 31, "4": 42}

    # when: the new relation lacks a key that the old one has, which itself goes
    left = "".join(line + "\n" for line in VIEWS.splitlines() if "VIEW v3" not in line)
    project = revise(tmp_path, "d", ORDERS + left + feed(kafka, "v4", topic.name))
    commands.upgrade(project, "head")

    # then: a tombstone
    assert topic.new() == [("1", None)]
    assert topic.readers() == {"2": 21, "3": 31, "4": 42}

    # when: back, where the key is again
    commands.downgrade(project, "-1")
    assert commands.run(project).sent == {"v3.feed": 1}
    assert topic.new() == [("1", 10)]
    status = commands.status(project).sinks["v3.feed"]
    assert (status["generation"], status["rows"]) == (1, 7)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_rebuilt_relation_is_sent_whole_or_passed_over_or_not_at_all_as_it_is_asked(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    # given
    topic = Topic(kafka, "cutover_modes")
    sink = feed(kafka, "v1", topic.name, ", compatibility 'full'")
    first = ORDERS + VIEWS.splitlines()[0] + "\n" + sink
    project = make_project(tmp_path, {"all.sql": first})
    commands.revision(project, "a", rev_id="a")
    commands.upgrade(project, "head")
    commands.execute(project, ROWS)
    commands.run(project)
    assert topic.new() == [("1", 10), ("2", 20)]

    # when: the view is made anew, and a snapshot is asked for
    second = first.replace("id < 3", "id > 1")
    project = revise(tmp_path, "b", second, 'op.cutover("v1.feed", "snapshot")')
    done = commands.upgrade(project, "head")

    # then: every row, also the one that is the same, and a tombstone
    assert done.tick is not None
    assert done.tick.sent == {"v1.feed": 3}
    assert topic.new() == [("1", None), ("2", 20), ("3", 30)]

    # when: made anew once more, and only later changes are asked for
    third = second.replace("SELECT id, amount", "SELECT id, amount + 1 AS amount")
    project = revise(tmp_path, "c", third, 'op.cutover("v1.feed", "continue")')
    done = commands.upgrade(project, "head")
    assert done.tick is not None
    assert done.tick.sent == {}
    commands.execute(project, "INSERT INTO orders VALUES (3, 50), (4, 40)")
    assert commands.run(project).sent == {"v1.feed": 2}

    # then: what the cutover changed of key 2 is not there
    assert topic.new() == [("3", 51), ("4", 41)]
    assert topic.readers() == {"2": 20, "3": 51, "4": 41}
    sink_status = commands.status(project).sinks["v1.feed"]
    assert sink_status["is_continued"]

    # when: a type becomes another one, and a column goes
    fourth = third.replace("amount + 1 AS amount", "CAST(amount AS BIGINT) AS amount")
    project = revise(tmp_path, "d", fourth)
    with pytest.raises(BlockedError) as raised:
        commands.upgrade(project, "head")

    # then: nothing was done
    assert "column `amount` became `bigint`, and present readers have `int`" in str(raised.value)
    (blocker,) = commands.make_plan(project).blockers
    assert str(blocker.location) == "pipeline/all.sql:2:32"
    assert "compatibility 'backward'" in (blocker.hint or "")
    assert commands.status(project).revision == "c"
    assert topic.new() == []
