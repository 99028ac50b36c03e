"""The click group `main`: finds a command's module when it is called, and turns errors into exit codes."""

from __future__ import annotations

import importlib
import re
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import click

import sqlmig
from sqlmig.errors import SqlmigError

# name -> (module below sqlmig.cli, what it does); modules are imported only when called, for speed
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("revisions", "Make a new project that works at once."),
    "revision": ("revisions", "Freeze pipeline/*.sql into a new revision."),
    "merge": ("revisions", "Join heads into one."),
    "history": ("revisions", "List the revisions, newest first."),
    "heads": ("revisions", "List the revisions that nothing follows."),
    "branches": ("revisions", "List the revisions that several follow."),
    "show": ("revisions", "Show a revision."),
    "check": ("revisions", "Fail if pipeline/ differs from the head."),
    "plan": ("deploy", "Show what an upgrade or downgrade would do."),
    "upgrade": ("deploy", "Take the pipeline to a later revision."),
    "downgrade": ("deploy", "Take the pipeline back to an earlier revision."),
    "approve": ("deploy", "Carry out the plan that waits for approval."),
    "reject": ("deploy", "Turn down the plan that waits for approval."),
    "repair": ("deploy", "Show, finish or take back an unfinished plan."),
    "stamp": ("deploy", "Write into the ledger what is deployed, doing nothing else."),
    "current": ("state", "Show the deployed revision."),
    "status": ("state", "Show the pipeline's state."),
    "diff": ("state", "Show the program diff of two programs."),
    "run": ("data", "Tick the pipeline."),
    "exec": ("data", "Run INSERT, UPDATE, DELETE or MERGE on a table."),
    "query": ("data", "Read the relations at one consistent cut."),
}
_GLOBAL = ("config", "target", "debug")
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
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise click.UsageError(f"No such command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SqlmigError as error:
            if ctx.meta.get("sqlmig.debug"):
                traceback.print_exc()
            click.echo(error.render(), err=True)
            ctx.exit(error.exit_code)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo(
                "error: interrupted\n\n"
                "hint: `sqlmig repair` shows whether a plan is unfinished, and what to do",
                err=True,
            )
            ctx.exit(1)
        except BrokenPipeError:
            raise
        except Exception as error:
            if ctx.meta.get("sqlmig.debug"):
                traceback.print_exc()
            text = (str(error).strip() or type(error).__name__).splitlines()[0]
            click.echo(
                f"error: {type(error).__name__}: {text}\n\n"
                "hint: this is a fault of sqlmig; `--debug` shows where, for a report",
                err=True,
            )
            ctx.exit(1)


class RevisionCommand(click.Command):
    """A command that takes a revision's name, which may be `-1`: that is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {name for p in self.get_params(ctx) for name in (*p.opts, *p.secondary_opts)}
        given = [arg.partition("=")[0] for arg in args if arg.startswith("-") and arg != "--"]
        ctx.ignore_unknown_options = all(
            name in known or re.fullmatch(r"-\d+", name) for name in given
        )
        return super().parse_args(ctx, args)


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
            help="The target in sqlmig.yml; by default its default_target.",
        ),
        click.option(
            "-c",
            "--config",
            metavar="FILE",
            type=click.Path(),
            expose_value=False,
            callback=_keep,
            help="sqlmig.yml; by default the one here or in a folder above.",
        ),
    ):
        function = option(function)
    return function


def opened() -> Any:
    """The project that the global options name."""
    from sqlmig.commands.project import open_project

    meta = click.get_current_context().meta
    return open_project(meta.get("sqlmig.config"), meta.get("sqlmig.target"))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(sqlmig.__version__, "-V", "--version", prog_name="sqlmig")
@global_options
def main() -> None:
    """Migrations for SQL data pipelines on Spark and Delta Lake.

    Edit pipeline/*.sql, freeze a revision, see the plan, upgrade, go back:

    \b
        sqlmig revision -m "extend date range"
        sqlmig plan
        sqlmig upgrade head
        sqlmig downgrade -1

    Exit codes: 0 done, 1 error, 2 usage, 3 waiting for approval, 4 rejected or blocked.
    """
