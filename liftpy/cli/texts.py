"""Texts that commands print: none has anything that a terminal would obey."""

from __future__ import annotations

import re

import typer

CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What a terminal would obey, or show in another order, instead of printing it."""


class StoppedAndSaid(SystemExit):
    """A command was stopped, and has said what is kept."""


def printable(text: str) -> str:
    r"""A text that any terminal shows as it is: what it would obey is spelled, `\x1b`.

    All that commands print goes through here: names and reasons are read from files.
    """
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def say(text: str = "") -> None:
    """Prints a text as it is."""
    typer.echo(printable(text))


def note(text: str) -> None:
    """Prints to stderr what is no part of the answer."""
    typer.echo(printable(text), err=True)
