"""Plans of what is not checked out: what its hooks ask, what Spark would run. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlmig.errors import Location, RevisionError
from sqlmig.ledger.records import AppliedRevision
from sqlmig.planning.directives import Directive, Operations
from sqlmig.program.model import Language, Program
from sqlmig.revisions.plain_hooks import FunctionName, read_plain_hook


def read_plainly(revision: AppliedRevision, hook: str) -> tuple[Directive, ...]:
    """What a revision's hook asks for, read from its text; none of its code runs.

    Raises:
        RevisionError: that can't be known so, or it asks for what there isn't.
    """
    operations = Operations()
    for call in read_plain_hook(revision.text, revision.path, hook):
        method = operations.named.get(call.name)
        arguments = [_unrun(a) if isinstance(a, FunctionName) else a for a in call.arguments]
        keywords = {
            k: _unrun(a) if isinstance(a, FunctionName) else a for k, a in call.keywords.items()
        }
        try:
            if method is None:
                raise AttributeError(f"there is no `op.{call.name}`")
            method(*arguments, **keywords)
        except (AttributeError, TypeError, ValueError) as error:
            raise RevisionError(
                f"`{hook}`: {error}", location=Location(revision.path, call.line)
            ) from None
    return operations.directives


def _unrun(function: FunctionName) -> Callable[[Any], object]:
    """Stands for a function in a plan that is only shown."""

    def run(context: Any) -> object:
        raise AssertionError(f"{function.name} is not to be run")

    run.__name__ = function.name
    return run


def foreign_functions(before: Program, after: Program) -> tuple[str, ...]:
    """Files of functions in Python that are not deployed as they are; Spark would run them."""
    known = {f.text for f in before.functions.values()}
    return tuple(
        sorted(
            {
                function.location.path if function.location else function.name
                for function in after.functions.values()
                if function.language is Language.PYTHON and function.text not in known
            }
        )
    )


def not_analyzed(files: tuple[str, ...]) -> str:
    """The warning of a plan whose queries Spark did not analyse because of `files`."""
    return (
        f"Spark did not analyse the queries: {', '.join(files)} "
        f"{'is' if len(files) == 1 else 'are'} code that is not checked out, and is not run here"
    )
