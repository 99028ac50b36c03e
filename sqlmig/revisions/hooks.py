"""The hooks of a revision: its code, run when the revision is planned or applied and not before.

It knows how to run a file's text and to place its errors; what `op` records is not its concern.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

from sqlmig.errors import Location, RevisionError, SqlmigError
from sqlmig.revisions.file import normalised, syntax_error

Hook = Callable[[Any], Any]


@dataclass(frozen=True)
class Hooks:
    """`up(op)` and `down(op)` of a revision; each does nothing where the file has none.

    A call raises RevisionError, with the line in the file, when the user's code raises.
    """

    up: Hook
    down: Hook


def load_hooks(text: str, path: str) -> Hooks:
    """Run a revision file's text in a module of its own, and return its hooks.

    Args:
        text: the whole text, of the file or as the ledger kept it; the file need not exist.
        path: where it comes from, for messages and tracebacks.

    Raises:
        RevisionError: a syntax error, an exception while the text runs, a hook that is no function.
    """
    text = normalised(text)
    code = compile_text(text, path)
    # The lines are kept for tracebacks. The module is not put into `sys.modules`: so it can't
    # shadow another, and functions that go to Spark are pickled by value.
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = ModuleType("sqlmig_revision")
    module.__file__ = path
    try:
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        raise _placed(error, path, "the file") from error
    return Hooks(up=_hook(module, "up", path), down=_hook(module, "down", path))


def compile_text(text: str, path: str) -> CodeType:
    """The compiled text; nothing of it is run.

    Raises:
        RevisionError: a syntax error, with line and column.
    """
    try:
        return compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise syntax_error(error, path) from None


def _hook(module: ModuleType, name: str, path: str) -> Hook:
    function = module.__dict__.get(name)
    if function is None:
        return _nothing
    if not callable(function):
        raise RevisionError(f"`{name}` must be a function `{name}(op)`", location=Location(path))

    def hook(op: Any) -> Any:
        try:
            return function(op)
        except SqlmigError:
            raise
        except (Exception, SystemExit) as error:
            raise _placed(error, path, f"`{name}`") from error

    return hook


def _nothing(op: Any) -> None:
    """The hook of a file that has none."""


def _placed(error: BaseException, path: str, what: str) -> RevisionError:
    """The error with the last line of the file that took part in it."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    described = "".join(traceback.format_exception_only(type(error), error)).strip()
    return RevisionError(
        f"{what} raised {described.splitlines()[-1]}",
        location=Location(path, lines[-1] if lines else None),
        hint="`--debug` shows the whole traceback",
    )
