"""Reads a query's blocks from sqlglot's syntax tree. It knows scopes and names, and nothing of
other statements.

Whatever it doesn't fully understand makes the query coarser: a block is not plain, an alias is not
clear, or the query counts as unread.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlmig.program.block_builder import BlockBuilder, Ctes, Unreadable
from sqlmig.program.dialect import parse_query
from sqlmig.program.lexer import Token
from sqlmig.program.query import Input, Output, Query, Reference, Star

_GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.JSONTable, exp.Anonymous)
_UNCHECKED = (exp.Lambda, exp.Kwarg, exp.Hint, exp.Pivot, exp.Interval)


def read_blocks(text: str, tokens: tuple[Token, ...]) -> Query | None:
    """The query's blocks, inputs, references and stars; None when it can't be read."""
    tree = parse_query(text, tokens)
    if tree is None:
        return None
    reader = _BlockReader(tokens)
    try:
        root = reader.query(tree, {}, None)
    except (Unreadable, RecursionError):
        return None
    return reader.finish(text, root)


class _BlockReader(BlockBuilder):
    def __init__(self, tokens: tuple[Token, ...]) -> None:
        super().__init__(tokens)
        self.index = {token.start: i for i, token in enumerate(tokens)}

    # queries

    def query(self, node: exp.Expr, ctes: Ctes, parent: int | None) -> int:
        """Reads a query and returns its block."""
        ctes = self._with(node, ctes, parent)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, parent)
        if isinstance(node, exp.Subquery) and isinstance(node.this, (exp.Query, exp.Values)):
            inner = self.query(node.this, ctes, parent)
            self._rest(node, {"this", "alias", "with_", "with"}, inner, ctes, "rest")
            return inner
        if isinstance(node, exp.SetOperation):
            block = self.open(parent)
            self.scopes[block].like = self.query(node.this, ctes, parent)
            self.query(node.expression, ctes, parent)
            if node.args.get("by_name"):
                self.scopes[block].like, self.scopes[block].outputs = None, None
            self._rest(node, {"this", "expression", "with_", "with"}, block, ctes, "rest")
            self.scopes[block].is_plain = False
            return block
        if isinstance(node, exp.Values):
            block = self.open(parent)
            self.scopes[block].outputs = None
            self._rest(node, {"alias"}, block, ctes, "rest")
            return block
        raise Unreadable

    def _with(self, node: exp.Expr, ctes: Ctes, parent: int | None) -> Ctes:
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

    def _select(self, node: exp.Select, ctes: Ctes, parent: int | None) -> int:
        block = self.open(parent)
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

    def _joins(self, node: exp.Expr, ctes: Ctes, block: int, conditions: list[exp.Expr]) -> None:
        for join in node.args.get("joins") or ():
            first = len(self.inputs)
            self._input(join.this, ctes, block, conditions)
            if join.method:  # NATURAL: which columns are equal depends on all
                self.scopes[block].is_plain = False
                self.stars.append(Star(block, None))
            using = tuple(self._identifier(column) for column in join.args.get("using") or ())
            self.joined(block, first, is_hidden=join.kind in ("SEMI", "ANTI"), using=using)
            on = join.args.get("on")
            if on is not None:
                conditions.append(on)

    def _input(self, node: exp.Expr, ctes: Ctes, block: int, conditions: list[exp.Expr]) -> None:
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
                self.add_input(block, Input(alias.name.lower() or None, columns=columns))
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
            raise Unreadable

    def _table(
        self,
        node: exp.Table,
        ctes: Ctes,
        block: int,
        alias: exp.Expr | None,
        columns: tuple[str, ...],
    ) -> None:
        if not isinstance(node.this, exp.Identifier):  # a table function
            self._walk(node.this, ctes, block, "on")
            self._named(block, alias, Input(None, columns=columns))
            return
        token = self._token(node.this)
        if not self.tokens[token].is_name:
            raise Unreadable
        if node.args.get("db") is None:
            own = self.relation(token, ctes, columns)
        else:
            own = Input(self.tokens[token].folded, columns=columns, name_token=token)
        for key in ("sample", "version", "when"):
            if isinstance(node.args.get(key), exp.Expr):
                self._walk(node.args[key], ctes, block, "on")
        self._named(block, alias, own)

    def _named(self, block: int, alias: exp.Expr | None, item: Input) -> None:
        if alias is not None and isinstance(alias.this, exp.Identifier):
            item = self.named(item, self._token(alias.this))
        self.add_input(block, item)

    # expressions

    def _output(self, node: exp.Expr, ctes: Ctes, block: int) -> None:
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
            elif inner.find(*_GENERATORS) is not None:
                scope.outputs = None
            elif isinstance(inner, exp.Dot):
                is_field = isinstance(inner.expression, exp.Identifier)
                scope.outputs.append(Output(inner.expression.name.lower() if is_field else None))
            else:
                scope.outputs.append(Output(None))

    def _sole(self, node: exp.Expr, reference: int) -> int | None:
        """The reference that a node consists of; not a field of a struct, whose type would be
        another."""
        if isinstance(node, exp.Column) and len(self.references) > reference:
            found = self.references[reference]
            parts = len(node.parts)
            if parts == (1 if found.input is None else 2):
                return reference
        return None

    def _rest(self, node: exp.Expr, skipped: set[str], block: int, ctes: Ctes, place: str) -> None:
        for key, value in node.args.items():
            if key not in skipped:
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, exp.Expr):
                        self._walk(child, ctes, block, place)

    def _walk(
        self, node: exp.Expr, ctes: Ctes, block: int, place: str, checked: bool = True
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
                raise Unreadable
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
        source = self.resolve(head, block) if len(parts) > 1 else None
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

    # tokens

    def _token(self, node: exp.Expr) -> int:
        index = (
            self.index.get(node.meta.get("start", -1)) if isinstance(node, exp.Identifier) else None
        )
        if index is None:
            raise Unreadable
        return index

    def _identifier(self, node: exp.Expr) -> str:
        return self.tokens[self._token(node)].folded


def _children(node: exp.Expr) -> Iterator[exp.Expr]:
    for value in node.args.values():
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, exp.Expr):
                yield child


def _without(node: exp.Expr) -> frozenset[str]:
    return frozenset(
        column.name.lower() for column in node.args.get("except_") or node.args.get("except") or ()
    )
