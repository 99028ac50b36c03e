"""The text of a revision file: a new one, and an unapplied one that is frozen again.

It knows the file's form and the template; which directives to suggest, and how to word a program
diff, is for its caller.
"""

from __future__ import annotations

import ast
import os
import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlmig import templating
from sqlmig.errors import Location, RevisionError
from sqlmig.revisions.file import RevisionFile, parse_module, parse_revision
from sqlmig.revisions.identifier import verify_name
from sqlmig.revisions.literal import escaped, names_literal, program_literal

_TEMPLATE = "revision.py.jinja"
_SLUG_LENGTH = 40


def new_revision_id() -> str:
    """A random id of 12 hexadecimal digits."""
    return os.urandom(6).hex()


def file_name(revision: str, created: datetime, message: str) -> str:
    """`20260610_8f3c2a91d0be_extend_date_range.py`: the day, the id, and words of the message."""
    plain = unicodedata.normalize("NFKD", message.partition("\n")[0].casefold())
    words = re.findall(r"[a-z0-9]+", plain.encode("ascii", "ignore").decode())
    slug = "_".join(words)
    if len(slug) > _SLUG_LENGTH:
        slug = slug[: _SLUG_LENGTH + 1].rpartition("_")[0] or slug[:_SLUG_LENGTH]
    return f"{created:%Y%m%d}_{revision}{'_' if slug else ''}{slug}.py"


def render_revision(
    *,
    revision: str,
    down_revisions: Sequence[str],
    message: str,
    created: datetime,
    files: Mapping[str, str],
    branch_labels: Sequence[str] = (),
    depends_on: Sequence[str] = (),
    diff_lines: Sequence[str] = (),
    up_lines: Sequence[str] = (),
    down_lines: Sequence[str] = (),
) -> str:
    """The text of a new revision file.

    Args:
        revision: the id, as from `new_revision_id`.
        down_revisions: ids of the parents.
        message: what the revision is for.
        created: when, with its time zone.
        files: the program to freeze, path -> SQL text; it is given back exactly.
        branch_labels: labels that begin here.
        depends_on: ids or labels needed besides the parents.
        diff_lines: the program diff in words, for the docstring.
        up_lines: lines of Python for the body of `up`, without indentation; none for `pass`.
        down_lines: the same for `down`.

    Raises:
        RevisionError: an id or a label that is not allowed, or lines that are not Python.
    """
    verify_name(revision)
    for label in branch_labels:
        verify_name(label, what="branch label")
    text = templating.render(
        _TEMPLATE,
        docstring=_docstring(
            message,
            revision=revision,
            revises=", ".join(down_revisions),
            created=created.isoformat(timespec="seconds"),
            diff_lines=diff_lines,
        ),
        revision=names_literal([revision]),
        down_revision=names_literal(down_revisions),
        branch_labels=names_literal(branch_labels),
        depends_on=names_literal(depends_on),
        program=program_literal(files),
        up_body=_body(up_lines),
        down_body=_body(down_lines),
    )
    _verify(text, files)
    return text


def refreeze(
    file: RevisionFile,
    *,
    files: Mapping[str, str],
    down_revisions: Sequence[str] | None = None,
    message: str | None = None,
    diff_lines: Sequence[str] = (),
    up_lines: Sequence[str] = (),
    down_lines: Sequence[str] = (),
) -> str:
    """The text of `file` with another program; what people wrote into its hooks stays.

    The docstring and `program` are replaced, and `down_revision` if other parents are given.
    `up_lines` and `down_lines` go only into a hook that is still `pass`. The id and the date stay.

    Raises:
        RevisionError: the file has a syntax error, or the new text would have one.
    """
    module = parse_module(file.text, file.path)
    parents = file.down_revisions if down_revisions is None else tuple(down_revisions)
    new_docstring = _docstring(
        file.message if message is None else message,
        revision=file.revision,
        revises=", ".join(parents),
        created=file.created,
        diff_lines=diff_lines,
    )
    edits: list[tuple[ast.stmt | ast.expr, str]] = []
    has_docstring = ast.get_docstring(module) is not None
    if has_docstring:
        edits.append((module.body[0], new_docstring))
    for statement in module.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if "program" in names:
                edits.append((statement.value, program_literal(files)))
            elif "down_revision" in names and parents != file.down_revisions:
                edits.append((statement.value, names_literal(parents)))
        elif isinstance(statement, ast.FunctionDef) and len(statement.body) == 1:
            lines = {"up": up_lines, "down": down_lines}.get(statement.name, ())
            if lines and isinstance(statement.body[0], ast.Pass):
                edits.append((statement.body[0], _body(lines).lstrip()))
    text = _edited(file.text, edits)
    if not has_docstring:
        text = f"{new_docstring}\n\n{text}"
    _verify(text, files, file.path, parents)
    return text


def _docstring(
    message: str, *, revision: str, revises: str, created: str, diff_lines: Sequence[str]
) -> str:
    lines = [
        message.strip(),
        "",
        f"Revision ID: {revision}",
        f"Revises: {revises or '<base>'}",
        f"Create Date: {created}",
        *(["", *diff_lines] if diff_lines else []),
        "",
    ]
    text = "\n".join(lines)
    return f'"""{escaped(text)}"""'


def _body(lines: Sequence[str]) -> str:
    code = textwrap.dedent("\n".join(lines)).strip("\n")
    if all(not line.strip() or line.lstrip().startswith("#") for line in code.split("\n")):
        code = f"{code}\npass".lstrip("\n")
    return textwrap.indent(code, "    ")


def _edited(text: str, edits: Sequence[tuple[ast.stmt | ast.expr, str]]) -> str:
    """`text` with the given nodes replaced; `ast` counts columns in UTF-8 bytes."""
    source = text.encode()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, new in sorted(edits, key=lambda edit: -edit[0].lineno):
        end_line, end_column = node.end_lineno, node.end_col_offset
        assert end_line is not None
        assert end_column is not None
        start = starts[node.lineno - 1] + node.col_offset
        source = source[:start] + new.encode() + source[starts[end_line - 1] + end_column :]
    return source.decode()


def _verify(
    text: str,
    files: Mapping[str, str],
    path: str = "the new revision",
    parents: Sequence[str] | None = None,
) -> None:
    """What was written is read back: the program and the parents must be the same, and the whole
    must be Python."""
    read = parse_revision(text, path)
    if read.files != dict(files):
        raise RevisionError(
            "the program can't be written into a revision file", location=Location(path)
        )
    if parents is not None and read.down_revisions != tuple(parents):
        raise RevisionError(
            "the parent can't be written into this file",
            location=Location(path),
            hint="it wants a line `down_revision = ...`",
        )
