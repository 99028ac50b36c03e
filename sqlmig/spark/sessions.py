"""Sessions of an operation's own: names registered in one never leak, commits carry its mark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from sqlmig.execution.values import Mark
from sqlmig.spark.connect import is_remote, release
from sqlmig.spark.failures import told
from sqlmig.spark.session import new_session
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
TXN_APP = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"


class Sessions:
    """Gives each operation a session of its own, on a Spark that starts at the first need.

    Args:
        open_session: gives the shared session.
        settings: what each session has besides; the user's settings go before it.
    """

    def __init__(
        self,
        open_session: Callable[[], SparkSession],
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._open = open_session
        self._own = settings
        self._shared: SparkSession | None = None
        self._settings: dict[str, str] = {}
        self._thread = threading.local()

    @contextmanager
    def operation(self) -> Iterator[None]:
        """Let go of what `fresh` gives to this thread in the block, on a server that keeps it.

        Spark in our own process forgets a session that nothing names; a Connect server does not.
        It is let go when the next operation of the thread ends, or with the process: what a client
        still says of the last query in the background would find no session.
        """
        outer = getattr(self._thread, "opened", None)
        opened: list[SparkSession] = []
        self._thread.opened = opened
        try:
            yield
        finally:
            self._thread.opened = outer
            before = getattr(self._thread, "ended", ())
            self._thread.ended = opened
            for session in before:
                release(session)

    def fresh(self, mark: Mark | None = None) -> SparkSession:
        """A new session with the shared one's settings; its SQL commits carry `mark`.

        Raises:
            EngineError: Spark doesn't start, or doesn't answer any more.
        """
        shared = self._open()
        with told("Spark"):
            return self._fresh(shared, mark)

    def _fresh(self, shared: SparkSession, mark: Mark | None) -> SparkSession:
        session = new_session(shared)
        opened = getattr(self._thread, "opened", None)
        if opened is not None and is_remote(session):
            opened.append(session)
        if shared is not self._shared:
            given = shared.conf.getAll
            self._settings = {n: v for n, v in self._own.items() if n not in given}
            if not is_remote(session):
                ours = session.conf.getAll
                self._settings |= {
                    name: value
                    for name, value in given.items()
                    if ours.get(name) != value and session.conf.isModifiable(name)
                }
            self._shared = shared
        for name, value in self._settings.items():
            session.conf.set(name, value)
        if mark is not None:
            session.conf.set(USER_METADATA, mark.to_json())
        return session


def once(session: SparkSession, application: str, version: int = 0) -> SparkSession:
    """Let Delta skip the session's next write when `application` committed `version` before.

    Skipping is silent: read back what became of the table.
    """
    session.conf.set(TXN_APP, application)
    session.conf.set(TXN_VERSION, str(version))
    return session


@contextmanager
def once_only(warehouse: DeltaWarehouse, path: str, application: str) -> Iterator[None]:
    """Take a write for done that fails because another one of the same name came first.

    The client of a Connect server may be killed, and the server goes on writing for it: then its
    commit and that of the process that does the step again run into each other, and one is refused.
    """
    try:
        yield
    except Exception:
        if warehouse.last_transaction(path, application) is None:
            raise


def transaction_name(mark: Mark) -> str:
    """The name under which Delta remembers that a run's step has committed."""
    return f"sqlmig/{mark.run}/{mark.step}"
