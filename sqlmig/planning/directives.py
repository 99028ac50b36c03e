"""What a hook asks of the planner. Recording has no effect: only the executor carries it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlmig.program.sink_options import CutoverMode

HookFunction = Callable[[Any], object]


@dataclass(frozen=True)
class RenameTable:
    """The table `before` goes on as `after`: its rows and its sources' offsets stay."""

    before: str
    after: str


@dataclass(frozen=True)
class RenameColumn:
    """The column `before` of `table` goes on as `after`: its values stay."""

    table: str
    before: str
    after: str


@dataclass(frozen=True)
class Execute:
    """Run one INSERT, UPDATE, DELETE or MERGE on a table of the pipeline, once."""

    sql: str


@dataclass(frozen=True)
class Run:
    """Call a Python function with a `HookContext`, once.

    A function can't be rolled forward half-way: if the process dies while it runs, it is called
    again, so it should be idempotent.
    """

    name: str
    function: HookFunction


@dataclass(frozen=True)
class InPlace:
    """The relation keeps what it has and goes on with its new query where it stopped."""

    relation: str


@dataclass(frozen=True)
class Rebuild:
    """The relation is made anew from every row that its streams or inputs have."""

    relation: str


@dataclass(frozen=True)
class Backfill:
    """The streaming table's rows from `since` on, told by `column`, are made anew."""

    relation: str
    since: str
    column: str


@dataclass(frozen=True)
class Cutover:
    """What the sink `<relation>.<sink>` sends if this upgrade or downgrade cuts it over."""

    sink: str
    mode: str


Strategy = InPlace | Rebuild | Backfill
Directive = RenameTable | RenameColumn | Execute | Run | Strategy | Cutover


class Operations:
    """The `op` of a hook: it notes what is asked, in order.

    A hook may be called at any time, to plan, to show, or to apply.
    """

    def __init__(self) -> None:
        self._directives: list[Directive] = []

    @property
    def named(self) -> Mapping[str, Callable[..., None]]:
        """What may be asked: name -> method."""
        methods = (
            self.backfill,
            self.cutover,
            self.execute,
            self.in_place,
            self.rebuild,
            self.rename_column,
            self.rename_table,
            self.run,
        )
        return {method.__name__: method for method in methods}

    @property
    def directives(self) -> tuple[Directive, ...]:
        """What was asked so far."""
        return tuple(self._directives)

    def rename_table(self, before: str, after: str) -> None:
        """Keep a table's rows and its sources' offsets under a new name.

        Args:
            before: the name in the program that the hook leaves.
            after: the name in the program that the hook goes to.
        """
        self._directives.append(RenameTable(_name(before, "before"), _name(after, "after")))

    def rename_column(self, table: str, before: str, after: str) -> None:
        """Keep a column's values under a new name.

        Args:
            table: the table's name after the change.
            before: the column's name in the program that the hook leaves.
            after: the column's name in the program that the hook goes to.
        """
        self._directives.append(
            RenameColumn(_name(table, "table"), _name(before, "before"), _name(after, "after"))
        )

    def in_place(self, relation: str) -> None:
        """Let a relation keep what it has and go on where it stopped, where it would be made anew.

        Args:
            relation: a streaming table of the program that the hook goes to, or a materialized view
                that groups the rows of one table by keys and counts, sums, or takes the least or
                greatest. From then on it takes in only the rows that come.
        """
        self._directives.append(InPlace(_name(relation, "relation")))

    def rebuild(self, relation: str) -> None:
        """Make a streaming table or a materialized view anew from every row that there is.

        Readers see the old rows or the new ones: it is one Delta commit.

        Args:
            relation: of the program that the hook goes to.
        """
        self._directives.append(Rebuild(_name(relation, "relation")))

    def backfill(self, relation: str, *, since: str, column: str) -> None:
        """Make a streaming table's rows from a time on anew, in one Delta commit.

        Args:
            relation: a streaming table of the program that the hook goes to.
            since: a date or a timestamp, in UTC; rows of that very time are made anew too.
            column: the time of a row; the streaming table and its stream both have it.
        """
        self._directives.append(
            Backfill(
                _name(relation, "relation"),
                _text(since, "since must be a date or a timestamp, such as '2026-06-10'"),
                _name(column, "column"),
            )
        )

    def cutover(self, sink: str, mode: str) -> None:
        """Say what a sink sends because its relation is made anew, or is another one.

        Args:
            sink: `<relation>.<sink>`, as it is called in the program that the hook goes to.
            mode: `difference`, `snapshot` or `continue`; it goes before the sink's own option.
        """
        modes = [each.value for each in CutoverMode]
        chosen = _text(mode, "op.cutover takes the name of a sink and a mode").lower()
        if chosen not in modes:
            raise ValueError(f"op.cutover knows {', '.join(modes)}, not {chosen!r}")
        name = ".".join(
            _name(part, "sink") for part in _text(sink, "sink must be a name").split(".")
        )
        if name.count(".") != 1:
            raise ValueError(f"op.cutover takes relation.sink, not {sink!r}")
        self._directives.append(Cutover(name, chosen))

    def execute(self, sql: str) -> None:
        """Run one INSERT, UPDATE, DELETE or MERGE.

        It runs after the tables are altered and before views are computed.

        Args:
            sql: one statement on a table of the pipeline; one Delta commit, made exactly once.
        """
        self._directives.append(
            Execute(_text(sql, "op.execute takes the text of one SQL statement").rstrip("; \n"))
        )

    def run(self, function: HookFunction) -> None:
        """Call a Python function of the revision file.

        It is called after the tables are altered and before views are computed.

        Args:
            function: called with a context that has `sql(text)`, `execute(text)` and `spark`.
        """
        if not callable(function):
            raise TypeError("op.run takes a function, not its result")
        name = getattr(function, "__name__", type(function).__name__)
        self._directives.append(Run(name, function))


def _name(value: object, argument: str) -> str:
    return _text(value, f"{argument} must be a name").strip("`").lower()


def _text(value: object, otherwise: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(otherwise)
    return value.strip()
