"""What the heads of statements have in common: names, comments, strings. It knows no statement."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmig.program.cursor import Cursor, FormError
from sqlmig.program.lexer import STRING, string_value

SECRET = "${env:"


@dataclass(frozen=True)
class Named:
    """A name as the user wrote it, and its offset."""

    text: str
    at: int

    @property
    def folded(self) -> str:
        """The name as names are compared."""
        return self.text.lower()


class HeadReader(Cursor):
    """Reads what heads of statements are made of; `creates` is the name once it is known."""

    creates: str | None = None

    def created_name(self, what: str) -> Named:
        """Takes the bare name of what is created: letters, digits and underscores."""
        token = self.name(f"the {what}'s name")
        if self.sees("."):
            raise FormError(
                f"the {what}'s name has a catalog or schema",
                token.start,
                "write the bare name: catalog and schema belong to the target in sqlmig.yml",
            )
        if not (token.name.isascii() and token.name.isidentifier()):
            raise FormError(
                f"`{token.name}` can't be a name of a {what}",
                token.start,
                "use letters, digits and underscores, and begin with a letter",
            )
        return Named(token.name, token.start)

    def string(self) -> str:
        """Takes a string, and gives what it says."""
        return string_value(self.of_kind(STRING, "a string").text)

    def comment(self) -> str | None:
        """Takes `COMMENT 'text'` if it is there, and gives the text."""
        return self.string() if self.take("COMMENT") else None

    def done(self, hint: str | None = None) -> None:
        """Raises when something follows."""
        if not self.at_end:
            raise self.unexpected("the end of the statement", hint)

    def no_secret(self) -> None:
        """Raises when a secret stands in the statement, where none may."""
        for token in self.tokens:
            if SECRET in token.text:
                raise FormError(
                    "a secret `${env:...}` can only stand in the OPTIONS of a connector",
                    token.start + token.text.index(SECRET),
                    "use a variable `${name}` of the target in sqlmig.yml",
                )

    def names(self, expected: str) -> list[Named]:
        """Takes names in parentheses."""
        self.expect("(")
        names = [self.named(expected)]
        while not self.take(")"):
            self.expect(",")
            names.append(self.named(expected))
        return names

    def named(self, expected: str) -> Named:
        """Takes a name."""
        token = self.name(expected)
        return Named(token.name, token.start)

    def default(self) -> str:
        """Takes the expression behind DEFAULT, and gives its text."""
        start, depth = self.position, 0
        while (token := self.peek()) is not None:
            if depth == 0 and (
                token.text in (",", ")")
                or (token.word in ("COMMENT", "NOT") and self.position > start)
            ):
                break
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
            self.position += 1
        if self.position == start:
            raise self.unexpected("an expression after DEFAULT")
        return self.text[self.tokens[start].start : self.tokens[self.position - 1].end]

    def dotted(self, expected: str) -> str:
        """Takes a name with dots or hyphens in it, or a string that says one."""
        token = self.peek()
        if token is not None and token.kind == STRING:
            return self.string()
        parts = [self.name(expected).name]
        while self.take(".", "-"):
            joint = self.tokens[self.position - 1].text
            parts.append(joint + self.name(expected).name)
        return "".join(parts)
