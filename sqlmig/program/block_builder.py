"""Gathers a query's blocks while it is read. It knows scopes and names, and neither tokens' grammar
nor trees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlmig.program.lexer import HINT, Token
from sqlmig.program.query import Block, Input, Output, Query, Reference, Star

Ctes = Mapping[str, tuple[int | None, tuple[str, ...]]]
"""Name of a CTE -> its block, None while it isn't known, and the columns given behind its name."""

_WORD = re.compile(r"\w+")
_BEFORE_RELATION = frozenset(("FROM", "JOIN", "TABLE", "STREAM"))


class Unreadable(Exception):
    """Something whose names can't be told by this reader."""


@dataclass
class Scope:
    """A block while it is read."""

    parent: int | None
    inputs: list[int] = field(default_factory=list)
    outputs: list[Output] | None = field(default_factory=list)
    like: int | None = None
    is_plain: bool = True


class BlockBuilder:
    """What was found so far in one query."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self.tokens = tokens
        self.scopes: list[Scope] = []
        self.inputs: list[Input] = []
        self.references: list[Reference] = []
        self.stars: list[Star] = []
        self.aliases: list[str] = []
        self.cte_tokens: set[int] = set()
        self.is_clear = True

    def open(self, parent: int | None) -> int:
        """Begins a block."""
        self.scopes.append(Scope(parent))
        return len(self.scopes) - 1

    def add_input(self, block: int, item: Input) -> None:
        """Adds an item of FROM; two of one name make both unclear."""
        scope = self.scopes[block]
        if item.name is not None and any(self.inputs[i].name == item.name for i in scope.inputs):
            self.is_clear = scope.is_plain = False
        self.inputs.append(item)
        scope.inputs.append(len(self.inputs) - 1)

    def relation(self, token: int, ctes: Ctes, columns: tuple[str, ...] = ()) -> Input:
        """The input that an unqualified name stands for: a CTE, else a relation."""
        name = self.tokens[token].folded
        if name in ctes:
            block, cte_columns = ctes[name]
            return Input(name, block=block, columns=columns or cte_columns, name_token=token)
        return Input(name, relation=name, columns=columns, name_token=token, relation_token=token)

    def named(self, item: Input, token: int) -> Input:
        """The input with the alias at a token."""
        return replace(item, name=self.tokens[token].folded, name_token=token, is_explicit=True)

    def joined(self, block: int, first: int, *, is_hidden: bool, using: tuple[str, ...]) -> None:
        """Notes how the inputs from `first` on were joined to those before."""
        own = [i for i in self.scopes[block].inputs if i >= first]
        if is_hidden:
            for i in own:
                self.inputs[i] = replace(self.inputs[i], is_hidden=True)
        if using:
            self.inputs[own[0]] = replace(self.inputs[own[0]], using=using)

    def resolve(self, name: str, block: int | None) -> int | None:
        """The input of that name in a block or the nearest one around it."""
        while block is not None:
            scope = self.scopes[block]
            for i in scope.inputs:
                if self.inputs[i].name == name:
                    return i
            block = scope.parent
        return None

    def finish(self, text: str, root: int) -> Query:
        """The query; names are clear when every token that spells an input's name is accounted
        for."""
        names = {item.name for item in self.inputs if item.name is not None}
        known = {item.name_token for item in self.inputs} | self.cte_tokens
        known |= {item.relation_token for item in self.inputs}
        known |= {reference.token for reference in self.references if reference.input is not None}
        clear = self.is_clear
        suspects: list[tuple[str, int]] = []
        before = ""
        for i, token in enumerate(self.tokens):
            if token.is_name and i not in known:
                name = token.folded
                if name in names and before != ".":
                    clear = False
                called = i > 1 and before == "(" and self.tokens[i - 2].word in _BEFORE_RELATION
                if called or before.upper() in _BEFORE_RELATION:
                    suspects.append((name, i))
            if token.kind == HINT and not names.isdisjoint(_WORD.findall(token.text.lower())):
                clear = False
            before = token.text
        return Query(
            text,
            self.tokens,
            True,
            root,
            tuple(self._blocks()),
            tuple(self.inputs),
            tuple(self.references),
            tuple(self.stars),
            tuple(self.aliases),
            clear,
            tuple(suspects),
        )

    def _blocks(self) -> Iterator[Block]:
        for scope in self.scopes:
            outputs = tuple(scope.outputs) if scope.outputs is not None else None
            yield Block(scope.parent, tuple(scope.inputs), outputs, scope.like, scope.is_plain)
