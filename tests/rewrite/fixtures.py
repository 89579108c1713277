"""The fixtures of the rules, `tests/rules/NAME.lift`: what a rule does and what it leaves alone.

Each has three programs under a heading: `before`, `after` (what the rule makes of it), and
`unchanged`, which looks like `before` and must not change, with the reason that the rule gives:

    # before: m = 4; g at 0.1
    # after
    # unchanged: m = 5; because 5 divides 12

Settings are the sizes that the rule tunes and its hints. `square`, `twice` and `sub` are defined.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from liftpy.ir.program import Program
from liftpy.ir.walk import Path as Place
from liftpy.language.text.program import parse

FOLDER = Path(__file__).parents[1] / "rules"
DEFINITIONS = (
    "fun square(x: f32) = x * x\nfun twice(x: f32) = x + x\nfun sub(x: f32, y: f32) = x - y\n"
)
HEADING = re.compile(r"^# (before|after|unchanged)(?:: (.*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A program of a fixture, with what the rule is given."""

    text: str
    sizes: dict[str, int] = field(default_factory=dict)
    hints: dict[str, Place] = field(default_factory=dict)
    because: str = ""

    @property
    def program(self) -> Program:
        return parse(DEFINITIONS + self.text)


def sections(name: str) -> dict[str, Section]:
    """The sections of a rule's fixture."""
    text = (FOLDER / f"{name}.lift").read_text(encoding="utf-8")
    parts = HEADING.split(text)[1:]
    found: dict[str, Section] = {}
    for heading, words, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        assert heading not in found, f"{name}: two sections {heading}"
        found[heading] = section(words or "", body.strip())
    return found


def section(words: str, text: str) -> Section:
    """A section from the words of its heading."""
    sizes: dict[str, int] = {}
    hints: dict[str, Place] = {}
    because = ""
    for word in filter(None, words.split("; ")):
        if word.startswith("because "):
            because = word.removeprefix("because ")
        elif " = " in word:
            name, size = word.split(" = ")
            sizes[name] = int(size)
        else:
            name, place = word.split(" at ")
            hints[name] = tuple(map(int, place.split(".")))
    return Section(text, sizes, hints, because)
