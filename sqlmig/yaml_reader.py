"""YAML nodes read with their places in the file: each mistake has a line and a column.

The file is read as nodes, not as values: a variable such as `2026-01-01` stays the text that was
written. It knows nothing of what the keys mean.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from sqlmig.durations import parse_duration
from sqlmig.errors import ConfigError, Location

if TYPE_CHECKING:
    from yaml import Mark, Node

_NOT_A_SECRET = re.compile(r"\$\{(?!env:[A-Za-z_][A-Za-z0-9_]*\})[^}]*\}?")


class YamlReader:
    """Reads YAML nodes and knows where they stand in the file."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def document(self, text: str) -> Node | None:
        """The root node; None for an empty file."""
        import yaml

        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            node: Node | None = yaml.compose(text, Loader=loader)
        except yaml.YAMLError as error:
            mark: Mark | None = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "?"
            raise ConfigError(
                f"not YAML: {problem}", location=self._at(mark), hint=getattr(error, "note", None)
            ) from error
        return node

    def mapping(
        self, node: Node | None, name: str, known: tuple[str, ...] | None = None
    ) -> dict[str, Node]:
        """Key -> node; a node that is missing or empty is an empty mapping.

        Args:
            known: the keys that may stand there; None for any.
        """
        if node is None or _is_null(node):
            return {}
        from yaml import MappingNode

        if not isinstance(node, MappingNode):
            self.fail(node, f"`{name}` must be a mapping", "write `key: value` lines below it")
        found: dict[str, Node] = {}
        for key_node, value in node.value:
            key = self.text(key_node, "key")
            if key in found:
                self.fail(key_node, f"`{key}` stands there twice", "keep one of them")
            if known is not None and key not in known:
                self.fail(
                    key_node, f"unknown key `{key}` in `{name}`", choices(key, known, "known are")
                )
            found[key] = value
        return found

    def texts(self, node: Node | None, name: str) -> dict[str, str]:
        """A mapping of text to text, sorted."""
        pairs = self.mapping(node, name)
        return {key: self.text(value, key) for key, value in sorted(pairs.items())}

    def settings(self, node: Node | None, name: str) -> dict[str, str]:
        """A mapping like `texts`, whose values may hold `${env:NAME}` and no other variable."""
        pairs = self.mapping(node, name)
        return {key: self.setting(value, key) for key, value in sorted(pairs.items())}

    def setting(self, node: Node, name: str) -> str:
        """A scalar that may hold `${env:NAME}` and no other variable."""
        value = self.text(node, name)
        wrong = _NOT_A_SECRET.search(value)
        if wrong:
            self.fail(node, f"`{wrong[0]}` can't stand here", "only `${env:NAME}`, a secret, can")
        return value

    def text(
        self,
        node: Node | None,
        name: str,
        *,
        default: str | None = None,
        missing_in: Node | None = None,
    ) -> str:
        """A scalar as it was written; `true` and `false` in lower case."""
        if node is None or _is_null(node):
            if default is not None:
                return default
            where = node if node is not None else missing_in
            return self.fail(where, f"`{name}` is missing", f"write `{name}: ...`")
        from yaml import ScalarNode

        if not isinstance(node, ScalarNode):
            return self.fail(node, f"`{name}` must be text", f"write `{name}: ...` on one line")
        value = str(node.value)
        if node.tag == "tag:yaml.org,2002:bool":
            return "true" if value.lower() in ("true", "yes", "on") else "false"
        return value

    def flag(self, node: Node | None, name: str) -> bool:
        """`true` or `false`; false for a node that is missing."""
        text = self.text(node, name, default="false")
        if text not in ("true", "false"):
            self.fail(node, f"`{name}` must be true or false", f"write `{name}: true`")
        return text == "true"

    def seconds(self, node: Node, name: str, *, may_be_zero: bool = False) -> float:
        """A duration, in seconds."""
        text = self.text(node, name)
        value = parse_duration(text)
        if value is None or (value <= 0 and not may_be_zero):
            self.fail(node, f"`{text}` is no duration", "write `5s`, `10m`, `2h`, `7d`")
        return value

    def fail(self, node: Node | None, message: str, hint: str) -> NoReturn:
        """Raise the error at the node's place."""
        mark = None if node is None else node.start_mark
        raise ConfigError(message, location=self._at(mark), hint=hint)

    def _at(self, mark: Mark | None) -> Location:
        if mark is None:
            return Location(self._shown)
        return Location(self._shown, mark.line + 1, mark.column + 1)


def shown(path: Path) -> str:
    """A path as people know it: relative to the current folder where it lies in that."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


def choices(word: str, known: Iterable[str], otherwise: str) -> str:
    """A hint that names the known word nearest to `word`, or all of them after `otherwise`."""
    names = sorted(known)
    close = difflib.get_close_matches(word.lower(), names, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"{otherwise} {', '.join(f'`{name}`' for name in names)}"


def _is_null(node: Node) -> bool:
    return node.tag == "tag:yaml.org,2002:null"
