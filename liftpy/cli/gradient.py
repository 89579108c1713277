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
from liftpy.primitives.text import show as program_text


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
            help="A parameter; repeat it for several. By default, all that are floats.",
        ),
    ] = None,
    of: Annotated[
        int | None,
        typer.Option("--of", metavar="K", help="The component of a tuple that is differentiated."),
    ] = None,
    value: Annotated[
        bool, typer.Option("--value", help="The result begins with that of the program.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it to a .lift file."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """The gradient of a program, as a program."""
    made = gradient(load_program(program), wrt or None, of, value=value)
    text = program_text(made)
    if output is not None:
        write_file(output, text.encode())
    if json:
        show_json({"program": made.name, "parameters": [p.name for p in made.params], "text": text})
    elif output is None:
        say(text.rstrip())
