"""`${name}`: variables of a target in the pipeline's SQL. It knows text, and nothing of SQL but
comments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from sqlmig.errors import Location, ProgramError, ProgramErrors
from sqlmig.program.lexer import LexError, line_and_column, tokenize

_VARIABLE = re.compile(r"\$\{([^}\n]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def substitute(files: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Puts the target's variables into the files of SQL; `${env:NAME}`, a secret, stays as it is.

    Args:
        files: path -> text.
        variables: name -> value.

    Raises:
        ProgramErrors: a variable isn't defined; all of them are named, each with its place.
    """
    errors: list[ProgramError] = []

    def replace_in(path: str, text: str) -> str:
        comments = _comments(text) if "${" in text else []

        def replace(match: re.Match[str]) -> str:
            name = match[1].strip()
            if any(start <= match.start() < end for start, end in comments):
                return match[0]
            if name.startswith("env:"):
                return match[0]
            if name in variables:
                return str(variables[name])
            errors.append(
                _undefined(name, Location(path, *line_and_column(text, match.start())), variables)
            )
            return match[0]

        return _VARIABLE.sub(replace, text)

    replaced = {
        path: text if path.endswith(".py") else replace_in(path, text)
        for path, text in sorted(files.items())
    }
    if errors:
        raise ProgramErrors(errors)
    return replaced


def _comments(text: str) -> list[tuple[int, int]]:
    """The stretches of `text` between tokens, where a variable is only spoken of."""
    try:
        tokens = tokenize(text)
    except LexError:
        return []
    ends = [0, *(token.end for token in tokens)]
    starts = [*(token.start for token in tokens), len(text)]
    return [(end, start) for end, start in zip(ends, starts, strict=True) if start > end]


def _undefined(name: str, location: Location, variables: Mapping[str, str]) -> ProgramError:
    if not _NAME.fullmatch(name):
        return ProgramError(
            f"`${{{name}}}` is not a variable",
            location=location,
            hint="write `${name}`, or `${env:NAME}` for a secret",
        )
    close = get_close_matches(name, list(variables), n=1)
    hint = (
        f"did you mean `${{{close[0]}}}`?"
        if close
        else f"define `{name}` under the target's `vars` in sqlmig.yml"
    )
    return ProgramError(f"variable `{name}` is not defined", location=location, hint=hint)
