"""The law of kept rows: whatever becomes of a table's definition, no walk loses a row of it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import Pipeline, Revision, World

_TYPES = st.sampled_from(["INT", "BIGINT", "STRING", "DATE"])
_OTHERS = st.dictionaries(st.sampled_from(["b", "c", "d"]), _TYPES)


@st.composite
def definitions(draw: st.DrawFn) -> Sequence[Revision]:
    """A history of one table with column `k`: its type, key, layout, other columns change."""
    revisions = []
    for number in range(1, draw(st.integers(2, 5)) + 1):
        others = draw(_OTHERS)
        columns = [f"k {draw(_TYPES)}", *(f"{name} {kind}" for name, kind in others.items())]
        needed = draw(st.sampled_from(["", " NOT NULL", " PRIMARY KEY"]))
        columns[0] += needed
        listed = ", ".join(draw(st.permutations(columns)))
        layout = draw(st.sampled_from(["", *others])) if others else ""
        partitioned = f" PARTITIONED BY ({layout})" if layout else ""
        revisions.append(Revision(f"r{number}", f"CREATE TABLE t ({listed}){partitioned};"))
    return revisions


@settings(max_examples=60)
@given(definitions(), st.data())
def test_no_walk_up_and_down_loses_a_row(
    revisions: Sequence[Revision], data: st.DataObject
) -> None:
    # given
    pipeline = Pipeline(World(), revisions)
    pipeline.go("r1")
    wanted: list[int] = []

    # when
    for value in range(1, 8):
        name = data.draw(st.sampled_from([revision.id for revision in revisions]))
        plan = pipeline.plan(name)
        assert plan.destructive == ()
        if data.draw(st.booleans()):
            _insert(pipeline, value)  # it comes between plan and run
            wanted.append(value)
        pipeline.executor.run(plan)
        if data.draw(st.booleans()):
            _insert(pipeline, 10 * value)
            wanted.append(10 * value)

        # then
        columns, _ = pipeline.contents()["t"]
        place = columns.index("k")
        assert sorted(row[place] for row in pipeline.rows("t")) == sorted(wanted)


def _insert(pipeline: Pipeline, value: int) -> None:
    """A row whose `k` is `value`, whatever its place."""
    columns, _ = pipeline.contents()["t"]
    pipeline.insert("t", *(value if name == "k" else 0 for name in columns))
