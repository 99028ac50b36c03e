"""Who handles Ctrl-C after Spark has started."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from threading import Thread
from types import FrameType
from typing import Any

import pytest

from sqlmig.spark.interrupts import keeping_interrupts


@pytest.fixture(autouse=True)
def _handler_of_the_tests() -> Iterator[None]:
    former = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, former)


def of_the_program(number: int, frame: FrameType | None) -> None:
    """Ends after the tick."""


def of_spark(number: int, frame: FrameType | None) -> None:
    """Raises at once."""


@pytest.mark.parametrize("handler", [of_the_program, signal.SIG_IGN])
def test_a_handler_that_the_program_has_set_stays(handler: Any) -> None:
    signal.signal(signal.SIGINT, handler)

    with keeping_interrupts():
        signal.signal(signal.SIGINT, of_spark)

    assert signal.getsignal(signal.SIGINT) is handler


def test_where_the_program_has_none_that_of_spark_stays() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)

    with keeping_interrupts():
        signal.signal(signal.SIGINT, of_spark)

    assert signal.getsignal(signal.SIGINT) is of_spark


def test_a_start_that_fails_leaves_the_handler_of_the_program() -> None:
    signal.signal(signal.SIGINT, of_the_program)

    def start() -> None:
        signal.signal(signal.SIGINT, of_spark)
        raise RuntimeError("Spark does not start")

    with pytest.raises(RuntimeError, match="does not start"), keeping_interrupts():
        start()

    assert signal.getsignal(signal.SIGINT) is of_the_program


def test_another_thread_sets_no_handler() -> None:
    signal.signal(signal.SIGINT, of_the_program)
    errors: list[BaseException] = []

    def start() -> None:
        try:
            with keeping_interrupts():
                signal.getsignal(signal.SIGINT)
        except ValueError as error:
            errors.append(error)

    thread = Thread(target=start)
    thread.start()
    thread.join()

    assert errors == []
    assert signal.getsignal(signal.SIGINT) is of_the_program
