"""What sinks ask for, and each mistake with what to write instead."""

from __future__ import annotations

import pytest

from sqlmig.program.parse import parse_program
from sqlmig.program.sink_options import (
    Compatibility,
    CutoverMode,
    SinkKind,
    SinkOptions,
    read_sink_options,
)

RELATIONS = """
CREATE TABLE plain (id INT, name STRING);
CREATE TABLE keyed (Id INT, part INT, name STRING, PRIMARY KEY (Id, part));
CREATE TABLE taken (_op STRING, id INT);
CREATE VIEW logical AS SELECT id FROM plain;
CREATE MATERIALIZED VIEW stored AS SELECT id, name FROM plain;
CREATE MATERIALIZED VIEW unknown AS SELECT * FROM json_tuple('{}', 'a');
"""


def read(rest: str) -> SinkOptions:
    """The options of `CREATE SINK k FROM <rest>`."""
    program = parse_program({"p.sql": f"{RELATIONS}CREATE SINK k FROM {rest};"})
    (sink,) = (sink for sink in program.sinks.values() if sink.name == "k")
    return read_sink_options(program, sink)


def mistakes(rest: str) -> list[tuple[str, str]]:
    """What is wrong, with the hints."""
    return [(mistake.message, mistake.hint) for mistake in read(rest).mistakes]


def test_a_sink_of_files_has_a_path_and_options_of_its_format() -> None:
    found = read("plain USING CSV OPTIONS (path 'out', sep ';', nullValue '-')")
    assert found == SinkOptions(
        SinkKind.FILES, "csv", (), "out", {"sep": ";", "nullvalue": "-"}, ()
    )


def test_a_sink_of_a_keyed_table_has_its_key_unless_told_otherwise() -> None:
    assert read("keyed USING delta OPTIONS (path 'x')").key == ("Id", "part")
    assert read("keyed USING delta OPTIONS (path 'x', key 'NAME')").key == ("name",)
    assert read("keyed USING delta OPTIONS (path 'x', key '')").key == ()
    assert read("stored USING delta OPTIONS (path 'x')").key == ()
    assert read("stored USING delta OPTIONS (path 'x', key ' `Name` , id')").key == ("name", "id")
    assert read("unknown USING delta OPTIONS (path 'x', key 'c0')").key == ("c0",)


def test_a_sink_into_kafka_has_a_topic_servers_and_a_value_format() -> None:
    found = read(
        "plain USING kafka OPTIONS (topic 't', kafka.bootstrap.servers 'h:1', "
        "'kafka.acks' 'all', key 'id', format 'csv', sep ';')"
    )
    assert (found.kind, found.format, found.place, found.key) == (
        SinkKind.KAFKA,
        "csv",
        "t",
        ("id",),
    )
    assert found.options == {
        "kafka.bootstrap.servers": "h:1",
        "kafka.acks": "all",
        "sep": ";",
    }
    assert found.mistakes == ()


def test_a_sink_says_what_a_cutover_sends_and_what_its_columns_may_become() -> None:
    found = read("plain USING json OPTIONS (path 'x')")
    assert (found.cutover, found.compatibility) == (CutoverMode.DIFFERENCE, Compatibility.NONE)
    found = read("plain USING delta OPTIONS (path 'x', Cutover 'Continue', compatibility ' FULL')")
    assert (found.cutover, found.compatibility) == (CutoverMode.CONTINUE, Compatibility.FULL)
    assert (found.options, found.mistakes) == ({}, ())


MISTAKES = {
    "cutover": (
        "plain USING json OPTIONS (path 'x', cutover 'diference')",
        ("there is no `cutover` `diference`", "did you mean `difference`?"),
    ),
    "compatibility": (
        "plain USING csv OPTIONS (path 'x', compatibility 'transitive')",
        (
            "there is no `compatibility` `transitive`",
            "there are backward, forward, full, none",
        ),
    ),
    "cutover misspelt": (
        "plain USING kafka OPTIONS (topic 't', kafka.bootstrap.servers 'h:1', cut_over 'snapshot')",
        ("there is no option `cut_over`", "did you mean `cutover`?"),
    ),
    "format": (
        "plain USING jsn OPTIONS (path 'x')",
        ("there is no sink format `jsn`", "did you mean `json`?"),
    ),
    "no such format": (
        "plain USING text OPTIONS (path 'x')",
        ("there is no sink format `text`", "there are avro, csv, delta, json, kafka, orc, parquet"),
    ),
    "no path": ("plain USING json", ("it has no `path`", "OPTIONS (path 'out/grades')")),
    "path misspelt": (
        "plain USING delta OPTIONS (pth 'x')",
        ("it has no `path`", "did you mean `path` by `pth`?"),
    ),
    "option misspelt": (
        "plain USING csv OPTIONS (path 'x', heade 'true')",
        ("there is no option `heade`", "did you mean `header`?"),
    ),
    "no topic": (
        "plain USING kafka OPTIONS ('kafka.bootstrap.servers' 'h:1')",
        ("it has no `topic`", "OPTIONS (topic 'grades')"),
    ),
    "no servers": (
        "plain USING kafka OPTIONS (topic 't', 'kafka.bootstrap.server' 'h:1')",
        (
            "it has no `kafka.bootstrap.servers`",
            "did you mean `kafka.bootstrap.servers` by `kafka.bootstrap.server`?",
        ),
    ),
    "value format": (
        "plain USING kafka OPTIONS (topic 't', kafka.bootstrap.servers 'h:1', format 'jason')",
        ("there is no value format `jason`", "did you mean `json`?"),
    ),
    "key": (
        "plain USING json OPTIONS (path 'x', key 'id, nam')",
        ("key column `nam` is no column of `plain`", "did you mean `name`?"),
    ),
    "a quite different key": (
        "stored USING json OPTIONS (path 'x', key 'zzz')",
        ("key column `zzz` is no column of `stored`", "its columns are id, name"),
    ),
    "key twice": (
        "plain USING json OPTIONS (path 'x', key 'id, ID')",
        ("a key column is given twice", "name each column once"),
    ),
    "view": (
        "logical USING json OPTIONS (path 'x')",
        (
            "it reads the view `logical`, whose rows are not stored",
            "write CREATE MATERIALIZED VIEW logical AS ...",
        ),
    ),
    "column taken": (
        "taken USING json OPTIONS (path 'x')",
        ("`taken` has a column `_op`, which the sink adds", "select `_op` under another name"),
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_said_with_what_to_write_instead(case: str) -> None:
    sql, expected = MISTAKES[case]
    assert expected in mistakes(sql)


def test_two_sinks_of_files_can_not_share_a_path() -> None:
    other = "CREATE SINK o FROM stored USING csv OPTIONS (PATH 'x')"
    assert mistakes(f"plain USING json OPTIONS (path 'y'); {other}") == []
    assert mistakes(f"plain USING delta OPTIONS (path 'x'); {other}") == []
    assert mistakes(f"plain USING json OPTIONS (path 'x'); {other}") == [
        ("it has the `path` of sink `stored.o`", "give each a `path` of its own")
    ]


def test_a_keyed_sink_into_delta_or_kafka_leaves_the_columns_as_they_are() -> None:
    assert mistakes("taken USING delta OPTIONS (path 'x', key 'id')") == []
    assert mistakes("taken USING delta OPTIONS (path 'x')") != []
