"""A source's options as it is opened: secrets filled in, paths found, sane limits set."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from sqlmig.environment import redact
from sqlmig.errors import EngineError
from sqlmig.planning.source_options import FILE_FORMATS, problems, raw_options
from sqlmig.program.model import Source, Table

_SECRET = re.compile(r"\$\{env:([^}]+)\}")
# A broker that does not answer ends a tick within a minute: Kafka's and Spark's own limits add up
# to more than five.
_KAFKA = {
    "fetchoffset.numretries": "1",
    "kafkaconsumer.polltimeoutms": "30000",
}
_KAFKA_TIMES = {
    "kafka.default.api.timeout.ms": "20000",
    "kafka.request.timeout.ms": "10000",
}


class OptionReader:
    """Reads the options of sources.

    Args:
        project_root: what a relative `path` starts from.
        secrets: gives the value of `${env:NAME}`, None where there is none.
    """

    def __init__(self, project_root: Path, secrets: Callable[[str], str | None]) -> None:
        self._root = project_root
        self._secrets = secrets

    def read(self, source: Source, table: Table, hidden: list[str]) -> dict[str, str]:
        """The options, by their names in lower case.

        Args:
            hidden: the values of secrets are added to it.

        Raises:
            EngineError: a secret or the directory is missing, or an option is wrong.
        """
        options = {
            key.lower(): _SECRET.sub(lambda match: self._secret(match[1], source, hidden), text)
            for key, text in source.options
        }
        for message, hint in problems(source, table, options):
            raise EngineError(
                f"source `{source.connector}`: {redact(message, hidden)}",
                location=source.location,
                hint=hint,
            )
        kind = source.format.lower()
        if kind in FILE_FORMATS or kind == "delta":
            options["path"] = self._path(source, options["path"], hidden)
        if kind == "kafka":
            times = {} if _KAFKA_TIMES.keys() & options.keys() else _KAFKA_TIMES
            options = {**_KAFKA, **times, **options}
        if "on_data_loss" in options:
            options["failondataloss"] = str(options["on_data_loss"] == "fail").lower()
        return options

    def meaning(self, source: Source, hidden: list[str]) -> dict[str, str]:
        """Those options that say what a raw record means; the source itself is not looked at.

        Args:
            hidden: the values of secrets are added to it.

        Raises:
            EngineError: a secret is missing.
        """
        kind = source.format.lower()
        given = raw_options(kind, {key.lower(): text for key, text in source.options})
        return {
            key: _SECRET.sub(lambda match: self._secret(match[1], source, hidden), text)
            for key, text in given.items()
        }

    def _secret(self, name: str, source: Source, hidden: list[str]) -> str:
        value = self._secrets(name)
        if value is None:
            raise EngineError(
                f"source `{source.connector}`: the environment variable {name} is not set",
                location=source.location,
                hint=f"export {name}=...",
            )
        hidden.append(value)
        return value

    def _path(self, source: Source, path: str, hidden: list[str]) -> str:
        if "://" in path or path.startswith("file:"):
            return path
        place = Path(path) if Path(path).is_absolute() else self._root / path
        is_pattern = any(sign in path for sign in "*?[{") and source.format.lower() != "delta"
        if not is_pattern and not place.exists():
            raise EngineError(
                f"source `{source.connector}`: there is no directory {redact(path, hidden)}",
                location=source.location,
                hint=f"make it, or correct `path`; it is looked for in {self._root}"
                if not Path(path).is_absolute()
                else "make it, or correct `path`",
            )
        return str(place)
