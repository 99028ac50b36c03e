"""Text in a revision file comes back exactly, and reads well."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sqlmig.revisions.literal import escaped, names_literal, program_literal, text_literal

# Mostly what breaks literals: quotes, backslashes, line ends, control characters.
AWKWARD = st.text(
    st.one_of(st.sampled_from("\"\\'\n\r\tnNux0{}\0\ufeff\u2028\x0c"), st.characters()),
    max_size=30,
)


@given(AWKWARD)
@example('"""')
@example('\\"""')
@example('""""')
@example("\\")
@example('a\\"')
@example("\\\n")
@example("\r\n")
@example("r'\\d+\\.csv'\n")
@example("\ud800")
def test_every_text_comes_back_exactly(text: str) -> None:
    literal = text_literal(text)

    assert ast.literal_eval(literal) == text
    literal.encode()


@given(AWKWARD)
def test_every_text_can_stand_in_a_docstring(text: str) -> None:
    assert ast.literal_eval(f'"""{escaped(text)}"""') == text


@given(st.dictionaries(AWKWARD, AWKWARD, max_size=4))
def test_every_program_comes_back_exactly(files: dict[str, str]) -> None:
    assert ast.literal_eval(program_literal(files)) == files


@given(st.lists(AWKWARD, max_size=3))
def test_every_list_of_names_comes_back_exactly(names: list[str]) -> None:
    value = ast.literal_eval(names_literal(names))

    assert value == (None if not names else names[0] if len(names) == 1 else tuple(names))


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("SELECT 1\n", '"""\\\nSELECT 1\n"""'),
        ("SELECT 1", '"""SELECT 1"""'),
        ("SELECT r'\\d+'\n", 'r"""SELECT r\'\\d+\'\n"""'),
        ('SELECT """\n', '"""\\\nSELECT \\"\\""\n"""'),
        ('SELECT "a"', '"""SELECT "a\\""""'),
        ("Grüße 😀\n", '"""\\\nGrüße 😀\n"""'),
    ],
)
def test_lines_stay_lines(text: str, literal: str) -> None:
    assert text_literal(text) == literal


def test_what_turns_text_around_unseen_is_escaped() -> None:
    assert text_literal("a\u202eb") == '"""a\\u202eb"""'
