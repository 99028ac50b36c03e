"""The command `git`, run through GitPython, which is imported only when there is something to ask.

It knows how to ask, nothing of what is asked. It takes no lock and never asks for a password.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from git import Git

_NO_COMMAND = 127


@dataclass(frozen=True)
class Answer:
    """What `git ...` said.

    Args:
        code: its exit code; 127 where there is no such command.
        out: its standard output, as it is.
        error: its standard error, without blanks around it.
    """

    code: int
    out: bytes
    error: str

    @property
    def is_good(self) -> bool:
        """It ended with 0."""
        return self.code == 0

    @property
    def text(self) -> str:
        """The output as text without the last line end; bytes that are no UTF-8 are kept."""
        return self.out.decode(errors="surrogateescape").removesuffix("\n")

    @property
    def words(self) -> tuple[str, ...]:
        """The parts of an output that NUL characters divide."""
        return tuple(part for part in self.text.split("\0") if part)


class GitCommand:
    """`git`, asked in a folder.

    Args:
        folder: the current folder of the command; a project's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def has_repository(self) -> bool:
        """False when Git needn't be asked: no `.git` here or above, and no variable names one."""
        if not self.folder.is_dir():
            return False
        if "GIT_DIR" in os.environ:
            return True
        folder = self.folder.resolve()
        return any((parent / ".git").exists() for parent in (folder, *folder.parents))

    def ask(self, *arguments: str, sent: bytes = b"") -> Answer:
        """Run `git ARGUMENTS`.

        Args:
            sent: its standard input.
        """
        git = self._git
        from git.exc import CommandError

        with tempfile.TemporaryFile() as stdin:
            stdin.write(sent)
            stdin.seek(0)
            try:
                code, out, error = git.execute(
                    ["git", "--no-pager", *arguments],
                    istream=stdin,
                    with_extended_output=True,
                    with_exceptions=False,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                )
            except (CommandError, OSError) as failure:
                return Answer(_NO_COMMAND, b"", str(failure))
        return Answer(code, _bytes(out), str(error).strip())

    def text(self, *arguments: str) -> str | None:
        """The output of `git ARGUMENTS`; None when there is no such command, or it fails."""
        answer = self.ask(*arguments)
        return answer.text if answer.is_good else None

    @property
    def is_shallow(self) -> bool:
        """The clone lacks older commits."""
        return self.text("rev-parse", "--is-shallow-repository") == "true"

    @cached_property
    def _git(self) -> Git:
        # GitPython looks for the command when it is imported, and complains when there is none.
        before = os.environ.get("GIT_PYTHON_REFRESH")
        os.environ["GIT_PYTHON_REFRESH"] = "quiet"
        try:
            from git import Git
        finally:
            if before is None:
                del os.environ["GIT_PYTHON_REFRESH"]
            else:
                os.environ["GIT_PYTHON_REFRESH"] = before
        git = Git(self.folder)
        git.update_environment(GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0")
        return git


def _bytes(out: object) -> bytes:
    return out if isinstance(out, bytes) else str(out).encode(errors="surrogateescape")
