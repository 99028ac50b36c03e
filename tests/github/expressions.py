"""GitHub's expressions (`${{ ... }}` and `if:`), as far as our workflows use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)"
    r"|(?P<sign>&&|\|\||==|!=|[!(),]))"
)
_HOLE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


def evaluate(text: str, contexts: Mapping[str, Any]) -> Any:
    """The value of an expression; a name that nothing has is ''."""
    reader = _Reader(_tokens(text), contexts)
    value = reader.either()
    assert reader.tokens == [], f"not understood: {text}"
    return value


def filled(text: str, contexts: Mapping[str, Any]) -> str:
    """Text with its `${{ ... }}` replaced by their values."""
    return _HOLE.sub(lambda hole: shown(evaluate(hole[1], contexts)), text)


def shown(value: Any) -> str:
    """A value as GitHub writes it into text."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tokens(text: str) -> list[tuple[str, str]]:
    found, position = [], 0
    text = text.strip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token is not None, f"not understood: {text[position:]}"
        found.append((str(token.lastgroup), token[str(token.lastgroup)]))
        position = token.end()
    return found


class _Reader:
    def __init__(self, tokens: list[tuple[str, str]], contexts: Mapping[str, Any]) -> None:
        self.tokens = tokens
        self._contexts = contexts

    def either(self) -> Any:
        value = self._both()
        while self._takes("||"):
            other = self._both()
            value = value or other
        return value

    def _both(self) -> Any:
        value = self._equal()
        while self._takes("&&"):
            other = self._equal()
            value = value and other
        return value

    def _equal(self) -> Any:
        value = self._one()
        while self.tokens and self.tokens[0][1] in ("==", "!="):
            sign = self.tokens.pop(0)[1]
            is_equal = shown(value).lower() == shown(self._one()).lower()
            value = is_equal if sign == "==" else not is_equal
        return value

    def _one(self) -> Any:
        kind, text = self.tokens.pop(0)
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if text == "!":
            return not self._one()
        if text == "(":
            value = self.either()
            assert self._takes(")")
            return value
        assert kind == "name", f"not understood: {text}"
        if self._takes("("):
            arguments = []
            while not self._takes(")"):
                arguments.append(self.either())
                self._takes(",")
            function: Callable[..., Any] = self._contexts["functions"][text]
            return function(*arguments)
        return _named(text, self._contexts)

    def _takes(self, sign: str) -> bool:
        if self.tokens and self.tokens[0] == ("sign", sign):
            self.tokens.pop(0)
            return True
        return False


def _named(text: str, contexts: Mapping[str, Any]) -> Any:
    value: Any = contexts
    for part in text.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return "" if value is None else value
