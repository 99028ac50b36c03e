"""Reads a query's blocks from sqlglot's syntax tree. It knows scopes and names, and nothing of other statements.

Whatever it doesn't fully understand makes the query coarser: a block is not plain, an alias is not clear,
or the query counts as unread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sqlmig.program.dialect import parse_query
from sqlmig.program.lexer import Token
from sqlmig.program.query import Block, Input, Output, Query, Reference, Star

_GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.JSONTable, exp.Anonymous)
_BEFORE_RELATION = ("FROM", "JOIN", "TABLE", "STREAM")
_UNCHECKED = (exp.Lambda, exp.Kwarg, exp.Hint, exp.Pivot, exp.Interval)


def read_blocks(text: str, tokens: tuple[Token, ...]) -> Query | None:
    """The query's blocks, inputs, references and stars; None when it can't be read."""
    tree = parse_query(text, tokens)
    if tree is None:
        return None
    reader = _BlockReader(tokens)
    try:
        root = reader.query(tree, {}, None)
    except (_Unreadable, RecursionError):
        return None
    return reader.finish(text, root)


class _Unreadable(Exception):
    """Something in FROM whose names can't be told."""


@dataclass
class _Scope:
    """A block while it is read."""

    parent: int | None
    inputs: list[int] = field(default_factory=list)
    outputs: list[Output] | None = field(default_factory=list)
    like: int | None = None
    is_plain: bool = True


_Ctes = Mapping[str, tuple[int | None, tuple[str, ...]]]


class _BlockReader:
    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self.tokens = tokens
        self.index = {token.start: i for i, token in enumerate(tokens)}
        self.scopes: list[_Scope] = []
        self.inputs: list[Input] = []
        self.references: list[Reference] = []
        self.stars: list[Star] = []
        self.aliases: list[str] = []
        self.cte_tokens: set[int] = set()
        self.is_clear = True

    # queries

    def query(self, node: exp.Expr, ctes: _Ctes, parent: int | None) -> int:
        """Reads a query and returns its block."""
        ctes = self._with(node, ctes, parent)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, parent)
        if isinstance(node, exp.Subquery) and isinstance(node.this, (exp.Query, exp.Values)):
            inner = self.query(node.this, ctes, parent)
            self._rest(node, {"this", "alias", "with_", "with"}, inner, ctes, "rest")
            return inner
        if isinstance(node, exp.SetOperation):
            block = self._open(parent)
            self.scopes[block].like = self.query(node.this, ctes, parent)
            self.query(node.expression, ctes, parent)
            if node.args.get("by_name"):
                self.scopes[block].like, self.scopes[block].outputs = None, None
            self._rest(node, {"this", "expression", "with_", "with"}, block, ctes, "rest")
            self.scopes[block].is_plain = False
            return block
        if isinstance(node, exp.Values):
            block = self._open(parent)
            self.scopes[block].outputs = None
            self._rest(node, {"alias"}, block, ctes, "rest")
            return block
        raise _Unreadable

    def _open(self, parent: int | None) -> int:
        self.scopes.append(_Scope(parent))
        return len(self.scopes) - 1

    def _with(self, node: exp.Expr, ctes: _Ctes, parent: int | None) -> _Ctes:
        clause = node.args.get("with_") or node.args.get("with")
        if clause is None:
            return ctes
        known = dict(ctes)
        for cte in clause.expressions:
            name = cte.alias.lower()
            alias = cte.args["alias"]
            columns = tuple(self._identifier(c) for c in alias.args.get("columns") or ())
            self.cte_tokens.add(self._token(alias.this))
            self.aliases.append(name)
            inner = dict(known)
            if clause.args.get("recursive"):
                inner[name] = (None, columns)
            known[name] = (self.query(cte.this, inner, parent), columns)
        return known

    def _select(self, node: exp.Select, ctes: _Ctes, parent: int | None) -> int:
        block = self._open(parent)
        scope = self.scopes[block]
        conditions: list[exp.Expr] = []
        source = node.args.get("from_") or node.args.get("from")
        if source is not None:
            self._input(source.this, ctes, block, conditions)
        self._joins(node, ctes, block, conditions)
        for lateral in node.args.get("laterals") or ():
            self._input(lateral, ctes, block, conditions)
        for item in node.expressions:
            self._output(item, ctes, block)
        for condition in conditions:
            self._walk(condition, ctes, block, "on")
        skipped = {"expressions", "from_", "from", "joins", "laterals", "with_", "with", "hint"}
        self._rest(node, skipped, block, ctes, "rest")
        if scope.outputs is not None and node.args.get("kind"):
            scope.outputs = None  # SELECT AS STRUCT and the like; no form of Spark
        return block

    # FROM

    def _joins(self, node: exp.Expr, ctes: _Ctes, block: int, conditions: list[exp.Expr]) -> None:
        for join in node.args.get("joins") or ():
            first = len(self.inputs)
            self._input(join.this, ctes, block, conditions)
            scope = self.scopes[block]
            if join.kind in ("SEMI", "ANTI"):
                hidden = [i for i in scope.inputs if i >= first]
                for i in hidden:
                    self.inputs[i] = replace(self.inputs[i], is_hidden=True)
            if join.method:
                scope.is_plain = False
                self.stars.append(
                    Star(block, None)
                )  # NATURAL: which columns are equal depends on all
            using = tuple(self._identifier(column) for column in join.args.get("using") or ())
            if using:
                self.inputs[first] = replace(self.inputs[first], using=using)
            on = join.args.get("on")
            if on is not None:
                conditions.append(on)

    def _input(self, node: exp.Expr, ctes: _Ctes, block: int, conditions: list[exp.Expr]) -> None:
        scope = self.scopes[block]
        if node.args.get("pivots"):
            scope.is_plain, self.is_clear = False, False
            for pivot in node.args["pivots"]:
                self._walk(pivot, ctes, block, "rest")
            self.stars.append(
                Star(block, None)
            )  # it groups by, or keeps, the columns it doesn't name
            scope.outputs = None
        alias = node.args.get("alias")
        columns = (
            tuple(self._identifier(c) for c in alias.args.get("columns") or ()) if alias else ()
        )
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            if alias is not None and alias.this is not None:
                scope.is_plain, self.is_clear = (
                    False,
                    False,
                )  # (a JOIN b) AS c: what `c.x` is, Spark knows
                self._add(block, Input(alias.name.lower() or None, columns=columns))
            self._input(node.this, ctes, block, conditions)
            self._joins(node, ctes, block, conditions)
            return
        if isinstance(node, (exp.Subquery, exp.Values)):
            inner = self.query(node, ctes, scope.parent)
            self._named(block, alias, Input(None, block=inner, columns=columns))
        elif isinstance(node, exp.Lateral):
            inner = None
            if isinstance(node.this, exp.Subquery):
                inner = self.query(node.this, ctes, block)
            else:
                self._walk(node.this, ctes, block, "on")
            self._named(block, alias, Input(None, block=inner, columns=columns))
        elif isinstance(node, exp.Table):
            self._table(node, ctes, block, alias, columns)
            self._joins(node, ctes, block, conditions)
        elif isinstance(node, (exp.Unnest, exp.UDTF, exp.Func)):
            self._walk(node, ctes, block, "on")
            self._named(block, alias, Input(None, columns=columns))
        else:
            raise _Unreadable

    def _table(
        self,
        node: exp.Table,
        ctes: _Ctes,
        block: int,
        alias: exp.Expr | None,
        columns: tuple[str, ...],
    ) -> None:
        if not isinstance(node.this, exp.Identifier):  # a table function
            self._walk(node.this, ctes, block, "on")
            self._named(block, alias, Input(None, columns=columns))
            return
        token = self._token(node.this)
        name = self.tokens[token].folded
        if not self.tokens[token].is_name:
            raise _Unreadable
        own = Input(name, columns=columns, name_token=token)
        if node.args.get("db") is None and name in ctes:
            inner, cte_columns = ctes[name]
            own = replace(own, block=inner, columns=columns or cte_columns)
        elif node.args.get("db") is None:
            own = replace(own, relation=name, relation_token=token)
        for key in ("sample", "version", "when"):
            if isinstance(node.args.get(key), exp.Expr):
                self._walk(node.args[key], ctes, block, "on")
        self._named(block, alias, own)

    def _named(self, block: int, alias: exp.Expr | None, item: Input) -> None:
        if alias is not None and isinstance(alias.this, exp.Identifier):
            token = self._token(alias.this)
            item = replace(item, name=self.tokens[token].folded, name_token=token, is_explicit=True)
        self._add(block, item)

    def _add(self, block: int, item: Input) -> None:
        scope = self.scopes[block]
        if item.name is not None and any(self.inputs[i].name == item.name for i in scope.inputs):
            self.is_clear = scope.is_plain = False
        self.inputs.append(item)
        scope.inputs.append(len(self.inputs) - 1)

    # expressions

    def _output(self, node: exp.Expr, ctes: _Ctes, block: int) -> None:
        scope = self.scopes[block]
        stars, references = len(self.stars), len(self.references)
        self._walk(node, ctes, block, "select")
        if scope.outputs is None:
            return
        inner = node.unalias()
        if isinstance(inner, (exp.Star, exp.Column)) and len(self.stars) == stars + 1:
            scope.outputs.append(Output(None, star=stars))
        elif isinstance(node, exp.Alias):
            name = self._identifier(node.args["alias"])
            self.aliases.append(name)
            scope.outputs.append(Output(name, self._sole(inner, references), is_alias=True))
        elif isinstance(node, exp.Aliases):
            names = [self._identifier(alias) for alias in node.expressions]
            self.aliases.extend(names)
            scope.outputs.extend(Output(name, is_alias=True) for name in names)
        else:
            while isinstance(inner, (exp.Paren, exp.Cast)):
                inner = inner.this
            if isinstance(inner, exp.Column) and len(self.references) == references + 1:
                name = inner.name.lower()
                scope.outputs.append(Output(name, self._sole(node, references)))
            elif isinstance(inner, exp.Dot) or inner.find(*_GENERATORS) is not None:
                scope.outputs = None
            else:
                scope.outputs.append(Output(None))

    def _sole(self, node: exp.Expr, reference: int) -> int | None:
        """The reference that a node consists of; not a field of a struct, whose type would be another."""
        if isinstance(node, exp.Column) and len(self.references) > reference:
            found = self.references[reference]
            parts = len(node.parts)
            if parts == (1 if found.input is None else 2):
                return reference
        return None

    def _rest(self, node: exp.Expr, skipped: set[str], block: int, ctes: _Ctes, place: str) -> None:
        for key, value in node.args.items():
            if key not in skipped:
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, exp.Expr):
                        self._walk(child, ctes, block, place)

    def _walk(
        self, node: exp.Expr, ctes: _Ctes, block: int, place: str, checked: bool = True
    ) -> None:
        pending: list[tuple[exp.Expr, bool, bool]] = [(node, checked, False)]
        while pending:
            current, is_checked, is_counted = pending.pop()
            if isinstance(current, (exp.Select, exp.SetOperation)) or (
                isinstance(current, exp.Subquery)
                and isinstance(current.this, (exp.Query, exp.Values))
            ):
                self.query(current, ctes, block)
                continue
            if isinstance(current, exp.Column):
                self._column(current, block, place, is_checked)
                continue
            if isinstance(current, exp.Star):
                if not is_counted:
                    self.stars.append(Star(block, None, _without(current), is_bare=True))
                continue
            if isinstance(current, exp.Table):
                raise _Unreadable
            is_checked = is_checked and not isinstance(current, _UNCHECKED)
            for child in reversed(list(_children(current))):
                pending.append((child, is_checked, isinstance(current, exp.Count)))

    def _column(self, node: exp.Column, block: int, place: str, is_checked: bool) -> None:
        parts = node.parts
        if isinstance(parts[0], exp.Star):
            self.stars.append(Star(block, None, _without(parts[0]), is_bare=True))
            return
        token = self._token(parts[0])
        head = self.tokens[token].folded
        source = self._resolve(head, block) if len(parts) > 1 else None
        if isinstance(parts[-1], exp.Star):
            whole = source is not None and len(parts) == 2
            self.stars.append(Star(block, source if whole else None, _without(parts[-1])))
            if source is None:
                return
        name = head if source is None else parts[1].name.lower()
        is_plain = is_checked and len(parts) == (1 if source is None else 2)
        if isinstance(parts[-1], exp.Star):
            is_plain = False
            name = "*" if len(parts) == 2 else name
        self.references.append(Reference(token, name, block, source, is_plain, place))

    def _resolve(self, name: str, block: int | None) -> int | None:
        while block is not None:
            scope = self.scopes[block]
            for i in scope.inputs:
                if self.inputs[i].name == name:
                    return i
            block = scope.parent
        return None

    # tokens

    def _token(self, node: exp.Expr) -> int:
        index = (
            self.index.get(node.meta.get("start", -1)) if isinstance(node, exp.Identifier) else None
        )
        if index is None:
            raise _Unreadable
        return index

    def _identifier(self, node: exp.Expr) -> str:
        return self.tokens[self._token(node)].folded

    def finish(self, text: str, root: int) -> Query:
        """The query; names are clear when every token that spells an input's name is known to be one."""
        names = {item.name for item in self.inputs if item.name is not None}
        known = {item.name_token for item in self.inputs} | self.cte_tokens
        known |= {item.relation_token for item in self.inputs}
        known |= {reference.token for reference in self.references if reference.input is not None}
        clear = self.is_clear and not names & set(self.aliases) - self._cte_names()
        for i, token in enumerate(self.tokens):
            if token.is_name and i not in known and token.folded in names:
                clear = clear and i > 0 and self.tokens[i - 1].text == "."
        blocks = tuple(
            Block(
                scope.parent,
                tuple(scope.inputs),
                tuple(scope.outputs) if scope.outputs is not None else None,
                scope.like,
                scope.is_plain,
            )
            for scope in self.scopes
        )
        return Query(
            text,
            self.tokens,
            True,
            root,
            blocks,
            tuple(self.inputs),
            tuple(self.references),
            tuple(self.stars),
            tuple(self.aliases),
            clear,
            tuple(self._suspects(known)),
        )

    def _suspects(self, known: set[int | None]) -> Iterator[tuple[str, int]]:
        """sqlglot might drop what it doesn't know; a name behind FROM must be accounted for."""
        for i, token in enumerate(self.tokens):
            if (
                i
                and i not in known
                and token.is_name
                and self.tokens[i - 1].word in _BEFORE_RELATION
            ):
                yield token.folded, i

    def _cte_names(self) -> set[str]:
        return {self.tokens[i].folded for i in self.cte_tokens}


def _children(node: exp.Expr) -> Iterator[exp.Expr]:
    for value in node.args.values():
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, exp.Expr):
                yield child


def _without(node: exp.Expr) -> frozenset[str]:
    return frozenset(
        column.name.lower() for column in node.args.get("except_") or node.args.get("except") or ()
    )
