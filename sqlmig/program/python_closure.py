"""What a Python function's value depends on in its file, as canonical text. It reads syntax trees,
and runs nothing.

Two files that give a function the same text give it the same meaning: the text holds the function,
and every statement at the top of the file that it could see the effect of, in their order.

- Definitions of functions, imports, and assignments of plain values bind names and do nothing else.
  They belong to the function if it names what they bind, directly or through others that belong.
- Every other statement could change anything: it belongs to all functions of the file.
- Code that can reach names without naming them (`globals()`, `eval`, `sys`, ...) depends on the
  whole file.

Comments, layout and the docstrings of functions are not in the tree, or are dropped. The text is
made here, and not by `ast.dump`, whose words differ from one version of Python to the next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import chain

_REACHES_ALL = frozenset(
    """
    __builtins__ __code__ __dict__ __doc__ __globals__ __import__ builtins compile delattr eval exec
    gc getattr globals importlib inspect locals modules pickle setattr sys vars
    """.split()
)
_DROPPED = frozenset(("ctx", "kind", "type_comment"))


def closure_text(module: ast.Module, function: ast.FunctionDef, declared: Iterable[str]) -> str:
    """The canonical text of a function and of all that it depends on in its file.

    Args:
        module: the file. function: one of its statements.
        declared: names of the decorator that declares functions: it does nothing.
    """
    marks = frozenset(declared)
    statements = [node for node in module.body if not _is_text(node)]
    taken = {id(node) for node in statements if not _only_binds(node, marks)} | {id(function)}
    while True:
        names = set(chain.from_iterable(_names(n) for n in statements if id(n) in taken))
        if not names.isdisjoint(_REACHES_ALL):
            taken = {id(node) for node in statements}
        more = {id(node) for node in statements if id(node) not in taken and _binds(node) & names}
        if not more:
            break
        taken |= more
    return "\n".join(
        _text(node, marks if node is function else frozenset())
        for node in statements
        if id(node) in taken and not _declares(node, marks)
    )


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _only_binds(node: ast.stmt, marks: frozenset[str]) -> bool:
    """True for a statement that does nothing but give names a meaning."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return not any(alias.name == "*" for alias in node.names)
        case ast.FunctionDef():
            defaults = (*node.args.defaults, *filter(None, node.args.kw_defaults))
            return (
                all(decorator_name(d) in marks for d in node.decorator_list)
                and all(map(_is_plain, defaults))
                and not any(isinstance(part, ast.Call) for part in _annotations(node))
            )
        case ast.Assign():
            return all(isinstance(t, ast.Name) for t in node.targets) and _is_plain(node.value)
        case ast.AnnAssign():
            is_quiet = not any(isinstance(part, ast.Call) for part in ast.walk(node.annotation))
            is_bound = isinstance(node.target, ast.Name) and node.value is not None
            return is_quiet and is_bound and _is_plain(node.value)
        case ast.Pass():
            return True
        case _:
            return False


def _is_plain(node: ast.expr | None) -> bool:
    """True for an expression that runs no code: constants, names, and what is made of them.

    Operators and keys may run an object's own code, so their operands have to be constants.
    """
    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return all(map(_is_plain, items))
        case ast.Set(elts=items):
            return all(map(_is_constant, items))
        case ast.Dict(keys=keys, values=values):
            return all(map(_is_constant, keys)) and all(map(_is_plain, values))
        case ast.Lambda(args=arguments):
            return all(map(_is_plain, (*arguments.defaults, *filter(None, arguments.kw_defaults))))
        case _:
            return _is_constant(node)


def _is_constant(node: ast.expr | None) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_constant(operand)
        case ast.BinOp(left=left, right=right):
            return _is_constant(left) and _is_constant(right)
        case ast.Tuple(elts=items):
            return all(map(_is_constant, items))
        case _:
            return False


def _binds(node: ast.stmt) -> set[str]:
    """The names that a statement which only binds gives a meaning."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        case ast.FunctionDef():
            return {node.name}
        case ast.Assign():
            return {t.id for t in node.targets if isinstance(t, ast.Name)}
        case ast.AnnAssign():
            return {node.target.id} if isinstance(node.target, ast.Name) else set()
        case _:
            return set()


def _annotations(node: ast.FunctionDef) -> Iterator[ast.AST]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    for annotation in (node.returns, *(argument.annotation for argument in every)):
        if annotation is not None:
            yield from ast.walk(annotation)


def _names(node: ast.AST) -> Iterator[str]:
    """Every name that the code mentions, those of modules in imports and of Python's own fields."""
    for part in ast.walk(node):
        match part:
            case ast.Name():
                yield part.id
            case ast.Attribute() if part.attr.startswith("__") or part.attr == "modules":
                yield part.attr
            case ast.Import() | ast.ImportFrom():
                yield from chain.from_iterable(alias.name.split(".") for alias in part.names)
                yield from (getattr(part, "module", None) or "").split(".")
            case ast.Global() | ast.Nonlocal():
                yield from part.names
            case _:
                pass


def decorator_name(node: ast.expr) -> str:
    """A decorator's name with its dots, without its arguments; '' for another expression."""
    if isinstance(node, ast.Call):
        node = node.func
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _declares(node: ast.stmt, marks: frozenset[str]) -> bool:
    """True for the import of the decorator and of nothing else."""
    match node:
        case ast.ImportFrom():
            is_ours = node.module == "sqlmig" and not node.level
            return is_ours and all((a.asname or a.name) in marks for a in node.names)
        case ast.Import():
            return all(f"{a.asname or a.name}.function" in marks for a in node.names)
        case _:
            return False


def _text(node: object, marks: frozenset[str] = frozenset()) -> str:
    """A tree as text: every class and field, save for those that say nothing of the meaning."""
    if isinstance(node, list):
        return f"[{' '.join(_text(item) for item in node)}]"
    if not isinstance(node, ast.AST):
        return f"{type(node).__name__}:{node!r}"
    fields = []
    for name, value in ast.iter_fields(node):
        if name in _DROPPED or value is None or value == []:
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and name == "body":
            value = value[_is_text(value[0]) :]
        if marks and name == "decorator_list":
            value = [d for d in value if decorator_name(d) not in marks]
        fields.append(f"{name}={_text(value)}")
    return f"{type(node).__name__}({', '.join(fields)})"
