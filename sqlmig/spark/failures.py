"""Spark's errors in sqlmig's words: one line, no Java stack, a hint where Spark has one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlmig.environment import redact
from sqlmig.errors import EngineError, Location, NoSpaceError, SqlmigError
from sqlmig.free_space import FULL, SPARK_ADVICE, is_full
from sqlmig.program.lexer import line_and_column
from sqlmig.spark.packages import AVRO, KAFKA

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s*")
_WRAPPERS = frozenset(
    {
        "TASK_WRITE_FAILED",
        "STREAM_FAILED",
        "FOREACH_BATCH_USER_FUNCTION_ERROR",
        "FAILED_EXECUTE_UDF",
    }
)
_SUGGESTION = re.compile(r"\s*Did you mean one of the following\? \[(?P<names>[^\]]*)\]\.?")
_STREAM = re.compile(r"\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception:\s*")
_TAIL = re.compile(r"\s*(?:SQLSTATE: \w{5}.*|;?\s*\(?line \d+,? pos \d+\)?.*|== .*)$")
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_NOT_NULL = re.compile(
    r"NOT NULL constraint violated for column: (?P<column>.+?)\.?\s*$"
    r"|CHECK constraint sqlmig_not_null_\S+ \(`?(?P<checked>.+?)`? IS NOT NULL\) violated",
    re.IGNORECASE | re.MULTILINE,
)
_NO_COLUMN = re.compile(
    r"^A column, variable, or function parameter with name (.+) cannot be resolved", re.IGNORECASE
)
_NO_FORMAT = re.compile(r"Failed to find (?:the )?data source: (?P<name>[\w.-]*\w)", re.IGNORECASE)
_NO_FUNCTION = re.compile(r"^The routine (?:`[^`]+`\.)*(`[^`]+`) cannot be found.*", re.IGNORECASE)
_IN_PYTHON = "An exception was thrown from the Python worker"
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\n(?P<frames>(?:[ \t]+.*\n)+)(?P<error>\S.*)"
)
_OWN_FRAME = re.compile(
    r'File "(?P<path>pipeline/functions/[^"]+)", line (?P<line>\d+), in (?P<n>\w+)'
)
_GONE = re.compile(
    r"\[RETRIES_EXCEEDED\]|StatusCode\.UNAVAILABLE|driver instance has restarted|\[INVALID_HANDLE\."
    r"(?:SESSION|OPERATION)_(?:NOT_FOUND|CHANGED|CLOSED|ABANDONED)\]|\[NO_ACTIVE_SESSION\]"
)
_ANEW = "run the command again when a server answers there: it connects anew"
_HINTS = {
    "DELTA_UNSUPPORTED_SUBQUERY": "Delta takes no subquery there; use MERGE INTO ... USING",
    "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE": (
        "let the source of the MERGE have one row for each row that it changes"
    ),
    "UNSUPPORTED_SQL_UDF_USAGE": "write MERGE INTO ... USING (SELECT ...): Spark has it in queries",
    "DIVIDE_BY_ZERO": "write try_divide(a, b), or NULLIF(b, 0)",
}


@dataclass(frozen=True)
class Failure:
    """An error as it is told: one line, and what to do about it."""

    message: str
    hint: str | None = None
    condition: str | None = None


def describe(error: BaseException, secrets: Iterable[str] = ()) -> Failure:
    """Say what Spark said: its own first line, without class names, codes and positions.

    Args:
        secrets: values that are replaced by `***`.
    """
    if isinstance(error, SqlmigError):
        return Failure(redact(error.message, secrets), error.hint)
    text = redact(str(error), secrets)
    raised = _raised(text)
    if raised is not None:
        return raised
    condition, line = _telling_line(text)
    if is_full(text):
        return Failure(FULL, SPARK_ADVICE, condition)
    if _GONE.search(text):
        return Failure("the Spark Connect server is gone, or was started anew", _ANEW, condition)
    missing = _NOT_NULL.search(text)
    if missing:
        column = missing["column"] or missing["checked"]
        return Failure(f"`{column}` may not be NULL", f"give `{column}` a value", condition)
    no_format = _NO_FORMAT.search(text)
    if no_format:
        return _no_format(no_format["name"], condition)
    suggestion = _SUGGESTION.search(line)
    hint = _HINTS.get(condition or "")
    if suggestion:
        line = line[: suggestion.start()] + line[suggestion.end() :]
        names = [name.strip() for name in suggestion["names"].split(",") if name.strip()]
        if names:
            hint = f"did you mean {' or '.join(names[:3])}?"
    line = _NO_FUNCTION.sub(r"there is no function \1", line)
    line = _NO_COLUMN.sub(r"there is no column \1", line)
    line = _TAIL.sub("", line).strip().rstrip(".;").strip()
    return Failure(_lower_first(line) or type(error).__name__, hint, condition)


def _raised(text: str) -> Failure | None:
    """What a function in Python raised, and where; None for other errors."""
    found = list(_TRACEBACK.finditer(text))
    frames = [frame for match in found for frame in _OWN_FRAME.finditer(match["frames"])]
    if not found or not (frames or _IN_PYTHON in text.splitlines()[0]):
        return None
    error = found[-1]["error"].strip()
    if not frames:
        return Failure(f"a function in Python failed: {error}", "check how it is called")
    last = frames[-1]
    return Failure(f"`{last['n']}` raised {error}", f"see {last['path']}:{last['line']}")


def _no_format(name: str, condition: str | None) -> Failure:
    coordinates = {p.name: p.coordinates[0] for p in (AVRO, KAFKA)}.get(name.lower())
    hint = f"start it with the package {coordinates}" if coordinates else None
    return Failure(f"Spark has no format `{name}`", hint, condition)


def _telling_line(text: str) -> tuple[str | None, str]:
    """The condition and the line that tell most: the innermost that is not a mere wrapper."""
    for match in _CONDITION.finditer(text):
        if match[1] not in _WRAPPERS:
            rest = text[match.end() :].lstrip()
            return match[1], rest.splitlines()[0] if rest else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return None, ""
    line = _STREAM.sub("", lines[0])
    if line.startswith("An error occurred while calling") and len(lines) > 1:
        line = lines[1]
    return None, re.sub(r"^:?\s*(?:[a-z][\w$]*\.)+[A-Z][\w$]*:\s*", "", line)


def _lower_first(text: str) -> str:
    if len(text) > 1 and text[0].isupper() and not text[1].isupper():
        return text[0].lower() + text[1:]
    return text


def locate(error: BaseException, query: str, begins: Location | None) -> Location | None:
    """Where in the user's file an error in `query` is.

    Args:
        query: the text that Spark was given.
        begins: where it begins in the file.
    """
    if begins is None:
        return None
    offset = _offset(error, query)
    if offset is None or begins.line is None:
        return begins
    line, column = line_and_column(query, offset)
    if line == 1:
        return Location(begins.path, begins.line, (begins.column or 1) + column - 1)
    return Location(begins.path, begins.line + line - 1, column)


def _offset(error: BaseException, query: str) -> int | None:
    contexts = getattr(error, "getQueryContext", lambda: None)() or ()
    for context in contexts:
        start = context.startIndex()
        if 0 <= start <= len(query) and query.startswith(context.fragment(), start):
            return int(start)
    position = _POSITION.search(str(error))
    if position is None:
        return None
    lines = query.splitlines(keepends=True)
    line = int(position[1])
    if line > len(lines):
        return None
    return min(sum(map(len, lines[: line - 1])) + int(position[2]), len(query))


@contextmanager
def told(
    what: str | None = None,
    *,
    query: str = "",
    begins: Location | None = None,
    secrets: Iterable[str] = (),
) -> Iterator[None]:
    """Turn whatever Spark raises in the block into an EngineError.

    Args:
        what: put before the message: "source `school.csv`".
        query, begins: the user's text and where it begins, to place the error.
        secrets: values that must not be shown; with any, the cause is kept as redacted text only.
    """
    try:
        yield
    except SqlmigError:
        raise
    except Exception as error:
        hidden = tuple(secrets)
        failure = describe(error, hidden)
        message = f"{what}: {failure.message}" if what else failure.message
        cause: Exception = error
        if hidden:
            cause = RuntimeError(redact(f"{type(error).__name__}: {error}", hidden))
        kind = NoSpaceError if failure.message == FULL else EngineError
        raised = kind(
            message, location=locate(error, query, begins) if query else begins, hint=failure.hint
        )
        raised.__suppress_context__ = True
        if hidden:
            error.__traceback__ = None
        raise raised from cause
