"""The three-way merge of programs: laws over random edits, and what happens to the text."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.errors import ProgramErrors
from sqlmig.program.combine import Conflict, combine, describe
from sqlmig.program.diff import ProgramDiff, diff_programs
from sqlmig.program.model import Program
from sqlmig.program.parse import parse_program

Statements = Mapping[str, tuple[str, str]]
"""Name -> (file, statement)."""

TABLES = ("t", "u")
VIEWS = ("a", "b", "c", "d")
COLUMNS = ("k BIGINT", "k BIGINT, v STRING", "k BIGINT, v STRING, w DATE")
NOTES = ("", "-- a note\n", "/* two\n   lines; one is a trap */\n")
FILES = ("pipeline/one.sql", "pipeline/two.sql")


@st.composite
def statements(draw: st.DrawFn, name: str) -> tuple[str, str]:
    """A definition of `name`; a view reads a table, or a view that comes before it."""
    note = draw(st.sampled_from(NOTES))
    file = draw(st.sampled_from(FILES))
    if name in TABLES:
        return file, f"{note}CREATE TABLE {name} ({draw(st.sampled_from(COLUMNS))})"
    read = draw(st.sampled_from([*TABLES, *VIEWS[: VIEWS.index(name)]]))
    columns = draw(st.sampled_from(["*", "k", f"{read}.k AS k"]))
    more = draw(st.sampled_from(["", " WHERE k > 1", " WHERE k > 2"]))
    kind = draw(st.sampled_from(["VIEW", "MATERIALIZED VIEW"]))
    return file, f"{note}CREATE {kind} {name} AS SELECT {columns} FROM {read}{more}"


@st.composite
def bases(draw: st.DrawFn) -> Statements:
    """Both tables, and some of the views."""
    names = [*TABLES, *draw(st.lists(st.sampled_from(VIEWS), unique=True))]
    return {name: draw(statements(name)) for name in sorted(names)}


@st.composite
def edits(draw: st.DrawFn, names: tuple[str, ...], base: Statements) -> Statements:
    """`base` with some of `names` redefined, added or removed."""
    edited = dict(base)
    for name in names:
        what = draw(st.sampled_from(["change", "change", "keep", "remove"]))
        if what == "change":
            file, text = draw(statements(name))
            edited[name] = (base[name][0] if name in base else file, text)
        elif what == "remove" and name not in TABLES:
            edited.pop(name, None)
    return edited


@st.composite
def disjoint_sides(draw: st.DrawFn) -> tuple[Statements, Statements, Statements]:
    """A base, and two sides that edit different statements of it."""
    base = draw(bases())
    names = draw(st.permutations([*TABLES, *VIEWS]))
    cut = draw(st.integers(1, len(names) - 1))
    left = draw(edits(tuple(names[:cut]), base))
    return base, left, draw(edits(tuple(names[cut:]), base))


def files(side: Statements) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    for file, text in side.values():
        texts.setdefault(file, []).append(text)
    return {file: ";\n\n".join(parts) + ";\n" for file, parts in texts.items()}


def parsed(side: Statements) -> Program | None:
    """The program, or None where a side's own edit broke it."""
    try:
        return parse_program(files(side))
    except ProgramErrors:
        return None


def own(diff: ProgramDiff) -> set[tuple[str, str, str]]:
    """What changed in itself."""
    return {(c.name, c.what, c.how) for c in diff.changes if c.how != "affected"}


@given(disjoint_sides())
def test_disjoint_edits_merge_to_their_union_in_either_order(
    sides: tuple[Statements, Statements, Statements],
) -> None:
    programs = [parsed(side) for side in sides]
    if None in programs:
        return
    base, left, right = (program for program in programs if program is not None)

    one, conflicts = combine(base, left, right)
    other, conflicts_other = combine(base, right, left)

    assert conflicts == conflicts_other == ()
    union = {**sides[1]}
    for name in set(sides[0]) | set(sides[2]):
        if sides[2].get(name) != sides[0].get(name):
            union.pop(name, None)
            if name in sides[2]:
                union[name] = sides[2][name]
    expected = parsed(union)
    if expected is None:
        with pytest.raises(ProgramErrors):
            parse_program(one)
        return
    joined, again = parse_program(one), parse_program(other)
    assert diff_programs(joined, again).is_empty
    assert diff_programs(joined, expected).is_empty
    assert own(diff_programs(base, joined)) == own(diff_programs(base, expected))
    for text in {text for _, text in union.values()}:
        assert text in "\n".join(one.values()), "its comments are kept"


@given(bases(), st.data())
def test_what_both_change_differently_is_a_conflict_and_nothing_else_is(
    base: Statements, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(base)))
    sides = [{**base, name: (base[name][0], data.draw(statements(name))[1])} for _ in range(2)]
    programs = [parsed(side) for side in (base, *sides)]
    if None in programs:
        return
    before, left, right = (program for program in programs if program is not None)
    texts = [side[name][1] for side in (base, *sides)]

    _, conflicts = combine(before, left, right)
    _, back = combine(before, right, left)

    assert bool(conflicts) == bool(back)
    if conflicts:
        assert conflicts == (Conflict("relation", name),)
        assert len(set(texts)) == 3


@given(bases())
def test_merging_with_oneself_or_with_the_base_changes_nothing(base: Statements) -> None:
    program = parsed(base)
    if program is None:
        return

    assert combine(program, program, program) == (program.files, ())


def combined(base: str, ours: str, theirs: str) -> str:
    """The merge of three texts of one file."""
    programs = [parse_program({"a.sql": text}) for text in (base, ours, theirs)]
    result, conflicts = combine(*programs)
    assert conflicts == ()
    return result["a.sql"]


T = "CREATE TABLE t (k BIGINT, v STRING);\n"


def test_both_may_give_a_statement_another_layout() -> None:
    view = "CREATE VIEW a AS SELECT k FROM t;\n"

    assert combined(T + view, T + view.lower(), T + view.replace(" FROM", "\nFROM")) == (
        T + view.lower()
    )


def test_a_change_wins_over_a_new_layout() -> None:
    view = "CREATE VIEW a AS SELECT k FROM t;\n"
    changed = "CREATE VIEW a AS SELECT v FROM t;\n"

    assert combined(T + view, T + view.lower(), T + changed) == T + changed
    assert combined(T + view, T + changed, T + view.lower()) == T + changed


def test_comments_that_only_one_side_touched_are_taken_from_it() -> None:
    base = T + "-- old\nCREATE VIEW a AS SELECT k FROM t; -- why\n-- the end\n"

    theirs = T + "-- new\nCREATE VIEW a AS SELECT k FROM t; -- because\n-- the very end\n"

    assert combined(base, base, theirs) == theirs
    assert combined(base, theirs, base) == theirs


def test_stars_are_no_change_of_the_view_that_has_them() -> None:
    view = "CREATE VIEW a AS SELECT * FROM t;\n"
    wider = T.replace("STRING", "STRING, w DATE")

    assert combined(T + view, wider + view, T + view.replace(";", " WHERE k > 1;")) == (
        wider + view.replace(";", " WHERE k > 1;")
    )


def test_letter_case_counts_where_names_become_data() -> None:
    view = "CREATE VIEW a AS SELECT to_json(struct(k AS x)) AS j FROM t;\n"
    base, ours, theirs = (
        parse_program({"a.sql": T + text})
        for text in (view, view.replace("AS x", "AS X"), view.replace("AS x", "AS y"))
    )

    _, conflicts = combine(base, ours, theirs)

    assert conflicts == (Conflict("relation", "a"),)


def test_what_one_removed_and_the_other_changed_is_a_conflict() -> None:
    view = "CREATE VIEW a AS SELECT k FROM t;\n"
    base, gone, changed = (
        parse_program({"a.sql": text}) for text in (T + view, T, T + view.replace("k", "v"))
    )

    assert combine(base, gone, changed)[1] == (Conflict("relation", "a"),)
    assert combine(base, changed, gone)[1] == (Conflict("relation", "a"),)


def test_connectors_are_merged_by_their_name_and_relation() -> None:
    source = "CREATE SOURCE s INTO t USING json OPTIONS (path 'x');\n"
    base, ours, theirs = (
        parse_program({"a.sql": T + text})
        for text in (source, source.replace("'x'", "'y'"), source.replace("'x'", "'z'"))
    )

    assert combine(base, ours, theirs)[1] == (Conflict("source", "t.s"),)
    assert combined(T + source, T + source, T) == T
    assert combined(T, T + source, T) == T + source


def test_a_name_with_a_variable_is_a_statement_of_its_own() -> None:
    view = "CREATE VIEW ${prefix}a AS SELECT k FROM t;\n"

    def program(text: str) -> Program:
        read = parse_program({"a.sql": text.replace("${prefix}", "p_")})
        return Program({"a.sql": text}, read.relations, read.sources, read.sinks)

    added, conflicts = combine(program(T), program(T), program(T + view))

    assert conflicts == ()
    assert added["a.sql"] == f"{T}\n{view}"
    assert combine(program(T + view), program(T + view), program(T))[0]["a.sql"] == T


def test_conflicts_in_words() -> None:
    names = [Conflict("relation", "a"), Conflict("relation", "b"), Conflict("source", "t.s")]

    assert describe(names[:1]) == "relation `a`"
    assert describe(names) == "relation `a`, relation `b` and source `t.s`"
