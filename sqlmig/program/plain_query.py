"""Reads the most common queries from their tokens alone. It knows a small part of Spark's grammar,
and says so.

A SELECT with plain joins, conditions, grouping, common functions, subqueries and CTEs; what goes
beyond is left to `scopes`, which asks sqlglot. Both give the same query (tests hold them against
each other); this one takes a tenth of the time, and spares the import.
"""

from __future__ import annotations

from typing import NoReturn

from sqlmig.program.block_builder import BlockBuilder, Ctes, Unreadable
from sqlmig.program.lexer import NUMBER, QUOTED, STRING, SYMBOL, WORD, Token, match_parentheses
from sqlmig.program.query import Input, Output, Query, Reference, Star
from sqlmig.program.vocabulary import KEYWORDS, PLAIN_FUNCTIONS, PLAIN_NAMES

_OPERATORS = frozenset("+ - * / % = == <> != < <= > >= <=> ||".split())
_EXPRESSION_WORDS = frozenset(
    "AND OR NOT IN IS BETWEEN LIKE CASE WHEN THEN ELSE EXISTS DISTINCT".split()
)
_VALUE_WORDS = frozenset(("NULL", "TRUE", "FALSE"))
_SORT_WORDS = frozenset("ASC DESC NULLS FIRST LAST".split())
_CLAUSES = ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT")
_JOIN_KINDS = frozenset(
    ("", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "LEFT OUTER", "RIGHT OUTER", "FULL OUTER")
) | {"LEFT SEMI", "LEFT ANTI"}
_JOINS = frozenset("JOIN INNER CROSS LEFT RIGHT FULL SEMI ANTI".split())


def read_plain_query(text: str, tokens: tuple[Token, ...]) -> Query | None:
    """The query, or None when it goes beyond this reader."""
    reader = _PlainReader(tokens)
    try:
        root = reader.query(0, len(tokens), {}, None)
    except (Unreadable, RecursionError):
        return None
    return reader.finish(text, root)


def _give_up() -> NoReturn:
    raise Unreadable


def _word(token: Token) -> str:
    if token.kind == WORD:
        return token.text.upper()
    return token.text if token.kind == SYMBOL else ""


class _PlainReader(BlockBuilder):
    def __init__(self, tokens: tuple[Token, ...]) -> None:
        super().__init__(tokens)
        self.words = [_word(token) for token in tokens]
        self.closing = match_parentheses(self.words)

    def word(self, i: int, end: int) -> str:
        return self.words[i] if i < end else ""

    def is_name(self, i: int, end: int) -> bool:
        """True for a name that can be nothing else."""
        if i >= end:
            return False
        token = self.tokens[i]
        if token.kind == QUOTED:
            return True
        return token.kind == WORD and (
            self.words[i].lower() not in KEYWORDS or self.words[i].lower() in PLAIN_NAMES
        )

    def expect(self, word: str, i: int, end: int) -> int:
        if self.word(i, end) != word:
            _give_up()
        return i + 1

    # queries

    def query(self, i: int, end: int, ctes: Ctes, parent: int | None) -> int:
        """Reads the query between two tokens, and returns its block."""
        if self.word(i, end) == "WITH":
            known = dict(ctes)
            while True:
                i += 1
                if not self.is_name(i, end):
                    _give_up()
                name = i
                i = self.expect("(", self.expect("AS", i + 1, end), end)
                close = self.closing[i - 1]
                self.cte_tokens.add(name)
                self.aliases.append(self.tokens[name].folded)
                block = self.query(i, close, known, parent)
                known[self.tokens[name].folded] = (block, ())
                i = close + 1
                if self.word(i, end) != ",":
                    break
            ctes = known
        return self._select(self.expect("SELECT", i, end), end, ctes, parent)

    def _select(self, i: int, end: int, ctes: Ctes, parent: int | None) -> int:
        block = self.open(parent)
        if self.word(i, end) == "DISTINCT":
            i += 1
        elif self.word(i, end) == "ALL":
            _give_up()
        first = i
        from_ = self._find(("FROM",), i, end)
        conditions: list[tuple[int, int]] = []
        i = self._from(from_ + 1, end, ctes, block, conditions) if from_ < end else end
        self._items(first, from_, ctes, block)
        for start, stop in conditions:
            self._expression(start, stop, ctes, block, "on")
        for clause in _CLAUSES:
            if self.word(i, end) == clause:
                i = self._clause(clause, i + 1, end, ctes, block)
        if i != end:
            _give_up()
        return block

    def _find(self, words: tuple[str, ...], i: int, end: int) -> int:
        """The first of these words outside of parentheses, or `end`."""
        while i < end:
            if self.words[i] in words:
                return i
            i = self.closing[i] + 1 if self.words[i] == "(" else i + 1
        return end

    def _clause(self, clause: str, i: int, end: int, ctes: Ctes, block: int) -> int:
        if clause in ("GROUP", "ORDER"):
            i = self.expect("BY", i, end)
        stop = self._find(_CLAUSES, i, end)
        if stop == i:
            _give_up()
        if clause == "LIMIT":
            if stop != i + 1 or self.tokens[i].kind != NUMBER:
                _give_up()
            return stop
        self._expression(i, stop, ctes, block, "rest", lists=True, sorts=clause == "ORDER")
        return stop

    # FROM

    def _from(
        self, i: int, end: int, ctes: Ctes, block: int, conditions: list[tuple[int, int]]
    ) -> int:
        i = self._input(i, end, ctes, block)
        while i < end:
            word = self.words[i]
            if word == ",":
                i = self._input(i + 1, end, ctes, block)
                continue
            if word not in _JOINS:
                break
            i, is_hidden = self._join_words(i, end)
            first = len(self.inputs)
            i = self._input(i, end, ctes, block)
            using: tuple[str, ...] = ()
            if self.word(i, end) == "ON":
                stop = self._find((*_CLAUSES, ",", *_JOINS), i + 1, end)
                conditions.append((i + 1, stop))
                i = stop
            elif self.word(i, end) == "USING":
                close = self.closing[self.expect("(", i + 1, end) - 1]
                names = range(i + 2, close)
                if not all(
                    self.words[n] == "," if (n - i) % 2 else self.is_name(n, close) for n in names
                ):
                    _give_up()
                using = tuple(self.tokens[n].folded for n in names if (n - i) % 2 == 0)
                i = close + 1
            self.joined(block, first, is_hidden=is_hidden, using=using)
        return i

    def _join_words(self, i: int, end: int) -> tuple[int, bool]:
        start = i
        while self.word(i, end) in (
            "INNER",
            "CROSS",
            "LEFT",
            "RIGHT",
            "FULL",
            "OUTER",
            "SEMI",
            "ANTI",
        ):
            i += 1
        kinds = " ".join(self.words[start:i])
        if kinds not in _JOIN_KINDS:
            _give_up()
        return self.expect("JOIN", i, end), kinds in ("LEFT SEMI", "LEFT ANTI")

    def _input(self, i: int, end: int, ctes: Ctes, block: int) -> int:
        if self.word(i, end) == "(":
            close = self.closing[i]
            inner = self.query(i + 1, close, ctes, self.scopes[block].parent)
            item = Input(None, block=inner)
            i = close + 1
        else:
            if self.word(i, end) == "STREAM" and self.is_name(i + 1, end):
                i += 1
            if not self.is_name(i, end):
                _give_up()
            item = self.relation(i, ctes)
            i += 1
        if self.word(i, end) == "AS":
            i += 1
            if not self.is_name(i, end):
                _give_up()
        if self.is_name(i, end):
            item = self.named(item, i)
            i += 1
        if i < end and self.words[i] not in (",", "ON", "USING", *_JOINS, *_CLAUSES):
            _give_up()
        self.add_input(block, item)
        return i

    # expressions

    def _items(self, i: int, end: int, ctes: Ctes, block: int) -> None:
        outputs = self.scopes[block].outputs
        assert outputs is not None
        while True:
            stop = self._find((",",), i, end)
            if stop == i:
                _give_up()
            outputs.append(self._item(i, stop, ctes, block))
            if stop == end:
                return
            i = stop + 1

    def _item(self, i: int, end: int, ctes: Ctes, block: int) -> Output:
        if end - i == 1 and self.words[i] == "*":
            self.stars.append(Star(block, None, is_bare=True))
            return Output(None, star=len(self.stars) - 1)
        reference = len(self.references)
        if end - i == 3 and self.words[i + 1] == "." and self.words[i + 2] == "*":
            head = self.tokens[i].folded
            source = self.resolve(head, block)
            if source is None or not self.is_name(i, end):
                _give_up()
            self.stars.append(Star(block, source))
            self.references.append(Reference(i, "*", block, source, False, "select"))
            return Output(None, star=len(self.stars) - 1)
        name: int | None = None
        stop = end
        if end - i >= 3 and self.words[end - 2] == "AS":
            name, stop = end - 1, end - 2
        elif end - i >= 2 and self.is_name(end - 1, end) and self._ends_value(end - 2):
            name, stop = end - 1, end - 1
        if name is not None and not self.is_name(name, end):
            _give_up()
        calls = self._expression(i, stop, ctes, block, "select")
        is_column = self._is_column(i, stop) and len(self.references) == reference + 1
        if is_column:
            found = self.references[reference]
            is_sole = stop - i == (1 if found.input is None else 3)
            sole = reference if is_sole else None
            column = self.tokens[stop - 1].folded
        else:
            sole, column = None, None
        if name is not None:
            self.aliases.append(self.tokens[name].folded)
            return Output(self.tokens[name].folded, sole, is_alias=True)
        if is_column:
            return Output(column, sole)
        if not calls <= PLAIN_FUNCTIONS or self.words[i] in ("CAST", "("):
            _give_up()
        return Output(None)

    def _is_column(self, i: int, end: int) -> bool:
        return (
            (end - i) % 2 == 1
            and self.is_name(i, end)
            and all(self.words[n] == "." for n in range(i + 1, end, 2))
            and all(self.tokens[n].is_name for n in range(i + 2, end, 2))
        )

    def _ends_value(self, i: int) -> bool:
        token = self.tokens[i]
        if token.kind in (NUMBER, STRING) or self.words[i] in (")", "END", "NULL", "TRUE", "FALSE"):
            return True
        return self.is_name(i, i + 1)

    def _expression(
        self,
        i: int,
        end: int,
        ctes: Ctes,
        block: int,
        place: str,
        *,
        lists: bool = False,
        sorts: bool = False,
    ) -> set[str]:
        """Reads the columns and subqueries of an expression; returns the functions that it
        calls."""
        calls: set[str] = set()
        if i >= end:
            _give_up()
        was_value = False
        cases = 0
        while i < end and cases >= 0:
            token, word = self.tokens[i], self.words[i]
            is_value = False
            if word == "(":
                close = self.closing[i]
                if self.word(i + 1, end) in ("SELECT", "WITH"):
                    self.query(i + 1, close, ctes, block)
                else:
                    calls |= self._expression(i + 1, close, ctes, block, place, lists=True)
                i, is_value = close + 1, True
            elif token.kind in (NUMBER, STRING) or word in _VALUE_WORDS:
                i, is_value = i + 1, True
            elif word == "END":
                cases -= 1
                i, was_value, is_value = i + 1, False, True
            elif word in _EXPRESSION_WORDS or (sorts and word in _SORT_WORDS):
                cases += word == "CASE"
                was_value = False
                i += 1
            elif word in _OPERATORS or (word == "," and lists):
                was_value = False
                i += 1
            elif token.kind == WORD and self.word(i + 1, end) == "(":
                name = word.lower()
                if was_value:
                    _give_up()
                i = self._call(name, i + 1, end, ctes, block, place, calls)
                is_value = True
            elif self.is_name(i, end) and self.word(i + 1, end) != "(":
                is_value = True
                if i + 1 < end and self.tokens[i + 1].kind == STRING:
                    if word not in ("DATE", "TIMESTAMP"):
                        _give_up()
                    i += 2
                else:
                    i = self._column(i, end, block, place)
            else:
                _give_up()
            if was_value and is_value:
                _give_up()
            was_value = is_value
        if cases:
            _give_up()
        return calls

    def _call(
        self, name: str, i: int, end: int, ctes: Ctes, block: int, place: str, calls: set[str]
    ) -> int:
        close = self.closing[i]
        calls.add(name)
        if name in ("cast", "try_cast"):
            as_ = self._find(("AS",), i + 1, close)
            calls |= self._expression(i + 1, as_, ctes, block, place)
            if as_ >= close - 1 or any(self.words[n] == "COLLATE" for n in range(as_, close)):
                _give_up()
        elif name not in PLAIN_FUNCTIONS:
            _give_up()
        elif name == "count" and self.words[i + 1 : close] == ["*"]:
            pass
        elif close > i + 1:
            calls |= self._expression(i + 1, close, ctes, block, place, lists=True)
        if self.word(close + 1, end) != "OVER":
            return close + 1
        start = self.expect("(", close + 2, end)
        close = self.closing[start - 1]
        if self.word(start, close) == "PARTITION":
            stop = self._find(("ORDER",), start, close)
            self._expression(
                self.expect("BY", start + 1, close), stop, ctes, block, place, lists=True
            )
            start = stop
        if self.word(start, close) == "ORDER":
            first = self.expect("BY", start + 1, close)
            self._expression(first, close, ctes, block, place, lists=True, sorts=True)
        elif start != close:
            _give_up()
        return close + 1

    def _column(self, i: int, end: int, block: int, place: str) -> int:
        last = i
        while self.word(last + 1, end) == ".":
            last += 2
            if not (last < end and self.tokens[last].is_name):
                _give_up()
        if self.word(last + 1, end) in ("(", "["):
            _give_up()
        parts = (last - i) // 2 + 1
        head = self.tokens[i].folded
        source = self.resolve(head, block) if parts > 1 else None
        name = head if source is None else self.tokens[i + 2].folded
        is_plain = parts == (1 if source is None else 2)
        self.references.append(Reference(i, name, block, source, is_plain, place))
        return last + 1
