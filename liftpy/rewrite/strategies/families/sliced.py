"""`sliced`: several register blocks for each work-item, and reductions cut into sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from liftpy.ir.expr import Expr
from liftpy.ir.nat import var
from liftpy.ir.program import Program
from liftpy.ir.walk import at
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import INNER, OUTER, block_of, in_block, store_padding
from liftpy.rewrite.strategies.elementwise import folds_inward
from liftpy.rewrite.strategies.families.common import with_epilogues
from liftpy.rewrite.strategies.families.direct import Direct, DirectBlock
from liftpy.rewrite.strategies.families.direct import match as blocks_of
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.lanes import STORED_BY_LANE, lanes_store
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import body_of, outer_reductions
from liftpy.rewrite.strategies.sliced import (
    in_sets,
    innermost_length,
    sliced_blocks,
)
from liftpy.rewrite.strategy import Failure, Strategy, Success, identity, seq

KEPT, SHARED = "kept", "shared"
PADS = ("fused", "copy")
"""The values of `pad` that this family shares with `direct`."""
TILE = "tile"
"""The value of `pad` for a copy of the windows of a block in local memory."""


@dataclass(frozen=True)
class Sliced:
    """The blocks of `direct`, with reductions in sets.

    `lengths` has the length of the innermost dimension of each block's reductions, and `sets` the
    values of the choice `sets`.
    """

    form: Direct
    lengths: tuple[int, ...]
    sets: tuple[str, ...]

    def choices(self) -> Iterator[Choices]:
        """The stored padding, the level, the last block, the stationary operand, and the sets.

        A work-item keeps a group of the `inner` or of the `outer` map (`stationary`), and goes
        through groups of the other. It finishes each block before the next (`sets=kept`), or goes
        through all of its blocks for each set of the reductions (`sets=shared`). With `pad=tile`,
        a work-item, which is then a group by itself, first copies the elements of the outer map
        that it reads.
        """
        for block in self.form.blocks:
            if block.apart:
                continue
            pads = *(p for p in block.pads if p in PADS), TILE
            words = {"pad": pads, "level": ("glb", "wrg")}
            own = {**{name: (word,) for name, word in block.words}, **block.tails}
            for made in product(**words, **own, stationary=(INNER, OUTER), sets=self.sets):
                chosen = dict(made)
                again = chosen["stationary"] == INNER and chosen["sets"] == SHARED
                if chosen["pad"] != TILE or (chosen["level"] == "wrg" and not again):
                    yield made

    def inside(self, _memory: str) -> Iterator[Choices]:
        """None: inside a block of held values, `direct` is used."""
        yield from ()

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The sizes of `direct`, the length of a set, and the number of blocks of a work-item."""
        block = self.form.block(choices)
        length = self.lengths[self.form.blocks.index(block)]
        moved = block.outer if choices["stationary"] == INNER else block.inner
        return (
            Parameter("kappa", 1, block.inner, "results of the map in vectors (kernels)"),
            Parameter("sigma", 1, block.outer, "results of the other map (windows of a row)"),
            Parameter("v", 1, MAX_LANES, "vector width over kappa"),
            Parameter("chunk", 1, length, "elements of a set of a reduction (channels)"),
            Parameter("turns", 1, moved, "blocks that a work-item makes in sequence"),
        )

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`in_sets`, then `sliced_blocks`; the padded input is stored if `pad` says so."""
        block, tail = self.form.block(choices), choices.get("tail", "none")
        blocks = sliced_blocks(
            self.form.program.constants,
            (sizes["kappa"].nat, sizes["sigma"].nat, sizes["v"].nat),
            level=choices["level"],
            stationary=choices["stationary"],
            turns=sizes["turns"].nat,
            shared=choices["sets"] == SHARED,
            tiles=choices["pad"] == TILE,
            cuts=block.cuts(tail),
        )
        cut = in_block(in_sets(sizes["chunk"].nat))
        padding = identity if choices["pad"] == TILE else store_padding(choices["pad"])
        return seq(_INWARD, block.steps, cut, blocks, padding)


_INWARD = remembered(folds_inward)


def match(program: Program) -> Sliced | str:
    """The blocks of `direct`, if their reductions can be cut into sets.

    The terms may not be folds: a set is reduced in vectors, whose lanes would store them.
    """
    form = blocks_of(program)
    if isinstance(form, str):
        return form
    body = with_epilogues(program.body.body)
    lengths = [length_in(body, block) for block in form.blocks]
    cut = in_block(in_sets(var("chunk", 1)))(body)
    if isinstance(cut, Failure):
        return "the reductions cannot be cut into sets"
    one = var("kappa", 1), var("sigma", 1), var("v", 1)
    blocks = partial(
        sliced_blocks, program.constants, one, level="glb", stationary=INNER, turns=var("turns", 1)
    )
    sets, made = (KEPT, SHARED), blocks(shared=True)(cut.expr)
    if isinstance(made, Failure):
        sets, made = (KEPT,), blocks(shared=False)(cut.expr)
    if isinstance(made, Success) and lanes_store(made.expr):
        return STORED_BY_LANE.reason
    return Sliced(form, tuple(lengths), sets)


def length_in(body: Expr, block: DirectBlock) -> int:
    """The length of the innermost dimension of a block's reductions."""
    result = block.steps(body)
    made = body if isinstance(result, Failure) else result.expr
    element = body_of(body_of(at(made, block_of(made) or ())))
    return innermost_length(at(element, outer_reductions(element)[0]))


SLICED = Family(
    "sliced",
    "register blocks in sequence, reductions in sets: input or weight stationary convolutions",
    match,
    if_named=True,
)
