"""What a stream leaves behind in a process that goes on: taken away when its round has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmig.spark.connect import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tidy_up(session: SparkSession) -> None:
    """Take away what no stream needs any more after the round that ran in `session`.

    - Connections that no call has needed since this was last called. A stream runs in a thread of
      the JVM of its own, and py4j opens a connection for each thread that calls Python: a socket
      on both sides, and here a thread that waits. It closes none before the process ends. Where a
      thread still lives whose connection is closed here, its next call opens another.
    - The listener that Spark adds for a session in which a stream ran, and never removes: it is
      told of every job until the process ends.

    Spark Connect needs none of it: what a stream calls runs in a process that ends with it, and a
    session is let go of by its client.
    """
    if is_remote(session):
        return
    from py4j.java_gateway import JavaObject

    context = session.sparkContext
    gateway = context._gateway
    assert gateway is not None
    listener = session._jsparkSession.streams().listenerBus()
    context._jsc.sc().listenerBus().removeListener(listener)
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    server.getCallbackClient().periodicCleanup()
