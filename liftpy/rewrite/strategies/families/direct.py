"""`direct`: register blocks, and what is done to their results with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.expr import Program
from liftpy.ir.walk import at
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import block_of, cut_of, register_blocks, store_padding
from liftpy.rewrite.strategies.epilogue import fused_inward
from liftpy.rewrite.strategies.families.common import (
    least_width,
    outer_length,
    stored_so,
    stored_views,
    stores,
    tails,
    with_epilogues,
)
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.operand import Place, exchanged, input_of
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import body_of
from liftpy.rewrite.strategies.share import invariant, stages
from liftpy.rewrite.strategy import Strategy, identity, seq


@dataclass(frozen=True)
class Direct:
    """A map of a map of reductions: the lengths of the inner and of the outer one.

    `rows` is where the input stands whose rows the inner map reads, if it is no constant: it may be
    stored in columns. (Constants are packed in any case.)
    """

    program: Program
    inner: int
    outer: int
    rows: Place | None

    @property
    def lengths(self) -> tuple[int, int]:
        """The lengths that blocks are cut from, the inner first."""
        return self.inner, self.outer

    def choices(self) -> Iterator[Choices]:
        """What of the padding is stored, the level, the last block, and how results are stored."""
        words = {"pad": stored_views(self.program), "level": ("glb", "wrg")}
        for choices in product(**words, **tails(self.lengths), **stores(self.program)):
            yield choices
            if self.rows is not None:
                yield (*choices, ("rows", "columns"))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """What the last block is."""
        yield from product(**tails(self.lengths))

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """kappa, sigma and v of a block."""
        return (
            Parameter("kappa", 1, self.inner, "results of the inner map per work-item (kernels)"),
            Parameter(
                "sigma", 1, self.outer, "results of the outer map per work-item (windows of a row)"
            ),
            Parameter("v", least_width(choices), MAX_LANES, "vector width over the inner map"),
        )

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`register_blocks`, with the padded input stored, in part, or not."""
        kappa, sigma, width = (sizes[n].nat for n in ("kappa", "sigma", "v"))
        inner, outer = (cut_of(n, choices.get("tail", "none")) for n in self.lengths)
        blocks = register_blocks(
            self.program.constants,
            kappa,
            sigma,
            width,
            level=choices["level"],
            cuts=(inner, outer),
        )
        stored = exchanged(self.rows) if self.rows and "rows" in choices else identity
        padding = store_padding(choices["pad"])
        return seq(_INWARD, stored, blocks, padding, stored_so(choices))


def match(program: Program) -> Direct | str:
    """The map of a map of reductions that makes the result, what is done to them fused in."""
    body = with_epilogues(program.body.body)
    if next(stages(body), None) is not None:
        return "a map of folds is read other than element by element"
    if next(invariant(body), None) is not None:
        return "a map of folds is computed again for each result"
    path = block_of(body)
    if path is None:
        return "no map of a map of reductions that read the same for each element makes the result"
    block = at(body, path)
    rows = input_of(body, path)
    constant = rows is not None and {p.name for p in at(body, rows[0]).free} <= program.constants
    lengths = outer_length(body_of(block)), outer_length(block)
    return Direct(program, *lengths, None if constant else rows)


_INWARD = remembered(fused_inward)

DIRECT = Family(
    "direct",
    "register blocks: a work-item computes sigma x kappa results by one reduction",
    match,
)
