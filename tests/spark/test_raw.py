"""RETAIN RAW: records are kept as they came, and rows are made of them again by the same rules."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmig.execution.values import RawSource
from sqlmig.vacuum import LocalStorage
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN = "CREATE TABLE t (id INT, name STRING{more}); "
LANDED = "CREATE SOURCE landed INTO t USING json OPTIONS (path 'landing') RETAIN RAW FOR 30 DAYS;"
KEYED = "CREATE TABLE k (id {id}, name STRING{more}, PRIMARY KEY (id)); "
LINES = (
    "CREATE SOURCE lines INTO k USING csv "
    "OPTIONS (path 'lines', sep ';', delete_when 'op = ''d''') RETAIN RAW;"
)


def test_a_new_column_is_filled_and_an_emptied_table_made_again_from_lines_of_json(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    # given: records that have more than the table; some are equal but for that
    pipeline.use(PLAIN.format(more="") + LANDED)
    pipeline.create()
    landing = pipeline.root / "landing"
    landing.mkdir()
    (landing / "a.json").write_text(
        '{"id": 1, "name": "a", "more": 5}\n'
        '{"id": 2, "name": "b", "more": 6}\n   \n'
        '{"id": 2, "name": "b", "more": 7}\n'
        '{"id": 4, "name": "d", "more": 8}\n'
        '{"id": 4, "name": "d", "more": 9}\n'
        "{not json\n"
        '{"id": "many"}\n'
    )
    first = pipeline.ingest("t.landed")
    (landing / "b.json").write_text('{"id": 3, "name": "c", "more": 3}\n')
    pipeline.ingest("t.landed")

    # then: they are kept, once
    assert (first.rows, first.rejected) == (5, 2)
    checkpoint = Path(pipeline.warehouse.checkpoint_path("t.landed", 1))
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    pipeline.ingest("t.landed")
    raw = spark.read.format("delta").load(pipeline.warehouse.raw_path("t.landed"))
    kept = [(r["batch"], Path(r["file"]).name, bytes(r["value"])) for r in raw.collect()]
    assert len(kept) == 8
    assert (0, "a.json", b"{not json") in kept
    assert (1, "b.json", b'{"id": 3, "name": "c", "more": 3}') in kept
    records = pipeline.warehouse.raw_records("t.landed")[1]
    assert (records.first, records.last, records.is_gapless, records.records) == (0, 1, True, 8)

    # when: rows were changed by hand, and the table gets a column
    pipeline.execute("UPDATE t SET name = 'changed' WHERE id = 3")
    pipeline.execute("DELETE FROM t WHERE id = 4")
    pipeline.execute("INSERT INTO t VALUES (4, 'd'), (9, 'x')")
    program = pipeline.use(PLAIN.format(more=", more INT COMMENT 'new'") + LANDED)
    table, sources = program.tables["t"], [RawSource("t.landed", "t.landed", 1)]
    pipeline.note("t", pipeline.engine.alter_table(table, "t", [], pipeline.mark()))
    mark = pipeline.mark()
    filled = pipeline.engine.fill_columns(program, "t", "t", ("more",), sources, mark)
    pipeline.note("t", filled)
    again = pipeline.engine.fill_columns(program, "t", "t", ("more",), sources, mark)

    # then: only rows that are what a record gave, and of which it is told which one
    assert filled.written == 3
    assert again.version == filled.version, "the same step again writes nothing"
    assert pipeline.rows("SELECT * FROM t ORDER BY id, more") == [
        (1, "a", 5),
        (2, "b", 6),
        (2, "b", 7),
        (3, "changed", None),
        (4, "d", None),
        (9, "x", None),
    ]
    assert pipeline.warehouse.describe("t").columns[2].comment == "new"

    # when: it becomes one that not every record has a value for, and is emptied
    more = ", more DOUBLE NOT NULL"
    program = pipeline.use(PLAIN.format(more=more) + LANDED)
    table = program.tables["t"]
    pipeline.note("t", pipeline.engine.empty_table(table, "t", pipeline.mark()))
    (landing / "a.json").unlink()  # the outside is not asked again
    mark = pipeline.mark()
    made = pipeline.engine.rebuild_table(program, "t", "t", sources, mark)
    again_made = pipeline.engine.rebuild_table(program, "t", "t", sources, mark)
    pipeline.note("t", made.table)
    (landing / "c.json").write_text('{"id": 5, "name": "e", "more": 1}\n{"id": 6}\n')
    later = pipeline.ingest("t.landed")

    # then
    assert again_made == made
    assert (made.rows, made.rejected) == (6, 2)
    assert (later.rows, later.rejected) == (1, 1), "the source goes on"
    assert pipeline.rows("SELECT id, name, more FROM t ORDER BY id, more") == [
        (1, "a", 5.0),
        (2, "b", 6.0),
        (2, "b", 7.0),
        (3, "c", 3.0),
        (4, "d", 8.0),
        (4, "d", 9.0),
        (5, "e", 1.0),
    ]

    # when: time goes by
    storage, before = LocalStorage(pipeline.warehouse), datetime.now(timezone.utc)
    found = storage.old_raw("t.landed", before)
    storage.remove_raw("t.landed", before)

    # then
    assert found is not None
    assert found[0] == 3
    assert pipeline.warehouse.raw_records("t.landed") == {}
    (landing / "d.json").write_text('{"id": 7, "more": 1}\n')
    assert pipeline.ingest("t.landed").rows == 1
    assert pipeline.warehouse.raw_records("t.landed")[1].first == 3


def test_a_keyed_table_is_made_again_in_the_order_of_its_lines(pipeline: Pipeline) -> None:
    # given
    pipeline.use(KEYED.format(id="INT", more="") + LINES)
    pipeline.create()
    lines = pipeline.root / "lines"
    lines.mkdir()
    (lines / "1.csv").write_text("1;Ann;i\n2;Bob;i\n1;Anna;u\n3;Cid;i\n")
    pipeline.ingest("k.lines")
    (lines / "2.csv").write_text("3;;d\n2;Rob;u\n;Nobody;i\n4;Dan\n")
    second = pipeline.ingest("k.lines")
    expected = [("1", "Anna"), ("2", "Rob")]
    assert (second.rows, second.rejected) == (2, 2)
    assert pipeline.rows("SELECT string(id), name FROM k ORDER BY id") == expected

    # when
    program = pipeline.use(KEYED.format(id="STRING", more="") + LINES)
    pipeline.note("k", pipeline.engine.empty_table(program.tables["k"], "k", pipeline.mark()))
    sources = [RawSource("k.lines", "k.lines", 1)]
    made = pipeline.engine.rebuild_table(program, "k", "k", sources, pipeline.mark())
    pipeline.note("k", made.table)

    # then
    assert (made.rows, made.rejected) == (6, 2)
    assert pipeline.rows("SELECT id, name FROM k ORDER BY id") == expected
