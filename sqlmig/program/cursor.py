"""A place in a statement's tokens, and the steps a reader takes from there. It knows tokens, and no
statement."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmig.program.lexer import QUOTED, SYMBOL, WORD, Token


class FormError(Exception):
    """A mistake in a statement, at an offset in its text."""

    def __init__(self, message: str, offset: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint


class Cursor:
    """Reads tokens one after the other; words are compared without regard to letter case."""

    def __init__(self, tokens: Sequence[Token], text: str) -> None:
        self.tokens = tokens
        self.text = text
        self.position = 0
        self._half_open = 0  # closing angles already taken of a `>>`

    @property
    def at_end(self) -> bool:
        return self.position >= len(self.tokens)

    @property
    def offset(self) -> int:
        """Where the next token begins; at the end, behind the last one."""
        if self.at_end:
            return self.tokens[-1].end if self.tokens else 0
        return self.tokens[self.position].start

    def peek(self, ahead: int = 0) -> Token | None:
        """The next token, or the one `ahead` of it; None behind the last."""
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def next(self, expected: str) -> Token:
        """Takes any token; at the end, says what was expected."""
        token = self.peek()
        if token is None:
            raise FormError(f"expected {expected}, but the statement ends", self.offset)
        self.position += 1
        return token

    def sees(self, *words: str) -> bool:
        """True when the next tokens are these words or symbols, one after the other."""
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token is None or token.kind not in (WORD, SYMBOL) or token.word != word:
                return False
        return True

    def take(self, *words: str) -> str | None:
        """Takes the next token if it is one of these words or symbols, and returns it in upper
        case."""
        token = self.peek()
        if token is not None and token.kind in (WORD, SYMBOL) and token.word in words:
            self.position += 1
            return token.word
        return None

    def expect(self, word: str, hint: str | None = None) -> None:
        """Takes this word or symbol, or raises."""
        if not self.take(word):
            raise self.unexpected(f"`{word}`", hint)

    def unexpected(self, expected: str, hint: str | None = None) -> FormError:
        """The error for the next token, where something else was expected."""
        token = self.peek()
        found = f"found `{_short(token.text)}`" if token else "but the statement ends"
        return FormError(f"expected {expected}, {found}", self.offset, hint)

    def word(self, expected: str) -> str:
        """Takes an unquoted word."""
        return self.of_kind(WORD, expected).text

    def of_kind(self, kind: str, expected: str) -> Token:
        """Takes a token of this kind."""
        token = self.peek()
        if token is None or token.kind != kind:
            raise self.unexpected(expected)
        self.position += 1
        return token

    def name(self, expected: str) -> Token:
        """Takes an identifier, quoted or not."""
        token = self.peek()
        if token is None or token.kind not in (WORD, QUOTED):
            raise self.unexpected(expected)
        self.position += 1
        return token

    def open_angle(self) -> None:
        """Takes the `<` of a nested type."""
        self.expect("<")

    def close_angle(self) -> bool:
        """Takes one `>` of a nested type, also out of a `>>` or `>>>`."""
        token = self.peek()
        if token is None or token.text.strip(">") or token.kind != SYMBOL:
            return False
        self._half_open += 1
        if self._half_open == len(token.text):
            self._half_open = 0
            self.position += 1
        return True


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else f"{line[:37]}..."
