"""Functions in Python: what a file declares, and what of it a function depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmig import function
from sqlmig.errors import ProgramErrors
from sqlmig.program.combine import combine
from sqlmig.program.diff import diff_programs
from sqlmig.program.model import Language, Program
from sqlmig.program.parse import parse_program
from sqlmig.program.variables import substitute

TABLE = "CREATE TABLE t (a INT, b STRING);\n"
PATH = "pipeline/functions/text.py"
FILE = '''\
"""Text."""
from __future__ import annotations

import re
from typing import Optional

from sqlmig import function

MARK = "!"
UNUSED = {"a": [1, -2.5]}


def _marked(text):
    """The text with a mark."""
    return text + MARK


@function
def shout(text: str) -> Optional[str]:
    """Loud text."""
    return _marked(text.upper())


@function(returns="ARRAY<int>", packages=["Some_Pack==1.3"], deterministic=False)
def digits(text):
    return [int(digit) for digit in re.findall("[0-9]", text)]


def quiet(text):
    return text.lower()
'''
SQL = TABLE + (
    "CREATE VIEW loud AS SELECT SHOUT(b) AS x FROM t;"
    "CREATE VIEW numbers AS SELECT digits(b) AS x FROM t;"
)


def read(python: str = FILE, sql: str = SQL) -> Program:
    """The program of one file in Python, and of the statements above."""
    return parse_program({"pipeline/a.sql": sql, PATH: python})


def mistakes(python: str, path: str = PATH) -> list[tuple[str, str, str | None]]:
    """The mistakes in one file: where, what, hint."""
    with pytest.raises(ProgramErrors) as caught:
        parse_program({path: python})
    return [
        (str(e.location).removeprefix(f"{path}:"), e.message, e.hint) for e in caught.value.errors
    ]


def modified(before: str, after: str, file: str = FILE) -> list[str]:
    """The functions that are others when a part of the file is."""
    assert before in file
    diff = diff_programs(read(file), read(file.replace(before, after)))
    callers = {"shout": "loud", "digits": "numbers"}
    names = [change.name for change in diff.changes if change.what == "function"]
    assert {c.name for c in diff.changes if c.what == "view"} == {callers[n] for n in names}
    return names


def test_a_file_declares_what_has_the_decorator() -> None:
    # when
    program = read()

    # then
    shout, digits = program.functions["shout"], program.functions["digits"]
    assert set(program.functions) == {"shout", "digits"}
    assert shout.language is Language.PYTHON
    assert (shout.returns, shout.entry, shout.packages) == ("string", "shout", ())
    assert shout.text == FILE, "the whole text of the file is what runs"
    assert (digits.returns, digits.packages) == ("array<int>", ("some-pack==1.3",))
    assert str(digits.location) == f"{PATH}:25:5"
    assert (shout.volatile, digits.volatile) == (False, True)
    assert program.views["numbers"].volatile
    assert [call.name for call in program.views["loud"].calls] == ["shout"]


def test_the_decorator_leaves_a_function_as_it_is() -> None:
    @function
    def one(number: int) -> int:
        return number + 1

    @function(returns="INT", packages=["some==1"], deterministic=False)
    def two(number: int) -> int:
        return number + 2

    assert (one(1), two(1)) == (2, 3)


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ('MARK = "!"', 'MARK = "!!"', ["shout"]),
        ("text + MARK", "MARK + text", ["shout"]),
        ("text.upper()", "text.title()", ["shout"]),
        ("[0-9]", "[1-9]", ["digits"]),
        ("==1.3", "==1.4", ["digits"]),
        ("ARRAY<int>", "ARRAY<bigint>", ["digits"]),
        ("=False", "=True", ["digits"]),
        ("import re\n", "import regex as re\n", ["digits"]),
        ("-> Optional[str]", "-> bytes", ["shout"]),
        ("UNUSED = ", "UNUSED = print() or ", ["digits", "shout"]),
        ("def quiet", "class Quiet: pass\n\ndef quiet", ["digits", "shout"]),
        ("def quiet", "MARK += '.'\n\ndef quiet", ["digits", "shout"]),
        ("def quiet", "@print\ndef quiet", ["digits", "shout"]),
        ("def quiet(text)", "def quiet(text=print())", ["digits", "shout"]),
        ("def quiet(text)", "def quiet(text: print())", ["digits", "shout"]),
        ("def quiet(text)", "def _marked(text)", ["shout"]),
        ("def quiet", "from os import *\n\ndef quiet", ["digits", "shout"]),
    ],
)
def test_a_function_depends_on_what_it_could_see(before: str, after: str, names: list[str]) -> None:
    assert modified(before, after) == names


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"""Text."""', '"""Texts of the shop."""'),
        ('    """Loud text."""\n', ""),
        ('"""The text with a mark."""', "# marked"),
        ("text + MARK", "(text\n            + MARK)"),
        ('"Some_Pack==1.3"', '"some-pack==1.3",'),
        ("def quiet(text)", "def calm(text)"),
        ("[1, -2.5]", "(1, 2)"),
        ("ARRAY<int>", "array<INTEGER>"),
    ],
)
def test_comments_layout_docstrings_and_what_is_not_used_do_not_count(
    before: str, after: str
) -> None:
    assert modified(before, after) == []


@pytest.mark.parametrize("reach", ["globals()['MARK']", "eval('MARK')", "_marked.__globals__"])
def test_code_that_can_reach_any_name_depends_on_the_whole_file(reach: str) -> None:
    # given
    file = FILE.replace("for digit in", f"for digit in {reach} or")

    # then
    assert modified('"!"', '"?"', file) == ["digits", "shout"]
    assert modified("text.lower()", "text", file) == ["digits"]


@pytest.mark.parametrize(
    ("annotation", "returns"),
    [
        ("int", "bigint"),
        ("'float'", "double"),
        ("bool | None", "boolean"),
        ("None | datetime.date", "date"),
        ("Optional[datetime.datetime]", "timestamp"),
        ("list[dict[str, bytes]]", "array<map<string,binary>>"),
    ],
)
def test_an_annotation_says_what_a_function_returns(annotation: str, returns: str) -> None:
    text = f"from sqlmig import function as declare\n@declare\ndef f(x) -> {annotation}:\n  pass\n"
    assert parse_program({PATH: text}).functions["f"].returns == returns


@pytest.mark.parametrize("how", ["import sqlmig", "import sqlmig as s"])
def test_the_decorator_may_be_called_by_its_module(how: str) -> None:
    name = how.split()[-1]
    text = f"{how}\n@{name}.function(returns='INT')\ndef f(x):\n    return 1\n"
    assert set(parse_program({PATH: text}).functions) == {"f"}


DECLARED = "from sqlmig import function\n"


@pytest.mark.parametrize(
    ("python", "where", "message", "hint"),
    [
        ("def f(:\n", "1:7", "this is not Python: invalid syntax", None),
        (
            DECLARED + "@function\ndef f(x):\n    return 1\n",
            "3:5",
            "what `f` returns is not said in Spark's words",
            'write `@function(returns="STRING")`, or annotate it with a plain type: `-> str`',
        ),
        (
            DECLARED + "@function\ndef f(x) -> int | str:\n    return 1\n",
            "3:5",
            "what `f` returns is not said in Spark's words",
            'write `@function(returns="STRING")`, or annotate it with a plain type: `-> str`',
        ),
        (
            DECLARED + "@function(returns='INTT')\ndef f(x):\n    return 1\n",
            "2:19",
            "`returns`: `intt` is not a type of Spark",
            "did you mean `int`?",
        ),
        (
            DECLARED + "T = 'INT'\n@function(returns=T)\ndef f(x):\n    return 1\n",
            "3:19",
            "`@function` can't be given this as `returns`",
            'write `@function(returns="INT", packages=["name==1.2"], deterministic=True)`',
        ),
        (
            DECLARED + "@function(packages=['ünïcode>=1'])\ndef f(x) -> int:\n    return 1\n",
            "2:20",
            "'ünïcode>=1' doesn't pin a package",
            'write its name and its one version: `packages=["unidecode==1.3.8"]`',
        ),
        (
            DECLARED + "@function\nasync def f(x) -> int:\n    return 1\n",
            "3:11",
            "`f` is an async function",
            "declare a plain function with `def`",
        ),
        (
            DECLARED + "@function\ndef f(x) -> int:\n    yield 1\n",
            "3:5",
            "`f` is a generator",
            "return one value; what gives several is an ARRAY, which `explode` unfolds",
        ),
        (
            DECLARED + "@function\ndef upper(x) -> str:\n    return x\n",
            "3:5",
            "`upper` is a name of Spark's own: a call would never reach this function",
            "give it another name",
        ),
        (
            DECLARED + "from .other import x\n",
            "2:1",
            "imports a file of the pipeline",
            "put what several functions need into one file with them: each file is frozen and "
            "run by itself",
        ),
        (
            "def f():\n    import text.more\n",
            "2:5",
            "imports `text`, another file of the pipeline",
            "put what several functions need into one file with them: each file is frozen and "
            "run by itself",
        ),
    ],
)
def test_a_mistake_is_told_at_its_place(
    python: str, where: str, message: str, hint: str | None
) -> None:
    assert mistakes(python) == [(where, message, hint)]


def test_nothing_of_a_file_runs_and_no_variable_is_put_into_it(tmp_path: Path) -> None:
    # given
    mark = tmp_path / "ran"
    text = f"open({str(mark)!r}, 'w')\nPRICE = '${{price}}'\n" + FILE

    # when
    program = parse_program(substitute({PATH: text}, {}))

    # then
    assert program.files[PATH] == text
    assert not mark.exists()


def test_a_file_is_merged_as_a_whole() -> None:
    # given
    base, ours = read(), read(FILE.replace('"!"', '"!!"'))
    theirs = read(sql=SQL + "CREATE VIEW more AS SELECT a FROM t;")
    clash = read(FILE.replace("[0-9]", "[1-9]"))
    without = parse_program({"pipeline/a.sql": TABLE})

    # when
    files, conflicts = combine(base, ours, theirs)
    _, clashes = combine(base, ours, clash)
    added, _ = combine(without, without, base)
    removed, _ = combine(base, base, without)

    # then
    assert not conflicts
    assert files[PATH] == FILE.replace('"!"', '"!!"')
    assert "more" in parse_program(files).views
    assert [(c.what, c.name) for c in clashes] == [("file", PATH)]
    assert added[PATH] == FILE
    assert PATH not in removed
