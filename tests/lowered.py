"""Programs that a test writes in lowered form."""

from __future__ import annotations

from liftpy.language.text.program import parse
from liftpy.primitives.dialects import LoweredProgram


def lowered(text: str) -> LoweredProgram:
    """A program from its text."""
    return LoweredProgram.of(parse(text))
