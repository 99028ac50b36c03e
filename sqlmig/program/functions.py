"""The functions of a program: what each calls and reads, in an order to define them, fingerprints.

It knows all statements, and leaves what one says to `function_form` and `python_file`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from sqlmig.program.canonical import folded_text, function_marks, plain_text
from sqlmig.program.declared import Declared, Mistakes, Place
from sqlmig.program.function_form import FunctionForm, Parameter, returned_text
from sqlmig.program.lexer import LexError
from sqlmig.program.lineage import Lineage
from sqlmig.program.model import Function, Language
from sqlmig.program.python_file import PythonForm
from sqlmig.program.query import Query, read_query
from sqlmig.program.vocabulary import BEFORE_PARENTHESIS, FUNCTIONS


def link_functions(declared: Declared, mistakes: Mistakes) -> Mapping[str, Function]:
    """The functions of the program, those that are called before those that call them.

    Notes names that Spark has itself, functions that call each other in a circle, relations that
    no statement creates, and defaults of columns and conditions of sources that call functions.
    """
    known = declared.functions
    functions: dict[str, Function] = {}
    for name, (form, place) in sorted(known.items()):
        if name in FUNCTIONS or name in BEFORE_PARENTHESIS:
            mistakes.add(
                f"`{form.name.text}` is a name of Spark's own: a call would never reach this "
                "function",
                place.at(form.name.at),
                "give it another name",
            )
        if isinstance(form, PythonForm):
            functions[name] = _python(form, place)
        else:
            functions[name] = _sql(form, place, declared, mistakes)
    _refuse_in_defaults(declared, mistakes)
    _refuse_in_conditions(declared, mistakes)
    return _ordered(functions, declared, mistakes)


def called_by(query: Query, functions: Mapping[str, Function]) -> Iterator[Function]:
    """The functions that a query may call, and those that they call, sorted by name."""
    wanted: set[str] = set()
    pending = list(query.may_call(functions)) if functions else []
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending.extend(functions[name].calls)
    return (functions[name] for name in sorted(wanted))


def bodies(declared: Declared) -> Iterator[Query]:
    """The bodies of the functions in SQL, and what their parameters default to, as queries."""
    for form, _ in declared.functions.values():
        if isinstance(form, FunctionForm):
            yield from _queries(form)


def _queries(form: FunctionForm) -> list[Query]:
    defaults = [p.default for p in form.parameters if p.default is not None]
    return [read_query(form.query), *(read_query(f"SELECT {default}") for default in defaults)]


def _python(form: PythonForm, place: Place) -> Function:
    signature = f"returns {form.returns}{_determinism(form.is_deterministic)}"
    return Function(
        name=form.name.folded,
        language=Language.PYTHON,
        text=form.text,
        signature=signature,
        body=form.body,
        spelled=f"{signature}\n{form.body}",
        packages=form.packages,
        volatile=not form.is_deterministic,
        entry=form.name.text,
        returns=form.returns,
        location=place.at(form.name.at),
    )


def _sql(form: FunctionForm, place: Place, declared: Declared, mistakes: Mistakes) -> Function:
    queries = _queries(form)
    body = queries[0]
    name = form.name.folded
    reads: set[str] = set()
    for relation, token in body.relations:
        if declared.has(relation):
            reads.add(relation)
        elif relation not in declared.broken:
            mistakes.add(
                f"`{form.name.text}` reads `{body.tokens[token].name}`, which no statement creates",
                place.at(form.query_at + body.tokens[token].start),
                declared.hint(relation),
            )
    unsure = body.suspects if body.is_read else body.mentioned
    unsure_reads = {other for other, _ in unsure if declared.has(other)} - reads
    if "identifier" in body.functions:
        refuse_identifier(form.name.text, body, place, form.query_at, mistakes)
    calls = {called for query in queries for called in query.called(declared.functions)}
    signature = _signature(form, folded=True)
    return Function(
        name=name,
        language=Language.SQL,
        text=form.text,
        signature=signature,
        body=folded_text(body),
        spelled=f"{_signature(form, folded=False)}\n{plain_text(body)}",
        calls=frozenset(calls),
        reads=frozenset(reads | unsure_reads),
        is_read=not unsure_reads,
        volatile=not form.is_deterministic or any(Lineage(q, {}).is_volatile() for q in queries),
        entry=form.name.text,
        shown=form.body,
        location=place.at(form.name.at),
    )


def _signature(form: FunctionForm, *, folded: bool) -> str:
    """Parameters and what is returned; a returned table's columns keep their letter case unless
    `folded`."""
    parameters = ", ".join(_parameter(p, folded=folded) for p in form.parameters)
    returns = returned_text(form, folded=folded)
    given = f" returns {returns}" if returns else ""
    return f"({parameters}){given}{_determinism(form.is_deterministic)}"


def _parameter(parameter: Parameter, *, folded: bool) -> str:
    text = f"{parameter.name.folded} {parameter.type}"
    if parameter.default is None:
        return text
    query = read_query(f"SELECT {parameter.default}")
    default = folded_text(query) if folded else plain_text(query)
    return f"{text} default {default.partition(' ')[2]}"


def _determinism(is_deterministic: bool) -> str:
    return "" if is_deterministic else " not deterministic"


def refuse_identifier(
    name: str, query: Query, place: Place, query_at: int, mistakes: Mistakes
) -> None:
    """Notes each IDENTIFIER(...) of a query.

    Args:
        name: what the query belongs to. query_at: where the query begins in the statement.
    """
    for token in query.tokens:
        if token.is_name and token.folded == "identifier":
            mistakes.add(
                f"`{name}` uses IDENTIFIER(...), which hides what it reads",
                place.at(query_at + token.start),
                "write the name itself",
            )


def _refuse_in_defaults(declared: Declared, mistakes: Mistakes) -> None:
    if not declared.functions:
        return
    for table, place in declared.tables.values():
        for column, at in table.columns:
            if column.default is None:
                continue
            for name in sorted(read_query(f"SELECT {column.default}").called(declared.functions)):
                mistakes.add(
                    f"the default of column `{column.name}` calls `{name}`, a function of the "
                    "program",
                    place.at(at),
                    "write what it computes: a default is kept with the table",
                )


def _refuse_in_conditions(declared: Declared, mistakes: Mistakes) -> None:
    """A source's condition is asked of records while they are read, where no function is."""
    for form, place in declared.connectors if declared.functions else ():
        for key, text in form.options:
            if not form.is_source or key.lower() != "delete_when":
                continue
            try:
                called = read_query(f"SELECT {text}").called(declared.functions)
            except LexError:  # the check of the source's options says so
                continue
            for name in sorted(called):
                mistakes.add(
                    f"source `{form.name.text}` calls `{name}`, a function of the program, in "
                    f"`{key}`",
                    place.at(form.at),
                    "write what it computes",
                )


def _ordered(
    functions: Mapping[str, Function], declared: Declared, mistakes: Mistakes
) -> Mapping[str, Function]:
    """Called ones first, with fingerprints; {} where there is a circle, which is noted."""
    calls = _with_mentions(functions, declared)
    try:
        order = list(TopologicalSorter({n: sorted(calls[n]) for n in sorted(calls)}).static_order())
    except CycleError as error:
        _note_cycle(list(reversed(error.args[1][1:])), declared, mistakes)
        return {}
    done: dict[str, Function] = {}
    for name in order:
        called = [done[other] for other in sorted(calls[name])]
        function = replace(
            functions[name],
            calls=frozenset(calls[name]),
            volatile=functions[name].volatile or any(other.volatile for other in called),
        )
        mark, spelled_mark = function_marks(function, called)
        done[name] = replace(function, mark=mark, spelled_mark=spelled_mark)
    return done


def _with_mentions(functions: Mapping[str, Function], declared: Declared) -> dict[str, set[str]]:
    """What each function calls; one whose body could not be read calls whatever it mentions, save
    where that would close a circle: Spark allows none."""
    calls = {name: set(function.calls) for name, function in functions.items()}
    for name, (form, _) in sorted(declared.functions.items()):
        if isinstance(form, FunctionForm):
            for query in _queries(form):
                for other in sorted(query.may_call(functions) - calls[name]):
                    if not reaches(calls, other, name):
                        calls[name].add(other)
    return calls


def reaches(graph: Mapping[str, Collection[str]], start: str, goal: str) -> bool:
    """Whether a way leads from `start` to `goal`."""
    pending, seen = [start], {start}
    while pending:
        current = pending.pop()
        if current == goal:
            return True
        for following in graph.get(current, ()):
            if following not in seen:
                seen.add(following)
                pending.append(following)
    return False


def _note_cycle(cycle: list[str], declared: Declared, mistakes: Mistakes) -> None:
    least = cycle.index(min(cycle))
    names = cycle[least:] + cycle[:least]
    form, place = declared.functions[names[0]]
    at = place.at(form.name.at)
    if len(names) == 1:
        mistakes.add(f"`{form.name.text}` calls itself", at, "write it without: Spark can't do it")
        return
    path = " -> ".join(_quoted([*names, names[0]]))
    mistakes.add(
        f"functions call each other in a circle: {path}", at, "take one of these calls out"
    )


def _quoted(names: Iterable[str]) -> list[str]:
    return [f"`{name}`" for name in names]
