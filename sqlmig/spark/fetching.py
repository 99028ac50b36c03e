"""Fetches the jars of a package with Ivy, which comes with Spark; from then on they are files.

It starts a small Java for some seconds, once for each package, and no Spark.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from sqlmig.errors import EngineError
from sqlmig.spark.jars import SHIPPED_WITH_SPARK, JarCache, cache_folder
from sqlmig.spark.java import find_java
from sqlmig.spark.packages import Package

_SHIPPED = (
    *SHIPPED_WITH_SPARK,
    "at.yawk.lz4:*",
    "org.apache.spark:spark-tags_2.13",
    "org.lz4:*",
    "org.scala-lang.modules:*",
    "org.scala-lang:*",
    "org.tukaani:*",
)
_SECONDS = 600


def fetch(
    package: Package, conf: Mapping[str, str] | None = None, shipped: tuple[str, ...] = _SHIPPED
) -> tuple[Path, ...]:
    """The jars of a package, from the user's cache; the first call puts them there.

    Args:
        conf: Spark's settings, of which `spark.jars.repositories` and `spark.jars.ivySettings`
            say where to fetch from.
        shipped: `group:artifact` that are there already.

    Raises:
        EngineError: they can't be fetched.
    """
    cache = JarCache(cache_folder() / "jars", (*package.coordinates, *package.alone))
    jars = cache.find()
    if jars is not None:
        return jars
    with cache.lock():
        jars = cache.find()  # another process may have fetched them while we waited
        if jars is None:
            _retrieve(package, cache.home, conf or {}, shipped)
            jars = cache.record()
        return jars


def _retrieve(
    package: Package, home: Path, conf: Mapping[str, str], shipped: tuple[str, ...]
) -> None:
    (home / "ivy.xml").write_text(_wanted(package, shipped), encoding="utf-8")
    own = home / "ivysettings.xml"
    settings = conf.get("spark.jars.ivySettings")
    if not settings:
        own.touch(mode=0o600)  # a repository's address may hold a password
        own.write_text(_settings(conf), encoding="utf-8")
        settings = str(own)
    java = find_java()
    assert java is not None, "a session checks it first"
    command = [
        *(str(java), "-cp", str(_ivy()), "org.apache.ivy.Main", "-warn"),
        *("-settings", settings, "-cache", str(home / "cache"), "-ivy", str(home / "ivy.xml")),
        *("-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", str(home / "jars" / "[organisation]_[artifact]-[revision].[ext]")),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise EngineError(
            f"{_named(package)} could not be fetched within {_SECONDS} seconds", hint=_HINT
        ) from None
    finally:
        own.unlink(missing_ok=True)
    if done.returncode != 0:
        missing = [
            line.split("unresolved dependency:")[1].split(":")[0].strip()
            for line in (done.stdout + done.stderr).splitlines()
            if "unresolved dependency:" in line
        ]
        what = ", ".join(sorted(set(missing))) or _named(package)
        raise EngineError(f"Spark's packages can't be downloaded: {what}", hint=_HINT)


_HINT = (
    "the first use needs a Maven repository: check the network, or set spark.jars.repositories or "
    "spark.jars.ivySettings in the target's `spark.conf`"
)


def _named(package: Package) -> str:
    return ", ".join(package.coordinates)


def _ivy() -> Path:
    import pyspark

    folder = Path(pyspark.__file__).parent / "jars"
    return next(iter(sorted(folder.glob("ivy-*.jar"))))


def _wanted(package: Package, shipped: tuple[str, ...]) -> str:
    # excluded below each dependency: for the whole file, they would leave out what is asked for
    excluded = [_exclude(artifact) for artifact in (*shipped, *package.excludes)]
    return "\n".join(
        [
            '<ivy-module version="2.0">',
            '<info organisation="sqlmig" module="packages"/>',
            '<configurations><conf name="default"/></configurations>',
            "<dependencies>",
            *(_dependency(one, "default", excluded) for one in package.coordinates),
            *(_dependency(one, "master", []) for one in package.alone),
            "</dependencies>",
            "</ivy-module>",
            "",
        ]
    )


def _dependency(coordinates: str, configuration: str, inside: list[str]) -> str:
    group, module, revision = map(quoteattr, coordinates.split(":"))
    head = f'org={group} name={module} rev={revision} conf="default-&gt;{configuration}"'
    return "\n".join([f"<dependency {head}>", *inside, "</dependency>"])


def _exclude(artifact: str) -> str:
    group, module = map(quoteattr, artifact.split(":"))
    return f"<exclude org={group} module={module}/>"


def _settings(conf: Mapping[str, str]) -> str:
    places = [os.environ.get("DEFAULT_ARTIFACT_REPOSITORY", "")]
    places += conf.get("spark.jars.repositories", "").split(",")
    resolvers = ['<ibiblio name="central" m2compatible="true"/>']  # Ivy knows where that is
    resolvers += [
        f'<ibiblio name="place-{number}" m2compatible="true" root={quoteattr(place.strip())}/>'
        for number, place in enumerate(places)
        if place.strip()
    ]
    return "\n".join(
        [
            "<ivysettings>",
            '<settings defaultResolver="places"/>',
            '<resolvers><chain name="places" returnFirst="true">',
            *resolvers,
            "</chain></resolvers>",
            "</ivysettings>",
            "",
        ]
    )
