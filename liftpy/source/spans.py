"""Texts, and the places in them that messages point at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from liftpy.errors import LiftError

E = TypeVar("E", bound=LiftError)

SNIPPET = 40  # characters shown of a stage
LINE = 120  # characters shown of a line
BEFORE = 60  # of these, characters shown before the place


def clipped(line: str, at: int, carets: int) -> tuple[str, int, int]:
    """A line clipped for a message, the column where the carets begin, and their number."""
    if len(line) <= LINE:
        return line, at, carets
    cut = max(0, min(at - BEFORE, len(line) - LINE))
    head = "... " if cut else ""
    tail = " ..." if cut + LINE < len(line) else ""
    shown, at = head + line[cut : cut + LINE] + tail, at - cut + len(head)
    return shown, at, max(1, min(carets, len(shown) - len(tail) - at))


@dataclass(frozen=True, slots=True)
class Span:
    """A range of the text: the offsets of its first character and past its last."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """A text that messages point into."""

    text: str

    def position(self, place: Span) -> tuple[int, int]:
        """Line and column of a place, both from 1."""
        line = self.text.count("\n", 0, place.start) + 1
        return line, place.start - self.text.rfind("\n", 0, place.start)

    def snippet(self, place: Span) -> str:
        """The text of a place on one line, cut if it is long."""
        text = " ".join(self.text[place.start : place.end].split())
        return text if len(text) <= SNIPPET else f"{text[:SNIPPET].rstrip()}..."

    def refusal(self, kind: type[E], what: str, place: Span, *why: str) -> E:
        """An error: what was refused, the line with carets, why, and what would satisfy it."""
        start = min(place.start, len(self.text.rstrip()))
        line = self.text.count("\n", 0, start) + 1
        begin = self.text.rfind("\n", 0, start) + 1
        end = self.text.find("\n", begin)
        shown = self.text[begin : len(self.text) if end < 0 else end].rstrip().replace("\t", " ")
        carets = max(1, min(place.end, begin + len(shown)) - start)
        at = start - begin
        shown, at, carets = clipped(shown, at, carets)
        label = f"  line {line} | "
        gap = " " * (len(label) - 2) + "| "
        lines = [what, label + shown, gap + " " * at + "^" * carets]
        return kind("\n".join([*lines, *(f"  {reason}" for reason in why if reason)]))


@dataclass(frozen=True, slots=True)
class Spans:
    """The places of the parts of a program in its text, kept apart from the expression.

    `calls` maps the paths of calls in the body to their places, `params` the names of parameters.
    """

    source: Source
    calls: Mapping[tuple[int, ...], Span]
    params: Mapping[str, Span]

    def call(self, path: tuple[int, ...]) -> Span | None:
        """The place of a call, or of the innermost part around it that has one."""
        for end in range(len(path), -1, -1):
            if (place := self.calls.get(path[:end])) is not None:
                return place
        return None
