"""`${env:NAME}` in a target's settings: put in when it is opened, and shown nowhere."""

from __future__ import annotations

import traceback

import pytest

from sqlmig.environment import cause, first_line, redact, resolve, resolve_spark
from sqlmig.errors import ConfigError

ENVIRONMENT = {"KEY": "t0p-s3cret", "TOKEN": "t0p", "EMPTY": ""}


def test_a_secret_is_put_in_and_named_as_one() -> None:
    settings = {"region": "eu-west-1", "key": "${env:KEY}", "url": "a/${env:TOKEN}${env:EMPTY}/b"}

    resolved, secrets = resolve(settings, ENVIRONMENT.get, "target `prod`")

    assert resolved == {"region": "eu-west-1", "key": "t0p-s3cret", "url": "a/t0p/b"}
    assert secrets == ("t0p", "t0p-s3cret"), "an empty value hides nothing"


def test_the_settings_of_spark_may_hold_secrets_too() -> None:
    spark = {"remote": "sc://a:443/;token=${env:TOKEN}", "conf": {"spark.key": "${env:KEY}"}}

    resolved, secrets = resolve_spark(spark, ENVIRONMENT.get, "target `prod`")

    assert resolved == {"remote": "sc://a:443/;token=t0p", "conf": {"spark.key": "t0p-s3cret"}}
    assert secrets == ("t0p", "t0p-s3cret")


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({"key": "${env:NOBODY}"}, ENVIRONMENT.get, "target `prod`")

    assert caught.value.render() == (
        "error: target `prod`: the environment variable NOBODY is not set\n\n"
        "hint: export NOBODY=..."
    )


def test_the_longest_secret_is_hidden_first() -> None:
    assert redact("t0p-s3cret and t0p", ["t0p", "t0p-s3cret", ""]) == "*** and ***"


def test_an_error_is_told_and_raised_from_without_secrets() -> None:
    secrets = ["t0p-s3cret"]
    error = OSError("key t0p-s3cret is refused\nmore of t0p-s3cret")

    told = ConfigError(first_line(error, secrets))
    told.__cause__ = cause(error, secrets)
    shown = "".join(traceback.format_exception(told))

    assert told.message == "key *** is refused"
    assert "OSError: key *** is refused" in shown
    assert "t0p-s3cret" not in shown
    assert cause(error) is error, "with nothing to hide the error itself is kept"
    assert first_line(ValueError()) == "ValueError"


def test_the_chain_of_an_object_stores_error_is_one_line() -> None:
    error = OSError("Kernel error -> Generic S3 error\n  \x1b[31m↳\x1b[0m HTTP error\n  ↳ refused")

    assert first_line(error) == "Kernel error -> Generic S3 error: HTTP error: refused"
