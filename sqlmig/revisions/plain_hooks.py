"""The hooks of a revision read from their text: nothing of it is run.

It takes plain calls of `op` with literals. A hook that computes what it asks for can't be read so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlmig.errors import Location, RevisionError
from sqlmig.revisions.file import parse_module


@dataclass(frozen=True)
class FunctionName:
    """A function of the file, known by its name only."""

    name: str


@dataclass(frozen=True)
class Call:
    """`op.NAME(...)`: values, or a `FunctionName`.

    Args:
        name: of the operation.
        arguments, keywords: what it is called with.
        line: where it stands, from 1.
    """

    name: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    line: int


def read_plain_hook(text: str, path: str, hook: str) -> tuple[Call, ...]:
    """The calls that a hook makes, in order; none where the file has no such hook.

    Args:
        text: the whole text of a revision file.
        path: where it comes from, for messages.
        hook: `up` or `down`.

    Raises:
        RevisionError: a syntax error, or a hook that has to be run to know what it asks for.
    """
    module = parse_module(text, path)
    names = list(_bound(module))
    if hook not in names:
        return ()
    function = next(
        (s for s in module.body if isinstance(s, ast.FunctionDef) and s.name == hook), None
    )
    if function is None or names.count(hook) > 1 or function.decorator_list:
        raise _not_plain(hook, path, function or module.body[0])
    parameters = function.args
    others = (*parameters.posonlyargs, *parameters.kwonlyargs, *parameters.defaults)
    if len(parameters.args) != 1 or others or parameters.vararg or parameters.kwarg:
        raise _not_plain(hook, path, function)
    constants = _constants(module, names)
    functions = {
        s.name for s in module.body if isinstance(s, ast.FunctionDef) and names.count(s.name) == 1
    }
    op = parameters.args[0].arg
    calls = []
    for statement in function.body:
        if isinstance(statement, ast.Pass) or _is_constant(statement):
            continue
        call = _call(statement, op, constants, functions)
        if call is None:
            raise _not_plain(hook, path, statement)
        calls.append(call)
    return tuple(calls)


def _call(
    statement: ast.stmt, op: str, constants: Mapping[str, Any], functions: set[str]
) -> Call | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if not isinstance(call.func.value, ast.Name) or call.func.value.id != op:
        return None

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Name) and node.id in constants:
            return constants[node.id]
        if isinstance(node, ast.Name) and node.id in functions:
            return FunctionName(node.id)
        return ast.literal_eval(node)

    try:
        arguments = tuple(value(node) for node in call.args)
        keywords = {keyword.arg or "": value(keyword.value) for keyword in call.keywords}
    except ValueError:
        return None
    return None if "" in keywords else Call(call.func.attr, arguments, keywords, statement.lineno)


def _constants(module: ast.Module, names: list[str]) -> dict[str, Any]:
    """The literals that the file gives a name once, at its top."""
    found = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and names.count(target.id) == 1:
                try:
                    found[target.id] = ast.literal_eval(statement.value)
                except ValueError:
                    continue
    return found


def _bound(module: ast.Module) -> Iterator[str]:
    """Every name that something in the file binds, wherever it stands, as often as it does."""
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _not_plain(hook: str, path: str, node: ast.AST) -> RevisionError:
    return RevisionError(
        f"what `{hook}` asks for is known only when it is run, and code that is not checked out "
        "is not",
        location=Location(path, getattr(node, "lineno", None)),
        hint="write plain calls of `op`, with literals; or check it out and run the command there",
    )
