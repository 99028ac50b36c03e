"""All statements of a program, each with its place, before they are checked against each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import PurePosixPath

from sqlmig.errors import Location, ProgramError, ProgramErrors
from sqlmig.program.forms import BrokenForm, ConnectorForm, TableForm, ViewForm, read_form
from sqlmig.program.function_form import FunctionForm
from sqlmig.program.lexer import LexError, line_and_column, split_statements
from sqlmig.program.python_file import PythonForm, read_python
from sqlmig.program.query import Query, read_query


@dataclass(frozen=True)
class Place:
    """Where a statement stands: its file, and the offset of its text in the file's text."""

    path: str
    text: str
    start: int

    def at(self, offset: int) -> Location:
        """The location of an offset of the statement."""
        return Location(self.path, *line_and_column(self.text, self.start + offset))


class Mistakes:
    """Collects mistakes, so that all of them are reported at once."""

    def __init__(self) -> None:
        self._found: dict[tuple[Location, str], ProgramError] = {}

    def add(self, message: str, location: Location, hint: str | None = None) -> None:
        """Notes a mistake; the same one at the same place counts once."""
        self._found.setdefault(
            (location, message), ProgramError(message, location=location, hint=hint)
        )

    def raise_all(self) -> None:
        """Raises ProgramErrors if there was any."""
        if self._found:
            raise ProgramErrors(self._found.values())


@dataclass
class Declared:
    """The statements by the names that they create.

    Args:
        broken: names of relations whose statement has a mistake: their readers aren't to blame.
    """

    tables: dict[str, tuple[TableForm, Place]] = field(default_factory=dict)
    views: dict[str, tuple[ViewForm, Place]] = field(default_factory=dict)
    connectors: list[tuple[ConnectorForm, Place]] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    queries: dict[str, Query] = field(default_factory=dict)
    functions: dict[str, tuple[FunctionForm | PythonForm, Place]] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """True when a relation of this name is created."""
        return name in self.tables or name in self.views

    @property
    def names(self) -> list[str]:
        """The names of all relations, sorted."""
        return sorted({*self.tables, *self.views})

    def hint(self, name: str) -> str:
        """What a name that nothing creates was probably meant to be."""
        close = get_close_matches(name.lower(), self.names, n=1)
        return (
            f"did you mean `{close[0]}`?"
            if close
            else f"create `{name}` with CREATE TABLE or CREATE VIEW"
        )


def declare(files: Mapping[str, str], mistakes: Mistakes) -> Declared:
    """Reads every statement of every file, and notes mistakes in their forms and names that come
    twice."""
    declared = Declared()
    for path, text in sorted(files.items()):
        if is_python(path):
            _declare_python(declared, path, text, files, mistakes)
            continue
        for start, end in split_statements(text):
            form = read_form(text[start:end])
            if form is None:
                continue
            place = Place(path, text, start)
            match form:
                case BrokenForm(problem, name):
                    mistakes.add(problem.message, place.at(problem.offset), problem.hint)
                    if name is not None:
                        declared.broken.add(name)
                case ConnectorForm():
                    declared.connectors.append((form, place))
                case TableForm():
                    if _is_new(declared, form, place, mistakes):
                        declared.tables[form.name.folded] = (form, place)
                case ViewForm():
                    if _is_new(declared, form, place, mistakes):
                        declared.views[form.name.folded] = (form, place)
                case FunctionForm():
                    if _is_new(declared, form, place, mistakes):
                        declared.functions[form.name.folded] = (form, place)
    for name, (view, place) in declared.views.items():
        try:
            declared.queries[name] = read_query(view.query)
        except LexError as error:  # pragma: no cover - the statement's own tokens were read before
            mistakes.add(error.message, place.at(view.query_at + error.offset), error.hint)
    return declared


def is_python(path: str) -> bool:
    """True for a file of functions in Python; every other one holds SQL."""
    return path.endswith(".py")


def _declare_python(
    declared: Declared, path: str, text: str, files: Mapping[str, str], mistakes: Mistakes
) -> None:
    place = Place(path, text, 0)
    file = read_python(text)
    for problem in file.problems:
        mistakes.add(problem.message, place.at(problem.offset), problem.hint)
    own = {PurePosixPath(other).stem for other in files if is_python(other)} | {"", "pipeline"}
    for module in file.imports:
        if module.text in own:
            what = f"imports `{module.text}`, another file" if module.text else "imports a file"
            mistakes.add(
                f"{what} of the pipeline",
                place.at(module.at),
                "put what several functions need into one file with them: each file is frozen and "
                "run by itself",
            )
    for form in file.forms:
        if _is_new(declared, form, place, mistakes):
            declared.functions[form.name.folded] = (form, place)


def _is_new(
    declared: Declared,
    form: TableForm | ViewForm | FunctionForm | PythonForm,
    place: Place,
    mistakes: Mistakes,
) -> bool:
    name = form.name.folded
    first = declared.tables.get(name) or declared.views.get(name) or declared.functions.get(name)
    if first is None:
        return True
    first_form, first_place = first
    spelled = first_form.name.text
    case = "" if spelled == form.name.text else f" (as `{spelled}`; letter case doesn't count)"
    mistakes.add(
        f"`{form.name.text}` is created twice{case}",
        place.at(form.name.at),
        f"the first is at {first_place.at(first_form.name.at)}; rename or delete one",
    )
    return False
