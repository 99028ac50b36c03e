"""Reads CREATE FUNCTION: a function in SQL. It knows the statement, and not what the body means."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmig.program.column_type import read_type
from sqlmig.program.cursor import FormError
from sqlmig.program.head import HeadReader, Named

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function, or a column of the table that it returns."""

    name: Named
    type: str
    default: str | None = None


@dataclass(frozen=True)
class FunctionForm:
    """CREATE FUNCTION.

    Args:
        text: the statement from the function's name on, as written.
        returns: the type of its value, or None where Spark is to find out.
        columns: of the table that it returns; None for a function that returns a value.
        is_deterministic: False after NOT DETERMINISTIC.
        body: the exact text behind RETURN. body_at: where that begins.
        is_query: the body is a query, not an expression.
    """

    at: int
    name: Named
    text: str
    parameters: tuple[Parameter, ...]
    returns: str | None
    columns: tuple[Parameter, ...] | None
    is_deterministic: bool
    comment: str | None
    body: str
    body_at: int
    is_query: bool

    @property
    def query(self) -> str:
        """The body as a query."""
        return self.body if self.is_query else f"SELECT {self.body}"

    @property
    def query_at(self) -> int:
        """Where the text of `query` begins; what was put before the body is counted back."""
        return self.body_at + len(self.body) - len(self.query)


def read_function(reader: HeadReader, at: int) -> FunctionForm:
    """Reads the statement behind `CREATE FUNCTION`.

    Args:
        reader: stands behind these words.
        at: where the statement begins.

    Raises:
        FormError: a mistake in it.
    """
    name = reader.created_name("function")
    reader.creates = name.folded
    reader.no_secret()
    usage = f"write `CREATE FUNCTION {name.text}(a INT) RETURNS INT RETURN a + 1`"
    _refuse_class(reader)
    parameters = _parameters(reader, usage, may_be_empty=True)
    _refuse_class(reader)
    returns, columns = _returned(reader, usage)
    comment, is_deterministic = _characteristics(reader, usage)
    reader.expect("RETURN", usage)
    if reader.at_end:
        raise reader.unexpected("an expression or a query after RETURN", usage)
    first = reader.tokens[reader.position]
    end = reader.tokens[-1].end
    return FunctionForm(
        at,
        name,
        reader.text[name.at : end],
        parameters,
        returns,
        columns,
        is_deterministic,
        comment,
        reader.text[first.start : end],
        first.start,
        first.word in _QUERIES,
    )


def _refuse_class(reader: HeadReader) -> None:
    if reader.sees("AS"):
        raise FormError(
            "CREATE FUNCTION ... AS a class is not supported",
            reader.offset,
            "write what it gives in SQL behind RETURN, or in Python in pipeline/functions/",
        )


def _parameters(
    reader: HeadReader, usage: str, *, may_be_empty: bool = False
) -> tuple[Parameter, ...]:
    reader.expect("(", usage)
    if may_be_empty and reader.take(")"):
        return ()
    found: list[Parameter] = []
    while True:
        name = reader.named("a parameter's name")
        if any(other.name.folded == name.folded for other in found):
            raise FormError(f"`{name.text}` comes twice", name.at, "rename one")
        type_ = read_type(reader)
        default: str | None = None
        while not (reader.sees(",") or reader.sees(")")):
            if reader.take("DEFAULT"):
                default = reader.default()
            elif reader.take("COMMENT"):
                reader.string()
            else:
                raise reader.unexpected("`,` or `)`", usage)
        found.append(Parameter(name, type_, default))
        if reader.take(")"):
            return tuple(found)
        reader.expect(",")


def _returned(reader: HeadReader, usage: str) -> tuple[str | None, tuple[Parameter, ...] | None]:
    if not reader.take("RETURNS"):
        return None, None
    if reader.take("TABLE"):
        return None, _parameters(reader, f"{usage}, or `RETURNS TABLE (a INT) RETURN SELECT ...`")
    return read_type(reader), None


def _characteristics(reader: HeadReader, usage: str) -> tuple[str | None, bool]:
    """The comment, and whether the function is deterministic."""
    comment: str | None = None
    is_deterministic = True
    while not reader.at_end and not reader.sees("RETURN"):
        if reader.sees("COMMENT"):
            comment = reader.comment()
        elif reader.take("DETERMINISTIC"):
            is_deterministic = True
        elif reader.sees("NOT", "DETERMINISTIC"):
            reader.position += 2
            is_deterministic = False
        elif reader.sees("LANGUAGE", "SQL") or reader.sees("CONTAINS", "SQL"):
            reader.position += 2
        elif reader.sees("READS", "SQL", "DATA"):
            reader.position += 3
        elif reader.sees("LANGUAGE"):
            raise FormError(
                "only functions in SQL can be written here",
                reader.offset,
                "write it in Python in pipeline/functions/*.py, with `@function`",
            )
        else:
            raise reader.unexpected("`RETURN`", usage)
    return comment, is_deterministic


def returned_text(form: FunctionForm, *, folded: bool = True) -> str:
    """What the function gives, in canonical words; '' where Spark is to find out.

    Args:
        folded: put the names of a table's columns in lower case.
    """
    if form.columns is None:
        return form.returns or ""
    names = [c.name.folded if folded else c.name.text for c in form.columns]
    types = [c.type for c in form.columns]
    return f"table({', '.join(f'`{n}` {t}' for n, t in zip(names, types, strict=True))})"
