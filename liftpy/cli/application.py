"""The table of commands, and the handling of errors."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from liftpy.cli.loading import load
from liftpy.cli.texts import StoppedAndSaid, note
from liftpy.errors import InternalError, LiftError

__all__ = ["COMMANDS", "StoppedAndSaid", "application", "run"]

INTERNAL = InternalError.exit_code

#: Every command, in the order of the help: the module of this package with it, and a summary.
COMMANDS = {
    "devices": ("points", "OpenCL devices, with the limits that enter the constraint system."),
    "space": (
        "points",
        "Parameters, constraints with their sources, and the exact number of valid points.",
    ),
    "explain": (
        "points",
        "Whether settings are valid, or which conditions clash and which values would work.",
    ),
    "workloads": ("workloads", "Built-in programs, with sizes and flop counts."),
    "show": (
        "showing",
        "The program at a step of the compiler, for the candidate that --set names.",
    ),
    "derive": (
        "language",
        "A derivation of each family: the rules applied, where, and the result.",
    ),
    "gradient": ("gradient", "The gradient of a program, as a program."),
    "network": (
        "networks",
        "The operations of an ONNX model: operator, shapes, program, bytes; what is unsupported.",
    ),
    "plan": (
        "plans",
        "A candidate for each operation of a model, an order, and one arena; the front of plans.",
    ),
    "primitives": (
        "primitives",
        "Every primitive: law, conditions, syntax. In Markdown.",
    ),
    "rules": ("rules", "Every rule: law, conditions, verdict of its recorded proof."),
    "prove": (
        "proofs",
        "Proves rules and the contracts of primitives. Exit code 1 unless every verdict is proved.",
    ),
    "winograd": (
        "winograd",
        "A Winograd transform of a filter, exactly: operations and error constants.",
    ),
    "choose": (
        "choosing",
        "The candidate with the least modelled time, without running a kernel.",
    ),
    "compile": (
        "running",
        "The kernels and a manifest: arguments, NDRanges, buffers, memory figures.",
    ),
    "run": (
        "running",
        "Runs one candidate, a plan or a model; reports its time and the error of its result.",
    ),
    "explore": (
        "campaigns",
        "A campaign: draws candidates, compiles, checks and times each, and finds the front.",
    ),
    "pareto": (
        "fronts",
        "The front of time versus memory, error or an energy proxy, or of three figures.",
    ),
    "candidates": ("fronts", "Every candidate with its outcome and reason."),
    "report": (
        "fronts",
        "A campaign as one HTML page: front, outcomes, progress, parameters, how to reproduce it.",
    ),
    "replay": (
        "campaigns",
        "Re-derives a stored candidate; compares its kernels with the stored ones byte for byte.",
    ),
    "export": (
        "boards",
        "A bundle that runs without Python: kernels, a C program, a Makefile, a manifest.",
    ),
    "import": ("boards", "Imports the output of a board into a campaign: all rows of it, or none."),
}


FIRST_STEPS = """\b
First steps:
  liftpy explore vgg16/7 --samples 20 --db vgg7.db   a campaign, under a minute
  liftpy report vgg7.db -o vgg7.html                 its results as a page
  liftpy COMMAND --help                              the options of a command
Programs of your own: docs/tutorial.md
"""


class Commands(TyperGroup):
    """The command line; it describes an argument that is missing."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command of a context."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if not error.message:  # nothing but the name of the missing argument
                error.message = getattr(error.param, "help", None) or ""
            raise


def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Write a computation once; get a space of proved, measured OpenCL programs."""
    if version:
        from liftpy.explore.space.version import VERSION  # noqa: PLC0415  it reads installed files

        typer.echo(f"liftpy {VERSION}")
        raise typer.Exit


def application(command: str | None = None) -> typer.Typer:
    """The command line, with the commands of the module that implements the given one.

    Only that module is imported, so that a command does not wait for the imports of others. Without
    a command, all names are listed without importing a module; none of them can then be called.
    """
    app = typer.Typer(
        name="liftpy",
        cls=Commands,
        epilog=FIRST_STEPS,
        no_args_is_help=True,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    if command in COMMANDS:
        load(COMMANDS[command][0]).register(app)
    else:
        for name, (_, summary) in COMMANDS.items():
            app.command(name, short_help=summary)(unloaded)
    return app


def unloaded() -> None:
    """A placeholder for a command whose module is not loaded."""
    raise InternalError("a command was called whose module is not there")


def run(given: list[str]) -> None:
    """Runs a command and exits."""
    sys.excepthook = report_defect
    gc.disable()  # imported objects stay alive: there is nothing to collect or to scan again
    app = application(next((word for word in given if not word.startswith("-")), None))
    gc.freeze()
    gc.enable()
    try:
        typer.main.get_command(app)(args=given, prog_name="liftpy")
    except (LiftError, InternalError) as error:
        note(f"error: {error}")
        sys.exit(error.exit_code)


def from_file(trace: TracebackType | None, path: str) -> TracebackType | None:
    """The part of a traceback from its first line in a file on; None if it has none."""
    file, part = os.path.realpath(path), trace
    while part is not None and os.path.realpath(part.tb_frame.f_code.co_filename) != file:
        part = part.tb_next
    return part


def report_defect(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Reports an unexpected exception, from the user's file or from liftpy itself, and exits.

    A traceback of the user's file begins there.
    """
    from liftpy.cli.arguments import user_code  # noqa: PLC0415  slow to import

    if user_code.path is not None:
        part = from_file(trace, user_code.path)
        whole = part is None and not issubclass(kind, SyntaxError)
        traceback.print_exception(kind, error, trace if whole else part)
        note(f"error: {user_code.path} raised {kind.__name__}: {error}")
        code = LiftError.exit_code
    else:
        traceback.print_exception(kind, error, trace)
        note(
            "error: this is a defect of liftpy: please report it with the traceback above and the "
            "program and command that led here"
        )
        code = INTERNAL
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the interpreter itself would exit with 1
