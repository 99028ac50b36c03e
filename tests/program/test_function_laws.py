"""Laws of functions, over queries, call graphs and files that hypothesis makes up."""

from __future__ import annotations

import ast
import random

from hypothesis import assume, given
from hypothesis import strategies as st

from sqlmig.errors import ProgramErrors
from sqlmig.program.diff import diff_programs
from sqlmig.program.lexer import tokenize
from sqlmig.program.model import Program
from sqlmig.program.parse import parse_program
from tests.program.pipelines import TABLES
from tests.program.queries import Template, templates

GAPS = (" ", "\n", "\t ", " -- f(1)\n", " /* y */ ", "")
SPELLINGS = ("price_of", "PRICE_OF", "`Price_Of`", "session.price_of", "system.session.`price_of`")


def with_function(body: str, query: str, *, is_python: bool = False) -> Program:
    """The program of a function and one view, or a hint that the columns don't fit."""
    files = {"a.sql": f"{TABLES}CREATE VIEW v AS {query}"}
    if is_python:
        text = (
            f"from sqlmig import function\n@function\ndef price_of(n) -> int:\n    return {body}\n"
        )
        files["pipeline/functions/f.py"] = text
    else:
        files["a.sql"] += f"; CREATE FUNCTION price_of(n INT) RETURNS INT RETURN {body}"
    try:
        return parse_program(files)
    except ProgramErrors:
        assume(False)
        raise


@given(templates(), st.sampled_from(SPELLINGS), st.sampled_from(GAPS), st.booleans(), st.booleans())
def test_a_call_is_seen_however_it_is_written(
    template: Template, spelling: str, gap: str, is_python: bool, is_readable: bool
) -> None:
    # given
    assume("?" in template.pieces)
    query = template.text(literal=f"{spelling}{gap}(7)")
    if not is_readable:
        query = f"FROM ({query}) |> SELECT *"
    before = with_function("n + 1", query, is_python=is_python)
    after = with_function("n + 2", query, is_python=is_python)

    # when
    diff = diff_programs(before, after)

    # then
    assert diff.names("view", "modified") == ("v",)
    assert diff.names("function", "modified") == ("price_of",)
    change = diff.change("v")
    assert change is not None
    assert change.reasons == ("calls `price_of`, whose body changed",)


@given(templates(), st.randoms())
def test_what_does_not_count_in_a_query_does_not_count_in_a_body(
    template: Template, chance: random.Random
) -> None:
    # given
    body = f"({template.text()})"
    parts = []
    for token in tokenize(body):
        word = token.text
        parts.append(chance.choice((word.upper(), word.lower(), word)) if token.is_name else word)
        parts.append(chance.choice(GAPS[:5]))
    query = "SELECT price_of(id) AS n FROM students"

    # then
    assert diff_programs(with_function(body, query), with_function("".join(parts), query)).is_empty


@given(st.data())
def test_everything_that_calls_a_changed_function_is_listed_and_nothing_else(
    data: st.DataObject,
) -> None:
    # given
    count = data.draw(st.integers(1, 8))
    below = [
        data.draw(st.sets(st.integers(0, i - 1), max_size=2)) if i else set[int]()
        for i in range(count)
    ]
    views = data.draw(st.lists(st.sets(st.integers(0, count - 1), max_size=2), max_size=6))
    reads = [
        data.draw(st.sets(st.integers(0, i - 1), max_size=1)) if i else set[int]()
        for i in range(len(views))
    ]
    changed = data.draw(st.integers(0, count - 1))
    is_read = data.draw(st.booleans())

    def statements(value: int) -> list[str]:
        made = [
            f"CREATE FUNCTION f{i}(n INT) RETURNS INT RETURN "
            + " + ".join([str(value if i == changed else 0), *(f"f{j}(n)" for j in below[i])])
            for i in range(count)
        ]
        for i, calls in enumerate(views):
            items = ", ".join(["0 AS x", *(f"f{j}(1) AS y{j}" for j in sorted(calls))])
            sources = ", ".join([f"v{j} AS a{j}" for j in sorted(reads[i])] or ["students"])
            query = f"SELECT {items} FROM {sources}"
            made.append(f"CREATE VIEW v{i} AS {query if is_read else f'FROM ({query}) |> LIMIT 9'}")
        return data.draw(st.permutations(made))

    # when
    diff = diff_programs(
        parse_program({"a.sql": TABLES + ";".join(statements(1))}),
        parse_program({"a.sql": TABLES + ";".join(statements(2))}),
    )

    # then
    reached = {changed}
    for i in range(count):
        if below[i] & reached:
            reached.add(i)
    callers = {i for i, calls in enumerate(views) if calls & reached}
    touched = set(callers)
    for i in range(len(views)):
        if reads[i] & touched:
            touched.add(i)
    assert set(diff.names("function", "modified")) == {f"f{changed}"}
    assert set(diff.names("function", "affected")) == {f"f{i}" for i in reached - {changed}}
    assert set(diff.names("view", "modified", "affected")) == {f"v{i}" for i in touched}
    assert set(diff.names("view", "modified")) >= {
        f"v{i}" for i in callers if not reads[i] & touched
    }


@given(st.data())
def test_a_function_in_python_that_gives_another_value_is_another_function(
    data: st.DataObject,
) -> None:
    # given: constants, helpers that use some of them and of each other, and one function
    names = ["K0", "K1", "K2", "h0", "h1", "h2"]
    uses = {
        name: data.draw(st.sets(st.sampled_from(names[: 3 + i]), max_size=2))
        for i, name in enumerate(["h0", "h1", "h2", "price_of"])
    }
    changed = data.draw(st.sampled_from(["K0", "K1", "K2"]))
    side_effect = data.draw(st.sampled_from(["", "K1 += K0\n", "globals()['K2'] += K1\n"]))

    def text(value: int) -> str:
        lines = [f"{name} = {value if name == changed else 1}" for name in names[:3]]
        for name, used in uses.items():
            terms = [f"{u}()" if u.startswith("h") else u for u in sorted(used)]
            mark = "@function\n" if name == "price_of" else ""
            given = "n=0" if mark else ""
            lines.append(
                f"{mark}def {name}({given}) -> int:\n    return {' + '.join(['1', *terms])}"
            )
        return "from sqlmig import function\n" + "\n".join(lines) + f"\n{side_effect}"

    def value(source: str) -> int:
        scope: dict[str, object] = {}
        exec(source, scope)
        return scope["price_of"]()  # type: ignore[operator, no-any-return]

    def mark(source: str) -> str:
        return parse_program({"pipeline/functions/f.py": source}).functions["price_of"].mark

    # then
    assert mark(text(1)) == mark(ast.unparse(ast.parse(text(1)))), "layout does not count"
    if value(text(1)) != value(text(2)):
        assert mark(text(1)) != mark(text(2))
    elif not side_effect:
        assert mark(text(1)) == mark(text(2)), "nothing that it uses has changed"
