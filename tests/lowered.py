"""Programs that a test writes in lowered form."""

from __future__ import annotations

from liftpy.primitives.dialects import LoweredProgram
from liftpy.primitives.text import parse


def lowered(text: str) -> LoweredProgram:
    """A program from its text."""
    return LoweredProgram.of(parse(text))
