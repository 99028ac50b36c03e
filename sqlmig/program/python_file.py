"""Reads a file of `pipeline/functions/`: the functions that it declares. It runs nothing of it.

A function at the top of the file that has the decorator `sqlmig.function` is one of the program.
What it gives is said by `returns`, in Spark's words, or else by its annotation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sqlmig.program.column_type import read_type
from sqlmig.program.cursor import Cursor, FormError
from sqlmig.program.head import Named
from sqlmig.program.lexer import LexError, tokenize
from sqlmig.program.python_closure import closure_text, decorator_name

_TYPES = {
    "bool": "boolean",
    "bytes": "binary",
    "date": "date",
    "datetime": "timestamp",
    "float": "double",
    "int": "bigint",
    "str": "string",
}
_DEFINED = re.compile(r"\b(?:def|class)\s+(\w+)")
_USAGE = 'write `@function(returns="INT", packages=["name==1.2"], deterministic=True)`'
_RETURNS = 'write `@function(returns="STRING")`, or annotate it with a plain type: `-> str`'


@dataclass(frozen=True)
class PythonForm:
    """A function in Python.

    Args:
        text: the whole text of its file.
        returns: Spark's type of what it gives.
        packages: pinned packages, `name==version`, sorted.
        body: the canonical text of the function and of what it depends on in its file.
    """

    name: Named
    text: str
    returns: str
    packages: tuple[str, ...]
    is_deterministic: bool
    body: str


@dataclass(frozen=True)
class PythonFile:
    """What a file declares, and what is wrong with it.

    Args:
        imports: the first names of the modules that it imports, each with its offset; a relative
            import has an empty one.
    """

    forms: tuple[PythonForm, ...] = ()
    problems: tuple[FormError, ...] = ()
    imports: tuple[Named, ...] = ()


@lru_cache(maxsize=1024)
def read_python(text: str) -> PythonFile:
    """The functions that the text of a file declares."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
        message = getattr(error, "msg", None) or str(error)
        offset = _line_start(text, line) + max(0, column - 1)
        return PythonFile(problems=(FormError(f"this is not Python: {message}", offset),))
    marks = frozenset(_declaring(module))
    forms: list[PythonForm] = []
    problems: list[FormError] = []
    for node in module.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        decorator = next((d for d in node.decorator_list if decorator_name(d) in marks), None)
        if decorator is None:
            continue
        try:
            forms.append(_read(text, module, node, decorator, marks))
        except FormError as problem:
            problems.append(problem)
    return PythonFile(tuple(forms), tuple(problems), tuple(_imports(text, module)))


def _declaring(module: ast.Module) -> Iterator[str]:
    """The names by which the file calls the decorator."""
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.module == "sqlmig" and not node.level:
            yield from (a.asname or a.name for a in node.names if a.name == "function")
        if isinstance(node, ast.Import):
            yield from (f"{a.asname or a.name}.function" for a in node.names if a.name == "sqlmig")


def _imports(text: str, module: ast.Module) -> Iterator[Named]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (Named(a.name.split(".")[0], _offset(text, node)) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = "" if node.level else (node.module or "").split(".")[0]
            yield Named(name, _offset(text, node))


def _read(
    text: str,
    module: ast.Module,
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
    decorator: ast.expr,
    marks: frozenset[str],
) -> PythonForm:
    name = Named(node.name, _name_offset(text, node))
    if not isinstance(node, ast.FunctionDef):
        what = "a class" if isinstance(node, ast.ClassDef) else "an async function"
        raise FormError(f"`{node.name}` is {what}", name.at, "declare a plain function with `def`")
    if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in _own(node)):
        hint = "return one value; what gives several is an ARRAY, which `explode` unfolds"
        raise FormError(f"`{node.name}` is a generator", name.at, hint)
    if not node.name.isascii():
        hint = "use letters, digits and underscores"
        raise FormError(f"`{node.name}` can't be a name of a function", name.at, hint)
    returns: str | None = None
    packages: tuple[str, ...] = ()
    is_deterministic = True
    call = decorator if isinstance(decorator, ast.Call) else None
    if call is not None and call.args:
        raise FormError("`@function` takes named arguments", _offset(text, call.args[0]), _USAGE)
    for keyword in call.keywords if call is not None else ():
        at = _offset(text, keyword.value)
        value = _literal(keyword.value)
        if keyword.arg == "returns" and isinstance(value, str):
            returns = _spark_type(value, at)
        elif keyword.arg == "packages" and isinstance(value, list | tuple):
            packages = tuple(sorted({_package(package, at) for package in value}))
        elif keyword.arg == "deterministic" and isinstance(value, bool):
            is_deterministic = value
        else:
            shown = f"`{keyword.arg}`" if keyword.arg else "`**`"
            raise FormError(f"`@function` can't be given this as {shown}", at, _USAGE)
    if returns is None:
        returns = _annotated(node.returns)
        if returns is None:
            message = f"what `{node.name}` returns is not said in Spark's words"
            raise FormError(message, name.at, _RETURNS)
    body = closure_text(module, node, marks)
    return PythonForm(name, text, returns, packages, is_deterministic, body)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _own(child)


def _literal(node: ast.expr) -> object:
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value


def _spark_type(words: str, at: int) -> str:
    try:
        cursor = Cursor(tokenize(words), words)
        found = read_type(cursor)
    except (FormError, LexError) as error:
        raise FormError(f"`returns`: {error.message}", at, error.hint) from None
    if not cursor.at_end:
        raise FormError(f"`returns`: `{words}` is not a type of Spark", at, _USAGE)
    return found


def _package(package: object, at: int) -> str:
    name, pin, version = package.partition("==") if isinstance(package, str) else ("", "", "")
    if not (name.strip() and version.strip()) or "*" in version:
        raise FormError(
            f"{package!r} doesn't pin a package",
            at,
            'write its name and its one version: `packages=["unidecode==1.3.8"]`',
        )
    return f"{name.strip().lower().replace('_', '-')}{pin}{version.strip()}"


def _annotated(node: ast.expr | None) -> str | None:
    """Spark's type for an annotation; None where there is none, or more than one."""
    match node:
        case ast.Constant(value=str(text)):
            try:
                return _annotated(ast.parse(text, mode="eval").body)
            except (SyntaxError, ValueError):
                return None
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _TYPES.get(name)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            parts = [part for part in (left, right) if not _is_none(part)]
            return _annotated(parts[0]) if len(parts) == 1 else None
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            types = [_annotated(argument) for argument in arguments]
            if None in types:
                return None
            if name == "Optional" and len(types) == 1:
                return types[0]
            wanted = {"list": ("array", 1), "List": ("array", 1), "dict": ("map", 2)}
            kind, count = wanted.get(name, ("", 0))
            return f"{kind}<{','.join(map(str, types))}>" if count == len(types) else None
        case _:
            return None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _line_start(text: str, line: int) -> int:
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: line - 1]))


def _offset(text: str, node: ast.stmt | ast.expr) -> int:
    """Where a node begins; `ast` counts columns in UTF-8 bytes."""
    start = _line_start(text, node.lineno)
    line = text[start:].splitlines()[0] if start < len(text) else ""
    return start + len(line.encode()[: node.col_offset].decode(errors="ignore"))


def _name_offset(text: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    found = _DEFINED.search(text, _offset(text, node))
    return found.start(1) if found else _offset(text, node)
