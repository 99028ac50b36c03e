"""The Java that Spark needs. It finds it and reads its version, and starts nothing else.

Imports nothing but the standard library and `sqlmig.errors`, so that the Makefile can run it
before anything is installed: `python3 -m sqlmig.spark.java`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from sqlmig.errors import EngineError

SUPPORTED = (17, 21)

_WHAT_TO_INSTALL = "install openjdk-17-jre-headless or set JAVA_HOME"
_VERSION = re.compile(r'version "?(?P<major>\d+)(?:\.(?P<minor>\d+))?|\b(?:jdk|jre)-?(?P<jdk>\d+)')


def find_java() -> Path | None:
    """The `java` that Spark's launcher takes: that of JAVA_HOME if it is set, else of PATH.

    Returns:
        Its path, which need not exist when JAVA_HOME points nowhere; None if PATH has none.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return Path(found) if found else None


def parse_version(text: str) -> int | None:
    """The feature release in the output of `java -version`: 8 for 1.8.0_402, 17 for 17.0.15.

    Knows the forms of OpenJDK, Oracle, Temurin, Zulu, Corretto, GraalVM, Semeru and early access
    builds (`openjdk version "21-ea"`). Lines that JAVA_TOOL_OPTIONS adds are passed over.

    Returns:
        The number, or None if the text has none.
    """
    for line in text.splitlines():
        match = None if line.startswith("Picked up ") else _VERSION.search(line)
        if match is None:
            continue
        if match["jdk"]:
            return int(match["jdk"])
        major = int(match["major"])
        return int(match["minor"]) if major == 1 and match["minor"] else major
    return None


def check_java() -> None:
    """Check that Java 17 or 21 is there.

    Raises:
        EngineError: in one line, with what to install.
    """
    java = find_java()
    if java is None:
        raise EngineError(f"Java 17 or 21 is needed, found none: {_WHAT_TO_INSTALL}")
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        found = f"found none that runs at {java}"
        raise EngineError(f"Java 17 or 21 is needed, {found}: {_WHAT_TO_INSTALL}") from None
    version = parse_version(done.stderr + done.stdout)
    if version not in SUPPORTED:
        found = f"found {version}" if version else "found one that doesn't tell its version"
        raise EngineError(f"Java 17 or 21 is needed, {found} at {java}: {_WHAT_TO_INSTALL}")


def main() -> int:
    """Say in one line what is missing; nothing if all is well. The exit status is 0 or 1."""
    try:
        check_java()
    except EngineError as error:
        sys.stderr.write(error.render() + "\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
