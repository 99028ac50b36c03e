"""Options of sources: a wrong one stands in the plan's way, with its place and a hint."""

from __future__ import annotations

import pytest

from sqlmig.planning import connectors
from sqlmig.planning.explain import describe_action
from sqlmig.planning.source_options import check_source
from sqlmig.program.parse import parse_program
from tests.fakes import Pipeline, Revision, World

TABLES = """\
CREATE TABLE events (id BIGINT, kind STRING, at TIMESTAMP);
CREATE TABLE people (id BIGINT, name STRING, seen TIMESTAMP, tags MAP<STRING, STRING>,
  PRIMARY KEY (id));
"""
BROKER = "'kafka.bootstrap.servers' 'k:9092'"
GOOD = f"{BROKER}, subscribe 'people', format 'json'"


def blockers(source: str) -> list[tuple[str, str | None]]:
    """(message, hint) of what is wrong with the one source of a program."""
    program = parse_program({"pipeline/p.sql": TABLES + source})
    [one] = program.sources.values()
    found = check_source(one, program.tables[one.table])
    assert all(str(blocker.location) == "pipeline/p.sql:4:1" for blocker in found)
    prefix = f"source `{one.connector}`: "
    assert all(blocker.message.startswith(prefix) for blocker in found)
    return [(blocker.message.removeprefix(prefix), blocker.hint) for blocker in found]


@pytest.mark.parametrize(
    "source",
    [
        f"INTO people USING kafka OPTIONS ({GOOD})",
        f"INTO events USING kafka OPTIONS ({BROKER}, subscribePattern 'e.*', format 'csv', sep ';',"
        " 'kafka.sasl.jaas.config' '${env:JAAS}', maxOffsetsPerTrigger 100)",
        f"INTO people USING kafka OPTIONS ({GOOD}, sequence_by 'SEEN', delete_when 'op = ''d''',"
        " startingOffsets 'latest', on_data_loss 'skip', timestampFormat 'yyyy')",
        "INTO events USING delta OPTIONS (path 'lake/events', skipChangeCommits true)",
        "INTO people USING delta OPTIONS (path 'lake/people', readChangeFeed true)",
        "INTO people USING json OPTIONS (path 'in', sequence_by 'seen', multiLine true)",
        "INTO events USING csv OPTIONS (path 'in', 'fs.s3a.endpoint' 'http://store')",
        "INTO events USING rate",
    ],
)
def test_a_source_that_can_be_opened_has_nothing_in_its_way(source: str) -> None:
    assert blockers(f"CREATE SOURCE s {source};") == []


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        (
            "INTO events USING kafka OPTIONS (subscribe 'e', format 'json')",
            "it has no `kafka.bootstrap.servers`",
            "'kafka.bootstrap.servers' 'host:9092'",
        ),
        (
            f"INTO events USING kafka OPTIONS ({BROKER}, format 'json')",
            "it has no `subscribe`",
            "subscribe 'topic'",
        ),
        (
            f"INTO events USING kafka OPTIONS ({GOOD}, assign 'x')",
            "it has `subscribe` and `assign`",
            "one way",
        ),
        (
            f"INTO events USING kafka OPTIONS ({BROKER}, subscribe 'e')",
            "it has no `format`",
            "format 'json'",
        ),
        (
            f"INTO events USING kafka OPTIONS ({BROKER}, subscribe 'e', format 'jsn')",
            "there is no format 'jsn' for Kafka",
            "avro, csv, json",
        ),
        (
            f"INTO events USING kafka OPTIONS ({BROKER}, subscribe 'e', format 'avro')",
            "it has no `avroSchema`",
            "schema",
        ),
        (
            f"INTO events USING kafka OPTIONS ({GOOD}, startingOffset 'latest')",
            "there is no option `startingOffset`",
            "did you mean `startingOffsets`?",
        ),
        (
            f"INTO events USING kafka OPTIONS ({GOOD}, 'kafka.bootstrap.server' 'x')",
            "there is no option `kafka.bootstrap.server`",
            "did you mean `kafka.bootstrap.servers`?",
        ),
        (
            f"INTO events USING kafka OPTIONS ({GOOD}, 'kafka.auto.offset.reset' 'latest')",
            "option `kafka.auto.offset.reset` can't be given: Spark sets it itself",
            "leave it out",
        ),
        (
            f"INTO events USING kafka OPTIONS ({GOOD}, failOnDataLoss false)",
            "`failOnDataLoss false` would lose records silently",
            "on_data_loss 'skip'",
        ),
        (
            f"INTO events USING kafka OPTIONS ({GOOD}, on_data_loss 'ignore')",
            "`on_data_loss` is 'ignore'",
            "'fail' (the default) or 'skip'",
        ),
        (
            f"INTO events USING kafka OPTIONS ({GOOD}, maxOffsetsPerTrigger 'many')",
            "option `maxOffsetsPerTrigger` is 'many', and must be a whole number",
            None,
        ),
        (
            f"INTO people USING kafka OPTIONS ({GOOD}, sequence_by 'sen')",
            "`sequence_by` is 'sen', which is not a column of `people`",
            "did you mean `seen`?",
        ),
        (
            f"INTO people USING kafka OPTIONS ({GOOD}, sequence_by 'tags')",
            "`sequence_by`: values of type map<string,string> have no order",
            None,
        ),
        (
            f"INTO people USING kafka OPTIONS ({GOOD}, sequnce_by 'seen')",
            "there is no option `sequnce_by`",
            "did you mean `sequence_by`?",
        ),
        (
            "INTO people USING json OPTIONS (path 'in', deletewhen 'gone')",
            "there is no option `deletewhen`",
            "did you mean `delete_when`?",
        ),
        (
            "INTO events USING json OPTIONS (path 'in', delete_when 'gone')",
            "`delete_when` needs a key, and `events` has none",
            "give `events` a PRIMARY KEY",
        ),
        (
            "INTO events USING json OPTIONS (path 'in', sequence_by 'at')",
            "`sequence_by` needs a key, and `events` has none",
            "give `events` a PRIMARY KEY",
        ),
        (
            "INTO people USING json OPTIONS (path 'in', delete_when ';')",
            "`delete_when` is not a condition",
            "delete_when 'op = ''d'''",
        ),
        (
            "INTO people USING parquet OPTIONS (path 'in', delete_when 'gone')",
            "`delete_when` names `gone`, and `people` has no such column",
            "add it to the table",
        ),
        ("INTO events USING csv OPTIONS (header true)", "it has no `path`", "OPTIONS (path"),
        (
            "INTO events USING json OPTIONS (path 'in', mode 'DROPMALFORMED')",
            "it would drop records silently",
            "kept aside",
        ),
        ("INTO events USING delta", "it has no `path`", "OPTIONS (path"),
        (
            "INTO events USING delta OPTIONS (path 'x', readChangeFeed true)",
            "`readChangeFeed` needs a key, and `events` has none: "
            "changes would become rows of their own",
            "PRIMARY KEY",
        ),
        (
            "INTO people USING delta OPTIONS (path 'x')",
            "`people` has a key, and a Delta table does not say which of two rows with one key "
            "came later",
            "sequence_by 'column', or readChangeFeed true",
        ),
        (
            "INTO events USING delta OPTIONS (path 'x', ignoreChanges true)",
            "`ignoreChanges` would bring rows twice",
            "readChangeFeed",
        ),
        (
            "INTO events USING delta OPTIONS (path 'x', startVersion 3)",
            "there is no option `startVersion`",
            "did you mean `startingVersion`?",
        ),
    ],
)
def test_a_wrong_option_is_told_with_what_to_write(
    source: str, message: str, hint: str | None
) -> None:
    [(said, advice)] = blockers(f"CREATE SOURCE s {source};")

    assert said == message
    assert advice == hint if hint is None else hint in (advice or "")


def test_a_column_for_what_kafka_says_has_kafkas_type() -> None:
    sql = f"CREATE TABLE t (_offset INT); CREATE SOURCE s INTO t USING kafka OPTIONS ({GOOD});"
    program = parse_program({"p.sql": sql})

    [blocker] = check_source(program.sources["t.s"], program.tables["t"])

    assert "`_offset` takes up what Kafka says of a record, and is of type int" in blocker.message
    assert blocker.hint == "declare it as bigint"


def test_a_plan_with_a_wrong_option_is_blocked_and_going_back_to_one_that_ran_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given
    table = "CREATE TABLE t (a INT);\n"
    old = table + "CREATE SOURCE s INTO t USING json OPTIONS (path '/in', deletewhen 'b');\n"
    pipeline = Pipeline(World(inputs={"/in": [1]}), [Revision("r1", old), Revision("r2", table)])

    # when
    plan = pipeline.plan("r1")

    # then
    [blocker] = plan.blockers
    assert blocker.message == "source `t.s`: there is no option `deletewhen`"
    assert str(blocker.location) == "pipeline/p.sql:2:1"

    # when: an earlier version of sqlmig, which did not check, let it pass
    with monkeypatch.context() as earlier:
        earlier.setattr(connectors, "check_source", lambda source, table: ())
        pipeline.go("r1")
        pipeline.go("r2")

    # then
    assert pipeline.plan("r1").blockers == ()


def test_other_options_of_how_to_read_keep_the_offsets() -> None:
    # given
    table = "CREATE TABLE t (a INT);\n"
    source = "CREATE SOURCE s INTO t USING json OPTIONS (path '/in');\n"
    slower = source.replace("'/in'", "'/in', maxFilesPerTrigger 1")
    revisions = [Revision("r1", table + source), Revision("r2", table + slower)]
    pipeline = Pipeline(World(inputs={"/in": [1]}), revisions)
    pipeline.go("r1")
    pipeline.tick()

    # when
    plan = pipeline.plan("r2")
    pipeline.go("r2")
    read = pipeline.tick()

    # then
    assert plan.diff.names("source", "modified") == ("t.s",)
    step = plan.steps[2]
    assert describe_action(step.action) == "continue source `t.s`"
    assert step.cause == "it goes on: only how it is read has changed"
    assert read.ingested == {}, "nothing is read again"
