"""Texts that commands print, without control characters that a terminal would interpret."""

from __future__ import annotations

import re
import sys

import typer

CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that a terminal interprets, or that change the displayed order of others."""


class StoppedAndSaid(SystemExit):
    """Raised when a command was stopped and has reported what is stored."""


def printable(text: str) -> str:
    r"""The text with control characters escaped, as in `\x1b`.

    All output of commands passes through here, because names and reasons are read from files.
    """
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def say(text: str = "") -> None:
    """Prints a text to stdout."""
    typer.echo(printable(text))


def note(text: str) -> None:
    """Prints a text that is not part of the answer to stderr, in place of a drawn phase."""
    if (pulse := sys.modules.get("liftpy.cli.pulse")) is not None:
        pulse.pulse.erase()
    typer.echo(printable(text), err=True)
