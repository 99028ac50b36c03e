"""Failures of sources in sqlmig's words: of files, of Kafka, of Delta. It knows texts only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlmig.environment import redact
from sqlmig.free_space import is_full
from sqlmig.program.model import Source
from sqlmig.spark.failures import Failure, describe

_GONE = re.compile(
    r"Could not read records in offset \[(?P<start>\d+), \d+\) for topic partition "
    r"(?P<topic>\S+)-(?P<partition>\d+)"
)
_LOWER = re.compile(
    r"Partition (?P<topic>\S+)-(?P<partition>\d+) offset was changed from "
    r"(?P<before>\d+) to (?P<now>\d+)"
)
_LATE = re.compile(
    r"Added partition (?P<topic>\S+)-(?P<partition>\d+) starts from (?P<now>\d+) instead of 0"
)
_NO_PARTITION = re.compile(
    r"Partitions (?P<partitions>.*?) have been deleted"
    r"|initial offsets for partitions (?P<new>.*?)\. They may"
)
_UNKNOWN = ("UnknownTopicOrPartitionException", "UnknownTopicIdException")
_SILENT = (
    "Cannot fetch record for offset",
    "Timed out waiting for a node assignment",
    "kafka.common.errors.TimeoutException",
    "DisconnectException",
    "No resolvable bootstrap urls",
    "BrokerNotAvailableException",
)
_REFUSED = (
    "SaslAuthenticationException",
    "AuthorizationException",
    "LoginException",
    "SslAuthenticationException",
    "IllegalSaslStateException",
    "JAAS config",
)
_UNUSABLE = ("Failed to create new KafkaAdminClient", "Failed to construct kafka consumer")
_FROM_THE_BEGINNING = (
    "a source of another name, in a new revision, reads the topic from its beginning"
)
_SKIP = (
    "on_data_loss 'skip', in a new revision, goes on with those that are there and tells how many "
    "were not"
)
_MAKE = f"make it, or correct `subscribe`; {_FROM_THE_BEGINNING}"
_CHANGED = ("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE")
_FILE = re.compile(r"((?:file|s3a?|hdfs|abfss?|gs):/[^\s,;'\"]+|/[^\s,;'\"]+\.\w+)")


def describe_source(
    source: Source,
    options: Mapping[str, str],
    errors: Sequence[BaseException],
    secrets: Sequence[str] = (),
) -> Failure:
    """Say what failed while a source was read.

    Args:
        options: the source's, by their names in lower case.
        errors: what was raised, the innermost first.
        secrets: values that are replaced by `***`.
    """
    text = "\n".join(str(error) for error in errors)
    if is_full(text):
        return describe(RuntimeError(text), secrets)
    kind = source.format.lower()
    found: Failure | None = None
    if kind == "kafka":
        found = _kafka(text, describe(errors[0], secrets).message, options)
    elif kind == "delta":
        found = _delta(text)
    elif "CSV header does not conform" in text:
        found = _header(text)
    if found is not None:
        return Failure(redact(found.message, secrets), found.hint, found.condition)
    failure = describe(errors[0], secrets)
    file = _file_in(text)
    if file is None:
        return failure
    message, hint = failure.message, failure.hint
    if file not in message:
        message = f"{redact(file, secrets)} can't be read: {message}"
    hint = hint or "mend or remove the file; the rows of other files stay as they are"
    return Failure(message, hint, failure.condition)


def _kafka(text: str, said: str, options: Mapping[str, str]) -> Failure | None:
    """What an error of a Kafka source means; None if it isn't Kafka's.

    Args:
        text: all of it. said: the line that tells most.
    """
    topics = options.get("subscribe") or options.get("subscribepattern") or options.get("assign")
    servers = options.get("kafka.bootstrap.servers", "")
    gone, lower = _GONE.search(text), _LOWER.search(text)
    late, lost = _LATE.search(text), _NO_PARTITION.search(text)
    if lower:
        return Failure(
            f"topic `{lower['topic']}` was deleted and made anew, or lost records: partition "
            f"{lower['partition']} was read up to offset {lower['before']} and ends at "
            f"{lower['now']} now",
            _FROM_THE_BEGINNING,
        )
    if gone:
        return Failure(
            f"records of `{gone['topic']}` that were not read are gone "
            f"(partition {gone['partition']}, from offset {gone['start']})",
            _SKIP,
        )
    if late:
        return Failure(
            f"records of `{late['topic']}` that were not read are gone "
            f"(partition {late['partition']}, which is new, before offset {late['now']})",
            _SKIP,
        )
    if lost:
        names = lost["partitions"] or lost["new"]
        return Failure(f"partitions of topic `{topics}` are gone: {names}", _MAKE)
    if any(word in text for word in _REFUSED):
        return Failure(
            f"can't log in to the Kafka broker at {servers}: {said}",
            "check the `kafka.security.*`, `kafka.sasl.*` and `kafka.ssl.*` options, and the "
            "environment variables that they name",
        )
    if any(word in text for word in _UNUSABLE):
        return Failure(
            f"Kafka can't use the source's options: {said}",
            "check the `kafka.*` options and the environment variables that they name; "
            "Spark's log says more",
        )
    if any(word in text for word in _UNKNOWN):
        return Failure(f"there is no topic `{topics}` at {servers}", _MAKE)
    if any(word in text for word in _SILENT):
        return Failure(
            f"no Kafka broker answers at {servers}",
            "check `kafka.bootstrap.servers`, and that the broker runs; the next tick tries again",
        )
    return None


def _delta(text: str) -> Failure | None:
    if any(word in text for word in _CHANGED) or "Detected a data update" in text:
        return Failure(
            "rows of the Delta table were changed or deleted, and the source follows appended ones",
            "`readChangeFeed true` follows changes into a table with a key; "
            "`skipChangeCommits true` leaves them out",
        )
    return None


def _file_in(text: str) -> str | None:
    """The file that an error of a reader names."""
    for line in text.splitlines():
        if "reading file" in line or "FAILED_READ_FILE" in line or "CSV file:" in line:
            match = _FILE.search(line)
            if match:
                return match[1].rstrip(".")
    return None


def _header(text: str) -> Failure:
    parts = dict(re.findall(r"^\s*(Header|Schema|CSV file):\s*(.*)$", text, re.MULTILINE))
    file = parts.get("CSV file", "a file")
    return Failure(
        f"{file}: its header is ({parts.get('Header', '?')}), "
        f"the table's columns are ({parts.get('Schema', '?')})",
        "the columns of a CSV file with a header come in the table's order",
    )
