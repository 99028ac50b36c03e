"""The program's functions in a session: those in SQL, those in Python, and what is wrong with
them."""

from __future__ import annotations

import pytest

from sqlmig.errors import EngineError
from sqlmig.program.parse import parse_program
from tests.spark.pipelines import FILE, Pipeline

TABLES = """
CREATE TABLE orders (id INT, price INT, country STRING);
CREATE TABLE rates (country STRING, percent INT);
"""
FUNCTIONS = """
CREATE FUNCTION with_tax(price INT, percent INT DEFAULT 20) RETURNS INT COMMENT 'in cents'
DETERMINISTIC RETURN price + price * percent DIV 100;
CREATE FUNCTION gross(price INT) RETURNS STRING RETURN shout(CAST(with_tax(price) AS STRING));
CREATE FUNCTION rate(wanted STRING) RETURNS INT
RETURN (SELECT max(r.percent) FROM rates AS r WHERE r.country = wanted);
CREATE FUNCTION up_to(most INT) RETURNS TABLE (id INT, price INT)
RETURN SELECT o.id, o.price FROM orders AS o WHERE o.price <= up_to.most;
"""
PYTHON = '''\
"""Functions of the shop."""
from sqlmig import function

MARK = "!"


def _marked(text: str) -> str:
    return text + MARK


@function
def shout(text: str) -> str:
    return None if text is None else _marked(text.upper())


@function(returns="ARRAY<INT>", deterministic=False)
def digits(number):
    """The digits of a number."""
    return [int(digit) for digit in str(number)]


@function(returns="INT")
def broken(number):
    raise ValueError(f"{number} is not to my taste")
'''
VIEWS = """
CREATE VIEW loud AS SELECT id, `SHOUT`(country) AS land FROM orders;
CREATE MATERIALIZED VIEW totals AS
SELECT o.id, with_tax(price, rate(o.country)) AS due, Gross(o.price) AS gross, l.land,
       session.digits(price) AS digits
FROM orders AS o JOIN loud AS l ON o.id = l.id;
CREATE MATERIALIZED VIEW cheap AS SELECT * FROM up_to(100);
"""
PATH = "pipeline/functions/shop.py"


def use(pipeline: Pipeline, sql: str, python: str = PYTHON) -> None:
    pipeline.program = parse_program({FILE: sql, PATH: python})


def test_functions_are_there_wherever_a_query_is_computed(pipeline: Pipeline) -> None:
    # given
    use(pipeline, TABLES + FUNCTIONS + VIEWS)
    pipeline.create()
    pipeline.execute("INSERT INTO orders VALUES (1, 100, 'no'), (2, 250, NULL)")
    pipeline.execute("INSERT INTO rates SELECT lower(shout('no')), with_tax(10)")
    with pytest.raises(EngineError) as refused:
        pipeline.execute("UPDATE rates SET percent = with_tax(percent)")
    pipeline.execute(
        "MERGE INTO rates AS r USING (SELECT with_tax(percent, 0) AS p FROM rates) AS n "
        "ON r.percent = n.p WHEN MATCHED THEN UPDATE SET r.country = 'no'"
    )

    # when
    blockers = pipeline.engine.analyze(pipeline.program, ["totals", "cheap", "digits", "broken"])
    pipeline.refresh("totals")
    pipeline.refresh("cheap")

    # then
    assert "SQL function `with_tax` in UpdateTable is not supported" in refused.value.message
    assert refused.value.hint == "write MERGE INTO ... USING (SELECT ...): Spark has it in queries"
    assert list(blockers) == []
    assert pipeline.rows("SELECT * FROM totals ORDER BY id") == [
        (1, 112, "120!", "NO!", [1, 0, 0]),
        (2, None, "300!", None, [2, 5, 0]),
    ]
    assert pipeline.rows("SELECT * FROM cheap") == [(1, 100)]
    assert pipeline.rows("SELECT with_tax(price => 5), gross(10), rate('no')") == [(6, "12!", 12)]
    assert pipeline.program.views["totals"].volatile, "it calls one that is not deterministic"


def test_what_is_wrong_with_a_function_is_told_at_its_place_and_once(pipeline: Pipeline) -> None:
    # given
    use(
        pipeline,
        TABLES
        + """CREATE FUNCTION lost(a INT) RETURNS INT RETURN no_such(a);
CREATE FUNCTION after_lost(a INT) RETURNS INT RETURN lost(a);
CREATE FUNCTION odd(a INT) RETURNS INT RETURN aa + 1;
CREATE FUNCTION total(a INT) RETURNS BIGINT RETURN sum(a);
CREATE FUNCTION good(a INT) RETURNS INT RETURN a;
CREATE MATERIALIZED VIEW v AS SELECT after_lost(price) AS x, odd(price) AS y FROM orders;
CREATE MATERIALIZED VIEW w AS SELECT good(price, 1) AS x FROM orders;
""",
    )

    # when
    blockers = pipeline.engine.analyze(pipeline.program, ["v", "w", "total"])

    # then
    assert [(str(b.location), b.message) for b in blockers] == [
        (f"{FILE}:4:17", "`lost`: there is no function `no_such`"),
        (f"{FILE}:6:17", "`odd`: there is no column `aa`"),
        (f"{FILE}:10:38", blockers[2].message),
        (
            f"{FILE}:7:17",
            "`total`: user defined function is invalid: SQL scalar function cannot contain "
            "aggregate/window/generate functions: sum(a)",
        ),
    ]
    assert blockers[1].hint == "did you mean `a`?"
    assert "`good` requires 1 parameters but the actual number is 2" in blockers[2].message


def test_a_python_function_that_fails_says_what_it_raised_and_where(pipeline: Pipeline) -> None:
    # given
    use(pipeline, TABLES)

    # when
    with pytest.raises(EngineError) as raised:
        pipeline.rows("SELECT broken(7)")
    with pytest.raises(EngineError) as called:
        pipeline.rows("SELECT shout('a', 'b')")

    # then
    assert raised.value.message == "`broken` raised ValueError: 7 is not to my taste"
    assert raised.value.hint == f"see {PATH}:24"
    assert called.value.message.startswith(
        "a function in Python failed: TypeError: shout() takes 1"
    )


def test_a_file_that_can_not_run_and_a_package_that_is_not_there_block(pipeline: Pipeline) -> None:
    # given
    use(
        pipeline,
        TABLES,
        "import no_such_module\nfrom sqlmig import function\n"
        "@function\ndef one(a) -> int:\n    return 1\n",
    )
    missing = pipeline.engine.analyze(pipeline.program, ["one"])
    use(
        pipeline,
        TABLES,
        "from sqlmig import function\n"
        '@function(packages=["pytest==0.1", "no_such==2"])\ndef one(a) -> int:\n    return 1\n',
    )

    # when
    pinned = pipeline.engine.analyze(pipeline.program, ["one"])

    # then
    assert [(str(b.location), b.message) for b in missing] == [
        (f"{PATH}:1", "the file raised ModuleNotFoundError: No module named 'no_such_module'")
    ]
    assert [(str(b.location), b.message, b.hint) for b in pinned] == [
        (
            f"{PATH}:3:5",
            "`one` needs no-such 2, and it is not installed",
            "pip install 'no-such==2', here and where Spark's workers run",
        )
    ]
