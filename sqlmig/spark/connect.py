"""Spark Connect: sessions on a server, for a client without Java. It knows nothing of a pipeline.

What a stream does with a batch runs in the server's Python, which need not have sqlmig: functions
and classes of this package are sent whole, not by name.
"""

from __future__ import annotations

import atexit
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import sqlmig
from sqlmig.environment import cause, redact
from sqlmig.errors import EngineError
from sqlmig.spark.log import first_line
from sqlmig.spark.settings import SESSION_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_opened: WeakKeyDictionary[SparkSession, tuple[str, Mapping[str, str]]] = WeakKeyDictionary()
"""Session -> where its server is, and the settings that it was given."""

_DETAILS = re.compile(r'^\s*details = "(.+)"$', re.MULTILINE)
_PLAIN = frozenset({"use_ssl", "user_id", "user_agent", "session_id", "grpc_max_message_size"})

_RETRIES = 7
_FIRST_WAIT = 100
_LONGEST_WAIT = 8_000
"""Milliseconds. With seven tries about half a minute; pyspark's own policy waits ten minutes."""


def is_remote(session: SparkSession) -> bool:
    """Whether the session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def connect(remote: str, conf: Mapping[str, str], secrets: Sequence[str] = ()) -> SparkSession:
    """A session on the server at `remote`, with our settings and `conf`.

    Args:
        remote: `sc://host:port/;token=...`; only what stands before the first `;` is ever shown.
        conf: settings of a session; those of a cluster are the server's business.
        secrets: values that must not be shown.

    Raises:
        EngineError: no server answers, the client is not whole, or it refuses a setting.
    """
    where = remote.split(";")[0].rstrip("/")
    hidden = (*secrets, *_parameters(remote))
    settings = dict(sorted({**SESSION_SETTINGS, **conf}.items()))
    try:
        session = _create(remote, settings)
        _ = session.conf.get("spark.sql.session.timeZone")
    except ImportError as error:
        raise EngineError(
            f"Spark Connect needs more than is installed: {first_line(error)}",
            hint="pip install 'sqlmig[connect]' into an environment without pyspark",
        ) from error
    except SystemExit as error:
        raise EngineError(
            "pyspark takes `python -c` for a test of its own, and does not connect",
            hint="put the code into a file",
        ) from error
    except Exception as error:
        raise EngineError(
            f"no Spark answers at {redact(where, hidden)}: {redact(_reason(error), hidden)}",
            hint="check the target's `spark: remote:` in sqlmig.yml, and that the server runs",
        ) from cause(error, hidden)
    for name, value in settings.items():
        try:
            session.conf.set(name, value)
        except Exception as error:
            raise EngineError(
                f"`{name}` can't be set over Spark Connect: {redact(first_line(error), hidden)}",
                hint="set it where the server is started, and leave it out of the target's `conf`",
            ) from cause(error, hidden)
    return session


def another(session: SparkSession) -> SparkSession:
    """A new session on the server of `session`, with the settings that `connect` gave it."""
    remote, settings = _opened[session]
    session = _create(remote, settings)
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def release(session: SparkSession) -> None:
    """Let the server forget a session, with its views and what it still runs."""
    _opened.pop(session, None)
    with suppress(Exception):  # a server that is gone has forgotten it already
        session.client.set_retry_policies([])
        session.client.release_session()
        session.client.close()
    session.stop()


@atexit.register
def release_all() -> None:
    """Let the servers forget every session that this process still has."""
    for session in list(_opened):
        release(session)


def _create(remote: str, settings: Mapping[str, str]) -> SparkSession:
    # pandas comes with the client, and nothing here uses it
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)  # an error follows
    from pyspark.cloudpickle import register_pickle_by_value
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session = SparkSession.builder.remote(remote).create()
    session.client.set_retry_policies(
        [
            DefaultPolicy(
                max_retries=_RETRIES,
                initial_backoff=_FIRST_WAIT,
                max_backoff=_LONGEST_WAIT,
                max_server_retry_delay=_LONGEST_WAIT,
            )
        ]
    )
    # pyspark keeps every client until the process ends, and has each ask the server once more then;
    # we have many, and release them ourselves
    atexit.unregister(getattr(session.client, "_on_exit", release))
    register_pickle_by_value(sqlmig)  # type: ignore[no-untyped-call]
    _opened[session] = remote, settings
    return session


def _reason(error: Exception) -> str:
    """What a failed call says: the `details` of gRPC's error where it is one."""
    details = _DETAILS.search(str(error))
    return details[1] if details else first_line(error)


def _parameters(remote: str) -> list[str]:
    """The values behind `token=` and its like: what a server asks for beyond what names us."""
    pairs = (part.partition("=") for part in remote.split(";")[1:])
    return [value for name, _, value in pairs if name not in _PLAIN]
