"""The settings of a Spark that sqlmig starts. It decides; it starts nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from sqlmig.spark.jars import cache_folder

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
LOG4J = Path(__file__).with_name("log4j2.properties")
LOG_STORE = "spark.delta.logStore.class"
LOCAL_LOG_STORE: Mapping[str, str] = MappingProxyType(
    {"spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore"}
)
"""Commits to tables on a local disk without processes of their own, for a Spark that we start.

Delta's default asks Hadoop's `FileContext` to rename, which starts `readlink` eight times a file.
This one renames in Java, and takes a third of the time. What both promise of a commit is the
same: the file is written under another name; whether it is there is looked up, then it is renamed
(here under a lock of the process, there under none). `_last_checkpoint` alone is written in place;
Delta's readers go without it where it is cut off.
"""
LOCAL_CHECKPOINTS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution."
        "streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    }
)
"""The same for offsets of streams and checksums of commits, for a session on a local warehouse.

Spark's default renames by Hadoop's `FileContext`, this one by its `FileSystem`. On a local disk
both look whether the file is there, then rename it, which is atomic. Elsewhere they differ, and the
default stays.
"""
UNSEEN: Mapping[str, str] = MappingProxyType(
    {
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.sql.ui.retainedExecutions": "20",
    }
)
"""How many former jobs Spark keeps in memory, with their plans, for pages that it does not serve.

Of each its default keeps a thousand, which a runner fills within some fifty ticks.
"""

# Settings of a session, not of its cluster: they are set over Spark Connect too.
SESSION_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.session.timeZone": "UTC",
        # The default of 50 makes reading the state of a small table take seconds.
        "spark.databricks.delta.snapshotPartitions": "2",
        # A batch is kept to be read once more: compressing it takes longer than it saves.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # What a MERGE takes in, it keeps to read it twice: on a disk only where memory is short.
        "spark.databricks.delta.merge.materializeSource.rddStorageLevel": "MEMORY_AND_DISK",
        # Each round of a source leaves a listing of its whole folder there, which nothing reads.
        "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
    }
)

# Lists: a user's value is joined with ours. The value here is what joins them.
JOINED: Mapping[str, str] = MappingProxyType(
    {"spark.sql.extensions": ",", "spark.driver.extraJavaOptions": " "}
)


def settings_for(master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """All settings of a Spark that we start, jars left out; `conf` goes before ours.

    Lists (extensions, Java options) are joined.
    """
    settings = {
        **SESSION_SETTINGS,
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG4J.as_uri()}",
    }
    cores = _local_cores(master)
    if cores is not None:
        settings |= {
            "spark.sql.shuffle.partitions": str(cores),
            # Nobody else talks to a local Spark; right also where the host's name is unknown.
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.warehouse.dir": str(cache_folder() / "spark-warehouse"),
        }
        if "SPARK_DRIVER_MEMORY" not in os.environ:
            settings["spark.driver.memory"] = _driver_memory()
    if not any(name in conf or _by_default(name) for name in (LOG_STORE, *LOCAL_LOG_STORE)):
        settings |= LOCAL_LOG_STORE  # beside a log store for all, Delta would refuse it
    if conf.get("spark.ui.enabled", "false").strip().lower() == "false":
        settings |= UNSEEN
    for name, value in conf.items():
        separator = JOINED.get(name)
        ours = settings.get(name)
        settings[name] = f"{value}{separator}{ours}" if separator and ours and value else value
    return settings


def _by_default(name: str) -> bool:
    """Whether Spark's own `spark-defaults.conf` names a setting."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and f"{home}/conf")
    if not folder:
        return False
    try:
        text = (Path(folder) / "spark-defaults.conf").read_text("utf-8", "replace")
    except OSError:
        return False
    return any(re.match(rf"\s*{re.escape(name)}\b", line) for line in text.splitlines())


def _local_cores(master: str) -> int | None:
    """The cores of `local`, `local[4]`, `local[*]` or `local[4, 2]`; None for a cluster."""
    match = re.fullmatch(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\])?", master)
    if match is None:
        return None
    if match[1] == "*":
        return os.cpu_count() or 2
    return int(match[1] or 1)


def _driver_memory() -> str:
    """A quarter of the machine's memory, between Spark's default of 1 GB and 4 GB."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "1g"
    return f"{max(1, min(4, total // 4 // 1024**3))}g"
