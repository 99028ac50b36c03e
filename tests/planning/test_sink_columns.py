"""Sinks whose columns an upgrade changes: which are checked, and how a break is told."""

from __future__ import annotations

import pytest

from sqlmig.planning.sink_columns import check_columns, column_changes
from sqlmig.planning.steps import Blocker
from sqlmig.program.type_shape import Field
from tests.fakes import Pipeline, Revision, World

T = "CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL, C STRING);\n"
V = "CREATE MATERIALIZED VIEW v AS\nSELECT a, b FROM t;\n"
SINK = "CREATE SINK k FROM t USING json OPTIONS (path '/k', compatibility 'full');\n"
OF_V = SINK.replace("FROM t", "FROM v").replace("'full'", "'full', key 'a'")


def blockers(before: str, after: str, **types: str) -> list[Blocker]:
    """What the upgrade from one program to the other breaks.

    Args:
        types: the type of a column of `v` in the target; any other is an int.
    """
    made = Pipeline(World(), [Revision("r1", before), Revision("r2", after)])
    made.go("r1")
    request = made.request("r2")
    plan = made.plan("r2")
    assert plan.blockers == ()
    changes = column_changes(plan, request.deployed, request.target)
    views = [program.views.get("v") for program in (request.deployed, request.target)]
    names = [view.output or () if view else () for view in views]
    old = {"v": [Field(name, "int") for name in names[0]]}
    new = {"v": [Field(name, types.get(name, "int")) for name in names[1]]}
    for change in changes:
        assert change.views_before <= {"v"}
        assert change.views_after <= {"v"}
    return [b for change in changes for b in check_columns(change, old, new)]


def test_a_break_is_told_with_the_column_its_place_and_what_to_write() -> None:
    (found,) = blockers(T + SINK, T.replace(", C STRING", "") + SINK)
    assert found == Blocker(
        "sink `t.k`: column `c` is gone, and present readers know it: that breaks its "
        "compatibility `full`",
        found.location,
        "keep `c` as it was, and put what is new in a column behind it; or let the sink say "
        "compatibility 'backward'",
    )
    assert str(found.location) == "pipeline/p.sql:1:1"


def test_a_view_is_placed_at_its_query_and_a_moved_sink_at_its_statement() -> None:
    (found,) = blockers(T + V + OF_V, T + V.replace("b FROM", "b AS d FROM") + OF_V)
    assert "column `b` is gone" in found.message
    assert str(found.location) == "pipeline/p.sql:3:1"
    (found,) = blockers(T + V + OF_V, T + V.replace("b FROM", "a + b AS b FROM") + OF_V, b="date")[
        :1
    ]
    assert "column `b` became `date`, and rows sent before have `int`" in found.message
    moved = blockers(T + V + OF_V, T + V + SINK)
    assert {str(b.location) for b in moved} == {"pipeline/p.sql:4:1"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (T + SINK, T.replace("C STRING", "C STRING, d INT") + SINK),
        (T + SINK, T.replace("C STRING", "c STRING, d INT") + SINK),
        (
            T + SINK.replace("full", "none"),
            T.replace("C STRING", "d INT") + SINK.replace("full", "none"),
        ),
        (T + SINK, T.replace(", C STRING", "") + SINK.replace("full", "backward")),
        (T + SINK, T.replace(", C STRING", "") + SINK.replace("/k", "/new")),
        (T + SINK, T.replace(", C STRING", "") + SINK.replace("k FROM", "m FROM")),
        (T + V + OF_V, T + V.replace(", b", "") + OF_V.replace("json", "csv")),
        (T + V, T + V + OF_V),
    ],
    ids=["added", "case", "none", "asked less", "new place", "new name", "new format", "new"],
)
def test_what_is_no_break(before: str, after: str) -> None:
    assert blockers(before, after) == []


def test_a_key_is_never_null_so_a_table_may_give_way_to_a_view() -> None:
    table = T.replace("b INT NOT NULL, C STRING", "b INT")
    assert blockers(table + V + SINK, table + V + OF_V) == []
    (found,) = blockers(
        T.replace(", C STRING", "") + V + SINK, T.replace(", C STRING", "") + V + OF_V
    )
    assert "column `b` can be NULL from now on" in found.message


def test_another_key_at_the_same_place_is_checked_too() -> None:
    keyed = T.replace("a INT PRIMARY KEY", "a INT").replace(
        "b INT NOT NULL", "b BIGINT PRIMARY KEY"
    )
    found = {b.message for b in blockers(T + SINK, keyed + SINK)}
    assert {m.partition("`t.k`: ")[2].partition(",")[0] for m in found} == {
        "column `a` can be NULL from now on",
        "column `b` became `bigint`",
    }


def test_the_way_back_is_not_checked_and_neither_is_a_view_that_spark_does_not_know() -> None:
    narrow = T.replace(", C STRING", "")
    made = Pipeline(World(), [Revision("r1", narrow + SINK), Revision("r2", T + SINK)])
    made.go("r1")
    made.go("r2")
    request = made.request("r1")
    assert column_changes(made.plan("r1"), request.deployed, request.target) == ()

    made = Pipeline(
        World(), [Revision("r1", T + V + OF_V), Revision("r2", T + V.replace(", b", "") + OF_V)]
    )
    made.go("r1")
    request = made.request("r2")
    (change,) = column_changes(made.plan("r2"), request.deployed, request.target)
    assert change.views_before == change.views_after == frozenset({"v"})
    assert check_columns(change, {}, {}) == ()
