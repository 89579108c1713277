"""`broadcast`: the work-items of a subgroup share the rows of their work-group by broadcasts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from liftpy.ir.call import FunCall
from liftpy.ir.program import Program
from liftpy.ir.types import SUBGROUPS
from liftpy.ir.walk import every_part
from liftpy.primitives import ToSubgroup
from liftpy.primitives.subgroups import cannot_hold
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.cooperative import TileSizes
from liftpy.rewrite.strategies.families import cooperative
from liftpy.rewrite.strategies.families.cooperative import Cooperative
from liftpy.rewrite.strategies.families.form import Choices, Family
from liftpy.rewrite.strategies.families.widening import with_widening
from liftpy.rewrite.strategy import Failure

MOST_ITEMS = 256
"""The largest number of work-items in a group."""
LONGEST = 128
"""The longest chunk: the size of the largest subgroups of known devices."""


@dataclass(frozen=True)
class Broadcast(Cooperative):
    """The tiles of `cooperative`, each with the rows of one block."""

    def choices(self) -> Iterator[Choices]:
        """Those of `cooperative` without `buffers`, since nothing is copied to local memory."""
        for words in super().choices():
            if dict(words)["buffers"] == "1":
                yield tuple((name, word) for name, word in words if name != "buffers")

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The work-items of a group, the sides of a block, the length of a chunk, and vectors."""
        form = self.form(choices)
        longest, shortest = form.lengths[0], form.lengths[-1]
        part = Parameter("part", shortest, longest, "elements of a part of a reduction")
        return (
            *((part,) if form.in_parts else ()),
            Parameter("group", 1, min(form.inner, MOST_ITEMS), "work-items of a group"),
            Parameter("sigma", 1, form.outer, "rows of a group's tile of results"),
            Parameter("kappa", 1, form.inner, "columns of a work-item's block of results"),
            Parameter(
                "chunk",
                1,
                min(longest, LONGEST),
                "elements of a row that a subgroup holds at a time",
            ),
            Parameter("v", 1, MAX_LANES, "vector width over the columns of a block"),
        )

    def sizes(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> TileSizes:
        """The sizes of the tiles."""
        sigma, width = sizes["sigma"].nat, sizes["group"].nat * sizes["kappa"].nat
        return replace(self.tiles(choices, sizes), tile=(sigma, width), broadcast=True)


def match(program: Program) -> Broadcast | str:
    """The form of `cooperative`, if there is a broadcast for what its reductions read."""
    found = cooperative.match(program)
    if isinstance(found, str):
        return found
    form = Broadcast(found.constants, found.forms)
    words = dict(next(form.choices()))
    tried = form.strategy(words, {p.name: p for p in form.parameters(words)})(program.body.body)
    if isinstance(tried, Failure):
        return str(tried)
    held = (part for part in every_part(tried.expr) if isinstance(part, FunCall))
    reasons = (cannot_hold(part.type) for part in held if isinstance(part.fun, ToSubgroup))
    return next(filter(None, reasons), form)


BROADCAST = Family(
    "broadcast",
    "reductions of pairs: subgroups hold rows in registers, which work-items read by broadcasts",
    with_widening(match),
    for_groups=True,
    instructions=SUBGROUPS,
    vectors=True,
)
