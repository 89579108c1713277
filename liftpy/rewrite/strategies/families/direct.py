"""`direct`: register blocks, with epilogues fused in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.expr import Expr, Program
from liftpy.ir.walk import Path, at
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.adjacent import adjacent_map
from liftpy.rewrite.strategies.block import (
    block_of,
    cut_of,
    interchanged,
    register_blocks,
    store_padding,
)
from liftpy.rewrite.strategies.epilogue import fused_inward
from liftpy.rewrite.strategies.families.common import (
    INNER,
    LANES,
    OUTER,
    least_width,
    outer_length,
    stored_so,
    stored_views,
    stores,
    tails,
    with_epilogues,
)
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.lower import clean
from liftpy.rewrite.strategies.operand import Place, exchanged, input_of
from liftpy.rewrite.strategies.order import innermost_first
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import body_of
from liftpy.rewrite.strategies.share import invariant, stages
from liftpy.rewrite.strategy import Failure, Result, Strategy, at_path, identity, seq

LOOPS = "loops"  # the choice of the order of the loops of a reduction


@dataclass(frozen=True)
class Block:
    """A map of a map of reductions: the lengths of the inner and of the outer map.

    The lanes of vectors run over the inner map. `rows` is the place of the input whose rows it
    reads, unless that is constant; this input may be stored in columns. (Constants are always
    packed.)
    """

    inner: int
    outer: int
    rows: Place | None

    @property
    def lengths(self) -> tuple[int, int]:
        """The lengths that are cut into blocks, the inner one first."""
        return self.inner, self.outer


@dataclass(frozen=True)
class Direct:
    """The block of a program, as it is written and perhaps with its two maps exchanged.

    `nested` says whether its reductions are over a join, and so have several loops.
    """

    program: Program
    written: Block
    exchanged: Block | None
    nested: bool

    def block(self, choices: dict[str, str]) -> Block:
        """The block whose inner map is in vectors."""
        other = self.exchanged if choices.get(LANES) == OUTER else None
        return other or self.written

    def choices(self) -> Iterator[Choices]:
        """The stored part of the padding, the level, the last block, and how results are stored.

        If the outer map makes adjacent results, it may be the one in vectors (`lanes=outer`), and
        the innermost loop of a reduction may become its outermost one (`loops=innermost_first`).
        """
        words = {"pad": stored_views(self.program), "level": ("glb", "wrg")}
        for word, block in {INNER: self.written, OUTER: self.exchanged}.items():
            if block is None:
                continue
            lanes = {LANES: (word,)} if word == OUTER else {}
            more: list[Choices] = [()]
            if self.exchanged is not None and self.nested:
                more += [(*made, (LOOPS, "innermost_first")) for made in more]
            if block.rows is not None:
                more += [(*made, ("rows", "columns")) for made in more]
            own = {
                **words,
                **lanes,
                **tails(block.lengths, lanes=word == OUTER),
                **stores(self.program),
            }
            for choices in product(**own):
                yield from ((*choices, *made) for made in more)

    def inside(self, _memory: str) -> Iterator[Choices]:
        """The choice of the last block."""
        yield from product(**tails(self.written.lengths))

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """kappa, sigma and v of a block."""
        inner, outer = self.block(choices).lengths
        return (
            Parameter("kappa", 1, inner, "results of the map in vectors per work-item (kernels)"),
            Parameter(
                "sigma", 1, outer, "results of the other map per work-item (windows of a row)"
            ),
            Parameter("v", least_width(choices), MAX_LANES, "vector width over kappa"),
        )

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`register_blocks`, with the padded input stored in full, in part, or not at all."""
        kappa, sigma, width = (sizes[n].nat for n in ("kappa", "sigma", "v"))
        block = self.block(choices)
        tail = choices.get("tail", "none")
        inner = cut_of(block.inner, tail, lanes=block is self.exchanged)
        outer = cut_of(block.outer, tail)
        blocks = register_blocks(
            self.program.constants,
            kappa,
            sigma,
            width,
            level=choices["level"],
            cuts=(inner, outer),
        )
        maps = _EXCHANGED if block is self.exchanged else identity
        stored = exchanged(block.rows) if block.rows and "rows" in choices else identity
        padding = store_padding(choices["pad"])
        loops = _ORDERED if LOOPS in choices else identity
        return seq(_INWARD, maps, loops, stored, blocks, padding, stored_so(choices))


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
    nested = not isinstance(reordered(body), Failure)
    return Direct(
        program, block_at(program, body, path), exchanged_block(program, body, path), nested
    )


def block_at(program: Program, body: Expr, path: Path) -> Block:
    """The block at a path of a program's body."""
    block = at(body, path)
    rows = input_of(body, path)
    constant = rows is not None and {p.name for p in at(body, rows[0]).free} <= program.constants
    lengths = outer_length(body_of(block)), outer_length(block)
    return Block(*lengths, None if constant else rows)


def exchanged_block(program: Program, body: Expr, path: Path) -> Block | None:
    """The block with its maps exchanged, if its outer map makes adjacent results.

    In vectors, other maps would store each lane apart.
    """
    if adjacent_map(body) != path:
        return None
    result = exchange_maps(body)
    if isinstance(result, Failure):
        return None
    place = block_of(result.expr)
    return None if place is None else block_at(program, result.expr, place)


def exchange_maps(body: Expr) -> Result:
    """Exchange the two maps of the block that makes the result."""
    path = block_of(body)
    if path is None:
        return Failure("exchange_maps", "no block makes the result")
    return seq(at_path(path, interchanged()), clean())(body)


def reordered(body: Expr) -> Result:
    """Make the innermost loop of the reductions of the block its outermost one."""
    path = block_of(body)
    if path is None:
        return Failure("reordered", "no block makes the result")
    return at_path((*path, 1, 1), innermost_first())(body)


_ORDERED = remembered(reordered)
_EXCHANGED = remembered(exchange_maps)
_INWARD = remembered(fused_inward)

DIRECT = Family(
    "direct",
    "register blocks: a work-item computes sigma x kappa results by one reduction",
    match,
)
