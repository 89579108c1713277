"""gradient: the gradient of a program, as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from liftpy.cli.arguments import load_program
from liftpy.cli.options import JsonFlag, ProgramName
from liftpy.cli.screen import say, show_json
from liftpy.files.writing import write_file
from liftpy.gradient.program import gradient
from liftpy.language.text.program import show as program_text


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("gradient")(show_gradient)


def show_gradient(
    program: ProgramName,
    *,
    wrt: Annotated[
        list[str] | None,
        typer.Option(
            "--wrt",
            metavar="NAME",
            help="A parameter; repeat it for several. By default, all of floating-point numbers.",
        ),
    ] = None,
    of: Annotated[
        int | None,
        typer.Option(
            "--of", metavar="K", help="Of a result that is a tuple, only component K, from 0."
        ),
    ] = None,
    value: Annotated[
        bool, typer.Option("--value", help="Also return the program's own result, first.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write it to FILE.lift instead of printing it."
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """The gradient of a program, as a program.

    If the result is not one number, the gradient takes its cotangent as `dresult`.
    """
    made = gradient(load_program(program), wrt or None, of, value=value)
    text = program_text(made)
    if output is not None:
        write_file(output, text.encode())
    if json:
        show_json({"program": made.name, "parameters": [p.name for p in made.params], "text": text})
    elif output is None:
        say(text.rstrip())
