"""What commands print: text, tables, JSON. Colours and progress bars on a terminal only."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import typer
from rich.console import Console, RenderableType

PIPE_WIDTH = 160
"""Columns of a table where there is no terminal and COLUMNS does not say."""


def console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal; NO_COLOR and a pipe switch colours off."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False)


def show(renderable: RenderableType) -> None:
    """Prints a table."""
    console().print(renderable)


def say(text: str = "") -> None:
    """Prints a text as it is."""
    typer.echo(text)


def note(text: str) -> None:
    """Prints to stderr what is no part of the answer."""
    typer.echo(text, err=True)


def show_json(data: Any) -> None:
    """Prints data as JSON."""
    typer.echo(json.dumps(data, indent=2))
