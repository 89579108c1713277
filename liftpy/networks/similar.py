"""Similar programs: their texts differ only in whole numbers, as for convolutions of other lengths.

A candidate that is fast for one is tried first for another, with the nearest possible sizes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from liftpy.constraints.device import Device
from liftpy.explore.one_candidate import nearest_candidate
from liftpy.explore.space.candidate import Candidate, program_text
from liftpy.explore.space.settings import Settings
from liftpy.ir.program import Program

NUMBER = re.compile(r"(?<![A-Za-z_\d.])\d+")
"""A whole number in the text of a program that is not part of a name or of a fraction."""


@dataclass(frozen=True)
class Outline:
    """The text of a program without its whole numbers, and the numbers in their order.

    >>> one, other = (lp.parse(f"def f(xs: [{n}]f32) = xs |> split(4) |> join") for n in (64, 512))
    >>> Outline.of(one).text == Outline.of(other).text
    True
    >>> Outline.of(one).apart(Outline.of(other))
    3.0
    """

    text: str
    numbers: tuple[int, ...]

    @staticmethod
    def of(program: Program) -> Outline:
        """The outline of a program."""
        text = program_text(program)
        return Outline(NUMBER.sub("#", text), tuple(map(int, NUMBER.findall(text))))

    def apart(self, other: Outline) -> float:
        """The sum of the distances of all numbers, in octaves; infinite if the texts differ."""
        if self.text != other.text:
            return math.inf
        pairs = zip(self.numbers, other.numbers, strict=True)
        return sum(abs(math.log2(max(a, 1) / max(b, 1))) for a, b in pairs)


def similar_candidate(
    program: Program,
    others: Iterable[tuple[Outline, Callable[[], Settings | None]]],
    device: Device,
    memory_limit: int | None = None,
) -> Candidate | None:
    """The candidate of a program that is most like the best one of a similar program.

    `others` are the outlines of programs, with functions that return the settings of their best
    candidates. The nearest one whose choices the program has determines the candidate; None if
    there is none.
    """
    own = Outline.of(program)
    found = [(own.apart(other), best) for other, best in others]
    for apart, best in sorted(found, key=lambda pair: pair[0]):
        settings = best() if apart < math.inf else None
        if settings is not None:
            near = nearest_candidate(program, device, settings, memory_limit)
            if near is not None:
                return near
    return None
