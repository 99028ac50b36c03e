"""What the documentation says is true: its links, commands, SQL, configs and messages."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import click
import pytest

from sqlmig.cli import main
from sqlmig.cli.app import COMMANDS
from sqlmig.config import parse_config
from sqlmig.errors import ApprovalRequired, BlockedError, RejectedError, SqlmigError
from sqlmig.planning.directives import Operations
from sqlmig.planning.explain import describe_diff
from sqlmig.planning.source_options import check_source
from sqlmig.program.diff import ProgramDiff, diff_programs
from sqlmig.program.parse import parse_program
from sqlmig.program.variables import substitute
from tests.docs.pages import (
    PAGES,
    ROOT,
    Block,
    anchors,
    blocks,
    links,
    mentioned_commands,
    prose,
    read,
    spans,
    typed_commands,
)

BLOCKS = tuple(block for page in PAGES for block in blocks(page))
WRITTEN = tuple(page for page in PAGES if page != "docs/cli.md")
"""The pages that people write; docs/cli.md is generated."""


def of(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


def test_every_page_is_there() -> None:
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/README.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for link in links(page):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{page}: no such file: {link}"
        if anchor:
            shown = target.resolve().relative_to(ROOT).as_posix()
            assert anchor in anchors(shown), f"{page}: no such heading: {link}"


def test_the_index_and_the_readme_name_every_page() -> None:
    pages = {page for page in PAGES if page.startswith("docs/") and page != "docs/README.md"}
    assert {f"docs/{link}" for link in links("docs/README.md")} >= pages
    assert set(links("README.md")) >= pages


@pytest.mark.parametrize("page", WRITTEN)
def test_every_command_that_can_be_typed_is_one(page: str) -> None:
    for arguments in typed_commands(page):
        parse(arguments, page)


@pytest.mark.parametrize("page", WRITTEN)
def test_every_command_that_is_mentioned_is_one(page: str) -> None:
    for arguments in mentioned_commands(page):
        try:
            parse(arguments, page)
        except click.MissingParameter:
            assert arguments[0] in COMMANDS


def test_the_new_projects_readme_has_commands_that_are_ones() -> None:
    for arguments in typed_commands("templates/project/README.md.jinja"):
        parse(arguments, "templates/project/README.md.jinja")


def parse(arguments: tuple[str, ...], page: str) -> None:
    """Let click read the arguments, and run nothing."""
    shown = f"{page}: sqlmig {' '.join(arguments)}"
    try:
        with main.make_context("sqlmig", list(arguments)) as group:
            words = [*group._protected_args, *group.args]
            name, command, rest = main.resolve_command(group, words)
            assert command is not None, shown
            with command.make_context(name, rest, parent=group):
                pass
    except click.MissingParameter:
        raise
    except click.UsageError as error:
        pytest.fail(f"{shown}: {error.format_message()}")


@pytest.mark.parametrize("block", of("sql"), ids=str)
def test_every_statement_is_read(block: Block) -> None:
    assert "statement" in block.words, f"{block}: mark it as ```sql statement"
    variables = [word.removeprefix("vars:") for word in block.words if word.startswith("vars:")]
    files = substitute({str(block): block.text}, dict.fromkeys(variables, "landing"))
    assert parse_program(files).relations


@pytest.mark.parametrize("block", of("sql"), ids=str)
def test_every_source_has_options_that_a_plan_takes(block: Block) -> None:
    variables = [word.removeprefix("vars:") for word in block.words if word.startswith("vars:")]
    files = substitute({str(block): block.text}, dict.fromkeys(variables, "landing"))
    program = parse_program(files)
    for source in program.sources.values():
        assert check_source(source, program.tables[source.table]) == ()


def test_getting_started_shows_the_sql_that_init_writes() -> None:
    shown = next(b for b in blocks("docs/getting-started.md") if b.language == "sql")
    written = {
        path.name: path.read_text(encoding="utf-8")
        for path in (ROOT / "templates/project/pipeline").glob("*.sql")
    }
    assert diff_programs(parse_program(written), parse_program({"a.sql": shown.text})).is_empty


def test_the_page_on_functions_shows_what_a_change_of_one_says() -> None:
    # given
    sql, python = (
        next(b.text for b in blocks("docs/functions.md") if b.language == language)
        for language in ("sql", "python")
    )
    assert "percent / 100" in sql
    before, after = (
        parse_program({"a.sql": text, "pipeline/functions/texts.py": python})
        for text in (sql, sql.replace("percent / 100", "percent / 200"))
    )

    # when
    lines = describe_diff(diff_programs(before, after))

    # then
    assert "".join(f"    {line}\n" for line in lines) in read("docs/functions.md")
    assert {"clean", "amount_in", "with_tax"} <= before.functions.keys()


@pytest.mark.parametrize("block", of("yaml"), ids=str)
def test_every_config_is_read(block: Block) -> None:
    config = parse_config(block.text, Path("sqlmig.yml"))
    assert config.targets


@pytest.mark.parametrize("block", of("json"), ids=str)
def test_every_program_diff_has_the_keys_of_one(block: Block) -> None:
    shown, real = json.loads(block.text), ProgramDiff().to_json()
    assert list(shown) == list(real)
    assert list(shown["program_diff"]) == list(real["program_diff"])


@pytest.mark.parametrize("block", of("python"), ids=str)
def test_every_hook_asks_for_what_there_is(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "op":
                assert hasattr(Operations, node.attr)
            if node.value.id == "commands":
                from sqlmig import commands

                assert node.attr in commands.__all__


@pytest.mark.parametrize("page", WRITTEN)
def test_every_directive_that_is_mentioned_is_one(page: str) -> None:
    for name in re.findall(r"\bop\.(\w+)\b", " ".join(spans(page))):
        if name != "rename_":
            assert hasattr(Operations, name), f"{page}: op.{name}"


def test_the_exit_codes_are_those_of_the_errors() -> None:
    table = dict(re.findall(r"^\| (\d) \| (.+) \|$", read("docs/getting-started.md"), re.MULTILINE))
    told = f"Exit codes: {', '.join(f'{code} {what}' for code, what in table.items())}."
    assert " ".join(told.split()) in " ".join((main.help or "").split())
    codes = {error.exit_code: table[str(error.exit_code)] for error in (SqlmigError, BlockedError)}
    assert codes == {1: "error", 4: "rejected or blocked"}
    assert RejectedError.exit_code == 4
    assert table[str(ApprovalRequired.exit_code)] == "waiting for approval"


def test_every_message_is_one_that_the_code_has() -> None:
    _, _, table = read("docs/recovery.md").partition("## Messages")
    messages = re.findall(r"^\| (?:`` ?(.+?) ?``|`([^`]+)`) \|", table, re.MULTILINE)
    assert len(messages) > 30
    for message in (double or single for double, single in messages):
        for part in filter(None, (part.strip(" ,()`") for part in message.split("..."))):
            assert part in literals(), f"no message of the code has: {part}"


@cache
def literals() -> str:
    """The texts of all string literals of the package; what is put into them is `...`."""
    found: list[str] = []
    for path in sorted((ROOT / "sqlmig").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "..." for p in node.values]
                found.append("".join(map(str, parts)))
    return "\n".join(found)


def test_every_setting_of_the_environment_is_read_somewhere() -> None:
    for page in WRITTEN:
        for name in re.findall(r"\bSQLMIG_[A-Z]+\b", read(page)):
            assert name in literals(), f"{page}: {name}"


def test_every_make_target_is_one() -> None:
    makefile = read("Makefile")
    for page in WRITTEN:
        text = "\n".join(spans(page)) + read(page).replace("`", "")
        for name in re.findall(r"^ {4}make ([a-z-]+)\b", text, re.MULTILINE):
            assert re.search(rf"^{name}:", makefile, re.MULTILINE), f"{page}: make {name}"


def test_every_pain_names_its_story_and_tests_that_there_are() -> None:
    _, *sections = read("docs/pains.md").split("\n## ")
    stories = re.findall(r"^def (test_\w+)", read("tests/cli/test_pains.py"), re.MULTILINE)
    titles = [section.partition("\n")[0] for section in sections]
    names = [re.sub(r"\W+", "_", title.replace("'", "").lower()) for title in titles]
    assert stories == [f"test_{name}" for name in names[:-1]]
    for section, name in zip(sections, names, strict=True):
        _, shown, tests = section.partition("\nShown by ")
        assert tests.startswith(f"`test_{name}`; ") or name == names[-1]
        paths = re.findall(r"`(tests/[\w/.]+)`", tests)
        assert shown, section
        assert paths, section
        texts = [p.read_text(encoding="utf-8") for p in map(ROOT.joinpath, paths) if p.is_file()]
        assert all((ROOT / path).exists() for path in paths), section
        for test in set(re.findall(r"`(test_\w+)`", tests)) - set(stories):
            assert any(f"def {test}(" in text for text in texts), test


@pytest.mark.parametrize("page", PAGES)
def test_no_page_tells_of_the_machine_that_it_was_written_on(page: str) -> None:
    found = re.findall(
        r"/work/|/tmp/|/home/\w|/root/|\bfile:/|pypi\.org|maven\.org|\bissue #?\d|\bTODO\b|\bXXX\b",
        read(page),
    )
    assert not found


@pytest.mark.parametrize("page", WRITTEN)
def test_lines_of_prose_are_not_too_long(page: str) -> None:
    for line in prose(page).splitlines():
        if not line.startswith(("|", "    ", "#")):
            assert len(line) <= 160, f"{page}: {line}"
