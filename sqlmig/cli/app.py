"""The click group `main`: finds a command when it is called; turns errors into exit codes."""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

import sqlmig
from sqlmig.cli.annotations import annotate_error
from sqlmig.cli.output import say
from sqlmig.errors import SqlmigError

# section -> name -> (module below sqlmig.cli, what it does); modules are imported only when called
SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Write revisions": {
        "init": ("revisions", "Make a new project that works at once."),
        "revision": ("revisions", "Freeze pipeline/*.sql into a new revision."),
        "merge": ("joining", "Join heads into one."),
        "rebase": ("joining", "Put a branch on top of another head."),
        "check": ("revisions", "Fail if pipeline/ differs from the head."),
    },
    "Look": {
        "history": ("revisions", "List the revisions, newest first."),
        "heads": ("revisions", "List the revisions that nothing follows."),
        "branches": ("revisions", "List the revisions that several follow."),
        "show": ("revisions", "Show a revision."),
        "diff": ("state", "Show the program diff of two programs."),
        "current": ("state", "Show the deployed revision."),
        "status": ("state", "Show the pipeline's state."),
    },
    "Deploy": {
        "plan": ("deploy", "Show what an upgrade or downgrade would do."),
        "upgrade": ("deploy", "Take the pipeline to a later revision."),
        "downgrade": ("deploy", "Take the pipeline back to an earlier revision."),
        "approve": ("deploy", "Carry out the plan that waits for approval."),
        "reject": ("deploy", "Turn down the plan that waits for approval."),
        "repair": ("deploy", "Show, finish or take back an unfinished plan."),
        "stamp": ("deploy", "Write down what is deployed, doing nothing else."),
    },
    "Run": {
        "run": ("running", "Tick the pipeline, once or again and again."),
        "stop": ("running", "Ask that it ticks no more."),
        "resume": ("running", "Let it tick again."),
        "checkpoint": ("running", "Give the newest cut a number and a name."),
        "gc": ("collecting", "Remove what no kept cut and no way back needs."),
    },
    "Data": {
        "exec": ("data", "Run INSERT, UPDATE, DELETE or MERGE on a table."),
        "query": ("data", "Read the relations at one consistent cut."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
_CARRIES_OUT = frozenset({"upgrade", "downgrade", "approve", "repair", "run"})
_MARK = "\0"
Function = TypeVar("Function", bound=Callable[..., Any])


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"sqlmig.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in COMMANDS and not name.startswith("-"):
            import difflib

            close = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            raise click.UsageError(f"No such command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), what) for name, (_, what) in section.items()]
                )

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SqlmigError as error:
            self._trace(ctx)
            say(error.render())
            annotate_error(error, ctx.meta.get("sqlmig.root"))
            ctx.exit(error.exit_code)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            say("\nerror: interrupted")
            if ctx.invoked_subcommand in _CARRIES_OUT:
                say("\nhint: `sqlmig repair` shows whether a plan is unfinished, and what to do")
            ctx.exit(1)
        except OSError as error:
            self._trace(ctx)
            where = f"{error.filename}: " if error.filename else ""
            say(f"error: {where}{(error.strerror or str(error)).lower()}")
            say("\nhint: check the path, its rights, and the free space")
            ctx.exit(1)
        except Exception as error:
            self._trace(ctx)
            text = (str(error).strip() or type(error).__name__).splitlines()[0]
            say(f"error: {type(error).__name__}: {text}")
            say("\nhint: this is a fault of sqlmig; `--debug` shows where, for a report")
            ctx.exit(1)

    @staticmethod
    def _trace(ctx: click.Context) -> None:
        if ctx.meta.get("sqlmig.debug"):
            traceback.print_exc()


class PlainArguments(click.Command):
    """A command whose arguments may begin with a dash: `-1` is a revision, `-- note\\n...` is SQL.

    Such words are marked before click sorts options from arguments, and unmarked after it.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, [_mark(arg) for arg in args])
        except click.UsageError as error:
            if _MARK not in error.format_message():
                raise
            raise click.UsageError(error.format_message().replace(_MARK, ""), ctx) from None
        ctx.params = {name: _unmark(value) for name, value in ctx.params.items()}
        return rest


def _mark(arg: str) -> str:
    is_plain = re.fullmatch(r"-\d+(\.\..*)?", arg) or re.match(r"--\s|--[^=]*\n", arg)
    return f"{_MARK}{arg}" if is_plain else arg


def _unmark(value: Any) -> Any:
    if isinstance(value, str):
        return value.removeprefix(_MARK)
    return tuple(map(_unmark, value)) if isinstance(value, tuple) else value


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Remember a global option, given before or after the command's name."""
    if value and parameter.name:
        ctx.meta[f"sqlmig.{parameter.name}"] = value
    return value


def global_options(function: Function) -> Function:
    """The options that every command takes: `-c`, `--target`, `--debug`."""
    for option in (
        click.option(
            "--debug",
            is_flag=True,
            expose_value=False,
            callback=_keep,
            help="Show the traceback of an error.",
        ),
        click.option(
            "--target",
            metavar="NAME",
            expose_value=False,
            callback=_keep,
            help="A target in sqlmig.yml; else $SQLMIG_TARGET, else its default_target.",
        ),
        click.option(
            "-c",
            "--config",
            metavar="FILE",
            type=click.Path(),
            expose_value=False,
            callback=_keep,
            help="sqlmig.yml; else $SQLMIG_CONFIG, else the one here or in a folder above.",
        ),
    ):
        function = option(function)
    return function


def opened() -> Any:
    """The project that the global options name."""
    from sqlmig.commands.project import open_project

    meta = click.get_current_context().meta
    project = open_project(meta.get("sqlmig.config"), meta.get("sqlmig.target"))
    meta["sqlmig.root"] = project.root
    if sys.stderr.isatty():
        project.on_start = lambda: say("Starting Spark ...")
    return project


@click.group(
    "sqlmig",
    cls=LazyGroup,
    invoke_without_command=True,
    no_args_is_help=False,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(sqlmig.__version__, "-V", "--version", prog_name="sqlmig")
@global_options
@click.pass_context
def main(ctx: click.Context) -> None:
    """Migrations for SQL data pipelines on Spark and Delta Lake.

    Edit pipeline/*.sql, freeze a revision, see the plan, upgrade, go back:

    \b
        sqlmig revision -m "extend date range"
        sqlmig plan
        sqlmig upgrade head
        sqlmig downgrade -1

    Exit codes: 0 done, 1 error, 2 usage, 3 waiting for approval, 4 rejected or
    blocked, 5 outdated: what is deployed has moved. Data goes to stdout, talk to
    stderr; NO_COLOR is respected.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())
        ctx.exit(2)
