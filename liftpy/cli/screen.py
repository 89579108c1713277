"""What commands print: tables, JSON, and texts (texts.py). Colours and bars on a terminal only."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from liftpy.cli.texts import StoppedAndSaid, note, printable, say

__all__ = ["Screen", "StoppedAndSaid", "console", "note", "say", "show", "show_json"]

PIPE_WIDTH = 160
"""Columns of a table where there is no terminal and COLUMNS does not say."""


class Screen(Console):
    """A console that prints only what is printable, and its own colours."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The pieces of what is printed."""
        for piece in super().render(renderable, options):
            shown = piece.text if piece.control else printable(piece.text)
            yield Segment(shown, piece.style, piece.control)


def console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal; NO_COLOR and a pipe switch colours off."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Screen(stderr=stderr, width=width, highlight=False, soft_wrap=False)


def show(renderable: RenderableType) -> None:
    """Prints a table."""
    console().print(renderable)


def show_json(data: Any) -> None:
    """Prints data as JSON."""
    typer.echo(json.dumps(data, indent=2))
