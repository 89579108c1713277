"""`direct`: register blocks, with epilogues fused in."""

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
    """A map of a map of reductions, with the lengths of the inner and of the outer map.

    `rows` is the place of the input whose rows the inner map reads, unless it is constant; this
    input may be stored in columns. (Constants are always packed.)
    """

    program: Program
    inner: int
    outer: int
    rows: Place | None

    @property
    def lengths(self) -> tuple[int, int]:
        """The lengths that are cut into blocks, the inner one first."""
        return self.inner, self.outer

    def choices(self) -> Iterator[Choices]:
        """The stored part of the padding, the level, the last block, and how results are stored."""
        words = {"pad": stored_views(self.program), "level": ("glb", "wrg")}
        for choices in product(**words, **tails(self.lengths), **stores(self.program)):
            yield choices
            if self.rows is not None:
                yield (*choices, ("rows", "columns"))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """The choice of the last block."""
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
        """`register_blocks`, with the padded input stored in full, in part, or not at all."""
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
    """The map of a map of reductions that makes the result, with its epilogue fused in."""
    body = with_epilogues(program.body.body)
    if next(stages(body), None) is not None:
        return "a map of folds is not read element by element"
    if next(invariant(body), None) is not None:
        return "a map of folds is recomputed for each result"
    path = block_of(body)
    if path is None:
        return "the result is not a map of maps of reductions that read the same for each element"
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
