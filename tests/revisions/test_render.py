"""New revision files, and unapplied ones frozen again."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.errors import RevisionError
from sqlmig.revisions.file import parse_revision
from sqlmig.revisions.hooks import load_hooks
from sqlmig.revisions.render import file_name, new_revision_id, refreeze, render_revision

CREATED = datetime(2026, 6, 10, 9, 30, tzinfo=timezone(timedelta(hours=2)))
TEXTS = st.text(
    st.one_of(st.sampled_from("\"\\'\n\r\t{}%$"), st.characters(exclude_categories=["Cs"])),
    max_size=40,
)


def test_a_new_file_looks_like_alembics() -> None:
    text = render_revision(
        revision="8f3c2a91d0be",
        down_revisions=["1f2e3d4c5b6a"],
        message="extend date range",
        created=CREATED,
        files={"pipeline/a.sql": "CREATE VIEW v AS SELECT 1;\n"},
        diff_lines=["modified views: avg_grade", "added views: v"],
        up_lines=['op.rename_table("a", "b")', "", "# op.in_place('x')"],
    )

    assert (
        text
        == '''"""extend date range

Revision ID: 8f3c2a91d0be
Revises: 1f2e3d4c5b6a
Create Date: 2026-06-10T09:30:00+02:00

modified views: avg_grade
added views: v
"""

revision = "8f3c2a91d0be"
down_revision = "1f2e3d4c5b6a"
branch_labels = None
depends_on = None

program = {
    "pipeline/a.sql": """\\
CREATE VIEW v AS SELECT 1;
""",
}


def up(op):
    op.rename_table("a", "b")

    # op.in_place('x')


def down(op):
    pass
'''
    )


def test_a_merge_names_all_its_parents() -> None:
    text = render_revision(
        revision="m",
        down_revisions=["a", "b"],
        message="merge",
        created=CREATED,
        files={},
        branch_labels=["tools"],
        depends_on=["c", "d"],
    )

    file = parse_revision(text, "m.py")

    assert "Revises: a, b\n" in text
    assert file.down_revisions == ("a", "b")
    assert file.branch_labels == ("tools",)
    assert file.depends_on == ("c", "d")
    assert file.files == {}


def test_a_hook_of_comments_only_still_has_a_body() -> None:
    text = render_revision(
        revision="a",
        down_revisions=[],
        message="",
        created=CREATED,
        files={},
        up_lines=["# nothing is renamed"],
    )

    assert "def up(op):\n    # nothing is renamed\n    pass\n" in text
    assert load_hooks(text, "a.py").up(None) is None


@given(
    message=TEXTS,
    diff_lines=st.lists(TEXTS, max_size=3),
    files=st.dictionaries(TEXTS, TEXTS, max_size=3),
)
def test_whatever_is_written_is_read_back(
    message: str, diff_lines: list[str], files: dict[str, str]
) -> None:
    text = render_revision(
        revision="a",
        down_revisions=["b"],
        message=message,
        created=CREATED,
        files=files,
        diff_lines=diff_lines,
    )

    file = parse_revision(text, "a.py")

    assert file.files == files
    assert file.revision == "a"
    assert file.created == CREATED.isoformat()
    assert load_hooks(text, "a.py").up(None) is None
    # Python's docstrings lose margins and line ends; the words stay.
    assert file.message.split() == message.split()


@pytest.mark.parametrize("name", ["head", "a-b", ""])
def test_an_illegal_id_or_label_is_refused(name: str) -> None:
    for revision, labels in ((name, []), ("a", [name])):
        with pytest.raises(RevisionError):
            render_revision(
                revision=revision,
                down_revisions=[],
                message="m",
                created=CREATED,
                files={},
                branch_labels=labels,
            )


def test_lines_that_are_not_python_are_refused() -> None:
    with pytest.raises(RevisionError, match="syntax error"):
        render_revision(
            revision="a",
            down_revisions=[],
            message="m",
            created=CREATED,
            files={},
            up_lines=["op.rename_table("],
        )


def test_ids_are_twelve_random_hexadecimal_digits() -> None:
    ids = {new_revision_id() for _ in range(100)}

    assert len(ids) == 100
    assert all(re.fullmatch(r"[0-9a-f]{12}", name) for name in ids)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("extend date range", "20260610_8f3c_extend_date_range.py"),
        ("Größe & Maß: v2.0!", "20260610_8f3c_grosse_mass_v2_0.py"),
        ("../../etc/passwd", "20260610_8f3c_etc_passwd.py"),
        ("first line\nsecond line", "20260610_8f3c_first_line.py"),
        ("", "20260610_8f3c.py"),
        ("日本", "20260610_8f3c.py"),
        ("x" * 60, f"20260610_8f3c_{'x' * 40}.py"),
        ("word " * 20, "20260610_8f3c_word_word_word_word_word_word_word_word.py"),
    ],
)
def test_a_file_is_named_for_day_id_and_message(message: str, name: str) -> None:
    assert file_name("8f3c", CREATED, message) == name


WRITTEN = '''# a note of ours
"""first, ünïcode

Revision ID: a
Revises: <base>
Create Date: 2026-06-10T09:30:00+02:00
"""

revision = "a"; down_revision = None

program = {"x.sql": "größe"}; note = "ä"


def up(op):
    op.execute("SELECT 'ours'")


def down(op):
    pass
'''


def test_freezing_again_keeps_what_people_wrote() -> None:
    file = parse_revision(WRITTEN, "revisions/a.py")

    text = refreeze(
        file,
        files={"x.sql": "SELECT 1;\n", "y.sql": "ß"},
        message="second",
        diff_lines=["added views: y"],
        up_lines=["op.rebuild('x')"],
        down_lines=["op.rebuild('x')", "op.rebuild('y')"],
    )

    assert (
        text
        == '''# a note of ours
"""second

Revision ID: a
Revises: <base>
Create Date: 2026-06-10T09:30:00+02:00

added views: y
"""

revision = "a"; down_revision = None

program = {
    "x.sql": """\\
SELECT 1;
""",
    "y.sql": """ß""",
}; note = "ä"


def up(op):
    op.execute("SELECT 'ours'")


def down(op):
    op.rebuild('x')
    op.rebuild('y')
'''
    )


def test_freezing_again_without_a_message_keeps_the_old_one() -> None:
    file = parse_revision(WRITTEN, "revisions/a.py")

    again = parse_revision(refreeze(file, files={"x.sql": "2"}), file.path)

    assert again.message == "first, ünïcode"
    assert again.files == {"x.sql": "2"}


def test_freezing_again_gives_a_docstring_to_a_file_without_one() -> None:
    file = parse_revision("revision = 'a'\nprogram = 'x'\n", "revisions/a.py")

    again = parse_revision(refreeze(file, files={"program.sql": "y"}, message="new"), file.path)

    assert again.message == "new"
    assert again.files == {"program.sql": "y"}


def test_a_revision_gets_another_parent_and_keeps_the_rest() -> None:
    file = parse_revision(
        render_revision(
            revision="b",
            down_revisions=["a"],
            message="words",
            created=CREATED,
            files={"a.sql": "1"},
            branch_labels=["side"],
            up_lines=["op.run(print)  # mine"],
        ),
        "b.py",
    )

    text = refreeze(file, files={"a.sql": "2"}, down_revisions=["c"])

    again = parse_revision(text, "b.py")
    assert again.down_revisions == ("c",)
    assert again.files == {"a.sql": "2"}
    assert (again.message, again.created, again.branch_labels) == ("words", file.created, ("side",))
    assert "\nRevises: c\n" in text
    assert text.endswith(file.text[file.text.index("def up(op)") :])


def test_a_parent_that_has_no_line_in_the_file_is_refused() -> None:
    file = parse_revision('revision = "b"\nprogram = {}\n', "b.py")

    with pytest.raises(RevisionError) as caught:
        refreeze(file, files={}, down_revisions=["c"])

    assert caught.value.render() == (
        "error: b.py: the parent can't be written into this file\n\n"
        "hint: it wants a line `down_revision = ...`"
    )
