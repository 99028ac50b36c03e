"""Checks the names of columns where the program's own schemas make it certain; the rest is left to
Spark."""

from __future__ import annotations

from difflib import get_close_matches

from sqlmig.program.declared import Mistakes, Place
from sqlmig.program.forms import TableForm, ViewForm
from sqlmig.program.head import Named
from sqlmig.program.lineage import Lineage
from sqlmig.program.query import Query, Reference
from sqlmig.program.vocabulary import KEYWORDS


def check_table(form: TableForm, place: Place, mistakes: Mistakes) -> None:
    """Notes columns that come twice, and key columns that the table hasn't."""
    columns = [Named(column.name, at) for column, at in form.columns]
    _check_twice(columns, "column", form.name.text, place, mistakes)
    _check_twice(list(form.key), "key column", form.name.text, place, mistakes)
    known = {column.folded: column.text for column in columns}
    for key in form.key:
        if key.folded not in known:
            mistakes.add(
                f"primary key column `{key.text}` is not a column of `{form.name.text}`",
                place.at(key.at),
                _hint(key.folded, list(known)),
            )


def check_layout(
    layout: tuple[Named, ...],
    columns: tuple[str, ...] | None,
    relation: str,
    place: Place,
    mistakes: Mistakes,
) -> None:
    """Notes columns to partition by that the relation hasn't, or that are all it has.

    Args:
        columns: the names of all columns; None where only Spark knows them.
    """
    _check_twice(list(layout), "partition column", relation, place, mistakes)
    if columns is None or not layout:
        return
    known = [name.lower() for name in columns]
    for column in layout:
        if column.folded not in known:
            mistakes.add(
                f"partition column `{column.text}` is not a column of `{relation}`",
                place.at(column.at),
                _hint(column.folded, known),
            )
    if {column.folded for column in layout} >= set(known):
        mistakes.add(
            f"`{relation}` is partitioned by all its columns",
            place.at(layout[0].at),
            "leave out a column that has many values",
        )


def _check_twice(
    names: list[Named], what: str, relation: str, place: Place, mistakes: Mistakes
) -> None:
    seen: set[str] = set()
    for name in names:
        if name.folded in seen:
            mistakes.add(
                f"{what} `{name.text}` of `{relation}` comes twice",
                place.at(name.at),
                "rename or delete one",
            )
        seen.add(name.folded)


def check_view_columns(form: ViewForm, count: int | None, place: Place, mistakes: Mistakes) -> None:
    """Notes names in a view's column list that come twice, and a list of another length than the
    query's."""
    if not form.columns:
        return
    _check_twice(list(form.columns), "column", form.name.text, place, mistakes)
    if count is not None and count != len(form.columns):
        mistakes.add(
            f"`{form.name.text}` names {len(form.columns)} columns, and its query gives {count}",
            place.at(form.columns[0].at),
            "give every column of the query a name, or leave the list out",
        )


def check_columns(form: ViewForm, place: Place, lineage: Lineage, mistakes: Mistakes) -> None:
    """Notes columns that no input of their block has, and unqualified ones that two inputs have.

    Says nothing where an input's columns aren't all known, nor about names that could be something
    else: a keyword, an alias of the SELECT list, a lambda's parameter, a hidden column of a file
    (`_metadata`).
    """
    query = lineage.query
    known = [_names(lineage, i) for i in range(len(query.inputs))]
    for reference in query.references:
        token = query.tokens[reference.token]
        if not reference.is_plain or reference.name in KEYWORDS or reference.name.startswith("_"):
            continue
        if not query.blocks[reference.block].is_plain or not token.is_name:
            continue
        if reference.input is not None:
            names = known[reference.input]
            if names is not None and reference.name not in names:
                relation = (
                    query.inputs[reference.input].relation or query.inputs[reference.input].name
                )
                mistakes.add(
                    f"`{form.name.text}` reads column `{reference.name}` of `{relation}`, "
                    "which has no such column",
                    place.at(form.query_at + token.start),
                    _hint(reference.name, names),
                )
            continue
        _check_unqualified(form, place, query, reference, known, mistakes)


def _check_unqualified(
    form: ViewForm,
    place: Place,
    query: Query,
    reference: Reference,
    known: list[list[str] | None],
    mistakes: Mistakes,
) -> None:
    name, token = reference.name, query.tokens[reference.token]
    block = query.blocks[reference.block]
    outputs = block.outputs or ()
    given = {output.name for output in outputs if output.is_alias or reference.place != "select"}
    if block.outputs is None or name in given:
        return
    holders = [i for i in block.inputs if name in (known[i] or ())]
    everything = [known[i] for i in block.inputs]
    if len(holders) > 1 and reference.place != "on" and None not in everything:
        joined_using = any(name in query.inputs[i].using for i in block.inputs)
        visible = [i for i in holders if not query.inputs[i].is_hidden]
        if joined_using or len(visible) < 2:
            return
        names = [query.inputs[i].name for i in visible]
        if None in names:
            return
        mistakes.add(
            f"`{form.name.text}` reads column `{token.name}`, which is ambiguous: "
            f"{' and '.join(f'`{n}`' for n in names)} have it",
            place.at(form.query_at + token.start),
            f"write `{names[0]}.{token.name}` or `{names[1]}.{token.name}`",
        )
        return
    if holders or not block.inputs:
        return
    around: list[str] = []
    parent: int | None = reference.block
    while parent is not None:
        scope = query.blocks[parent]
        if not scope.is_plain or scope.outputs is None:
            return
        if any(output.name == name for output in scope.outputs if output.is_alias):
            return
        for i in scope.inputs:
            names_known = known[i]
            if names_known is None or name in names_known:
                return
            around.extend(names_known)
        parent = scope.parent
    owners = [f"`{query.inputs[i].name}`" for i in block.inputs if query.inputs[i].name]
    which = f"none of {', '.join(owners)} has"
    if len(owners) < 2:
        which = f"{owners[0] if owners else 'its input'} doesn't have"
    mistakes.add(
        f"`{form.name.text}` reads column `{token.name}`, which {which}",
        place.at(form.query_at + token.start),
        _hint(name, around),
    )


def _names(lineage: Lineage, index: int) -> list[str] | None:
    columns = lineage.input_columns(index)
    if columns is None:
        return None
    names = [column.name for column in columns if column.name is not None]
    return names if len(names) == len(columns) else None


def _hint(name: str, names: list[str]) -> str:
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    unique = sorted(set(names))
    shown = ", ".join(f"`{n}`" for n in unique[:8]) + (", ..." if len(unique) > 8 else "")
    return f"columns are {shown}"
