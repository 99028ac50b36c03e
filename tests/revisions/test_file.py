"""Revision files are read without being run, and quickly where that is certain."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.errors import RevisionError
from sqlmig.revisions.file import digest, parse_revision

TEXT = '''"""extend date range

and say so in two paragraphs

Revision ID: 8f3c2a91d0be
Revises: 1f2e3d4c5b6a
Create Date: 2026-06-10T12:00:00+02:00

modified views: avg_grade
"""

revision = "8f3c2a91d0be"
down_revision = "1f2e3d4c5b6a"
branch_labels = None
depends_on = None

program = {
    "pipeline/school.sql": """\\
CREATE VIEW v AS SELECT 1;
""",
}


def up(op):
    raise SystemExit("never run while reading")
'''


def test_a_file_is_read_without_running_it() -> None:
    file = parse_revision(TEXT, "revisions/x.py")

    assert file.revision == "8f3c2a91d0be"
    assert file.down_revisions == ("1f2e3d4c5b6a",)
    assert file.branch_labels == ()
    assert file.depends_on == ()
    assert file.message == "extend date range\n\nand say so in two paragraphs"
    assert file.title == "extend date range"
    assert file.created == "2026-06-10T12:00:00+02:00"
    assert file.path == "revisions/x.py"
    assert file.text == TEXT
    assert file.files == {"pipeline/school.sql": "CREATE VIEW v AS SELECT 1;\n"}


def test_the_lines_below_program_are_parsed_only_when_asked_for() -> None:
    file = parse_revision('revision = "a"\n\nprogram = {"a.sql": oops(\n', "revisions/a.py")

    with pytest.raises(RevisionError) as caught:
        _ = file.files

    assert str(caught.value) == "revisions/a.py:3:25: syntax error: '(' was never closed"


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("None", ()),
        ("'a'", ("a",)),
        ("('a', 'b')", ("a", "b")),
        ("['a', 'b', 'a']", ("a", "b")),
        ("{'b', 'a'}", ("a", "b")),
        ("()", ()),
    ],
)
def test_parents_labels_and_dependencies_are_written_in_alembics_forms(
    value: str, names: tuple[str, ...]
) -> None:
    for key in ("down_revision", "branch_labels", "depends_on"):
        file = parse_revision(f"revision = 'x'\n{key} = {value}\nprogram = ''\n", "x.py")

        field = "down_revisions" if key == "down_revision" else key
        assert getattr(file, field) == names


@pytest.mark.parametrize(
    "text",
    [
        # Below the program.
        "program = 'sql'\nrevision = 'a'\ndown_revision = 'b'\n",
        "revision = 'a'\nprogram = 'sql'\ndown_revision = 'b'\n",
        # Said again below the program: the last one counts, as when run.
        "revision = 'z'\ndown_revision = None\nprogram = 'sql'\nrevision = 'a'; "
        "down_revision = 'b'\n",
        # With types, as newer alembic templates do.
        "from typing import Union\nrevision: str = 'a'\ndown_revision: Union[str, None] = 'b'\n"
        "program: dict[str, str] = {'program.sql': 'sql'}\n",
        # A docstring with a line that looks like the program.
        '"""\nprogram = 1\nrevision = 2\n"""\nrevision = "a"\ndown_revision = "b"\n'
        'program = "sql"\n',
        # Strings in pieces, and line ends of Windows.
        "revision = 'a'\r\ndown_revision = 'b'\r\nprogram = (\r\n    's'\r\n    'ql'\r\n)\r\n",
        # A byte order mark.
        "\ufeffrevision = 'a'\ndown_revision = 'b'\nprogram = 'sql'\n",
        # A continued line before the program.
        "revision = 'a'\ndown_revision = \\\n'b'\nprogram = 'sql'\n",
        "revision = x = \\\n'a'\ndown_revision = 'b'\nprogram = 'sql'\n",
    ],
)
def test_any_order_and_layout_is_understood(text: str) -> None:
    file = parse_revision(text, "a.py")

    assert (file.revision, file.down_revisions) == ("a", ("b",))
    assert file.files == {"program.sql": "sql"}


METADATA_LINES = st.sampled_from(
    [
        "revision = 'a'",
        "revision = 'b'",
        "revision: str = 'c'",
        "down_revision = 'p'",
        "down_revision = ('p', 'q')",
        "depends_on = 'd'",
        "branch_labels = ('l',)",
        "program = 'one'",
        "program = '''\nrevision = 3\n'''",
        "program = {'x': 'y'}",
        '"""\nprogram = 1\n"""',
        "other = '''\nprogram = 2\n'''",
        "x = 1; revision = 'd'",
        "# program = 5",
        "def up(op):\n    revision = 'local'",
        "if True:\n    pass",
        "x = [\n]",
    ]
)


@given(st.lists(METADATA_LINES, max_size=8).map("\n".join))
def test_the_quick_reader_says_what_running_the_file_says(text: str) -> None:
    namespace: dict[str, Any] = {}
    exec(text, namespace)

    if "revision" not in namespace:
        with pytest.raises(RevisionError, match="has no `revision`"):
            parse_revision(text, "x.py")
        return
    if "program" not in namespace:
        with pytest.raises(RevisionError, match="has no `program`"):
            parse_revision(text, "x.py")
        return
    file = parse_revision(text, "x.py")

    program = namespace["program"]
    assert file.revision == namespace["revision"]
    assert file.down_revisions == _names(namespace.get("down_revision"))
    assert file.depends_on == _names(namespace.get("depends_on"))
    assert file.branch_labels == _names(namespace.get("branch_labels"))
    assert file.files == (program if isinstance(program, dict) else {"program.sql": program})
    assert file.docstring == (ast.get_docstring(ast.parse(text), clean=False) or "")


def _names(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "r.py: this file has no `revision`"),
        ("", "r.py: this file has no `revision`"),
        ("revision = 'a'\n", "r.py: this file has no `program`"),
        ("revision = 1\nprogram = ''\n", "r.py:1: `revision` must be a string"),
        ("\nrevision = f()\nprogram = ''\n", "r.py:2: `revision` is not a literal"),
        ("revision = 'head'\nprogram = ''\n", "r.py:1: revision id `head` is a reserved word"),
        (
            "revision = 'a-b'\nprogram = ''\n",
            "r.py:1: revision id `a-b` holds other characters than letters, digits and `_`",
        ),
        (
            "revision = 'a'\ndown_revision = 3\nprogram = ''\n",
            "r.py:2: `down_revision` must be None, a string or a tuple of strings",
        ),
        (
            "revision = 'a'\ndepends_on = ('b', 3)\nprogram = ''\n",
            "r.py:2: `depends_on` must be None, a string or a tuple of strings",
        ),
        ("revision = 'a'\ndef (\n", "r.py:2:5: syntax error: invalid syntax"),
        ("revision = 'a'\0\n", "r.py"),
    ],
)
def test_a_broken_file_is_an_error_at_its_line(text: str, message: str) -> None:
    with pytest.raises(RevisionError) as caught:
        parse_revision(text, "r.py")

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("f'{x}'", "`program` is not a literal"),
        ("open('x').read()", "`program` is not a literal"),
        ("3", "`program` must be a string, or a dictionary from paths to SQL text"),
        ("{'a': 3}", "`program` must be a string, or a dictionary from paths to SQL text"),
    ],
)
def test_a_program_must_be_a_literal(program: str, message: str) -> None:
    file = parse_revision(f"revision = 'a'\n\nprogram = {program}\n", "r.py")

    with pytest.raises(RevisionError) as caught:
        _ = file.files

    assert str(caught.value) == f"r.py:3: {message}"


def test_the_files_of_a_program_are_sorted() -> None:
    file = parse_revision("revision = 'a'\nprogram = {'b': '2', 'a': '1'}\n", "r.py")

    assert list(file.files) == ["a", "b"]


def test_a_docstring_without_an_id_line_is_the_message() -> None:
    file = parse_revision('"""first"""\nrevision = "a"\nprogram = ""\n', "r.py")

    assert (file.message, file.created) == ("first", "")


def test_the_digest_is_the_same_for_all_line_ends() -> None:
    windows = TEXT.replace("\n", "\r\n")

    assert digest(windows) == digest(TEXT) == parse_revision(windows, "x.py").digest
    assert digest(TEXT + "\n") != digest(TEXT)
    assert len(digest(TEXT)) == 64


def test_an_odd_escape_makes_no_noise() -> None:
    file = parse_revision('"""\\d"""\nrevision = "a"\nprogram = "\\d"\n', "r.py")

    assert file.files == {"program.sql": "\\d"}
