"""The three-way merge of programs: laws over random edits, and what happens to the text."""

from __future__ import annotations

from collections.abc import Mapping, Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.errors import ProgramErrors
from sqlmig.program.combine import Conflict, combine, differences
from sqlmig.program.diff import ProgramDiff, diff_programs
from sqlmig.program.marks import Labels, line_of_mark, side_of_mark
from sqlmig.program.model import Program
from sqlmig.program.parse import parse_program

Statements = Mapping[str, tuple[str, str]]
"""Name -> (file, statement)."""

TABLES = ("t", "u")
VIEWS = ("a", "b", "c", "d")
OTHERS = ("f", "s", "k")
"""A function, a source and a sink."""
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
    if name == "f":
        body = draw(st.sampled_from(["x + 1", "x + 2", "x"]))
        return file, f"{note}CREATE FUNCTION f (x BIGINT) RETURNS BIGINT RETURN {body}"
    if name in OTHERS:
        what = "SOURCE s INTO t" if name == "s" else "SINK k FROM u"
        folder = draw(st.sampled_from(["one", "two", "three"]))
        return file, f"{note}CREATE {what} USING json OPTIONS (path '{folder}')"
    read = draw(st.sampled_from([*TABLES, *VIEWS[: VIEWS.index(name)]]))
    columns = draw(st.sampled_from(["*", "k", f"{read}.k AS k", f"f({read}.k) AS k"]))
    more = draw(st.sampled_from(["", " WHERE k > 1", " WHERE k > 2"]))
    kind = draw(st.sampled_from(["VIEW", "MATERIALIZED VIEW"]))
    return file, f"{note}CREATE {kind} {name} AS SELECT {columns} FROM {read}{more}"


@st.composite
def bases(draw: st.DrawFn) -> Statements:
    """Both tables, and some of the rest."""
    names = [*TABLES, *draw(st.lists(st.sampled_from([*VIEWS, *OTHERS]), unique=True))]
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
    names = draw(st.permutations([*TABLES, *VIEWS, *OTHERS]))
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


def own(diff: ProgramDiff, names: Set[str] | None = None) -> set[tuple[str, str, str]]:
    """What changed in itself; of these statements only."""
    return {
        (c.name, c.what, c.how)
        for c in diff.changes
        if c.how != "affected" and (names is None or c.name.rpartition(".")[2] in names)
    }


def changed(before: Statements, after: Statements) -> Set[str]:
    """The names whose statements differ."""
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


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

    assert conflicts == conflicts_other
    assert all(conflict.readers for conflict in conflicts), "only what is still read, and gone"
    union = {**sides[1]}
    for name in set(sides[0]) | set(sides[2]):
        if sides[2].get(name) != sides[0].get(name):
            union.pop(name, None)
            if name in sides[2]:
                union[name] = sides[2][name]
    expected = parsed(union)
    if conflicts:
        assert expected is None or any(c.what == "function" for c in conflicts)
        assert all(line_of_mark("".join(texts.values())) for texts in (one, other))
        return
    if expected is None:
        with pytest.raises(ProgramErrors):
            parse_program(one)
        return
    joined, again = parse_program(one), parse_program(other)
    assert diff_programs(joined, again).is_empty
    assert diff_programs(joined, expected).is_empty
    assert own(diff_programs(base, joined)) == own(diff_programs(base, expected))
    if all("*" not in text for side in sides for _, text in side.values()):
        # the way from either parent is what the other one changed; a star means what it reads
        for parent, other_side, names in (
            (left, right, changed(sides[0], sides[2])),
            (right, left, changed(sides[0], sides[1])),
        ):
            assert own(diff_programs(parent, joined), names) == own(
                diff_programs(base, other_side), names
            )
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
        named = {"f": ("function", "f"), "s": ("source", "t.s"), "k": ("sink", "u.k")}
        assert conflicts == (Conflict(*named.get(name, ("relation", name))),)
        assert len(set(texts)) == 3


@st.composite
def any_sides(draw: st.DrawFn) -> tuple[Statements, Statements, Statements]:
    """A base, and two sides that may edit the same statements."""
    base = draw(bases())
    names = (*TABLES, *VIEWS, *OTHERS)
    return base, draw(edits(names, base)), draw(edits(names, base))


def solved(texts: Mapping[str, str], chosen: str) -> dict[str, str]:
    """The files with each conflict solved by taking one side."""
    files = {}
    for path, text in texts.items():
        lines, side = [], "both"
        for line in text.split("\n"):
            mark = side_of_mark(line)
            side = mark or side
            if mark is None and side in ("both", chosen):
                lines.append(line)
        files[path] = "\n".join(lines)
    return files


@given(any_sides(), st.sampled_from(["ours", "theirs"]))
def test_a_conflict_solved_by_one_side_gives_that_sides_statement_and_touches_no_other(
    sides: tuple[Statements, Statements, Statements], chosen: str
) -> None:
    programs = [parsed(side) for side in sides]
    if None in programs:
        return
    base, ours, theirs = (program for program in programs if program is not None)

    texts, conflicts = combine(base, ours, theirs)
    try:
        result = parse_program(solved(texts, chosen))
    except ProgramErrors:
        return

    taken = ours if chosen == "ours" else theirs
    keys = {(c.what, c.name) for c in conflicts}
    assert not keys & differences(result, taken), "the conflicts are as on that side"
    if "*" in str(sides):
        return  # a star means what it reads
    by_ours, by_theirs = differences(base, ours), differences(base, theirs)
    assert not differences(result, ours) & differences(result, theirs)
    assert not (by_ours - by_theirs - keys) & differences(result, ours)
    assert not (by_theirs - by_ours - keys) & differences(result, theirs)


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


def conflict_of(base: str, ours: str, theirs: str) -> tuple[str, tuple[Conflict, ...]]:
    """The marked text of one file, and its conflicts."""
    programs = [parse_program({"a.sql": text}) for text in (base, ours, theirs)]
    files, conflicts = combine(*programs, labels=Labels("one", "root", "two"))
    return files["a.sql"], conflicts


def test_a_conflict_stands_between_marks_with_its_comments_and_the_rest_is_merged() -> None:
    view = "-- which\nCREATE VIEW a AS SELECT k FROM t"
    end = "CREATE VIEW z AS SELECT k FROM t;\n"

    text, conflicts = conflict_of(
        f"{T}\n{view}; -- why\n\n{end}",
        f"{T}\n{view} WHERE k > 1; -- why\n\n{end}",
        f"{T}\n{view.replace('which', 'what')} WHERE k > 2; -- why\n\n{end.replace('k F', 'v F')}",
    )

    assert text == (
        f"{T}\n<<<<<<< one\n{view} WHERE k > 1; -- why\n||||||| root\n{view}; -- why\n=======\n"
        f"-- what\nCREATE VIEW a AS SELECT k FROM t WHERE k > 2; -- why\n>>>>>>> two\n\n"
        "CREATE VIEW z AS SELECT v FROM t;\n"
    )
    assert conflicts == (Conflict("relation", "a"),)
    assert str(conflicts[0].location) == "a.sql:3"


def test_both_added_one_name_differently() -> None:
    text, conflicts = conflict_of(
        T, f"{T}CREATE VIEW a AS SELECT 1 x", f"{T}CREATE VIEW a AS SELECT 2 x"
    )

    assert text == (
        f"{T}\n<<<<<<< one\nCREATE VIEW a AS SELECT 1 x;\n||||||| root\n=======\n"
        "CREATE VIEW a AS SELECT 2 x;\n>>>>>>> two\n"
    )
    assert conflicts == (Conflict("relation", "a"),)


SINK = "CREATE SINK k FROM a USING json OPTIONS (path 'x');\n"


@pytest.mark.parametrize(
    ("removed", "reading", "conflict"),
    [
        (
            "CREATE VIEW a AS SELECT k FROM t;\n",
            "CREATE VIEW b AS SELECT k FROM a;\n",
            Conflict("relation", "a", ("b",)),
        ),
        ("CREATE VIEW a AS SELECT k FROM t;\n", SINK, Conflict("relation", "a", ("a.k",))),
        (
            "CREATE FUNCTION f (x INT) RETURNS INT RETURN x;\n",
            "CREATE VIEW b AS SELECT f(1) AS x;\n",
            Conflict("function", "f", ("b",)),
        ),
        (
            "CREATE FUNCTION f (x INT) RETURNS INT RETURN x;\n",
            "CREATE FUNCTION g (x INT) RETURNS INT RETURN f(x);\n",
            Conflict("function", "f", ("g",)),
        ),
        (
            "CREATE TABLE a (k BIGINT);\n",
            "CREATE SOURCE s INTO a USING json OPTIONS (path 'x');\n",
            Conflict("relation", "a", ("a.s",)),
        ),
    ],
)
def test_what_one_side_removed_and_the_other_reads_is_a_conflict(
    removed: str, reading: str, conflict: Conflict
) -> None:
    for ours, theirs in ((T, T + removed + reading), (T + removed + reading, T)):
        text, conflicts = conflict_of(T + removed, ours, theirs)

        assert conflicts == (conflict,)
        sides = (removed, "") if ours != T else ("", removed)
        assert (
            f"<<<<<<< one\n{sides[0]}||||||| root\n{removed}=======\n{sides[1]}>>>>>>> two\n"
        ) in text
        assert reading in text


def test_a_python_file_that_lost_a_function_which_is_called_now_is_a_conflict() -> None:
    head = "from sqlmig import function\n\n\n"
    one = "@function\ndef one(x: str) -> str:\n    return x\n"
    two = "\n\n@function\ndef two(x: str) -> str:\n    return x\n"
    path = "pipeline/functions/f.py"
    base, ours, theirs = (
        parse_program({"a.sql": sql, path: text})
        for sql, text in (
            (T, head + one + two),
            (T, head + one),
            (f"{T}CREATE VIEW a AS SELECT two(v) AS x FROM t;\n", head + one + two),
        )
    )

    files, conflicts = combine(base, ours, theirs)

    assert conflicts == (Conflict("function", "two", ("a",)),)
    assert str(conflicts[0].location) == f"{path}:7"
    assert files[path] == (
        f"{head}{one}<<<<<<< ours\n||||||| base\n{two}=======\n{two}>>>>>>> theirs\n"
    )


def test_what_is_not_known_of_the_base_must_be_the_same_on_both_sides() -> None:
    view, other = "CREATE VIEW a AS SELECT k FROM t;\n", "CREATE VIEW a AS SELECT v FROM t;\n"
    one, two, none = (parse_program({"a.sql": text}) for text in (T + view, T + other, T))
    unknown = differences(one, two)

    assert unknown == {("relation", "a")}
    assert combine(one, one, one, unknown=unknown)[1] == ()
    for ours, theirs in ((one, two), (two, one), (one, none), (none, one)):
        assert combine(one, ours, theirs, unknown=unknown)[1] == (Conflict("relation", "a"),)
    assert combine(one, none, none, unknown=unknown) == (none.files, ())
