"""What stands in the way of streaming tables: queries and streams that can't be run so. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sqlmig.errors import Location
from sqlmig.planning.draft import Draft
from sqlmig.planning.steps import Blocker
from sqlmig.program.check_streams import problems
from sqlmig.program.lexer import line_and_column
from sqlmig.program.model import Program, Table, View
from sqlmig.program.query import read_query
from sqlmig.program.streams import stream_positions
from sqlmig.program.windows import has_watermark, window_problems


def check_streams(draft: Draft) -> None:
    """Let what can't be run as a stream stand in the plan's way."""
    for view in draft.target.views.values():
        draft.blockers.extend(_blockers(draft.target, view))


def _blockers(program: Program, view: View) -> Iterator[Blocker]:
    kind = view.kind.value
    if not view.is_streaming:
        if view.streams:
            yield Blocker(
                f"`{view.name}` reads STREAM {view.streams[0]}, and is a {kind}",
                view.location,
                "write CREATE STREAMING TABLE, or take STREAM out",
            )
        return
    for problem in window_problems(view) if has_watermark(view) else problems(view):
        message = f"streaming table `{view.name}` {problem.message}"
        yield Blocker(message, _place(view, problem.offset), problem.hint)
    for name in view.streams:
        wrong = _wrong_stream(program, name)
        if wrong is not None:
            message = f"streaming table `{view.name}` reads STREAM {name}, {wrong[0]}"
            yield Blocker(message, view.query_location or view.location, wrong[1])
    for called in program.called(view.called):
        for name in sorted(program.functions[called].reads & set(view.streams)):
            yield Blocker(
                f"streaming table `{view.name}` calls `{called}`, which reads its stream `{name}`",
                view.query_location or view.location,
                f"let the function read a view: CREATE VIEW all_{name} AS SELECT * FROM {name}",
            )
    for name in sorted(_read_twice(view)):
        yield Blocker(
            f"streaming table `{view.name}` reads `{name}` with STREAM and without",
            view.query_location or view.location,
            f"read it without STREAM through a view: CREATE VIEW all_{name} AS SELECT * "
            f"FROM {name}",
        )


def _place(view: View, offset: int) -> Location | None:
    start = view.query_location
    if start is None or start.line is None or start.column is None:
        return view.location
    line, column = line_and_column(view.query, offset)
    first = start.column - 1 if line == 1 else 0
    return Location(start.path, start.line + line - 1, first + column)


def _wrong_stream(program: Program, name: str) -> tuple[str, str] | None:
    relation = program.relations.get(name)
    if relation is None:
        return "which is no relation of the program", "put STREAM before a table's name"
    if isinstance(relation, Table):
        if not relation.primary_key:
            return None
        return (
            "which has a primary key: its rows change, and a row passes once",
            "take the key off the table, or make this a MATERIALIZED VIEW",
        )
    if relation.is_streaming:
        return None
    return (
        f"which is a {relation.kind.value}",
        "read a table without a key or a streaming table; "
        "put the view's query into the streaming table's",
    )


def _read_twice(view: View) -> frozenset[str]:
    query = read_query(view.query)
    streamed = stream_positions(query.tokens)
    if query.is_read:
        plain = {name for name, token in query.relations if token not in streamed}
    else:
        plain = {
            token.folded
            for i, token in enumerate(query.tokens)
            if i and i not in streamed and query.tokens[i - 1].word in ("FROM", "JOIN", ",")
        }
    return frozenset(plain) & frozenset(view.streams)
