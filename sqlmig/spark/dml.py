"""Reads INSERT, UPDATE, DELETE and MERGE by their tokens. It runs nothing and knows no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from sqlmig.errors import EngineError
from sqlmig.program.lexer import LexError, Token, tokenize
from sqlmig.program.model import Program, Table

_QUERY_WORDS = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE"})
_AFTER_TARGET = frozenset({"SET", "WHERE", "USING"})


@dataclass(frozen=True)
class Statement:
    """One statement that writes.

    Args:
        kind: INSERT, UPDATE, DELETE or MERGE.
        text: the statement, without a semicolon at its end.
        target: the name written to, lower case.
        span: where the target's name is in `text`, as offsets.
        has_alias: the statement gives the target an alias.
        columns: the names of an INSERT's column list; () without one.
        by_name: INSERT ... BY NAME.
        query: the rows of an INSERT, as SQL; '' for others.
        tokens: all tokens of `text`.
    """

    kind: str
    text: str
    target: str
    span: tuple[int, int]
    has_alias: bool
    columns: tuple[str, ...]
    by_name: bool
    query: str
    tokens: tuple[Token, ...]

    @property
    def mentions(self) -> frozenset[str]:
        """Every name in the statement but the target itself, lower case."""
        return frozenset(t.folded for t in self.tokens if t.is_name and t.start != self.span[0])


def read_statement(sql: str) -> Statement:
    """Read one statement.

    Raises:
        EngineError: it is none of the four, or a form of them that sqlmig doesn't take.
    """
    try:
        tokens = tokenize(sql)
    except LexError as error:
        raise EngineError(error.message, hint=error.hint) from error
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if any(token.text == ";" for token in tokens):
        raise EngineError("more than one statement", hint="give one statement at a time")
    if not tokens:
        raise EngineError("there is no statement", hint="INSERT INTO t VALUES (...)")
    start = _verb(tokens)
    if start is None:
        raise EngineError(
            f"`{tokens[0].text}` can't be executed: only INSERT, UPDATE, DELETE and MERGE can",
            hint="`sqlmig query` runs a SELECT; tables and views are changed in `pipeline/`",
        )
    return _Reader(sql[: tokens[-1].end], tokens, start).read()


def _verb(tokens: list[Token]) -> int | None:
    """The index of the verb; a WITH clause may come before it."""
    verbs = ("INSERT", "UPDATE", "DELETE", "MERGE")
    if tokens[0].word in verbs:
        return 0
    if tokens[0].word != "WITH":
        return None
    depth = 0
    for index, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.word in verbs:
            return index
    return None


class _Reader:
    def __init__(self, text: str, tokens: list[Token], start: int) -> None:
        self.text = text
        self.tokens = tokens
        self.start = start
        self.at = start

    def read(self) -> Statement:
        kind = self.tokens[self.at].word
        self.at += 1
        if kind == "INSERT":
            return self._insert()
        if kind == "DELETE":
            self._expect("FROM")
        if kind == "MERGE":
            if self._take("WITH"):
                raise EngineError(
                    "MERGE WITH SCHEMA EVOLUTION is not taken",
                    hint="change the table's columns in `pipeline/`, by a revision",
                )
            self._expect("INTO")
        target = self._target()
        return self._statement(kind, target, (), False, "")

    def _insert(self) -> Statement:
        if self._take("OVERWRITE"):
            raise EngineError(
                "INSERT OVERWRITE is not taken", hint="DELETE the rows first, then INSERT INTO"
            )
        self._expect("INTO")
        if self._word() == "TABLE":
            self.at += 1
        target = self._target()
        if self._word() in ("PARTITION", "REPLACE"):
            raise EngineError(f"INSERT ... {self._word()} is not taken", hint="INSERT INTO t ...")
        by_name = False
        columns: tuple[str, ...] = ()
        if self._word() == "BY":
            self.at += 1
            self._expect("NAME")
            by_name = True
        elif self._word() == "(" and self._word(1) not in _QUERY_WORDS | {"("}:
            columns = self._columns()
        if self.at >= len(self.tokens):
            raise EngineError("the INSERT has no rows", hint="INSERT INTO t VALUES (...)")
        before = self.text[: self.tokens[self.start].start]
        query = before + self.text[self.tokens[self.at].start :]
        return self._statement("INSERT", target, columns, by_name, query)

    def _statement(
        self, kind: str, target: Token, columns: tuple[str, ...], by_name: bool, query: str
    ) -> Statement:
        following = self.tokens[self.at] if self.at < len(self.tokens) else None
        has_alias = (
            kind != "INSERT"
            and following is not None
            and following.is_name
            and following.word not in _AFTER_TARGET
        )
        return Statement(
            kind,
            self.text,
            target.folded,
            (target.start, target.end),
            has_alias,
            columns,
            by_name,
            query,
            tuple(self.tokens),
        )

    def _columns(self) -> tuple[str, ...]:
        self.at += 1
        names: list[str] = []
        while not self._take(")"):
            if names:
                self._expect(",")
            token = self._next()
            if not token.is_name:
                raise EngineError(f"expected a column's name, found `{token.text}`")
            names.append(token.name)
        return tuple(names)

    def _target(self) -> Token:
        token = self._next()
        if not token.is_name:
            raise EngineError(f"expected a table's name, found `{token.text}`")
        if self._word() == ".":
            raise EngineError(
                f"`{token.name}.…` is no table of this pipeline",
                hint="only tables of the pipeline are written, by their plain names",
            )
        return token

    def _word(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index].word if index < len(self.tokens) else ""

    def _next(self) -> Token:
        if self.at >= len(self.tokens):
            raise EngineError("the statement ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def _take(self, word: str) -> bool:
        if self._word() == word:
            self.at += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._take(word):
            found = self._word() or "the end"
            raise EngineError(f"expected {word}, found `{found}`")


def target_table(program: Program, statement: Statement) -> Table:
    """The input table that a statement writes.

    Raises:
        EngineError: there is none of that name, or it is not an input table.
    """
    relation = program.relations.get(statement.target)
    if relation is None:
        close = get_close_matches(statement.target, program.tables, n=1)
        raise EngineError(
            f"there is no table `{statement.target}`",
            hint=f"did you mean `{close[0]}`?"
            if close
            else f"tables are: {', '.join(program.tables) or 'none yet'}",
        )
    if not isinstance(relation, Table):
        inputs = sorted(
            {statement.target, *_upstream(program, statement.target)} & program.tables.keys()
        )
        raise EngineError(
            f"`{relation.name}` is a {relation.kind.value}: its query fills it, nothing else can",
            hint=f"write to {' or '.join(f'`{n}`' for n in inputs)}" if inputs else None,
        )
    return relation


def _upstream(program: Program, name: str) -> set[str]:
    found: set[str] = set()
    pending = [name]
    while pending:
        for read in program.reads(pending.pop()) - found:
            found.add(read)
            pending.append(read)
    return found
