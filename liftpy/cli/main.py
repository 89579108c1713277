"""The command `liftpy`: its commands, and what an error becomes."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Annotated

import typer

from liftpy.cli import boards, campaigns, language, points, primitives, proofs, running
from liftpy.cli.arguments import user_code
from liftpy.errors import InternalError, LiftError
from liftpy.explore.version import VERSION

INTERNAL = InternalError.exit_code

app = typer.Typer(
    name="liftpy",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Write a computation once; get a space of proved, measured OpenCL programs."""
    if version:
        typer.echo(f"liftpy {VERSION}")
        raise typer.Exit


for group in (points, language, primitives, proofs, running, campaigns, boards):
    group.register(app)
for command in app.registered_commands:  # listed whole and wrapped; what is worked out is cut
    command.short_help = (inspect.getdoc(command.callback) or "").partition("\n\n")[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits: 0 done, 1 refused, 2 usage, 3 nothing measured, 70 a defect."""
    sys.excepthook = report_defect
    try:
        typer.main.get_command(app)(
            args=None if arguments is None else list(arguments), prog_name="liftpy"
        )
    except (LiftError, InternalError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


def report_defect(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Says whose an exception is that nobody foresaw, and exits: the user's file's, or ours."""
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
