"""Output of commands: tables, JSON, and texts (texts.py). Colours and bars on a terminal only."""

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
"""Width of a table in columns if there is no terminal and COLUMNS is not set."""


class Screen(Console):
    """A console that escapes control characters, except those of its own colours."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yields the segments of the output."""
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
