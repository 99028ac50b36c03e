"""Delta's jars: resolved once by Spark itself, and from then on plain files.

It knows folders, coordinates and manifests. It starts no Spark: the session that starts with
`resolving` settings fetches the jars, and `record` remembers them.

    <cache>/jars/<key>/manifest.json    which files; written last, in one rename
    <cache>/jars/<key>/jars/*.jar       what Spark resolved for these coordinates, and no more
    <cache>/jars/<key>/lock             held while one process resolves
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlmig.errors import EngineError

try:
    import fcntl
except ImportError:  # Windows: two first starts at once may both download; the last one wins.
    fcntl = None  # type: ignore[assignment]

DELTA = "io.delta:delta-spark_2.13:4.4.0"

# What Delta's jars name as their dependencies and Spark 4.2 ships itself, in later versions.
SHIPPED_WITH_SPARK = (
    "com.fasterxml.jackson.core:*",
    "com.fasterxml.jackson.datatype:*",
    "com.github.luben:zstd-jni",
    "com.google.code.findbugs:jsr305",
    "commons-logging:commons-logging",
    "commons-pool:commons-pool",
    "io.airlift:aircompressor",
    "javax.annotation:javax.annotation-api",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.logging.log4j:*",
    "org.apache.parquet:*",
    "org.locationtech.jts:jts-core",
    "org.roaringbitmap:*",
    "org.slf4j:*",
    "org.xerial.snappy:snappy-java",
)


def cache_folder() -> Path:
    """Where sqlmig keeps what it can fetch again: `SQLMIG_CACHE`, else the user's cache folder."""
    chosen = os.environ.get("SQLMIG_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path("~/.cache").expanduser()) / "sqlmig"


@dataclass(frozen=True)
class JarCache:
    """The jars of one set of coordinates.

    Args:
        folder: holds all sets; made when needed.
        coordinates: `group:artifact:version`, Delta's and those of `spark.jars.packages`.
    """

    folder: Path
    coordinates: tuple[str, ...]

    @property
    def home(self) -> Path:
        """The folder of this set, named for its coordinates and what is left out."""
        named = "\n".join([*sorted(self.coordinates), "-", *SHIPPED_WITH_SPARK])
        return self.folder / hashlib.sha256(named.encode()).hexdigest()[:16]

    def find(self) -> tuple[Path, ...] | None:
        """The jars that `record` noted, sorted; None if one of them is missing or cut short."""
        try:
            manifest = json.loads((self.home / "manifest.json").read_text(encoding="utf-8"))
            jars = [(self.home / "jars" / jar["file"], jar["bytes"]) for jar in manifest["jars"]]
            whole = all(path.stat().st_size == size for path, size in jars)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return tuple(path for path, _ in jars) if whole and jars else None

    def resolving(self, excludes: Sequence[str] = ()) -> dict[str, str]:
        """Settings with which a starting Spark resolves and downloads the jars into `home`.

        Args:
            excludes: more `group:artifact` to leave out.
        """
        return {
            "spark.jars.packages": ",".join(self.coordinates),
            "spark.jars.excludes": ",".join([*SHIPPED_WITH_SPARK, *excludes]),
            "spark.jars.ivy": str(self.home),
        }

    def record(self) -> tuple[Path, ...]:
        """Write the manifest of what has been resolved into `home`.

        Raises:
            EngineError: nothing was resolved.
        """
        jars = sorted((self.home / "jars").glob("*.jar"))
        if not jars:
            raise EngineError(
                f"Spark started, but fetched no jars for {', '.join(self.coordinates)}",
                hint=f"remove {self.home} and try again",
            )
        manifest = {
            "coordinates": sorted(self.coordinates),
            "jars": [{"file": jar.name, "bytes": jar.stat().st_size} for jar in jars],
        }
        with tempfile.NamedTemporaryFile(
            "w", dir=self.home, prefix="manifest-", delete=False, encoding="utf-8"
        ) as file:
            json.dump(manifest, file, indent=1)
        Path(file.name).replace(self.home / "manifest.json")
        return tuple(jars)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold this set for one process; others wait. The system lets go of it if we die.

        Raises:
            EngineError: the cache folder can't be written.
        """
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            file = (self.home / "lock").open("a")
        except OSError as error:
            raise EngineError(
                f"the cache folder {self.folder} can't be written: {error.strerror}",
                hint="set SQLMIG_CACHE to a folder that can",
            ) from error
        with file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
