"""`staged`: the published form of a convolution, in four kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.call import FunCall
from liftpy.ir.program import Program
from liftpy.ir.walk import every_part
from liftpy.primitives import Reduce
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.families import direct
from liftpy.rewrite.strategies.families.common import (
    outer_length,
    slides,
    window_and_length,
    with_epilogues,
)
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.shapes import is_padding, is_window_map
from liftpy.rewrite.strategies.stage import Sizes, four_stages
from liftpy.rewrite.strategy import Strategy

MAX_EXTRA = 32  # rows and columns of optimisational padding (specs: lift-convolution, section 6)


@dataclass(frozen=True)
class Staged:
    """A map, over kernels, of reductions of the windows of a padded parameter.

    size, padded: the sides of a window and of the padded array. kernels: their number. elements:
    the number of elements that a reduction folds.
    """

    size: int
    padded: int
    kernels: int
    elements: int

    def choices(self) -> Iterator[Choices]:
        """Whether reads are coalesced, and whether innermost reductions are unrolled."""
        yield from product(coalesce=("no", "yes"), unroll=("no", "yes"))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """None: this form takes several work-items."""
        yield from ()

    def parameters(self, _choices: dict[str, str]) -> tuple[Parameter, ...]:
        """theta, rho, kappa, sigma, omega and v of the four-stage form."""
        most = self.padded + MAX_EXTRA
        windows = (most - self.size + 1) ** 2
        return (
            Parameter("theta", self.size, most, "side of an input tile"),
            Parameter("rho", 0, MAX_EXTRA, "rows and columns of optimisational padding"),
            Parameter("kappa", 1, self.kernels, "kernels per work-group"),
            Parameter("sigma", 1, windows, "windows per work-item"),
            Parameter("omega", 1, self.elements, "elements that a work-item reduces"),
            Parameter("v", 1, MAX_LANES, "vector width over the elements"),
        )

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`four_stages`."""
        names = ("theta", "rho", "kappa", "sigma", "omega", "v")
        return four_stages(
            Sizes(*(sizes[n].nat for n in names)),
            coalesced=choices["coalesce"] == "yes",
            unroll=choices["unroll"] == "yes",
        )


def match(program: Program) -> Staged | str:
    """The convolution, if the stage reduces the windows of a padded parameter in blocks."""
    block = direct.match(program)
    if isinstance(block, str):
        return block
    body = with_epilogues(program.body.body)
    parts = list(every_part(body))
    found = slides(program)
    if not found or not any(map(is_window_map, parts)):
        return "no map over windows makes the result"
    if not any(is_padding(e) and e.free <= body.free for e in parts):
        return "the windows are not those of a padded parameter"
    whole = (e for e in every_part(program.body.body))
    elements = next(
        outer_length(e.args[1])
        for e in whole
        if isinstance(e, FunCall) and isinstance(e.fun, Reduce)
    )
    return Staged(*window_and_length(found[0]), block.blocks[0].inner, elements)


STAGED = Family("staged", "the published four stages: pad, partial results, sum, crop", match)
