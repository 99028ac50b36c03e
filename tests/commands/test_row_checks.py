"""Which tables' rows are looked at before a plan runs: those that are still as deployed."""

from __future__ import annotations

from sqlmig.commands.row_checks import converted_as_deployed
from sqlmig.planning.directives import Execute, RenameTable
from tests.fakes import Pipeline, Revision, World

T = "CREATE TABLE t (a INT);\n"
U = "CREATE TABLE u (a INT);\n"


def looked_at(*revisions: Revision) -> list[tuple[str, str]]:
    """Table in the target, and its deployed name, of a plan from the first to the last."""
    pipeline = Pipeline(World(), revisions)
    pipeline.go(revisions[0].id)
    for table in ("t", "u"):
        pipeline.insert(table, 1)
    plan = pipeline.plan(revisions[-1].id)
    assert plan.blockers == ()
    return [(action.relation, deployed) for action, deployed in converted_as_deployed(plan)]


def test_every_table_that_is_converted_is_looked_at_by_its_deployed_name() -> None:
    after = "CREATE TABLE w (a STRING);\nCREATE TABLE u (a INT PRIMARY KEY);\n"
    renaming = Revision("r2", after, (RenameTable("t", "w"),))
    assert looked_at(Revision("r1", T + U), renaming) == [("u", "u"), ("w", "t")]


def test_a_table_that_is_only_altered_is_not() -> None:
    after = T.replace("INT", "BIGINT") + U.replace("a INT", "a INT, b INT")
    assert looked_at(Revision("r1", T + U), Revision("r2", after)) == []


def test_a_table_that_the_plan_changes_before_is_left_to_its_step() -> None:
    first = Revision("r1", T + U)
    mended = Revision("r2", T + U, (Execute("UPDATE t SET a = 1"),))
    both = Revision("r3", (T + U).replace("INT", "STRING"))
    assert looked_at(first, mended, both) == [("u", "u")]
