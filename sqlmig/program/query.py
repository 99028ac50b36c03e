"""What one query says by itself: its blocks, what they read, the columns they name. It knows no
other statement.

Names are folded to lower case. Numbers that stand for tokens are indexes into `Query.tokens`; those
for blocks and inputs are indexes into `Query.blocks` and `Query.inputs`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlmig.program.lexer import SYMBOL, WORD, Token, tokenize
from sqlmig.program.vocabulary import BEFORE_PARENTHESIS, FUNCTIONS


@dataclass(frozen=True)
class Input:
    """One item of a FROM clause: a relation, a nested query, or something that only Spark can know.

    Args:
        name: the name that qualifies its columns, or None.
        relation: an unqualified name that no CTE of the query defines, else None.
        block: the block of a nested query or CTE, else None.
        columns: names given in parentheses behind the alias, or by LATERAL VIEW.
        name_token: the alias; without one, the last token of the relation's name; None without a
            name.
        is_explicit: there is an alias.
        relation_token: where the relation's name stands.
        is_hidden: the right side of a semi or anti join: its columns aren't in `*`.
        using: columns of the JOIN ... USING that brings it in: `*` shows them once, and first.
    """

    name: str | None
    relation: str | None = None
    block: int | None = None
    columns: tuple[str, ...] = ()
    name_token: int | None = None
    is_explicit: bool = False
    relation_token: int | None = None
    is_hidden: bool = False
    using: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reference:
    """A column named in a block.

    Args:
        token: the first part of the name.
        name: the column, or for `s.field` with an `s` that no input is called, that `s`.
        block: the block it stands in.
        input: the input that qualifies it, or None.
        is_plain: one part, or an input's name and one part; nothing known speaks against checking
            it.
        place: "select", "on", "rest": the part of the block.
    """

    token: int
    name: str
    block: int
    input: int | None
    is_plain: bool
    place: str


@dataclass(frozen=True)
class Output:
    """One item of a SELECT list.

    Args:
        name: the column's name; None for one that Spark makes up.
        reference: index of the reference that the item consists of, or None.
        is_alias: the name was given with AS.
        star: index of the star that the item consists of, or None.
    """

    name: str | None
    reference: int | None = None
    is_alias: bool = False
    star: int | None = None


@dataclass(frozen=True)
class Star:
    """A `*` that stands for columns: those of `input`, or None for those of the whole block.

    With `is_bare` False and no input, it isn't known which of them (`s.*` of a struct, NATURAL,
    PIVOT).
    """

    block: int
    input: int | None
    without: frozenset[str] = frozenset()
    is_bare: bool = False


@dataclass(frozen=True)
class Block:
    """One SELECT, or a query whose columns are those of another block.

    Args:
        parent: the block whose inputs can be named too (a correlated subquery), or None.
        inputs: in the order of FROM.
        outputs: the SELECT list; None when only Spark can know it.
        like: the block that gives the names, for UNION and the like; None otherwise.
        is_plain: False with NATURAL, PIVOT and whatever else makes columns that can't be seen here.
    """

    parent: int | None = None
    inputs: tuple[int, ...] = ()
    outputs: tuple[Output, ...] | None = None
    like: int | None = None
    is_plain: bool = True


@dataclass(frozen=True)
class Query:
    """A query, read. With `is_read` False it could not be: then it depends on every name it
    mentions.

    Args:
        aliases: names given with AS in SELECT lists, and the names of CTEs.
        names_are_clear: every token that spells an input's name is known to stand for that input,
            or follows a dot.
        suspects: names behind FROM, JOIN or TABLE that were not read as relations, each with its
            token.
    """

    text: str
    tokens: tuple[Token, ...]
    is_read: bool = False
    root: int = 0
    blocks: tuple[Block, ...] = ()
    inputs: tuple[Input, ...] = ()
    references: tuple[Reference, ...] = ()
    stars: tuple[Star, ...] = ()
    aliases: tuple[str, ...] = ()
    names_are_clear: bool = False
    suspects: tuple[tuple[str, int], ...] = ()

    @cached_property
    def relations(self) -> tuple[tuple[str, int], ...]:
        """Relations read, each with the token where it is named; only where `is_read`."""
        return tuple(
            (item.relation, item.relation_token)
            for item in self.inputs
            if item.relation is not None and item.relation_token is not None
        )

    @cached_property
    def mentioned(self) -> tuple[tuple[str, int], ...]:
        """Every identifier that could name a relation, with its token."""
        return tuple((token.folded, i) for i, token in enumerate(self.tokens) if token.is_name)

    @cached_property
    def words(self) -> frozenset[str]:
        """All unquoted words, in lower case."""
        return frozenset(token.text.lower() for token in self.tokens if token.kind == WORD)

    @cached_property
    def functions(self) -> frozenset[str]:
        """Names that are called, in lower case; a name that only might be a function is among
        them."""
        names = set()
        defined = {item.name for item in self.inputs} | set(self.aliases)
        for token, following in zip(self.tokens, self.tokens[1:], strict=False):
            if following.kind == SYMBOL and following.text == "(" and token.is_name:
                name = token.folded
                if name in FUNCTIONS or (name not in BEFORE_PARENTHESIS and name not in defined):
                    names.add(name)
        return frozenset(names)

    def called(self, functions: Collection[str]) -> frozenset[str]:
        """Those of `functions` that the query calls, or another thing of the same name.

        Spark has no call without a parenthesis behind the function's name, however that is quoted
        or qualified.
        """
        return frozenset(
            token.folded
            for token, following in zip(self.tokens, self.tokens[1:], strict=False)
            if following.text == "(" and token.is_name and token.folded in functions
        )

    def may_call(self, functions: Collection[str]) -> frozenset[str]:
        """Those of `functions` that the query may call; too many, never too few.

        Where the query could not be read, a bare mention is enough.
        """
        if self.is_read:
            return self.called(functions)
        return frozenset(name for name, _ in self.mentioned if name in functions)

    @cached_property
    def named(self) -> frozenset[str]:
        """Every name that a column is given or called by, save for what follows a dot."""
        names = {reference.name for reference in self.references} | set(self.aliases)
        for item in self.inputs:
            names.update(item.columns, item.using)
        return frozenset(names)


_MOST = 20_000
_queries: dict[str, Query] = {}


def read_query(text: str, tokens: Sequence[Token] | None = None, offset: int = 0) -> Query:
    """Reads a query; never fails for what it says (see `Query.is_read`).

    Equal text is read once in a process, so a second program costs only what differs.

    Args:
        text: the query.
        tokens: its tokens, when they are known from a longer text.
        offset: where the query begins in that text.

    Raises:
        LexError: a string, quoted name or comment doesn't end.
    """
    found = _queries.get(text)
    if found is None:
        if len(_queries) >= _MOST:
            _queries.clear()
        if tokens is None:
            own = tuple(tokenize(text))
        else:
            own = tuple([Token(k, t, s - offset, e - offset) for k, t, s, e in tokens])
        found = _queries[text] = _read(text, own)
    return found


def _read(text: str, tokens: tuple[Token, ...]) -> Query:
    from sqlmig.program.plain_query import read_plain_query

    plain = read_plain_query(text, tokens)
    if plain is not None:
        return plain
    from sqlmig.program.scopes import read_blocks  # here, because it imports sqlglot: 165 ms

    return read_blocks(text, tokens) or Query(text, tokens)
