"""`dots`: register blocks whose sums of products of 8-bit integers are dot products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.program import Program
from liftpy.ir.types import INTEGER_DOTS, VNNI
from liftpy.primitives.vector import LANES_OF_A_DOT, LEAST_DOTS, MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import (
    BLOCK,
    INNER,
    block_of,
    cut_of,
    in_block,
    packs_some,
    register_blocks,
    store_padding,
)
from liftpy.rewrite.strategies.dots import sums_of_dots
from liftpy.rewrite.strategies.elementwise import folds_inward
from liftpy.rewrite.strategies.families.common import LANES, tails, with_epilogues
from liftpy.rewrite.strategies.families.direct import Direct, DirectBlock
from liftpy.rewrite.strategies.families.direct import match as blocks_of
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.panels import of_constants
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategy import Failure, Strategy, seq

NO_CONSTANTS: frozenset[str] = frozenset()
"""Without lanes, constants are not packed: vectors run along the dimension that is reduced."""


@dataclass(frozen=True)
class Dots:
    """The first block of `direct`, whose sums are cut into vectors.

    `packed` says whether its inner map reads constants.
    """

    form: Direct
    packed: bool

    @property
    def block(self) -> DirectBlock:
        """The block."""
        return self.form.blocks[0]

    def choices(self) -> Iterator[Choices]:
        """The stored part of the padding, the level, how the last block is cut, and the lanes.

        If the inner map reads constants, its results may be the lanes of vectors (`lanes=inner`):
        the constants are packed so that the four factors of each lane are adjacent.
        """
        lengths = self.block.inner, self.block.outer
        words = {"pad": self.block.pads, "level": ("glb", "wrg"), **tails(lengths)}
        yield from product(**words)
        if self.packed and self.block.inner >= LEAST_DOTS:
            yield from product(**words, **{LANES: (INNER,)})

    def inside(self, _memory: str) -> Iterator[Choices]:
        """None: inside a block of held values, `direct` is used."""
        yield from ()

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The sizes of a block, and the lanes of a vector."""
        block, lanes = self.block, LANES in choices
        width = "vector width over kappa" if lanes else "products of a sum that are added at once"
        return (
            Parameter("kappa", 1, block.inner, "results of the inner map (kernels)"),
            Parameter("sigma", 1, block.outer, "results of the other map (windows of a row)"),
            Parameter("v", LEAST_DOTS if lanes else LANES_OF_A_DOT, MAX_LANES, width),
        )

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`sums_of_dots`, then `register_blocks`, in which the elements of a vector are a unit."""
        tail = choices.get("tail", "none")
        cuts = cut_of(self.block.inner, tail), cut_of(self.block.outer, tail)
        kappa, sigma, v = (sizes[n].nat for n in ("kappa", "sigma", "v"))
        level, constants = choices["level"], self.form.program.constants
        if LANES in choices:
            blocks = register_blocks(
                constants,
                kappa,
                sigma,
                v,
                level=level,
                cuts=cuts,
                unit=LANES_OF_A_DOT,
            )
            sums = in_block(sums_of_dots(LANES_OF_A_DOT))
        else:
            blocks = register_blocks(NO_CONSTANTS, kappa, sigma, 1, level=level, cuts=cuts)
            sums = in_block(sums_of_dots(v))
        return seq(INWARD, sums, blocks, store_padding(choices["pad"]))


def match(program: Program) -> Dots | str:
    """The first block of `direct`, if its reductions are sums of products of 8-bit integers."""
    form = blocks_of(program)
    if isinstance(form, str):
        return form
    made = in_block(sums_of_dots(LANES_OF_A_DOT))(with_epilogues(program.body.body))
    if isinstance(made, Failure):
        return "no sums of a multiple of 4 products of 8-bit integers make the result"
    path, constants = block_of(made.expr), of_constants(program.constants)
    packed = path is not None and packs_some(made.expr, path, constants, BLOCK[0])
    return Dots(form, packed)


INWARD = remembered(folds_inward)

DOTS = Family(
    "dots",
    "register blocks whose sums of products of 8-bit integers are dot products of four lanes",
    match,
    instructions=(*INTEGER_DOTS, VNNI),
)
