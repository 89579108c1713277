"""`cooperative`: a work-group copies tiles of both operands to local memory in every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.program import Program
from liftpy.ir.walk import at
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import block_of, cut_of
from liftpy.rewrite.strategies.cooperative import (
    MOST_AROUND,
    OPERANDS,
    Tiling,
    cooperative,
    reduced_pair,
)
from liftpy.rewrite.strategies.families.common import outer_length, tails
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.shapes import body_of, is_one_kernel
from liftpy.rewrite.strategy import Failure, Strategy


@dataclass(frozen=True)
class Cooperative:
    """A map over `outer` elements of a map over `inner` ones of reductions of `length` pairs."""

    outer: int
    inner: int
    length: int

    def choices(self) -> Iterator[Choices]:
        """How the maps are cut where no tile divides them."""
        yield from product(**tails((self.inner, self.outer)))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """None: this form takes several work-items."""
        yield from ()

    def parameters(self, _choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The sides of a tile and of a block, and the length of a chunk."""
        return (
            Parameter("tile0", 1, self.outer, "rows of a work-group's tile of results"),
            Parameter("tile1", 1, self.inner, "columns of a work-group's tile of results"),
            Parameter("sigma", 1, self.outer, "rows of a work-item's block of results"),
            Parameter("kappa", 1, self.inner, "columns of a work-item's block of results"),
            Parameter("chunk", 1, self.length, "elements of a reduction in local memory at a time"),
        )

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`cooperative`."""
        tail = choices.get("tail", "none")
        down, right, tall, wide, chunk = (
            sizes[n].nat for n in ("tile0", "tile1", "sigma", "kappa", "chunk")
        )
        cuts = cut_of(self.inner, tail), cut_of(self.outer, tail)
        return cooperative(Tiling((down, right), (tall, wide), chunk, cuts))


def match(program: Program) -> Cooperative | str:
    """The map of a map of reductions that makes the result, if they reduce pairs of two arrays."""
    made = OPERANDS(program.body.body)
    body = program.body.body if isinstance(made, Failure) else made.expr
    if not is_one_kernel(body):
        return "the result is not made in one kernel"
    path = block_of(body)
    if path is None:
        return "the result is not a map of maps of reductions that read the same for each element"
    if len(path) > MOST_AROUND:
        return "more than one map is around the map of maps of reductions"
    block = at(body, path)
    pairs = reduced_pair(block)
    if pairs is None:
        return "the reductions do not read pairs of an array of the row and one of the column"
    return Cooperative(outer_length(block), outer_length(body_of(block)), outer_length(pairs))


COOPERATIVE = Family(
    "cooperative",
    "reductions of pairs: in every step a work-group copies tiles of both arrays to local memory",
    match,
    for_groups=True,
)
