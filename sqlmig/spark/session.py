"""The Spark session: one per process, shared by all commands. It knows nothing of a pipeline."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock, local
from typing import TYPE_CHECKING, Any

from sqlmig.environment import cause, redact
from sqlmig.errors import EngineError
from sqlmig.spark.connect import another, connect, is_remote, release
from sqlmig.spark.fetching import fetch
from sqlmig.spark.interrupts import keeping_interrupts
from sqlmig.spark.jars import DELTA, JarCache, cache_folder
from sqlmig.spark.java import check_java
from sqlmig.spark.log import output_into, prepare_log, start_error
from sqlmig.spark.names import literal
from sqlmig.spark.packages import Package, missing_packages
from sqlmig.spark.settings import DELTA_EXTENSION, JOINED, SESSION_SETTINGS, settings_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_lock = RLock()
_threads = local()
_sessions: dict[tuple[tuple[str, str], ...], SparkSession] = {}


def open_session(
    target_spark: Mapping[str, Any],
    *,
    app_name: str = "sqlmig",
    log_path: Path | None = None,
    secrets: Sequence[str] = (),
    packages: Sequence[Package] = (),
) -> SparkSession:
    """The process's session for these settings; starts Spark, or connects, at the first call.

    A session with Delta that somebody else started in this process is used too, with settings of
    its own.

    Args:
        target_spark: a target's `spark`: `master` (default `local[*]`) or `remote`, and `conf`.
        app_name: shown by the cluster; counts at the first call only.
        log_path: where the JVM writes; default `spark.log` in the cache folder.
        secrets: values among the settings that must not be shown.
        packages: what connectors need, unless `spark.jars.packages` names another version of it, or
            is empty, which says that the cluster has all.

    Raises:
        EngineError: Spark or Java is missing, or Spark doesn't start; the hint has the last lines
            of the log and its path.
    """
    conf = {str(k): _text(v) for k, v in (target_spark.get("conf") or {}).items()}
    remote = target_spark.get("remote")
    master = None if remote else str(target_spark.get("master") or "local[*]")
    key = (("remote", str(remote)) if remote else ("master", str(master)), *sorted(conf.items()))
    with _lock:
        session = _sessions.get(key)
        if session is None or not is_alive(session):
            _need_pyspark(classic=not remote)
            if remote:
                session = connect(str(remote), conf, secrets)
            else:
                log = log_path or cache_folder() / "spark.log"
                with _hiding(secrets):
                    session = _reuse(conf) or _start(str(master), conf, app_name, log, packages)
            _silence_query_loggers()
            _sessions[key] = session
        if not remote:
            _give(session, conf, packages)
        return session


def close_sessions() -> None:
    """Stop every session that `open_session` returned; the next call starts anew."""
    with _lock:
        for session in _sessions.values():
            if is_remote(session):
                release(session)
            elif is_alive(session):
                session.stop()
        _sessions.clear()


def is_alive(session: SparkSession) -> bool:
    """Whether the session still answers: nobody stopped it, and its JVM or server is there."""
    from pyspark.sql import SparkSession

    app = "spark.app.id"
    try:
        active = SparkSession.getActiveSession()
        if is_remote(session):
            return bool(session.conf.get("spark.sql.session.timeZone"))
        if active is not None and type(active) is type(session):
            return active.conf.get(app) == session.conf.get(app)
        return not session.sql("SELECT 1").isEmpty()
    except Exception:  # of py4j, grpc or Spark: whichever it is, this session is of no use
        return False


def new_session(session: SparkSession) -> SparkSession:
    """Another session on the same Spark: names and settings of one never leak into the other."""
    return another(session) if is_remote(session) else session.newSession()


@contextmanager
def _hiding(secrets: Sequence[str]) -> Iterator[None]:
    """Keep secrets out of an error, whose hint may have lines of Spark's log."""
    try:
        yield
    except EngineError as error:
        if not secrets:
            raise
        message, hint = redact(error.message, secrets), redact(error.hint or "", secrets)
        raise EngineError(message, hint=hint or None) from cause(error, secrets)


def _start(
    master: str, conf: dict[str, str], app_name: str, log_path: Path, packages: Sequence[Package]
) -> SparkSession:
    check_java()
    settings = settings_for(master, conf)
    wanted = settings.pop("spark.jars.packages", None)
    if wanted == "":  # the cluster brings Delta's jars itself
        return _launch(master, settings, app_name, log_path)
    given = _split(wanted)
    added = [
        str(jar)
        for package in missing_packages(packages, given)
        for jar in fetch(package, settings)
    ]
    if added:
        settings["spark.jars"] = ",".join([*_split(settings.get("spark.jars")), *added])
    coordinates = tuple(dict.fromkeys([DELTA, *given]))
    cache = JarCache(cache_folder() / "jars", coordinates)
    jars = cache.find()
    if jars is None:
        with cache.lock():
            jars = cache.find()  # another process may have fetched them while we waited
            if jars is None:
                excludes = _split(settings.get("spark.jars.excludes"))
                session = _launch(master, settings | cache.resolving(excludes), app_name, log_path)
                cache.record()
                return session
    for name in ("excludes", "ivy", "ivySettings", "repositories"):  # nothing is resolved now
        settings.pop(f"spark.jars.{name}", None)
    settings["spark.jars"] = ",".join([*_split(settings.get("spark.jars")), *map(str, jars)])
    return _launch(master, settings, app_name, log_path)


def _launch(master: str, settings: dict[str, str], app_name: str, log_path: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(app_name)
    for name, value in sorted(settings.items()):
        builder = builder.config(name, value)
    position = prepare_log(log_path)
    try:
        with output_into(log_path), keeping_interrupts():
            return builder.getOrCreate()
    except Exception as error:
        raise start_error(error, log_path, position) from error


def _reuse(conf: Mapping[str, str]) -> SparkSession | None:
    """A session of its own on the Spark that this process already runs, if it has Delta."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None:
        return None
    if DELTA_EXTENSION not in (active.conf.get("spark.sql.extensions", "") or ""):
        raise EngineError(
            "this process already runs a Spark session, and it has no Delta",
            hint=f"start it with spark.sql.extensions={DELTA_EXTENSION}, or stop it before",
        )
    from pyspark.errors import PySparkException

    session = active.newSession()
    for name, value in sorted({**SESSION_SETTINGS, **conf}.items()):
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            # Memory, jars and the like are as they are; what decides on results must be as asked.
            if not name.startswith("spark.sql.") or name in JOINED:
                continue
            if session.conf.get(name, None) != value:
                raise EngineError(
                    f"`{name}` can't be changed: this process already runs a Spark session",
                    hint="run this command in a process of its own",
                ) from error
    return session


def _give(session: SparkSession, conf: Mapping[str, str], packages: Sequence[Package]) -> None:
    """Add what the Spark was not started with: a later revision may need what none needed then.

    Spark finds a format through the class loader of the thread that asks, so each thread adds it.
    """
    wanted = conf.get("spark.jars.packages")
    if not packages or wanted == "":
        return
    jars = session.conf.get("spark.jars", "") or ""
    given: set[tuple[str, str]] = _threads.__dict__.setdefault("given", set())
    for package in missing_packages(packages, _split(wanted)):
        mark = (session.conf.get("spark.app.id", "") or "", package.name)
        if package.artifact.split(":")[1] not in jars and mark not in given:
            for jar in fetch(package, conf):
                session.sql(f"ADD JAR {literal(str(jar))}")
            given.add(mark)


def _need_pyspark(*, classic: bool) -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise EngineError("this command needs Spark", hint="pip install 'sqlmig[spark]'")
    if classic and importlib.util.find_spec("py4j") is None:
        raise EngineError(
            "this target starts Spark, and only Spark's client is installed",
            hint="pip uninstall pyspark-client && pip install 'sqlmig[spark]'",
        )


def _silence_query_loggers() -> None:
    """Keep pyspark from printing each AnalysisException as JSON: we report them ourselves."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
