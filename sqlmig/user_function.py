"""`sqlmig.function`: the mark of a function in `pipeline/functions/`. It does nothing.

The mark is read from the file's text; a marked function stays what it is, and can be called and
tested as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def function(marked: Function, /) -> Function: ...
@overload
def function(
    *, returns: str | None = None, packages: Sequence[str] = (), deterministic: bool = True
) -> Callable[[Function], Function]: ...
def function(
    marked: Function | None = None,
    /,
    *,
    returns: str | None = None,
    packages: Sequence[str] = (),
    deterministic: bool = True,
) -> Function | Callable[[Function], Function]:
    """Declare a function of the pipeline: `@function`, or `@function(returns="INT")`.

    Args:
        marked: the function.
        returns: Spark's type of what it returns; by default its annotation says that.
        packages: what it needs besides Python's own library, as `name==version`. A changed version
            changes the function.
        deterministic: False when equal arguments may give different values.

    Returns:
        The function, unchanged. The arguments are read from the file's text.
    """
    return marked if marked is not None else lambda function: function
