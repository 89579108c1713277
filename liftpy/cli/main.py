"""The command `liftpy`: its commands, and what an error becomes."""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Annotated

import typer

from liftpy.errors import InternalError, LiftError

INTERNAL = InternalError.exit_code

#: The modules of this package that have the commands, and which, in the order of the help.
GROUPS = {
    "points": ("devices", "space", "explain"),
    "language": ("workloads", "show", "derive"),
    "primitives": ("primitives",),
    "proofs": ("rules", "prove"),
    "running": ("compile", "run"),
    "campaigns": ("explore", "pareto", "candidates", "report", "replay"),
    "boards": ("export", "import"),
}


def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Write a computation once; get a space of proved, measured OpenCL programs."""
    if version:
        from liftpy.explore.version import VERSION  # noqa: PLC0415  it looks at what is installed

        typer.echo(f"liftpy {VERSION}")
        raise typer.Exit


def application(command: str | None = None) -> typer.Typer:
    """The command line: all commands, or those of the module that has the given one.

    A module is imported for its commands alone, so that a command waits for nothing of the others.
    """
    app = typer.Typer(
        name="liftpy",
        no_args_is_help=True,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    having = [group for group, commands in GROUPS.items() if command in commands]
    for group in having or GROUPS:
        importlib.import_module(f"liftpy.cli.{group}").register(app)
    for registered in app.registered_commands:  # listed whole; what is worked out is cut
        registered.short_help = (inspect.getdoc(registered.callback) or "").partition("\n\n")[0]
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits: 0 done, 1 refused, 2 usage, 3 nothing measured, 70 a defect."""
    sys.excepthook = report_defect
    given = sys.argv[1:] if arguments is None else list(arguments)
    gc.disable()  # what is imported stays: there is nothing to collect, nor to look at again
    app = application(given[0] if given else None)
    gc.freeze()
    gc.enable()
    try:
        typer.main.get_command(app)(args=given, prog_name="liftpy")
    except (LiftError, InternalError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


def report_defect(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Says whose an exception is that nobody foresaw, and exits: the user's file's, or ours."""
    from liftpy.cli.arguments import user_code  # noqa: PLC0415  as late as the commands

    traceback.print_exception(kind, error, trace)
    if user_code.path is not None:
        typer.echo(f"error: {user_code.path} raised {kind.__name__}: {error}", err=True)
        code = LiftError.exit_code
    else:
        typer.echo(
            "error: this is a defect of liftpy: please report it with the traceback above and the "
            "program and command that led here",
            err=True,
        )
        code = INTERNAL
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the interpreter itself would exit with 1
