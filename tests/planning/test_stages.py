"""The stages of tables: renames over several hops, and hooks with effects between."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sqlmig.ledger.records import AppliedRevision
from sqlmig.planning.directives import Directive, Execute, RenameColumn, RenameTable, Run
from sqlmig.planning.stages import Hop, Stage, split_stages
from sqlmig.planning.steps import Blocker
from sqlmig.planning.steps import Execute as ExecuteStep
from sqlmig.program.model import Column, Program, Table


def program(**tables: str) -> Program:
    """Tables by name, each with the columns listed."""
    return Program(
        relations={
            name: Table(name, tuple(Column(c, "int") for c in columns.split()))
            for name, columns in sorted(tables.items())
        }
    )


def walk(
    programs: Sequence[Program], *directives: Sequence[Directive], hook: str = "up"
) -> tuple[tuple[Stage, ...], tuple[Blocker, ...]]:
    """The stages through these programs, with the directives of each hop."""
    hops = [
        Hop(
            AppliedRevision(f"r{number}", (), (), (), "", "", ""),
            hook,
            tuple(asked),
            programs[number],
            programs[number + 1],
        )
        for number, asked in enumerate(directives)
    ]
    return split_stages(programs[0], programs[-1], hops, "end")


def renames(stages: Sequence[Stage]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Table and column renames of the only stage."""
    (stage,) = stages
    return stage.tables, {t: c for t, c in stage.columns.items() if c}


def test_without_hooks_there_is_one_stage() -> None:
    stages, blockers = walk([program(t="a"), program(u="a")])
    assert stages == (Stage(program(t="a"), program(u="a"), "end"),)
    assert blockers == ()


def test_renames_of_several_hops_are_one() -> None:
    stages, blockers = walk(
        [program(t="a"), program(u="a"), program(v="b")],
        [RenameTable("t", "u")],
        [RenameTable("u", "v"), RenameColumn("v", "a", "b")],
    )
    assert blockers == ()
    assert renames(stages) == ({"t": "v"}, {"v": {"a": "b"}})


def test_column_renames_follow_their_table_and_each_other() -> None:
    stages, _ = walk(
        [program(t="a"), program(t="b"), program(u="c")],
        [RenameColumn("t", "a", "b")],
        [RenameColumn("u", "b", "c"), RenameTable("t", "u")],
    )
    assert renames(stages) == ({"t": "u"}, {"u": {"a": "c"}})


def test_there_and_back_again_is_no_rename() -> None:
    stages, _ = walk(
        [program(t="a"), program(u="b"), program(t="a")],
        [RenameTable("t", "u"), RenameColumn("u", "a", "b")],
        [RenameTable("u", "t"), RenameColumn("t", "b", "a")],
    )
    assert renames(stages) == ({}, {})


def test_a_table_made_on_the_way_is_not_the_one_that_had_its_name() -> None:
    """t becomes u; another t is made, and becomes v: only the first was there before."""
    stages, blockers = walk(
        [program(t="a"), program(u="a"), program(t="x", u="a"), program(u="a", v="x")],
        [RenameTable("t", "u")],
        [],
        [RenameTable("t", "v")],
    )
    assert blockers == ()
    assert renames(stages) == ({"t": "u"}, {})


def test_a_name_that_was_dropped_on_the_way_can_be_taken_again() -> None:
    stages, blockers = walk(
        [program(t="a", x="b"), program(u="a", x="b"), program(x="b"), program(u="b")],
        [RenameTable("t", "u")],
        [],
        [RenameTable("x", "u")],
    )
    assert blockers == ()
    assert renames(stages) == ({"x": "u"}, {})


def test_two_tables_can_change_names_over_several_hops() -> None:
    stages, blockers = walk(
        [
            program(a="x", b="y"),
            program(b="y", c="x"),
            program(a="y", c="x"),
            program(a="y", b="x"),
        ],
        [RenameTable("a", "c")],
        [RenameTable("b", "a")],
        [RenameTable("c", "b")],
    )
    assert blockers == ()
    assert renames(stages) == ({"a": "b", "b": "a"}, {})


def test_a_rename_of_what_comes_or_goes_on_the_way_is_none() -> None:
    """Up: u is made, t is dropped, u becomes t. Both ends have a t; down is the inverse."""
    ends = [program(t="a"), program(t="a", u="a"), program(u="a"), program(t="a")]
    up, blockers = walk(ends, [], [], [RenameTable("u", "t")])
    assert (renames(up), blockers) == (({}, {}), ())
    down, blockers = walk(ends[::-1], [RenameTable("t", "u")], [], [], hook="down")
    assert (renames(down), blockers) == (({}, {}), ())


def test_a_rename_of_a_column_that_comes_or_goes_on_the_way_is_none() -> None:
    ends = [program(t="a"), program(t="a b"), program(t="a c"), program(t="a")]
    assert renames(walk(ends[:3], [], [RenameColumn("t", "b", "c")])[0]) == ({}, {})
    assert renames(walk(ends[1:], [RenameColumn("t", "b", "c")], [])[0]) == ({}, {})
    assert renames(walk(ends[1:3], [RenameColumn("t", "b", "c")])[0]) == ({}, {"t": {"b": "c"}})


def test_up_runs_after_the_tables_have_changed() -> None:
    before, middle, after = program(t="a"), program(u="a"), program(u="a b")
    stages, _ = walk([before, middle, after], [RenameTable("t", "u"), Execute("DELETE FROM u")], [])
    first, last = stages
    assert (first.before, first.after, first.revision) == (before, middle, "r0")
    assert first.tables == {"t": "u"}
    assert first.effects == ((ExecuteStep("r0", "up", 1, "DELETE FROM u"), "up() of r0"),)
    assert (last.before, last.after, last.revision) == (middle, after, "end")
    assert (last.tables, last.effects) == ({}, ())


def test_down_runs_before_the_tables_change() -> None:
    before, after = program(u="a"), program(t="a")
    stages, _ = walk(
        [before, after], [Execute("DELETE FROM u"), RenameTable("u", "t")], hook="down"
    )
    first, last = stages
    assert (first.before, first.after, first.revision) == (before, before, "r0")
    assert first.tables == {}
    assert len(first.effects) == 1
    assert (last.before, last.after, last.tables) == (before, after, {"u": "t"})


def test_effects_of_two_hops_have_a_stage_each() -> None:
    programs = [program(t="a"), program(t="a b"), program(t="a b c")]
    stages, _ = walk(programs, [Run("one", print)], [Run("two", print)])
    assert [s.after for s in stages] == [programs[1], programs[2], programs[2]]
    assert [len(s.effects) for s in stages] == [1, 1, 0]


@pytest.mark.parametrize(
    ("directive", "problem"),
    [
        (RenameTable("x", "u"), "table `x`: the program that is left has no table `x`"),
        (RenameTable("t", "x"), "table `t`: the program that is gone to has no table `x`"),
        (RenameTable("k", "u"), "table `k`: the program that is gone to still has `k`"),
        (RenameTable("t", "k"), "table `t`: the program that is left has `k` already"),
        (
            RenameColumn("x", "a", "b"),
            "column `x.a`: the program that is gone to has no table `x`",
        ),
        (
            RenameColumn("u", "a", "b"),
            "column `u.a`: the program that is left has no table `u`",
        ),
        (RenameColumn("k", "x", "d"), "column `k.x`: the table that is left has no column `x`"),
        (
            RenameColumn("k", "c", "x"),
            "column `k.c`: the table that is gone to has no column `x`",
        ),
        (RenameColumn("k", "e", "d"), "column `k.e`: the table that is gone to still has `e`"),
    ],
)
def test_a_directive_that_does_not_fit_is_a_blocker(directive: Directive, problem: str) -> None:
    before, after = program(t="a", k="c e"), program(u="b", k="d e")
    stages, blockers = walk([before, after], [directive])
    assert [b.message for b in blockers] == [f"up() of r0: rename of {problem}"]
    assert renames(stages) == ({}, {})
