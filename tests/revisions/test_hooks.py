"""Hooks run only when asked for, and their errors point into the file."""

from __future__ import annotations

import pickle
import sys

import pytest

from sqlmig.errors import BlockedError, RevisionError
from sqlmig.revisions.hooks import load_hooks

PATH = "revisions/gone.py"


def test_hooks_run_from_text_without_a_file() -> None:
    hooks = load_hooks(
        "import math\n"
        "def up(op):\n    op.append(math.floor(1.5))\n"
        "def down(op):\n    op.append('down')\n",
        PATH,
    )
    calls: list[object] = []

    hooks.up(calls)
    hooks.down(calls)

    assert calls == [1, "down"]


def test_a_missing_hook_does_nothing() -> None:
    hooks = load_hooks("revision = 'a'\n", PATH)

    assert hooks.up(object()) is None
    assert hooks.down(object()) is None


def test_each_load_has_a_namespace_of_its_own() -> None:
    text = "count = 0\ndef up(op):\n    global count\n    count += 1\n    return count\n"
    modules = set(sys.modules)

    first, second = load_hooks(text, PATH), load_hooks(text, PATH)

    assert [first.up(None), first.up(None), second.up(None)] == [1, 2, 1]
    assert set(sys.modules) == modules


def test_a_syntax_error_has_its_line() -> None:
    with pytest.raises(RevisionError) as caught:
        load_hooks("revision = 'a'\n\ndef up(op)\n    pass\n", PATH)

    assert str(caught.value) == f"{PATH}:3:11: syntax error: expected ':'"


def test_an_exception_while_loading_has_its_line() -> None:
    with pytest.raises(RevisionError) as caught:
        load_hooks("x = 1\ny = {}['key']\n", PATH)

    assert str(caught.value) == f"{PATH}:2: the file raised KeyError: 'key'"
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_exception_in_a_hook_has_the_innermost_line_of_the_file() -> None:
    hooks = load_hooks(
        "import json\ndef up(op):\n    help()\ndef help():\n    json.loads('{')\n", PATH
    )

    with pytest.raises(RevisionError) as caught:
        hooks.up(None)

    assert str(caught.value.location) == f"{PATH}:5"
    assert caught.value.message.startswith("`up` raised json.decoder.JSONDecodeError: ")


def test_an_exit_in_a_hook_is_an_error_of_the_file() -> None:
    hooks = load_hooks("def down(op):\n    raise SystemExit(3)\n", PATH)

    with pytest.raises(RevisionError) as caught:
        hooks.down(None)

    assert str(caught.value) == f"{PATH}:2: `down` raised SystemExit: 3"


def test_an_error_of_sqlmig_goes_through_a_hook_unchanged() -> None:
    def refuse() -> None:
        raise BlockedError("no")

    hooks = load_hooks("def up(op):\n    op()\n", PATH)

    with pytest.raises(BlockedError):
        hooks.up(refuse)


def test_a_hook_must_be_a_function() -> None:
    with pytest.raises(RevisionError) as caught:
        load_hooks("up = 3\n", PATH)

    assert str(caught.value) == f"{PATH}: `up` must be a function `up(op)`"


def test_a_function_of_a_file_is_not_found_by_name_elsewhere() -> None:
    found: list[object] = []
    load_hooks("def f(): pass\ndef up(op):\n    op(f)\n", PATH).up(found.append)

    # So cloudpickle sends its code to Spark, and not a name that no worker can import.
    with pytest.raises((pickle.PicklingError, ImportError)):
        pickle.dumps(found[0])
