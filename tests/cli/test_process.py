"""Real processes: what is imported, pipes, colours, narrow terminals."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import TABLES, VIEWS, Shell, new_project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
_HEAVY = ("pyspark", "delta", "py4j", "pyarrow", "pandas")
_REPORT = """\
import sys
from sqlmig.cli import main
try:
    main(sys.argv[1:], prog_name="sqlmig")
finally:
    loaded = sorted({name.partition(".")[0] for name in sys.modules})
    print("LOADED", *loaded, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Two revisions, the first of them stamped."""
    shell = new_project(tmp_path_factory.mktemp("process") / "school")
    shell.freeze("aaaa1111", message="first")
    shell.write("pipeline/views.sql", VIEWS.replace("> 90", "> 95"))
    shell.freeze("bbbb2222", message="stricter")
    shell("stamp", "aaaa")
    return shell


def loaded(shell: Shell, *words: str) -> set[str]:
    """The top-level modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-c", _REPORT, *words],
        cwd=shell.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1, 5), done.stderr
    return set(done.stderr.rpartition("LOADED ")[2].split())


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["history"],
        ["history", "-i"],
        ["heads", "-v"],
        ["branches"],
        ["show", "head"],
        ["current", "-v"],
        ["status"],
        ["diff"],
        ["check"],
        ["plan", "--offline"],
        ["plan", "-1", "--offline"],
        ["stamp", "aaaa"],
        ["repair"],
        ["reject"],
        ["merge"],
        ["revision", "-m", "none", "--head", "aaaa"],
    ],
    ids=" ".join,
)
def test_reading_commands_import_no_spark(school: Shell, words: list[str]) -> None:
    assert loaded(school, *words).isdisjoint(_HEAVY)


@pytest.mark.parametrize("words", [["history"], ["history", "-v"], ["heads"], ["branches"]])
def test_the_history_is_read_without_the_big_libraries(school: Shell, words: list[str]) -> None:
    assert loaded(school, *words).isdisjoint(
        {*_HEAVY, "sqlglot", "git", "deltalake", "arro3", "rich", "jinja2"}
    )


@pytest.mark.parametrize("words", [["current"], ["status"], ["history", "-i"]])
def test_the_ledger_is_read_without_sql_and_git(school: Shell, words: list[str]) -> None:
    assert loaded(school, *words).isdisjoint({*_HEAVY, "sqlglot", "git", "rich", "jinja2"})


@pytest.mark.parametrize(
    "words",
    [["history"], ["status"], ["diff"], ["plan", "--offline"], ["check"], ["current"], ["heads"]],
    ids=" ".join,
)
def test_json_goes_to_stdout_alone(school: Shell, words: list[str]) -> None:
    said = school.start(*words, "--json")

    assert said.code in (0, 1)
    json.loads(said.out)


def test_python_m_sqlmig_is_the_command(school: Shell) -> None:
    said = school.start("heads")

    assert said == type(said)("bbbb2222 (head)\n", "", 0)
    assert "Usage: python -m sqlmig " in school.start("show").err


@pytest.mark.parametrize("words", [["history", "-v"], ["show", "head", "--text"], ["status"]])
def test_a_closed_pipe_is_no_error_to_talk_about(school: Shell, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "sqlmig", *words],
        cwd=school.folder,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)

    assert done.stderr == ""


def on_a_terminal(shell: Shell, *words: str, answer: str = "", **environment: str) -> str:
    """What a command prints, both streams, when it has a terminal of 60 columns."""
    main, other = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "sqlmig", *words],
        cwd=shell.folder,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "60", **environment},
        stdin=other,
        stdout=other,
        stderr=other,
    )
    os.close(other)
    chunks = []
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
        if answer and b"? [" in chunk:
            os.write(main, answer.encode())
    done.wait()
    os.close(main)
    return b"".join(chunks).decode().replace("\r\n", "\n")


def test_a_terminal_shows_colours_and_no_color_takes_them_out(school: Shell) -> None:
    told = on_a_terminal(school, "diff", NO_COLOR="")
    assert told.startswith("\x1b[33m~\x1b[0m materialized view honours: ")
    assert "\x1b[31m\x1b[1merror:\x1b[0m" in on_a_terminal(school, "show", "nope", NO_COLOR="")

    assert on_a_terminal(school, "diff", NO_COLOR="1").startswith("~ materialized view honours: ")
    assert "\x1b" not in on_a_terminal(school, "show", "nope", NO_COLOR="1")
    assert "\x1b" not in school.start("diff").out


def test_help_fits_a_narrow_terminal(school: Shell) -> None:
    told = on_a_terminal(school, "revision", "--help")

    assert max(map(len, told.splitlines())) <= 60


def test_upgrade_shows_the_plan_and_asks_on_a_terminal(tmp_path: Path) -> None:
    shell = new_project(tmp_path / "school", tables=TABLES)  # no view: Spark isn't asked
    shell.freeze("aaaa1111")

    told = on_a_terminal(shell, "upgrade", answer="n\n", NO_COLOR="1")

    assert re.search(r"^  \+ table grades$", told, re.MULTILINE)
    assert "\nCarry it out? [y/N]: " in told
    assert told.endswith("error: not approved; nothing was run\n")
    assert "Aborted!" in on_a_terminal(shell, "upgrade", answer="\x04")
    assert shell("status", "--json").json["state"] == "Stopped"


def test_a_terminal_that_knows_few_letters_breaks_nothing(school: Shell) -> None:
    said = school.start("plan", "--offline", "--format", "markdown", PYTHONIOENCODING="latin-1")

    assert said.code == 0, said.err
    assert "`aaaa1111` \\u2192 `bbbb2222`" in said.out
