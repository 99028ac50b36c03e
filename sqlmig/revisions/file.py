"""A revision file: its metadata and its frozen program, read without running it.

It knows the form of the text, nothing of the graph, of SQL or of the ledger. The same reader
serves the text that the ledger keeps when the file is gone.
"""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlmig.errors import Location, RevisionError
from sqlmig.revisions.identifier import verify_name

SINGLE_FILE = "program.sql"

_METADATA = ("revision", "down_revision", "branch_labels", "depends_on")
_PROGRAM = re.compile(r"^program\b", re.MULTILINE)
_METADATA_WORD = re.compile(r"\b(?:revision|down_revision|branch_labels|depends_on)\b")
_REVISION_ID_LINE = re.compile(r"^Revision ID:", re.MULTILINE)
_CREATED_LINE = re.compile(r"^Create Date:[ \t]*(.*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class RevisionFile:
    """One revision: who its parents are, what it says, and the program that it froze.

    Args:
        revision: the id.
        down_revisions: ids of the parents; none for a base, several for a merge.
        branch_labels: labels that the file declares.
        depends_on: ids or labels that must be applied before, besides the parents.
        path: where the text comes from, as shown to people.
        docstring: as Python keeps it, not cleaned.
        text: the whole text, line ends as LF.
    """

    revision: str
    down_revisions: tuple[str, ...]
    branch_labels: tuple[str, ...]
    depends_on: tuple[str, ...]
    path: str
    docstring: str = field(repr=False)
    text: str = field(repr=False)

    @cached_property
    def message(self) -> str:
        """What the revision is for: the docstring before the line `Revision ID:`."""
        return self._message_and_created[0]

    @cached_property
    def created(self) -> str:
        """The text after `Create Date:`, in ISO form as sqlmig writes it; "" if not there."""
        return self._message_and_created[1]

    @cached_property
    def _message_and_created(self) -> tuple[str, str]:
        docstring = inspect.cleandoc(self.docstring)
        revision_line = _REVISION_ID_LINE.search(docstring)
        if revision_line is None:
            return docstring.strip(), ""
        created = _CREATED_LINE.search(docstring, revision_line.start())
        return (
            docstring[: revision_line.start()].strip(),
            created.group(1) if created else "",
        )

    @property
    def title(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The frozen program: path -> SQL text, sorted by path. Read at the first use.

        Raises:
            RevisionError: the file has a syntax error, or `program` is not a literal.
        """
        return _program(_assignments(parse_module(self.text, self.path)), self.path)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal; the same on every platform's line ends."""
        return digest(self.text)


def digest(text: str) -> str:
    """SHA-256 of a revision file's text with CRLF taken as LF, in hexadecimal."""
    import hashlib

    return hashlib.sha256(normalised(text).encode()).hexdigest()


def parse_revision(text: str, path: str) -> RevisionFile:
    """Read a revision file's metadata from its text; none of its code is run.

    The lines above `program` hold the metadata, so mostly only these are parsed. When that isn't
    certain (they are not complete, or the rest names metadata too), the whole file is.

    Args:
        text: the whole text.
        path: where it comes from, for messages.

    Raises:
        RevisionError: not Python, no literal where one is due, or no legal id.
    """
    text = normalised(text)
    assigned, docstring = _header(text) or _whole(text, path)
    revision = assigned.get("revision")
    if revision is None:
        raise RevisionError(
            "this file has no `revision`",
            location=Location(path),
            hint="`sqlmig revision -m MESSAGE` writes a complete file; "
            "other files in this folder begin with `_`",
        )
    location = Location(path, revision.lineno)
    name = _literal(revision, path, "revision")
    if not isinstance(name, str):
        raise RevisionError("`revision` must be a string", location=location)
    try:
        verify_name(name)
    except RevisionError as error:
        raise RevisionError(error.message, location=location, hint=error.hint) from None
    parents, labels, depends_on = (_names(assigned, key, path) for key in _METADATA[1:])
    return RevisionFile(name, parents, labels, depends_on, path, docstring, text)


def parse_module(text: str, path: str) -> ast.Module:
    """The syntax tree of a revision file.

    Raises:
        RevisionError: with the line and the column of the syntax error.
    """
    try:
        return _tree(text)
    except (SyntaxError, ValueError) as error:
        raise syntax_error(error, path) from None


def normalised(text: str) -> str:
    """The text as it is compared, kept and run: line ends as LF, no byte order mark."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return text.removeprefix("\ufeff")


def syntax_error(error: SyntaxError | ValueError, path: str) -> RevisionError:
    """The error shown for a file that Python can't parse."""
    if not isinstance(error, SyntaxError):
        return RevisionError(f"not a Python file: {error}", location=Location(path))
    return RevisionError(
        f"syntax error: {error.msg}", location=Location(path, error.lineno, error.offset)
    )


def _tree(text: str) -> ast.Module:
    """`ast.parse`, without its warnings on escapes such as `\\d`, which running the file repeats."""
    if "\\" not in text:
        return ast.parse(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _header(text: str) -> tuple[dict[str, ast.expr], str] | None:
    """Assignments and docstring from the lines above `program`; None when that isn't certain.

    If the text up to a line's start is a complete module, that line begins a new top-level
    statement: it can't lie inside a string, in brackets or in a block.
    """
    start = _PROGRAM.search(text)
    if start is None:
        return None
    rest = text[start.start() :]
    if ("revision" in rest or "branch_labels" in rest or "depends_on" in rest) and (
        _METADATA_WORD.search(rest)
    ):
        return None
    try:
        module = _tree(text[: start.start()])
    except (SyntaxError, ValueError):
        return None
    assigned = _assignments(module)
    if "revision" not in assigned:
        return None
    return assigned, _docstring(module)


def _whole(text: str, path: str) -> tuple[dict[str, ast.expr], str]:
    module = parse_module(text, path)
    assigned = _assignments(module)
    if "revision" in assigned:
        _program(assigned, path)
    return assigned, _docstring(module)


def _assignments(module: ast.Module) -> dict[str, ast.expr]:
    """Name -> value of plain assignments at the top level; the last one counts, as when run."""
    found: dict[str, ast.expr] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = statement.value
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value is not None
        ):
            found[statement.target.id] = statement.value
    return found


def _docstring(module: ast.Module) -> str:
    return ast.get_docstring(module, clean=False) or ""


def _literal(value: ast.expr, path: str, name: str) -> object:
    if isinstance(value, ast.Constant):
        return value.value
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise RevisionError(
            f"`{name}` is not a literal",
            location=Location(path, value.lineno),
            hint="revision files are read without being run: write the value itself",
        ) from None


def _names(assigned: Mapping[str, ast.expr], key: str, path: str) -> tuple[str, ...]:
    """None, one string, or several in a tuple, a list or a set; without repetitions."""
    value = assigned.get(key)
    if value is None:
        return ()
    names = _literal(value, path, key)
    if names is None:
        return ()
    if isinstance(names, str):
        return (names,)
    if isinstance(names, (set, frozenset)):
        names = sorted(names, key=str)
    if isinstance(names, (tuple, list)) and all(isinstance(name, str) for name in names):
        return tuple(dict.fromkeys(names))
    raise RevisionError(
        f"`{key}` must be None, a string or a tuple of strings",
        location=Location(path, value.lineno),
    )


def _program(assigned: Mapping[str, ast.expr], path: str) -> Mapping[str, str]:
    value = assigned.get("program")
    if value is None:
        raise RevisionError(
            "this file has no `program`",
            location=Location(path),
            hint="`program` holds the pipeline's SQL: a literal {path: text}",
        )
    program = _literal(value, path, "program")
    if isinstance(program, str):
        return {SINGLE_FILE: program}
    if isinstance(program, dict) and all(
        isinstance(name, str) and isinstance(text, str) for name, text in program.items()
    ):
        return dict(sorted(program.items()))
    raise RevisionError(
        "`program` must be a string, or a dictionary from paths to SQL text",
        location=Location(path, value.lineno),
    )
