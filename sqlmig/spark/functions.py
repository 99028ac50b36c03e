"""The program's functions as temporary functions of a session. It knows how to define one.

What is defined is the text that the program holds, which the revision froze; no file is read.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sqlmig.errors import EngineError, Location
from sqlmig.program.model import Function, Language
from sqlmig.spark.failures import told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def define(session: SparkSession, function: Function) -> None:
    """Define a function in the session; what it calls and reads has to be there already.

    Raises:
        EngineError: Spark refuses it; its file can't be run; another version of a package than it
            pins is installed.
    """
    if function.language is Language.SQL:
        with told(f"`{function.name}`", begins=function.location):
            session.sql(f"CREATE TEMPORARY FUNCTION {function.text}")
        return
    _check_packages(function)
    path = function.location.path if function.location else function.name
    code = _run(function.text, path)[function.entry]
    with told(f"`{function.name}`", begins=function.location):
        from pyspark.sql.functions import udf

        # not by Arrow: its conversions are others, and it depends on what is installed
        made: Any = udf(code, function.returns, useArrow=False)
        session.udf.register(
            function.name, made.asNondeterministic() if function.volatile else made
        )


def _check_packages(function: Function) -> None:
    for package in function.packages:
        name, _, wanted = package.partition("==")
        try:
            found = version(name)
        except PackageNotFoundError:
            found = ""
        if found != wanted:
            raise EngineError(
                f"`{function.name}` needs {name} {wanted}, and "
                + (f"{found} is installed" if found else "it is not installed"),
                location=function.location,
                hint=f"pip install '{package}', here and where Spark's workers run",
            )


@lru_cache(maxsize=256)
def _run(text: str, path: str) -> Mapping[str, Any]:
    """The names that a file's text defines; it is run once in a process.

    The module is not put into `sys.modules`: so it can't shadow another, and its functions go to
    Spark's workers by value.
    """
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = ModuleType("sqlmig_functions")
    module.__file__ = path
    try:
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == path]
        described = "".join(traceback.format_exception_only(type(error), error)).strip()
        raise EngineError(
            f"the file raised {described.splitlines()[-1]}",
            location=Location(path, lines[-1] if lines else None),
            hint="what it imports has to be installed here and where Spark's workers run",
        ) from error
    return module.__dict__
