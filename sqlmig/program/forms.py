"""Reads one statement into its form: what it creates, word for word. It knows nothing of other
statements.

Offsets count from the beginning of the statement's text, so that equal text is read once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlmig.program.column_type import read_type
from sqlmig.program.cursor import FormError
from sqlmig.program.function_form import FunctionForm, read_function
from sqlmig.program.head import HeadReader, Named
from sqlmig.program.lexer import NUMBER, STRING, WORD, LexError, Token, string_value, tokenize
from sqlmig.program.model import UNITS, Column, RelationKind
from sqlmig.program.query import read_query
from sqlmig.program.unsupported import FORMS, STATEMENTS, refuse, refuse_rest


@dataclass(frozen=True)
class TableForm:
    """CREATE TABLE."""

    at: int
    name: Named
    columns: tuple[tuple[Column, int], ...]
    key: tuple[Named, ...]
    comment: str | None
    layout: tuple[Named, ...] = ()


@dataclass(frozen=True)
class ViewForm:
    """CREATE VIEW, MATERIALIZED VIEW or STREAMING TABLE; `query` is the exact text from `query_at`
    on."""

    at: int
    kind: RelationKind
    name: Named
    columns: tuple[Named, ...]
    comment: str | None
    query: str
    query_at: int
    layout: tuple[Named, ...] = ()


@dataclass(frozen=True)
class ConnectorForm:
    """CREATE SOURCE or CREATE SINK."""

    at: int
    is_source: bool
    name: Named
    relation: Named
    format: str
    options: tuple[tuple[str, str], ...]
    retain_raw: str | None = None


@dataclass(frozen=True)
class BrokenForm:
    """A statement with a mistake; `name` is what it would have created, so that its readers aren't
    blamed."""

    problem: FormError
    name: str | None = None


Form = TableForm | ViewForm | ConnectorForm | FunctionForm | BrokenForm


@lru_cache(maxsize=16384)
def read_form(text: str) -> Form | None:
    """The form of one statement, or None where there are only comments and white space."""
    try:
        tokens = tokenize(text)
    except LexError as error:
        return BrokenForm(FormError(error.message, error.offset, error.hint))
    if not tokens:
        return None
    reader = _Reader(tokens, text)
    try:
        return reader.read()
    except FormError as problem:
        return BrokenForm(problem, reader.creates)


class _Reader(HeadReader):
    """Reads the head of a statement."""

    def read(self) -> Form:
        at = self.offset
        refuse(self)
        self.expect("CREATE", FORMS)
        what = self.take(*STATEMENTS)
        if what == "FUNCTION":
            return read_function(self, at)
        if what in ("SOURCE", "SINK"):
            return self._connector(at, what == "SOURCE")
        if what == "MATERIALIZED":
            self.expect("VIEW", "write `CREATE MATERIALIZED VIEW name AS query`")
            return self._view(at, RelationKind.MATERIALIZED_VIEW)
        if what == "STREAMING":
            self.expect("TABLE", "write `CREATE STREAMING TABLE name AS query`")
            return self._view(at, RelationKind.STREAMING_TABLE)
        if what == "VIEW":
            return self._view(at, RelationKind.VIEW)
        assert what == "TABLE"
        return self._table(at)

    # tables

    def _table(self, at: int) -> TableForm:
        name = self.created_name("table")
        self.creates = name.folded
        self.no_secret()
        if self.sees("AS") or self.sees("USING"):
            refuse_rest(self, name.text)
        if not self.sees("("):
            raise self.unexpected(
                "`(` and the columns", f"write `CREATE TABLE {name.text} (id int, ...)`"
            )
        self.expect("(")
        columns: list[tuple[Column, int]] = []
        key: list[Named] = []
        while True:
            key_at = self.offset
            if self.sees("PRIMARY", "KEY"):
                self.position += 2
                if key:
                    raise FormError(
                        "a second primary key",
                        key_at,
                        "list all key columns in one PRIMARY KEY (...)",
                    )
                key.extend(self.names("a key column"))
            else:
                column, column_at, is_key = self._column()
                columns.append((column, column_at))
                if is_key and key:
                    raise FormError(
                        "a second primary key",
                        key_at,
                        "list all key columns in one PRIMARY KEY (...)",
                    )
                if is_key:
                    key.append(Named(column.name, column_at))
            if self.take(")"):
                break
            self.expect(",")
        comment, layout = self._comment_and_layout()
        if not self.at_end:
            refuse_rest(self, name.text)
        if not columns:
            raise FormError(f"table `{name.text}` has no columns", name.at)
        return TableForm(at, name, tuple(columns), tuple(key), comment, layout)

    def _comment_and_layout(self) -> tuple[str | None, tuple[Named, ...]]:
        """COMMENT and PARTITIONED BY, in either order."""
        comment = self.comment()
        layout: tuple[Named, ...] = ()
        if self.sees("PARTITIONED", "BY"):
            self.position += 2
            layout = tuple(self.names("a column"))
            comment = comment if comment is not None else self.comment()
        elif self.sees("CLUSTER", "BY"):
            raise FormError(
                "CLUSTER BY is not supported: such a table can only be put back by Spark",
                self.offset,
                "write `PARTITIONED BY (...)`, or leave it out",
            )
        return comment, layout

    def _column(self) -> tuple[Column, int, bool]:
        if (
            self.sees("CONSTRAINT")
            or self.sees("CHECK", "(")
            or self.sees("FOREIGN", "KEY")
            or self.sees("UNIQUE", "(")
        ):
            raise FormError(
                "constraints are not supported",
                self.offset,
                "write `PRIMARY KEY (...)` for the key",
            )
        token = self.name("a column's name")
        type_ = read_type(self)
        nullable, is_key = True, False
        comment: str | None = None
        default: str | None = None
        while not (self.sees(",") or self.sees(")")):
            if self.take("NOT"):
                self.expect("NULL")
                nullable = False
            elif self.sees("PRIMARY", "KEY"):
                self.position += 2
                is_key = True
            elif self.take("COMMENT"):
                comment = self.string()
            elif self.take("DEFAULT"):
                default = self.default()
            elif self.sees("GENERATED"):
                raise FormError(
                    "generated columns are not supported",
                    self.offset,
                    "compute the column in a view",
                )
            else:
                raise self.unexpected("`,` or `)`")
        return Column(token.name, type_, nullable, comment, default), token.start, is_key

    # views

    def _view(self, at: int, kind: RelationKind) -> ViewForm:
        what = kind.value
        name = self.created_name(what)
        self.creates = name.folded
        self.no_secret()
        columns = self._view_columns() if self.sees("(") else ()
        layout_at = self.offset
        comment, layout = self._comment_and_layout()
        if layout and kind is not RelationKind.MATERIALIZED_VIEW:
            raise FormError(
                f"a {what} can't be partitioned here",
                layout_at,
                "PARTITIONED BY is for tables and materialized views",
            )
        if self.at_end or not self.sees("AS"):
            hint = f"write `CREATE {what.upper()} {name.text} AS SELECT ...`"
            if kind is RelationKind.STREAMING_TABLE:
                hint = f"write `CREATE STREAMING TABLE {name.text} AS SELECT ... FROM STREAM t`"
            raise self.unexpected("`AS` and a query", hint)
        self.expect("AS")
        if self.at_end:
            raise self.unexpected("a query after AS")
        first: Token = self.tokens[self.position]
        if first.text != "(" and first.word not in ("SELECT", "WITH", "FROM", "VALUES", "TABLE"):
            raise self.unexpected("a query after AS", "a query begins with SELECT or WITH")
        query = self.text[first.start : self.tokens[-1].end]
        read_query(query, self.tokens[self.position :], first.start)  # it remembers
        return ViewForm(at, kind, name, columns, comment, query, first.start, layout)

    def _view_columns(self) -> tuple[Named, ...]:
        self.expect("(")
        names = []
        while True:
            names.append(self.named("a column's name"))
            self.comment()
            if self.take(")"):
                return tuple(names)
            if not self.sees(","):
                raise self.unexpected(
                    "`,` or `)`",
                    "a view's columns have names only; their types come from the query",
                )
            self.expect(",")

    # connectors

    def _connector(self, at: int, is_source: bool) -> ConnectorForm:
        what, preposition = ("source", "INTO") if is_source else ("sink", "FROM")
        usage = (
            f"write `CREATE {what.upper()} name {preposition} relation "
            "USING format OPTIONS (key 'value')`"
        )
        name = self.created_name(what)
        self.expect(preposition, usage)
        relation = self.created_name("relation")
        self.expect("USING", usage)
        format_ = self.dotted("a format")
        options: tuple[tuple[str, str], ...] = ()
        if self.take("OPTIONS"):
            options = self._options(usage)
        retain_raw = self._retention(what) if self.sees("RETAIN") else None
        self.done(usage)
        return ConnectorForm(
            at,
            is_source,
            name,
            relation,
            format_.lower() if "." not in format_ else format_,
            options,
            retain_raw,
        )

    def _retention(self, what: str) -> str:
        """Takes `RETAIN RAW [FOR number unit]`; gives `30 days`, or '' for ever."""
        at = self.offset
        usage = "write `RETAIN RAW`, or `RETAIN RAW FOR 30 DAYS`"
        self.expect("RETAIN")
        self.expect("RAW", usage)
        if what == "sink":
            raise FormError("a sink has no raw records", at, "RETAIN RAW is for sources")
        if not self.take("FOR"):
            return ""
        number = self.peek()
        if number is None or number.kind != NUMBER or not number.text.isdigit():
            raise self.unexpected("a whole number", usage)
        self.position += 1
        unit = self.take(*UNITS, *(f"{unit}S" for unit in UNITS))
        if unit is None:
            raise self.unexpected("HOURS, DAYS or WEEKS", usage)
        if int(number.text) == 0:
            raise FormError("raw records are kept for no time", number.start, "leave it out")
        return f"{int(number.text)} {unit.removesuffix('S').lower()}s"

    def _options(self, usage: str) -> tuple[tuple[str, str], ...]:
        self.expect("(", usage)
        options: dict[str, tuple[str, str]] = {}
        while not self.take(")"):
            if options:
                self.expect(",", usage)
            key_at = self.offset
            key = self.dotted("an option's name")
            self.take("=")
            if key.lower() in options:
                raise FormError(f"option `{key}` is given twice", key_at)
            options[key.lower()] = (key, self._option_value(key))
        return tuple(sorted(options.values(), key=lambda pair: (pair[0].lower(), pair)))

    def _option_value(self, key: str) -> str:
        token = self.peek()
        sign = self.take("-") or ""
        token = self.next(f"a value for option `{key}`")
        if token.kind == STRING and not sign:
            return string_value(token.text)
        if token.kind == NUMBER:
            return sign + token.text
        if token.kind == WORD and token.word in ("TRUE", "FALSE"):
            return token.text.lower()
        self.position -= 1
        raise self.unexpected(f"a value for option `{key}`", "put the value in single quotes")
