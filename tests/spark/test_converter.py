"""Tables whose rows may break a new definition: looked at, cast in one commit, kept or refused."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from sqlmig.errors import EngineError
from sqlmig.execution.values import Mark, Written
from tests.spark.pipelines import Pipeline

BEFORE = (
    "CREATE TABLE t (id STRING NOT NULL, amount STRING, n DOUBLE, gone INT, label VARCHAR(9), "
    "tags ARRAY<STRING>, size INT)"
)
ROWS = (
    "INSERT INTO t VALUES ('07', '1.50', 2, 1, 'ab', array('1', '2'), 3), "
    "('8', NULL, 4.5, 1, NULL, NULL, NULL)"
)
AFTER = (
    "CREATE TABLE t (amount DECIMAL(4,2) COMMENT 'in euro', key INT, n INT NOT NULL, "
    "label VARCHAR(3), tags ARRAY<INT>, size BIGINT, since DATE DEFAULT '2026-01-01', "
    "PRIMARY KEY (key))"
)
RENAMED = [("id", "key")]


def convert(
    pipeline: Pipeline,
    renamed: Sequence[tuple[str, str]] = (),
    mark: Mark | None = None,
    *,
    has_new_key: bool = False,
) -> Written:
    """Bring `t` to the program's definition."""
    return pipeline.engine.convert_table(
        pipeline.table("t"), "t", renamed, mark or pipeline.mark(), has_new_key=has_new_key
    )


def misfits(
    pipeline: Pipeline, renamed: Sequence[tuple[str, str]] = (), *, has_new_key: bool = False
) -> list[tuple[str, bool]]:
    """What is found in the rows of `t`."""
    found = pipeline.engine.find_misfits(pipeline.table("t"), "t", renamed, has_new_key=has_new_key)
    return [(misfit.message, misfit.is_loss) for misfit in found]


def test_rows_are_cast_in_one_commit_that_can_be_made_again(pipeline: Pipeline) -> None:
    # given
    pipeline.use(BEFORE)
    pipeline.create()
    pipeline.execute(ROWS)
    deployed = pipeline.states["t"]
    pipeline.use(AFTER)

    # when
    found = misfits(pipeline, RENAMED, has_new_key=True)

    # then
    assert found == [
        ("`t.key` changes by the cast from string to int in 1 of 2 rows: '07' becomes 7", True),
        ("`t.n` changes by the cast from double to int in 1 of 2 rows: 4.5 becomes 4", True),
    ]

    # when: the process died, and makes it again
    mark = pipeline.mark()
    first = convert(pipeline, RENAMED, mark, has_new_key=True)
    again = convert(pipeline, RENAMED, mark, has_new_key=True)
    pipeline.note("t", again)

    # then
    assert again == first, "nothing more to do"
    assert pipeline.rows("SELECT * FROM t ORDER BY key") == [
        (Decimal("1.50"), 7, 2, "ab", [1, 2], 3, "2026-01-01"),
        (None, 8, 4, None, None, None, "2026-01-01"),
    ]
    path = pipeline.warehouse.table_path("t")
    commits = [c for c in pipeline.warehouse.commits(path) if c.mark == mark]
    assert [c.operation for c in commits].count("WRITE") == 1, "readers see old rows or new ones"
    altered = pipeline.warehouse.describe("t")
    assert [(c.name, c.type, c.comment) for c in altered.columns] == [
        ("amount", "decimal(4,2)", "in euro"),
        ("key", "int", None),
        ("n", "int", None),
        ("label", "varchar(3)", None),
        ("tags", "array<int>", None),
        ("size", "bigint", None),
        ("since", "date", None),
    ]
    assert altered.properties["delta.enableChangeDataFeed"] == "true", "it is fed on"
    pipeline.execute("INSERT INTO t (key, n) VALUES (8, 5), (9, 9)")
    assert pipeline.rows("SELECT key, n FROM t ORDER BY key") == [(7, 2), (8, 5), (9, 9)]
    with pytest.raises(EngineError) as caught:
        pipeline.execute("UPDATE t SET n = NULL")
    assert caught.value.message == "`t`: `n` may not be NULL"

    # when
    back = pipeline.warehouse.restore("t", deployed.version, pipeline.mark())

    # then
    assert back is not None, "delta-rs puts rows and schema back"
    pipeline.use(BEFORE)
    pipeline.note("t", back)
    assert pipeline.rows("SELECT id, amount, n, label FROM t ORDER BY id") == [
        ("07", "1.50", 2.0, "ab"),
        ("8", None, 4.5, None),
    ]
    assert pipeline.warehouse.describe("t").properties["delta.enableChangeDataFeed"] == "true"


def test_rows_that_do_not_fit_are_counted_and_shown_and_the_table_is_left_alone(
    pipeline: Pipeline,
) -> None:
    # given
    pipeline.use("CREATE TABLE t (a STRING, b INT, c ARRAY<STRING>, d DATE, k STRING)")
    pipeline.create()
    pipeline.execute(
        "INSERT INTO t VALUES ('x', 1, array('1', 'z'), DATE '2026-01-02', '1'), "
        "('y''s', NULL, NULL, NULL, '01'), ('7', 3, array('3'), NULL, '2'), "
        "(NULL, 4, NULL, NULL, '2')"
    )
    before = pipeline.states["t"].version
    pipeline.use(
        "CREATE TABLE t (a INT, b INT NOT NULL, c ARRAY<INT>, d INT, k STRING, e INT NOT NULL)"
    )

    # when
    found = misfits(pipeline)

    # then
    assert found == [
        ("`t.a` can't be cast from string to int in 2 of 4 rows: 'x', 'y's'", False),
        (
            '`t.b` becomes NOT NULL, and is NULL in 1 of 4 rows: {"a":"y\'s","k":"01"}',
            False,
        ),
        (
            '`t.c` can\'t be cast from array<string> to array<int> in 1 of 4 rows: ["1","z"]',
            False,
        ),
        (
            "Spark has no cast from date to int for `t.d`, which has a value in 1 of 4 rows: "
            "2026-01-02",
            False,
        ),
        (
            "`t.e` is new, NOT NULL and without a default: it would lack a value in 4 of 4 rows",
            False,
        ),
    ]

    # when
    with pytest.raises(EngineError) as caught:
        convert(pipeline)

    # then
    assert caught.value.message == "; ".join(message for message, _ in found)
    assert "--allow-destructive" in (caught.value.hint or "")
    assert pipeline.warehouse.version("t") == before, "nothing was changed"

    # when: two rows have one key, two more only once they are cast
    pipeline.use(
        "CREATE TABLE t (a STRING, b INT, c ARRAY<STRING>, d DATE, k INT, PRIMARY KEY (k))"
    )

    # then
    assert misfits(pipeline, has_new_key=True)[1:] == [
        (
            "`t`: the key (k) would be there more than once 2 times, in 4 rows: (1), (2)",
            False,
        )
    ]

    # when: the rows are mended
    pipeline.use("CREATE TABLE t (a STRING, b INT, c ARRAY<STRING>, d DATE, k STRING)")
    pipeline.execute("DELETE FROM t WHERE a IN ('x', '7')")
    pipeline.use(
        "CREATE TABLE t (a STRING, b INT, c ARRAY<STRING>, d DATE, k STRING, PRIMARY KEY (k))"
    )
    mark = pipeline.mark()
    first = convert(pipeline, mark=mark, has_new_key=True)
    again = pipeline.note("t", convert(pipeline, mark=mark, has_new_key=True))

    # then: no row is written for a key
    assert first == again
    path = pipeline.warehouse.table_path("t")
    operations = [c.operation for c in pipeline.warehouse.commits(path) if c.mark == mark]
    assert operations == ["ADD CONSTRAINT"]
    assert pipeline.rows("SELECT k FROM t ORDER BY k") == [("01",), ("2",)]


def test_a_table_that_was_widened_and_constrained_is_cast_too(pipeline: Pipeline) -> None:
    # given
    pipeline.use("CREATE TABLE t (a INT, b INT, c INT)")
    pipeline.create()
    pipeline.execute("INSERT INTO t VALUES (1, 2, 3)")
    pipeline.use("CREATE TABLE t (a BIGINT, b INT NOT NULL DEFAULT 0, c INT NOT NULL DEFAULT 0)")
    pipeline.note("t", convert(pipeline))
    widened = pipeline.states["t"].version

    # when: constrained columns are renamed, dropped and cast, the widened one becomes narrow again
    pipeline.use("CREATE TABLE t (a STRING, d INT NOT NULL, c STRING NOT NULL, b INT)")
    pipeline.note("t", convert(pipeline, [("b", "d")]))

    # then
    assert pipeline.rows("SELECT * FROM t") == [("1", 2, "3", None)]
    pipeline.execute("INSERT INTO t VALUES ('9', 9, '9', NULL)")

    # when
    pipeline.use("CREATE TABLE t (a INT)")
    pipeline.note("t", convert(pipeline))

    # then
    assert pipeline.rows("SELECT * FROM t ORDER BY a") == [(1,), (9,)]

    # when
    back = pipeline.engine.restore("t", widened, pipeline.mark())

    # then
    pipeline.use("CREATE TABLE t (a BIGINT, b INT NOT NULL DEFAULT 0, c INT NOT NULL DEFAULT 0)")
    pipeline.note("t", back)
    assert pipeline.rows("SELECT * FROM t") == [(1, 2, 3)]


def test_structures_are_cast_by_the_names_of_their_fields(pipeline: Pipeline) -> None:
    # given
    pipeline.use("CREATE TABLE t (s STRUCT<a: STRING, gone: INT>, m MAP<STRING, ARRAY<DOUBLE>>)")
    pipeline.create()
    pipeline.execute(
        "INSERT INTO t VALUES (named_struct('a', '1', 'gone', 2), map('3', array(4.5, 6))), "
        "(NULL, NULL), (named_struct('a', NULL, 'gone', NULL), NULL)"
    )

    # when
    pipeline.use("CREATE TABLE t (s STRUCT<`new one`: DATE, a: INT>, m MAP<INT, ARRAY<INT>>)")
    found = misfits(pipeline)
    pipeline.note("t", convert(pipeline))

    # then
    assert [is_loss for _, is_loss in found] == [True, True], "a field goes, a number is cut"
    assert found[0][0].endswith(' in 1 of 3 rows: {"a":"1","gone":2}')
    assert found[1][0].endswith(' in 1 of 3 rows: {"3":[4.5,6.0]}')
    assert pipeline.rows("SELECT to_json(s) AS s, to_json(m) AS m FROM t ORDER BY s") == [
        (None, None),
        ('{"a":1}', '{"3":[4,6]}'),
        ("{}", None),
    ]

    # when: an element can't be cast
    pipeline.use("CREATE TABLE t (s STRUCT<`new one`: DATE, a: INT>, m MAP<INT, ARRAY<DATE>>)")

    # then
    assert [is_loss for _, is_loss in misfits(pipeline)] == [False]
