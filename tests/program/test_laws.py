"""Laws of the fingerprint and the diff, over queries that hypothesis makes up."""

from __future__ import annotations

import random

from hypothesis import assume, given
from hypothesis import strategies as st

from sqlmig.errors import ProgramErrors
from sqlmig.program.diff import diff_programs
from sqlmig.program.lexer import tokenize
from sqlmig.program.model import Program
from sqlmig.program.parse import parse_program
from tests.program.pipelines import TABLES, with_view
from tests.program.queries import ALIASES, Template, templates

GAPS = (" ", "\n", "\t ", " -- x\n", " /* y */ ", "/* ' */", "\n\n  ")


def read(query: str) -> Program:
    """The program of one view, or a hint to hypothesis that the columns don't fit."""
    try:
        return with_view(query)
    except ProgramErrors:
        assume(False)
        raise


@given(templates())
def test_a_program_does_not_differ_from_itself(template: Template) -> None:
    one = read(template.text())
    assert diff_programs(one, with_view(template.text())).is_empty


@given(templates(), st.randoms())
def test_layout_comments_and_letter_case_never_matter(
    template: Template, chance: random.Random
) -> None:
    # given
    text = template.text()
    parts = []
    for token in tokenize(text):
        word = token.text
        parts.append(chance.choice((word.upper(), word.lower(), word)) if token.is_name else word)
        parts.append(chance.choice(GAPS))

    # then
    assert diff_programs(read(text), with_view("".join(parts))).is_empty


@given(templates(), st.permutations(ALIASES), st.booleans())
def test_names_of_aliases_never_matter(
    template: Template, names: list[str], is_quoted: bool
) -> None:
    # given
    others = tuple(f"`{name}`" if is_quoted else name for name in names)

    # then
    assert diff_programs(read(template.text()), with_view(template.text(others))).is_empty


@given(templates(), st.integers(8, 99))
def test_another_literal_always_shows(template: Template, literal: int) -> None:
    assume("?" in template.pieces)
    diff = diff_programs(read(template.text()), with_view(template.text(literal=str(literal))))
    assert diff.names("view", "modified") == ("v",)
    assert diff.changes[0].reasons


@given(templates(), templates())
def test_equal_canonical_text_means_equal_tokens_but_for_aliases(
    one: Template, other: Template
) -> None:
    # given
    texts = [one.text(), other.text()]
    canonical = [read(text).views["v"].canonical for text in texts]

    # then
    if canonical[0] == canonical[1]:
        nameless = [Template(t.pieces, t.inputs).text(("z",) * 6) for t in (one, other)]
        words = [[t.text for t in tokenize(text) if t.word != "AS"] for text in nameless]
        assert words[0] == words[1]


@given(st.data())
def test_everything_downstream_is_listed_and_nothing_else(data: st.DataObject) -> None:
    # given
    count = data.draw(st.integers(1, 12))
    reads = [
        data.draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set[int]()
        for i in range(count)
    ]
    changed = data.draw(st.integers(0, count - 1))
    order = data.draw(st.permutations(range(count)))

    def views(literal: int) -> list[str]:
        return [
            f"CREATE VIEW v{i} AS SELECT {literal if i == changed else 0} AS x FROM "
            + ", ".join([f"v{read} a{read}" for read in sorted(reads[i])] or ["students"])
            for i in range(count)
        ]

    # when
    before = parse_program({"a.sql": TABLES + ";".join(views(1))})
    after = parse_program({"a.sql": ";".join(views(2)[i] for i in order), "b.sql": TABLES})
    diff = diff_programs(before, after)

    # then
    downstream = {changed}
    for i in range(count):
        if reads[i] & downstream:
            downstream.add(i)
    assert set(diff.names("view", "modified", "affected")) == {f"v{i}" for i in downstream}
    assert diff.names("view", "modified") == (f"v{changed}",)
    assert diff.to_json()["program_diff"]["modified_views"] == sorted(f"v{i}" for i in downstream)


@given(templates())
def test_canonical_text_is_that_of_its_own_tokens(template: Template) -> None:
    # given
    canonical = read(template.text()).views["v"].canonical.split("\n")[0]

    # then
    assert " ".join(token.text for token in tokenize(canonical)).replace("# ", "#") == canonical
