"""`direct`: register blocks, with epilogues fused in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike, var
from liftpy.ir.program import Program
from liftpy.ir.walk import at, children, every_part
from liftpy.primitives import Split
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.adjacent import adjacent_map
from liftpy.rewrite.strategies.block import (
    OUTER,
    block_of,
    cut_of,
    in_block,
    interchanged,
    packable,
    register_blocks,
    store_padding,
)
from liftpy.rewrite.strategies.elementwise import folds_inward
from liftpy.rewrite.strategies.families.common import (
    LANES,
    least_width,
    outer_length,
    stored_so,
    stored_views,
    stores,
    tails,
    with_epilogues,
)
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.in_floats import sums_in_f32
from liftpy.rewrite.strategies.lower import clean
from liftpy.rewrite.strategies.operand import Place, input_of, stored_in_columns
from liftpy.rewrite.strategies.order import innermost_first
from liftpy.rewrite.strategies.panels import depends
from liftpy.rewrite.strategies.parts import in_parts, parts_of, parts_of_rows
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_folded,
    is_input,
    longest,
    maker,
    maps_over,
    outer_reductions,
)
from liftpy.rewrite.strategies.share import invariant, stages
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    choose,
    identity,
    normalize,
    rule,
    seq,
)

LOOPS = "loops"  # the choice of the order of the loops of a reduction
SUMS = "sums"  # the choice of the type in which small integers are summed
PARTS = "parts"  # the choice of reductions in parts
PACK = "pack"  # the choice of inputs that are packed into panels
LONG_SUM = 8192
"""Longer reductions may be cut into parts: the operands of a block no longer fit into caches."""
LONG_UNPACKED = 512
"""The limit if no operand is packed: a block then reads only a few elements of each row."""


@dataclass(frozen=True)
class DirectBlock:
    """A map of a map of reductions, and the steps to it from the stage with its epilogue fused in.

    `words` are the choices that select it. `inner` and `outer` are the lengths of its maps; the
    lanes of vectors run over the inner one. `rows` is the place of the input whose rows the
    inner map reads, unless that is constant; this input may be stored in columns. (Constants
    are always packed into panels; `packs` are the words for inputs that may be.) `pads` are the
    words of the choice `pad`. `nested` says whether its reductions are over a join, and so have
    several loops. `integers` is the length of its longest sum of integers that f32 can compute
    exactly, 0 if it has other sums. If its reductions may be cut into parts, `cut` does that,
    and `parted` is the length that `part` divides: of the reduction, or of the outermost
    dimension of a joined one. If lanes run over the outer map and its results are not adjacent,
    they are stored `apart`.
    """

    words: Choices
    steps: Strategy
    inner: int
    outer: int
    rows: Place | None
    pads: tuple[str, ...]
    nested: bool
    integers: int
    cut: Callable[[NatLike], Strategy] = parts_of
    parted: int = 0
    apart: bool = False
    packs: tuple[str, ...] = ()

    @property
    def adjacent(self) -> bool:
        """Whether its inner map was the outer one of the program, which makes the lanes."""
        return (LANES, OUTER) in self.words

    @property
    def tails(self) -> dict[str, tuple[str, ...]]:
        """The choice of the last block."""
        return tails((self.inner, self.outer), lanes=self.fills_vectors)

    @property
    def fills_vectors(self) -> bool:
        """Whether a block of the inner map's results should have whole vectors, of any length.

        Without `lanes`, that is so if the map has more results than the longest vector.
        """
        return self.adjacent or self.inner > MAX_LANES

    def cuts(self, tail: str) -> tuple[str, str]:
        """How the inner and the outer map are cut (`CUTS`), for a value of the choice `tail`."""
        return cut_of(self.inner, tail, lanes=self.fills_vectors), cut_of(self.outer, tail)


@dataclass(frozen=True)
class Direct:
    """The blocks of a program: as it is written, then in other forms, if any is better."""

    program: Program
    blocks: tuple[DirectBlock, ...]

    def block(self, choices: dict[str, str]) -> DirectBlock:
        """The block that choices select."""
        own = choices.items()
        return next(block for block in reversed(self.blocks) if own >= set(block.words))

    def choices(self) -> Iterator[Choices]:
        """The stored part of the padding, the level, the last block, and how results are stored.

        If the outer map makes adjacent results, it may be the one in vectors (`lanes=outer`), also
        as one map over all points of an image that is read point by point (`flat=yes`), and the
        innermost loop of a reduction may become its outermost one (`loops=innermost_first`). Sums
        of products of small integers may be computed in f32 (`sums=f32`) or in i32. Long reductions
        may be cut into parts (`parts=yes`, not with the choices `loops`, `stores` and `sums=f32`):
        one kernel makes the results of all parts, another reduces these. After long reductions the
        outer map may make the lanes even if they are stored apart. Inputs may be packed into panels
        (`pack`, not with `loops`, `parts` and `sums=f32`), which takes the place of storing them in
        columns.
        """
        outer = any(block.adjacent and not block.apart for block in self.blocks)
        for block in self.blocks:
            more: list[Choices] = [()]
            if outer and block.nested:
                more += [(*made, (LOOPS, "innermost_first")) for made in more]
            parted: list[Choices] = [((PARTS, "yes"),)] if block.parted else []
            if block.rows is not None:
                more += [(*made, ("rows", "columns")) for made in more]
                parted += [(*made, ("rows", "columns")) for made in parted]
            packed: list[Choices] = [((PACK, word),) for word in block.packs]
            if block.integers:
                more = [(*made, (SUMS, word)) for made in more for word in ("i32", "f32")]
                packed = [(*made, (SUMS, "i32")) for made in packed]
                parted = [(*made, (SUMS, "i32")) for made in parted]
            words = {"pad": block.pads, "level": ("glb", "wrg")}
            own = {**{name: (word,) for name, word in block.words}, **block.tails}
            stored = {} if block.apart else stores(self.program)
            for choices in product(**words, **own, **stored):
                yield from ((*choices, *made) for made in (*more, *packed))
            for choices in product(**words, **own):
                yield from ((*choices, *made) for made in parted)

    def inside(self, _memory: str) -> Iterator[Choices]:
        """The choice of the last block."""
        yield from product(**self.blocks[0].tails)

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """kappa, sigma and v of a block."""
        block = self.block(choices)
        return (
            Parameter(
                "kappa", 1, block.inner, "results of the map in vectors per work-item (kernels)"
            ),
            Parameter(
                "sigma", 1, block.outer, "results of the other map per work-item (windows of a row)"
            ),
            Parameter("v", least_width(choices), MAX_LANES, "vector width over kappa"),
            *([strip_of(block)] if choices.get(SUMS) == "f32" else []),
            *([part_of(block)] if PARTS in choices else []),
        )

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`register_blocks`, with the padded input stored in full, in part, or not at all."""
        kappa, sigma, width = (sizes[n].nat for n in ("kappa", "sigma", "v"))
        block, tail = self.block(choices), choices.get("tail", "none")
        cuts = block.cuts(tail)
        level, constants = choices["level"], self.program.constants
        packs = choices.get(PACK, "")
        blocks = register_blocks(
            constants, kappa, sigma, width, level=level, cuts=cuts, packs=packs
        )
        stored = stored_in_columns(block.rows) if block.rows and "rows" in choices else identity
        padding = store_padding(choices["pad"])
        loops = _ORDERED if LOOPS in choices else identity
        sums = in_block(sums_in_f32(sizes["strip"].nat)) if "strip" in sizes else identity
        if "part" in sizes:
            blocks = in_parts(IS_BLOCK, block.cut(sizes["part"].nat), blocks)
        return seq(INWARD, block.steps, loops, sums, stored, blocks, padding, stored_so(choices))


def match(program: Program) -> Direct | str:
    """The map of a map of reductions that makes the result, with its epilogue fused in."""
    body = with_epilogues(program.body.body)
    if next(stages(body), None) is not None:
        return "a map of folds is not read element by element"
    if next(invariant(body), None) is not None:
        return "a map of folds is recomputed for each result"
    written = block_in(program, body, (), identity) or block_in(program, body, (), SHARED)
    if written is None:
        return "the result is not a map of maps of reductions that read the same for each element"
    forms: list[DirectBlock | None] = []
    lanes = (LANES, OUTER)
    if adjacent_map(body) != block_of(body):
        # In vectors, other maps store each lane apart. That takes little time after long sums.
        if written.parted:
            exchanged = block_in(program, body, (lanes,), seq(written.steps, EXCHANGED))
            forms.append(replace(exchanged, apart=True) if exchanged else None)
    else:
        forms.append(block_in(program, body, (lanes,), EXCHANGED))
        forms.append(block_in(program, body, (("flat", "yes"), lanes), FLAT))
    return Direct(program, (written, *(form for form in forms if form)))


def block_in(program: Program, body: Expr, words: Choices, steps: Strategy) -> DirectBlock | None:
    """The block of a program's body after some steps, if they succeed and there is one."""
    result = steps(body)
    path = None if isinstance(result, Failure) else block_of(result.expr)
    if path is None or isinstance(result, Failure):
        return None
    block, rows = at(result.expr, path), input_of(result.expr, path)
    if rows is not None:
        names = {p.name for p in at(result.expr, rows[0]).free}
        rows = None if names <= program.constants else rows
    nested = not isinstance(_ORDERED(result.expr), Failure)
    exact = not isinstance(in_block(sums_in_f32(var("strip", 1)))(result.expr), Failure)
    length = longest_sum(body_of(body_of(block)))
    is_packed = depends(children(body_of(block))[0], program.constants)
    is_long = length > (LONG_SUM if is_packed else LONG_UNPACKED)
    cut, parted = cut_in(result.expr) if is_long else (parts_of, 0)
    return DirectBlock(
        words=words,
        steps=steps,
        inner=outer_length(body_of(block)),
        outer=outer_length(block),
        rows=rows,
        packs=packable(result.expr, path, program.constants),
        pads=stored_views(result.expr),
        nested=nested,
        integers=length if exact else 0,
        cut=cut,
        parted=parted,
    )


def cut_in(body: Expr) -> tuple[Callable[[NatLike], Strategy], int]:
    """How the reductions of the block can be cut into parts, and the length that is cut, or 0."""
    part = var("part", 1)
    for cut in (parts_of_rows, parts_of):
        result = in_parts(IS_BLOCK, cut(part), identity)(body)
        if not isinstance(result, Failure):
            cut_arrays = (
                e.args[0]
                for e in every_part(result.expr)
                if isinstance(e, FunCall) and e.fun == Split(part)
            )
            return cut, longest(array_type(next(cut_arrays)))
    return parts_of, 0


def strip_of(block: DirectBlock) -> Parameter:
    """The number of products that f32 sums before their sum is added in i32."""
    return Parameter("strip", 1, block.integers, "products that are summed in f32")


def part_of(block: DirectBlock) -> Parameter:
    """The number of elements, or of rows of joined ones, of a part of a reduction."""
    return Parameter("part", 1, block.parted // 2, "rows or elements of a part of a reduction")


def longest_sum(expr: Expr) -> int:
    """The length of the longest reduction in an expression."""
    reductions = (at(expr, path) for path in outer_reductions(expr))
    return max(longest(array_type(children(part)[1])) for part in reductions)


def exchange_maps(body: Expr) -> Result:
    """Exchange the two maps of the block that makes the result."""
    path = block_of(body)
    if path is None:
        return Failure("exchange_maps", "no block makes the result")
    return seq(at_path(path, interchanged()), clean())(body)


def shared(body: Expr) -> Result:
    """Move the map that makes the result inwards until the maps inside it read the same for each.

    It is exchanged with maps over arrays that do not depend on its element. For example, gradients
    of weights are sums for each kernel, place in the window and channel; sums at one place read the
    same channels of an image for each kernel.
    """
    place, result = maker(body), Success(body)
    while block_of(result.expr) is None:
        moved = at_path(place, rule("map_interchange"))(result.expr)
        if isinstance(moved, Failure):
            return moved
        result = Success(moved.expr, (*result.steps, *moved.steps))
        place = (*place, 0, 1)
    return result


def points(body: Expr) -> Result:
    """Make the outer map of the block and the one around it one map over the points of an input.

    Windows of one element are the points themselves. Rows of other windows are not adjacent: at the
    end of a row, vectors of points would read elements apart.
    """
    path = block_of(body)
    if path is None or path[-1:] != (1,):
        return Failure("points", "no map around a block makes the result")
    around = path[:-1]
    plain = normalize(choose(rule("pad_nothing"), rule("slide_disjoint"), rule("map_identity")))
    result = at_path((*around, 0), plain)(body)
    if isinstance(result, Failure) or not is_input(at(result.expr, (*around, 0))):
        return Failure("points", "the outer maps are not over the points of an input")
    return at_path(around, rule("map_map_join"))(result.expr)


_ORDERED = remembered(in_block(innermost_first()))
EXCHANGED = remembered(exchange_maps)
SHARED = remembered(shared)
FLAT = remembered(seq(points, exchange_maps))
INWARD = remembered(folds_inward)
IS_BLOCK = maps_over(maps_over(is_folded))

DIRECT = Family(
    "direct",
    "register blocks: a work-item computes sigma x kappa results by one reduction",
    match,
    vectors=True,
)
