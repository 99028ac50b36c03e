"""Spark's errors in our words, without Spark."""

from __future__ import annotations

import pytest

from sqlmig.errors import EngineError, Location
from sqlmig.free_space import SPARK_ADVICE
from sqlmig.spark.failures import describe, locate, told

UNRESOLVED = (
    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name "
    "`grad` cannot be resolved. Did you mean one of the following? [`grade`, `id`]. "
    "SQLSTATE: 42703; line 1 pos 7;\n'Project ['grad]\n+- OneRowRelation\n"
)
WRITE = (
    "An error occurred while calling o46.sql.\n: org.apache.spark.SparkException: "
    "[TASK_WRITE_FAILED] Task failed while writing rows to file:/t. SQLSTATE: 58030\n\tat a.b(C:1)"
    "\nCaused by: x.DeltaInvariantViolationException: [DELTA_NOT_NULL_CONSTRAINT_VIOLATED] "
    "NOT NULL constraint violated for column: id.\n\n\tat a.b(C:1)"
)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            UNRESOLVED,
            "there is no column `grad`",
            "did you mean `grade` or `id`?",
        ),
        (WRITE, "`id` may not be NULL", "give `id` a value"),
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'y'. SQLSTATE: 42601 (line 2, pos 9)",
            "syntax error at or near 'y'",
            None,
        ),
        ("An error occurred\nmore", "an error occurred", None),
        (
            "An error occurred while calling o1.save.\n: java.io.IOException: No space left",
            "no space left",
            None,
        ),
        (
            "An error occurred while calling o1.save.\n: org.apache.spark.SparkException: "
            "[TASK_WRITE_FAILED] Task failed.\nCaused by: java.io.IOException: No space left on "
            "device\n\tat a.b(C:1)",
            "no space is left on the disk",
            SPARK_ADVICE,
        ),
        (
            "[INVALID_HANDLE.SESSION_NOT_FOUND] The handle 1-2 is invalid. Session not found. "
            "SQLSTATE: HY000",
            "the Spark Connect server is gone, or was started anew",
            "run the command again when a server answers there: it connects anew",
        ),
        (
            "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint sqlmig_not_null_n "
            "(n IS NOT NULL) violated by row with values:\n - n : null",
            "`n` may not be NULL",
            "give `n` a value",
        ),
    ],
)
def test_one_line_remains_of_what_spark_says(text: str, message: str, hint: str | None) -> None:
    # when
    failure = describe(RuntimeError(text))

    # then
    assert failure.message == message
    assert failure.hint == hint


@pytest.mark.parametrize(
    ("position", "place"),
    [("(line 1, pos 7)", "a.sql:3:17"), ("(line 2, pos 4)", "a.sql:4:5"), ("", "a.sql:3:10")],
)
def test_an_error_is_placed_in_the_users_file(position: str, place: str) -> None:
    error = RuntimeError(f"[PARSE_SYNTAX_ERROR] Syntax error {position}")
    assert str(locate(error, "SELECT x\nFROM y", Location("a.sql", 3, 10))) == place


def test_a_secret_is_in_no_message_and_in_no_cause() -> None:
    # given
    with pytest.raises(EngineError) as caught, told("source `a.b`", secrets=["hunter2"]):
        raise RuntimeError("can't log in with hunter2")

    # then
    shown: BaseException | None = caught.value
    assert caught.value.message == "source `a.b`: can't log in with ***"
    while shown is not None:
        assert "hunter2" not in str(shown), f"{type(shown).__name__} shows it"
        shown = shown.__cause__
