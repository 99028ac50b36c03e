"""What a query gives, and whether it may give other rows over the same input."""

from __future__ import annotations

import pytest

from tests.program.pipelines import program, with_view

OUTPUTS = {
    "SELECT id, name AS n FROM students": ("id", "n"),
    "SELECT * FROM students": ("id", "name"),
    "SELECT s.*, 1 AS one FROM students s": ("id", "name", "one"),
    "SELECT * EXCEPT (name) FROM students": ("id",),
    "SELECT * FROM students JOIN rooms USING (id)": ("id", "name", "door", "tags", "extra"),
    "SELECT * FROM students LEFT ANTI JOIN rooms ON true": ("id", "name"),
    "SELECT * FROM (SELECT id AS a FROM students) q": ("a",),
    "WITH c (x, y) AS (SELECT * FROM students) SELECT * FROM c": ("x", "y"),
    "SELECT id FROM students UNION ALL SELECT 2": ("id",),
    "SELECT cast(id AS string), (name) FROM students": ("id", "name"),
    "SELECT door.a FROM rooms": ("a",),
    "SELECT id, t FROM rooms LATERAL VIEW explode(tags) q AS t": ("id", "t"),
    "SELECT inline(array(struct(1 AS a))) FROM students": None,
    "SELECT count(*) FROM students": None,
    "SELECT * FROM main.other.t": None,
    "SELECT * FROM students NATURAL JOIN rooms": None,
    "SELECT extra.* FROM rooms": None,
}


@pytest.mark.parametrize(("query", "output"), OUTPUTS.items(), ids=OUTPUTS)
def test_the_columns_of_a_view_are(query: str, output: tuple[str, ...] | None) -> None:
    assert with_view(query).views["v"].output == output


def test_columns_are_known_through_views() -> None:
    # when
    read = program(
        "CREATE VIEW b AS SELECT * FROM a", "CREATE VIEW a (x, y) AS SELECT * FROM students"
    )

    # then
    assert read.views["b"].output == ("x", "y")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT rand() AS r FROM students",
        "SELECT `rand`() AS r FROM students",
        "SELECT uuid() AS r FROM students",
        "SELECT id FROM grades WHERE class_date < current_date",
        "SELECT id FROM grades WHERE class_date < current_date()",
        "SELECT NOW() AS n FROM students",
        "SELECT unix_timestamp() AS n FROM students",
        "SELECT timestamp 'now' AS n FROM students",
        "SELECT input_file_name() AS n FROM students",
        "SELECT monotonically_increasing_id() AS n FROM students",
        "SELECT user AS u FROM students",
        "SELECT id FROM students TABLESAMPLE (10 PERCENT)",
    ],
)
def test_a_query_is_volatile(query: str) -> None:
    assert (
        with_view(query.replace("SELECT id FROM grades", "SELECT grade FROM grades"))
        .views["v"]
        .volatile
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM students",
        "SELECT my_function(id) AS x FROM students",
        "SELECT unix_timestamp(name) AS n FROM students",
        "SELECT 'rand()' AS n FROM students",
        "SELECT date '2020-01-01' AS n FROM students",
        "SELECT id /* now() */ FROM students",
        "SELECT q.uuid FROM (SELECT id AS uuid FROM students) q",
        "SELECT user FROM (SELECT id AS user FROM students) q",
    ],
)
def test_a_query_is_not_volatile(query: str) -> None:
    assert not with_view(query).views["v"].volatile
