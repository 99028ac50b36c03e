"""Hooks read from their text: what plain calls ask for, and what has to be run to be known."""

from __future__ import annotations

from textwrap import dedent

import pytest

from sqlmig.errors import RevisionError
from sqlmig.revisions.plain_hooks import Call, FunctionName, read_plain_hook


def read(text: str, hook: str = "up") -> tuple[Call, ...]:
    return read_plain_hook(dedent(text), "revisions/a.py", hook)


def test_plain_calls_are_read_with_their_literals() -> None:
    calls = read(
        '''
        import datetime

        FIXED = "DELETE FROM orders"

        def up(op):
            """Keeps the rows."""
            op.rename_table("old", "new")
            op.backfill("s", since="2026-06-01", column="at")
            op.execute(FIXED)
            op.run(check)
            pass

        def check(context):
            raise ValueError(datetime.now())

        def down(operations):
            operations.rename_table("new", before="old")
        '''
    )

    assert calls == (
        Call("rename_table", ("old", "new"), {}, 8),
        Call("backfill", ("s",), {"since": "2026-06-01", "column": "at"}, 9),
        Call("execute", ("DELETE FROM orders",), {}, 10),
        Call("run", (FunctionName("check"),), {}, 11),
    )
    assert read("def up(op):\n    pass\n", "down") == (), "a file without the hook asks for nothing"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def up(op):\n    for n in 'ab':\n        op.rebuild(n)\n", 2),
        ("def up(op):\n    op.execute(open('x').read())\n", 2),
        ("def up(op):\n    op.execute(f'DELETE FROM {TABLE}')\n", 2),
        ("def up(op):\n    op.execute(*ALL)\n", 2),
        ("def up(op):\n    op.execute(**ALL)\n", 2),
        ("A = 1\nA = 'x'\ndef up(op):\n    op.execute(A)\n", 4),
        ("def up(op, other='x'):\n    op.execute(other)\n", 1),
        ("import functools\n@functools.cache\ndef up(op):\n    pass\n", 3),
        ("if True:\n    def up(op):\n        op.rebuild('a')\n", 1),
        ("def up(op):\n    pass\nup = print\n", 1),
        ("up = lambda op: op.rebuild('a')\n", 1),
        ("from elsewhere import up\n", 1),
    ],
)
def test_what_must_be_run_to_be_known_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(RevisionError) as caught:
        read(text)

    assert caught.value.render() == (
        f"error: revisions/a.py:{line}: what `up` asks for is known only when it is run, and code "
        "that is not checked out is not\n\n"
        "hint: write plain calls of `op`, with literals; or check it out and run the command there"
    )
