"""What a query reads and gives, once the schemas of its inputs are known. It knows queries, and no
text or hash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from sqlmig.program.lexer import QUOTED, STRING, string_value
from sqlmig.program.query import Block, Output, Query


class OutputColumn(NamedTuple):
    """A column of a relation: its folded name, None when Spark makes it up, and its type, None when
    unknown."""

    name: str | None
    type: str | None


Columns = tuple[OutputColumn, ...]
Schemas = Mapping[str, Columns | None]
"""Relation -> its columns; None for one whose columns only Spark can tell."""

# Functions of Spark whose value is not given by their arguments.
_VOLATILE_CALLS = frozenset(
    """
    curdate current_catalog current_database current_date current_path current_schema current_time
    current_timestamp current_timezone current_user input_file_block_length input_file_block_start
    input_file_name java_method localtimestamp monotonically_increasing_id now python_worker_logs
    rand randn random randstr reflect session_user shuffle spark_partition_id try_reflect uniform
    user uuid version
    """.split()
)
# Those that need no parentheses; `user` is left to the schema, for it is a good name for a column.
_VOLATILE_WORDS = frozenset(
    """
    current_catalog current_database current_date current_path current_schema current_time
    current_timestamp current_user localtimestamp session_user
    """.split()
)
_SPECIAL_TIMES = frozenset(("now", "today", "tomorrow", "yesterday"))
_TIME_TYPES = frozenset(("date", "timestamp", "timestamp_ltz", "timestamp_ntz"))


class Lineage:
    """One query over the schemas of what it reads; everything is worked out once.

    Args:
        query: the query.
        schemas: the columns of the relations that it reads.
    """

    def __init__(self, query: Query, schemas: Schemas) -> None:
        self.query = query
        self._schemas = schemas
        self._blocks: dict[int, Columns | None] = {}

    def is_volatile(self) -> bool:
        """True when the query may give other rows over the same input.

        Calls of Spark's nondeterministic functions, of its clock, session and files; TABLESAMPLE;
        `date 'today'`. A function that Spark doesn't bring along is taken to be deterministic, as
        Spark takes it.
        """
        tokens = self.query.tokens
        words = self.query.words
        if "tablesample" in words or (words & _TIME_TYPES and self._has_special_time()):
            return True
        names = words | {token.folded for token in tokens if token.kind == QUOTED}
        if not names & _VOLATILE_CALLS and "unix_timestamp" not in names:
            return False
        for i, token in enumerate(tokens):
            before = tokens[i - 1].text if i else ""
            after = tokens[i + 1].text if i + 1 < len(tokens) else ""
            if not token.is_name or before == ".":
                continue
            name = token.folded
            if after == "(" and name in _VOLATILE_CALLS:
                return True
            if (
                after == "("
                and name == "unix_timestamp"
                and i + 2 < len(tokens)
                and tokens[i + 2].text == ")"
            ):
                return True
            if after not in ("(", ".") and (
                name in _VOLATILE_WORDS or (name == "user" and not self._has(name))
            ):
                return True
        return False

    def _has_special_time(self) -> bool:
        tokens = self.query.tokens
        return any(
            token.kind == STRING
            and before.text.lower() in _TIME_TYPES
            and string_value(token.text).strip().lower() in _SPECIAL_TIMES
            for before, token in pairwise(tokens)
        )

    def _has(self, column: str) -> bool:
        return any(
            any(known.name == column for known in columns)
            for i in range(len(self.query.inputs))
            if (columns := self.input_columns(i)) is not None
        )

    @cached_property
    def columns(self) -> Columns | None:
        """The columns that the query gives, in order; None when only Spark can tell."""
        return self._block_columns(self.query.root) if self.query.is_read else None

    def columns_of_relation(self, name: str) -> Columns | None:
        """The columns of a relation; None when only Spark can tell."""
        return self._schemas.get(name)

    def input_columns(self, index: int) -> Columns | None:
        """The columns of one input of the query; None when only Spark can tell."""
        item = self.query.inputs[index]
        if item.columns:
            return tuple(OutputColumn(name, None) for name in item.columns)
        if item.relation is not None:
            return self._schemas.get(item.relation)
        if item.block is not None:
            return self._block_columns(item.block)
        return None

    def _block_columns(self, index: int) -> Columns | None:
        if index not in self._blocks:
            self._blocks[index] = self._columns_of(self.query.blocks[index])
        return self._blocks[index]

    def _columns_of(self, block: Block) -> Columns | None:
        if block.like is not None:
            like = self._block_columns(block.like)
            return (
                None if like is None else tuple(OutputColumn(column.name, None) for column in like)
            )
        if block.outputs is None:
            return None
        found: list[OutputColumn] = []
        for output in block.outputs:
            if output.star is None:
                found.append(OutputColumn(output.name, self._type(output)))
                continue
            expanded = self._star_columns(output.star)
            if expanded is None:
                return None
            found.extend(expanded)
        return tuple(found)

    def _star_columns(self, index: int) -> Columns | None:
        """The columns that a star stands for, in order; None when only Spark can tell."""
        star = self.query.stars[index]
        block = self.query.blocks[star.block]
        if star.input is not None:
            columns = self.input_columns(star.input)
        elif block.is_plain and self._is_bare(block, index):
            columns = self._joined(block)
        else:
            columns = None
        if columns is None or not star.without:
            return columns
        return tuple(column for column in columns if column.name not in star.without)

    def _is_bare(self, block: Block, star: int) -> bool:
        """True for a `*` that is an item of the SELECT list, and not the `*` of a struct `s.*`."""
        if block.outputs is None or not any(output.star == star for output in block.outputs):
            return False
        return self.query.stars[star].is_bare

    def _joined(self, block: Block) -> Columns | None:
        joined: list[OutputColumn] = []
        for i in block.inputs:
            item = self.query.inputs[i]
            columns = self.input_columns(i)
            if item.is_hidden:
                continue
            if columns is None:
                return None
            if item.using:
                shared = {
                    column.name: column for column in reversed(joined) if column.name in item.using
                }
                if set(shared) != set(item.using):
                    return None
                rest = [column for column in (*joined, *columns) if column.name not in item.using]
                joined = [*(shared[name] for name in item.using), *rest]
            else:
                joined.extend(columns)
        return tuple(joined)

    def _type(self, output: Output) -> str | None:
        if output.reference is None:
            return None
        reference = self.query.references[output.reference]
        block = self.query.blocks[reference.block]
        inputs = (reference.input,) if reference.input is not None else block.inputs
        types = []
        for i in inputs:
            columns = self.input_columns(i)
            if columns is None:
                return None
            types += [column.type for column in columns if column.name == reference.name]
        return types[0] if len(types) == 1 else None

    @cached_property
    def aliases_are_safe(self) -> bool:
        """True when renaming the inputs of the query can't change what it means.

        `x.a` is column `a` of input `x`, or else field `a` of a column `x`. So every input's
        columns have to be known, and none of those that may be a struct may be called as an input
        is.
        """
        if not self.query.is_read or not self.query.names_are_clear:
            return False
        names = {item.name for item in self.query.inputs}
        for i in range(len(self.query.inputs)):
            columns = self.input_columns(i)
            if columns is None:
                return False
            if any(
                name in names and (type_ is None or _has_fields(type_)) for name, type_ in columns
            ):
                return False
        return True


def _has_fields(type_: str) -> bool:
    return "<" in type_ or type_ == "variant"


def visible_inputs(query: Query, block: int | None) -> Iterator[int]:
    """The inputs of a block and of those around it."""
    while block is not None:
        yield from query.blocks[block].inputs
        block = query.blocks[block].parent
