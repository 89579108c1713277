"""`local`: windows are taken tile by tile; a work-group copies each tile to local memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.program import Program
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.families.common import slides, window_and_length
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.families.widening import with_widening
from liftpy.rewrite.strategies.shapes import is_one_kernel, nests
from liftpy.rewrite.strategies.tile import windows_in_local
from liftpy.rewrite.strategy import Strategy


@dataclass(frozen=True)
class Local:
    """A map over windows of a size, taken from an array of a length."""

    size: int
    length: int

    def choices(self) -> Iterator[Choices]:
        """One combination: tiles are copied."""
        yield from product(stage=("tile",))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """None: this form takes several work-items."""
        yield from ()

    def parameters(self, _choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The side of a tile."""
        return (Parameter("theta", self.size, self.length, "side of an input tile"),)

    def strategy(self, _choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`windows_in_local`."""
        return windows_in_local(sizes["theta"].nat)


def match(program: Program) -> Local | str:
    """The windows, if one kernel computes the result from them."""
    found = slides(program)
    body = program.body.body
    if not found or not is_one_kernel(body) or not nests(body):
        return "no map over windows makes the result in one kernel"
    sizes, lengths = zip(*map(window_and_length, found), strict=True)
    if max(sizes) > min(lengths):
        return f"no square tile has windows of {max(sizes)} and fits into {min(lengths)} elements"
    return Local(sizes[0], lengths[0])


LOCAL = Family(
    "local",
    "windows tile by tile: a work-group copies its tile to local memory",
    with_widening(match),
)
