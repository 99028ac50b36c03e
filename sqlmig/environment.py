"""`${env:NAME}` in a target's settings: put in when the target is opened, hidden in what is shown.

It knows text and the environment, and nothing of what the settings are for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlmig.errors import ConfigError

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST = 400
SECRET = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def resolve(
    settings: Mapping[str, str], environment: Callable[[str], str | None], what: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Put the values of the environment into `settings`.

    Args:
        settings: name -> text, which may hold `${env:NAME}`.
        environment: gives the value of a variable, None where it is not set.
        what: whose settings they are, as an error says it.

    Returns:
        The settings as they are used, and the values that must not be shown, sorted.

    Raises:
        ConfigError: a variable is not set.
    """
    secrets: set[str] = set()

    def value(name: str) -> str:
        found = environment(name)
        if found is None:
            raise ConfigError(
                f"{what}: the environment variable {name} is not set", hint=f"export {name}=..."
            )
        secrets.add(found)
        return found

    resolved = {
        key: SECRET.sub(lambda match: value(match[1]), text)
        for key, text in sorted(settings.items())
    }
    return resolved, tuple(sorted(secrets - {""}))


def resolve_spark(
    spark: Mapping[str, Any], environment: Callable[[str], str | None], what: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A target's `spark` with the values of the environment put in; the rest as in `resolve`."""
    places = {key: value for key, value in spark.items() if key != "conf"}
    places, hidden = resolve(places, environment, what)
    conf, more = resolve(spark.get("conf") or {}, environment, what)
    return {**places, "conf": conf}, tuple(sorted({*hidden, *more}))


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` with every secret value replaced by `***`."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def first_line(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """What an error says first, without secrets; its class where it says nothing.

    delta-rs tells an object store's error as a chain over several lines, of which only the last
    ones say what is the matter: these are put into one line.
    """
    text = _COLOUR.sub("", redact(str(error), secrets)).strip() or type(error).__name__
    if "↳" in text:
        return ": ".join(part.strip() for part in text.split("↳"))[:_LONGEST]
    return text.splitlines()[0]


def cause(error: Exception, secrets: Iterable[str] = ()) -> Exception:
    """The error to raise another one from: itself, or where there are secrets its redacted text."""
    hidden = tuple(secrets)
    if not hidden:
        return error
    return RuntimeError(redact(f"{type(error).__name__}: {error}", hidden))
