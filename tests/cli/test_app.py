"""The group: help, global options, exit codes, and what no user mistake may look like."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import sqlmig
from sqlmig.cli import main
from sqlmig.cli.app import COMMANDS
from tests.cli.shell import Shell

PROD = """\
pipeline: school
targets:
  local: {warehouse: warehouse}
  prod: {warehouse: elsewhere}
default_target: local
"""


def test_without_arguments_the_help_is_shown_as_for_wrong_usage(tmp_path: Path) -> None:
    said = Shell(tmp_path)(code=2)

    assert said.out == ""
    assert said.err.startswith("Usage: sqlmig [OPTIONS] COMMAND [ARGS]...")
    assert said.err.strip() == Shell(tmp_path)("--help").out.strip()


def test_help_lists_every_command_below_a_heading(tmp_path: Path) -> None:
    text = Shell(tmp_path)("-h").out

    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", text, re.MULTILINE)
    assert listed == list(COMMANDS)
    assert re.findall(r"^(\w[\w ]*):$", text, re.MULTILINE) == [
        "Options",
        "Write revisions",
        "Look",
        "Deploy",
        "Run",
        "Data",
    ]
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_a_help_text(name: str, tmp_path: Path) -> None:
    command = main.get_command(click.Context(main), name)

    assert command is not None
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"
            assert parameter.help.endswith((".", ":current.")), f"{name} {parameter.opts}"
    summary = COMMANDS[name][1]
    assert summary.endswith(".")
    assert len(summary) < 60
    said = Shell(tmp_path)(name, "--help")
    assert said.out.startswith(f"Usage: sqlmig {name} ")
    assert {"--config", "--target", "--debug"} <= set(re.findall(r"--[a-z]+", said.out))


def test_the_version(tmp_path: Path) -> None:
    assert Shell(tmp_path)("--version").out == f"sqlmig, version {sqlmig.__version__}\n"
    assert Shell(tmp_path)("-V").out == f"sqlmig, version {sqlmig.__version__}\n"


def test_an_unknown_command_names_the_nearest_one(tmp_path: Path) -> None:
    said = Shell(tmp_path)("upgrad", "head", code=2)

    assert "Error: No such command 'upgrad'. Did you mean 'upgrade'?" in said.err
    assert "Did you mean" not in Shell(tmp_path)("zzz", code=2).err


@pytest.mark.parametrize(
    "words",
    [
        ["history", "--nope"],
        ["history", "surplus"],
        ["show"],
        ["downgrade"],
        ["downgrade", "-1", "-2"],
        ["plan", "--format", "xml"],
        ["upgrade", "--bootstrap-policy", "maybe"],
        ["revision"],
        ["revision", "--amend", "--empty"],
        ["repair", "--resume", "--rollback"],
        ["init"],
        ["query"],
        ["--nope"],
    ],
)
def test_wrong_usage_ends_with_2(words: list[str], school: Shell) -> None:
    said = school(*words, code=2)

    assert said.out == ""
    assert "Usage: sqlmig" in said.err
    assert "\0" not in said.err


@pytest.mark.parametrize(
    "words",
    [
        ["--target", "prod", "status", "--json"],
        ["status", "--target", "prod", "--json"],
        ["status", "--json", "--target=prod"],
        ["--target", "local", "status", "--target", "prod", "--json"],
    ],
)
def test_global_options_stand_before_or_after_the_command(words: list[str], school: Shell) -> None:
    school.write("sqlmig.yml", PROD)

    assert school(*words).json["target"] == "prod"


def test_the_environment_names_target_and_config(
    school: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.write("sqlmig.yml", PROD)
    monkeypatch.setenv("SQLMIG_TARGET", "prod")
    assert school("status", "--json").json["target"] == "prod"
    assert school("--target", "local", "status", "--json").json["target"] == "local"

    monkeypatch.setenv("SQLMIG_CONFIG", str(school.folder))
    assert Shell(tmp_path)("status", "--json").json["target"] == "prod"
    monkeypatch.delenv("SQLMIG_TARGET")
    assert Shell(tmp_path)("status", "--json").json["target"] == "local"


def test_a_config_is_found_above_and_by_file_and_by_folder(school: Shell, tmp_path: Path) -> None:
    below = school.folder / "pipeline"
    assert Shell(below)("status", "--json").json["pipeline"] == "school"

    elsewhere = Shell(tmp_path)
    for path in ("school", "school/sqlmig.yml"):
        assert elsewhere("-c", path, "status", "--json").json["pipeline"] == "school"
        assert elsewhere("status", f"-c{path}", "--json").json["pipeline"] == "school"


def test_minus_one_is_a_revision_wherever_one_is_taken(school: Shell) -> None:
    school.freeze("aaaa1111")
    school.freeze("bbbb2222", "--empty")
    school("stamp", "head")

    assert school("show", "-1").out.startswith("Rev: aaaa1111")
    assert school("diff", "-1", "-1").err == "No changes.\n"
    assert school("plan", "-1", "--offline", "--json").json["target"] == "aaaa1111"
    assert school("plan", "--offline", "-1", "-ofile.json").err.endswith("file.json.\n")
    assert school("history", "-r", "-1:", "--json").json[-1]["revision"] == "aaaa1111"
    assert "is not a head" in school("revision", "-m", "x", "--head", "-1", code=1).err
    assert "is below" in school("merge", "-1", "head", code=1).err
    school("stamp", "-1")
    assert school("current").out == "aaaa1111\n"
    assert "leads too far" in school("show", "-3", code=1).err
    assert "No such option" in school("show", "-1", "-z", code=2).err


def test_sql_may_begin_with_a_comment(school: Shell) -> None:
    said = school("query", "-- all of them\nSELECT 1", code=1)

    assert said.err.startswith("error: nothing is deployed"), "it was taken for an option"
    assert school("exec", "-- x = 1\nINSERT", code=1).err.startswith("error: nothing is deployed")
    assert school("query", "-", code=1, answers="SELECT 1").err.startswith("error: nothing is")


MISTAKES: dict[str, tuple[str, str | bytes, list[str], str]] = {
    "yaml": ("sqlmig.yml", "targets: [", ["status"], "error: sqlmig.yml:2:1: not YAML"),
    "unknown key": ("sqlmig.yml", "tragets: {}\n", ["status"], "error: sqlmig.yml:1:1: unknown"),
    "config not utf-8": ("sqlmig.yml", b"\xff", ["status"], "error: sqlmig.yml: can't be read"),
    "sql": ("pipeline/x.sql", "CREATE TABEL x (a INT);", ["diff"], "error: pipeline/x.sql:1:8: "),
    "sql not utf-8": (
        "pipeline/x.sql",
        b"-- \xe9\n",
        ["revision", "-m", "x"],
        "error: pipeline/x.sql: byte 4 is not UTF-8\n\nhint: save the file as UTF-8\n",
    ),
    "unknown relation": (
        "pipeline/x.sql",
        "CREATE VIEW x AS SELECT a FROM stduents;",
        ["check"],
        "error: pipeline/x.sql:1:32: ",
    ),
    "a variable": ("pipeline/x.sql", "CREATE VIEW x AS SELECT ${a};", ["diff"], "error: pipeline/"),
    "a revision's syntax": (
        "revisions/20260101_x_y.py",
        "def up(op:\n",
        ["history"],
        "error: revisions/20260101_x_y.py:1:7: syntax error",
    ),
    "a revision without an id": ("revisions/x.py", "a = 1\n", ["heads"], "error: revisions/x.py: "),
    "a revision not utf-8": ("revisions/x.py", b"\xff", ["heads"], "error: revisions/x.py: byte 1"),
    "a missing parent": (
        "revisions/x.py",
        'revision = "x"\ndown_revision = "gone"\nprogram = {}\n',
        ["history"],
        "error: revisions/x.py: `down_revision` of revision `x` names `gone`",
    ),
    "a hook that raises": (
        "revisions/x.py",
        'revision = "x"\nprogram = {}\n\n\ndef up(op):\n    op.nope()\n',
        ["plan", "--offline"],
        "error: revisions/x.py:6: `up` raised AttributeError",
    ),
    "a file that raises": (
        "revisions/x.py",
        'revision = "x"\nprogram = {}\n1 / 0\n',
        ["plan", "--offline"],
        "error: revisions/x.py:3: the file raised ZeroDivisionError",
    ),
    "a hook that exits": (
        "revisions/x.py",
        'revision = "x"\nprogram = {}\n\n\ndef up(op):\n    raise SystemExit(0)\n',
        ["plan", "--offline"],
        "error: revisions/x.py:6: `up` raised SystemExit",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_users_mistake_is_said_in_a_line_with_its_place(mistake: str, school: Shell) -> None:
    path, text, words, beginning = MISTAKES[mistake]
    (school.folder / path).parent.mkdir(exist_ok=True)
    if isinstance(text, bytes):
        (school.folder / path).write_bytes(text)
    else:
        school.write(path, text)

    said = school(*words, code=1)

    assert said.err.startswith(beginning), said.err
    assert said.out == ""
    traced = school("--debug", *words, code=1).err
    assert "Traceback (most recent call last)" in traced
    assert beginning in traced


def test_all_mistakes_are_said_at_once(school: Shell) -> None:
    school.write("pipeline/x.sql", "CREATE TABEL x (a INT);\nDROP TABLE y;\n")
    school.write("pipeline/z.sql", "CREATE VIEW z AS SELECT a FROM nowhere;")

    said = school("diff", code=1)

    places = re.findall(r"^error: (\S+): ", said.err, re.MULTILINE)
    assert places == ["pipeline/x.sql:1:8", "pipeline/x.sql:2:1", "pipeline/z.sql:1:32"]


def test_a_missing_pipeline_folder_removes_nothing_unsaid(school: Shell) -> None:
    school.freeze("aaaa1111")
    (school.folder / "pipeline").rename(school.folder / "away")

    for words in (["check"], ["diff"], ["revision", "-m", "x"]):
        assert school(*words, code=1).err.startswith("error: pipeline: no such folder\n\nhint: ")


def test_a_folder_that_ends_in_sql_is_said(school: Shell) -> None:
    (school.folder / "pipeline" / "old.sql").mkdir()

    assert "error: pipeline/old.sql: can't be read: " in school("diff", code=1).err


def test_a_place_that_cant_be_written_is_said(school: Shell, tmp_path: Path) -> None:
    school.write("taken", "")
    school.freeze("aaaa1111")

    said = school("plan", "--offline", "-o", "taken/plan.txt", code=1)
    assert said.err.startswith("error: taken/plan.txt: not a directory\n\nhint: check the path")
    assert "is a directory" in school("plan", "--offline", "-o", "pipeline", code=2).err
    school.write("sqlmig.yml", "pipeline: school\ntargets:\n  local: {warehouse: taken}\n")
    assert school("stamp", "head", code=1).err.startswith("error: no ledger can be made at ")


def test_a_warehouse_of_another_pipeline_is_refused(school: Shell) -> None:
    school.freeze("aaaa1111")
    school("stamp", "head")
    school.write("sqlmig.yml", "pipeline: other\ntargets:\n  local: {warehouse: warehouse}\n")

    for words in (
        ["status"],
        ["current"],
        ["diff"],
        ["check"],
        ["history", "-i"],
        ["plan", "--offline"],
        ["stamp", "head"],
        ["repair"],
        ["approve"],
    ):
        said = school(*words, code=1)
        assert said.err.startswith(
            "error: this warehouse holds pipeline `school`, not `other`\n\nhint: give the target"
        ), words


def test_a_fault_of_sqlmig_is_called_one(school: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("sqlmig.commands.state.status", fail)

    said = school("status", code=1)
    assert said.err == (
        "error: KeyError: 'x'\n\n"
        "hint: this is a fault of sqlmig; `--debug` shows where, for a report\n"
    )
    assert "Traceback" in school("status", "--debug", code=1).err


def test_an_interrupted_run_says_what_to_do(school: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sqlmig.commands.state.status", interrupt)
    monkeypatch.setattr("sqlmig.commands.deploy.upgrade", interrupt)

    assert school("status", code=1).err == "\nerror: interrupted\n"
    assert "hint: `sqlmig repair` shows whether" in school("upgrade", code=1).err
