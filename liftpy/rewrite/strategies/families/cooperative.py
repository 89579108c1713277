"""`cooperative`: a work-group copies tiles of both operands to local memory in every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from liftpy.ir.expr import Expr
from liftpy.ir.nat import var
from liftpy.ir.program import Program
from liftpy.ir.walk import at
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.adjacent import adjacent_map
from liftpy.rewrite.strategies.block import OUTER, block_of, cut_of, is_indivisible
from liftpy.rewrite.strategies.cooperative import (
    MOST_AROUND,
    OPERANDS,
    TILES,
    TileSizes,
    cooperative,
    in_whole_chunks,
    parts_joined,
    reduced_pair,
)
from liftpy.rewrite.strategies.epilogue import taken_apart
from liftpy.rewrite.strategies.families.common import (
    LANES,
    outer_length,
    tails,
    with_epilogues,
)
from liftpy.rewrite.strategies.families.direct import EXCHANGED, FLAT, INWARD, SHARED
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.families.widening import with_widening
from liftpy.rewrite.strategies.lower import clean
from liftpy.rewrite.strategies.parts import in_parts, parts_of
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    folds_arrays,
    function_around,
    is_let,
    makes_array,
    working_map,
)
from liftpy.rewrite.strategies.share import invariant, outside_functions, stages
from liftpy.rewrite.strategy import Failure, Result, Strategy, at_path, identity, rule, seq

WIDEST_GAP = 4
"""The most unused elements of local memory after a row."""

PARTS = (("parts", "yes"),)
"""The choice of reductions in parts."""
MOST_PARTS = 16
"""The most parts of a reduction."""
MOST_RESULTS = 1 << 19
"""Reductions are cut into parts for at most this many results; more keep all units busy."""

JOINED = (("flat", "yes"),)
"""The choice that joins the map around the block and the outer map of the block."""


@dataclass(frozen=True)
class Tiles:
    """A map over `outer` elements of a map over `inner` ones of reductions of `length` pairs.

    `words` are the choices that select it, and `steps` lead to it from the stage with its epilogue
    fused in. `results` is the number of results of all maps. `extends` says whether zeros can be
    appended to both arrays of each pair without changing a reduction.
    """

    words: Choices
    steps: Strategy
    results: int
    outer: int
    inner: int
    length: int
    extends: bool

    @property
    def in_parts(self) -> bool:
        """Whether reductions are cut into parts."""
        return PARTS[0] in self.words

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that a group's reductions may have: those of equal parts, or the whole."""
        if not self.in_parts:
            return (self.length,)
        counts = range(2, MOST_PARTS + 1)
        return tuple(self.length // n for n in counts if self.length % n == 0)

    def choices(self) -> Iterator[Choices]:
        """How maps and reductions are cut where no size divides them, and the number of buffers."""
        uneven = self.length % 2 == 1 or is_indivisible(self.length)
        chunks = ("even", "padded") if self.extends and uneven else ("even",)
        own = {name: (word,) for name, word in self.words}
        adjacent = (LANES, OUTER) in self.words
        tail = tails((self.inner, self.outer), lanes=adjacent)
        pairs = any(length % 2 == 0 for length in self.lengths)
        for words in product(**own, chunks=chunks, buffers=("1", "2"), **tail):
            made = dict(words)
            if made["buffers"] == "1" or made["chunks"] == "padded" or pairs:
                yield words


@dataclass(frozen=True)
class Cooperative:
    """The tiles of a program: as it is written, then in other forms, if any is better."""

    constants: frozenset[str]
    forms: tuple[Tiles, ...]

    def form(self, choices: dict[str, str]) -> Tiles:
        """The form that choices select."""
        own = choices.items()
        return next(form for form in reversed(self.forms) if own >= set(form.words))

    def choices(self) -> Iterator[Choices]:
        """The choices of each form.

        If the outer map makes adjacent results, the columns of a tile may run along it
        (`lanes=outer`), also as one map over all points of an image that is read point by point
        (`flat=yes`). Without `lanes`, `flat=yes` joins two maps, so that a tile may contain points
        of several rows of an image. With `parts=yes`, reductions are cut into parts for groups of
        their own, and another kernel reduces the results of parts. Arrays of a pair may be padded
        with zeros to whole chunks (`chunks=padded`), and chunks may be copied to two buffers in
        turns (`buffers=2`).
        """
        for form in self.forms:
            yield from form.choices()

    def inside(self, _memory: str) -> Iterator[Choices]:
        """None: this form takes several work-items."""
        yield from ()

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The sides of a tile and of a block, the length of a chunk, vectors, and gaps."""
        form = self.form(choices)
        longest, shortest = form.lengths[0], form.lengths[-1]
        part = Parameter("part", shortest, longest, "elements of a part of a reduction")
        return (
            *((part,) if form.in_parts else ()),
            Parameter("tile0", 1, form.outer, "rows of a work-group's tile of results"),
            Parameter("tile1", 1, form.inner, "columns of a work-group's tile of results"),
            Parameter("sigma", 1, form.outer, "rows of a work-item's block of results"),
            Parameter("kappa", 1, form.inner, "columns of a work-item's block of results"),
            Parameter("chunk", 1, longest, "elements of a reduction in local memory at a time"),
            Parameter("v", 1, MAX_LANES, "vector width over the columns of a block"),
            Parameter("gap", 0, WIDEST_GAP, "unused elements of local memory after a row"),
        )

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`cooperative`."""
        steps = self.form(choices).steps
        return seq(INWARD, steps, cooperative(self.sizes(choices, sizes)))

    def sizes(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> TileSizes:
        """The sizes of tiles, with the copies of chunks to local memory."""
        return replace(
            self.tiles(choices, sizes),
            tile=(sizes["tile0"].nat, sizes["tile1"].nat),
            gap=sizes["gap"].nat,
            buffers=int(choices["buffers"]),
        )

    def tiles(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> TileSizes:
        """The sizes of tiles that are one block each."""
        form, tail = self.form(choices), choices.get("tail", "none")
        adjacent = (LANES, OUTER) in form.words
        block = sizes["sigma"].nat, sizes["kappa"].nat
        return TileSizes(
            tile=block,
            block=block,
            chunk=sizes["chunk"].nat,
            width=sizes["v"].nat,
            padded=choices["chunks"] == "padded",
            cuts=(cut_of(form.inner, tail, lanes=adjacent), cut_of(form.outer, tail)),
            part=sizes["part"].nat if form.in_parts else None,
            constants=self.constants,
        )


def match(program: Program) -> Cooperative | str:
    """The map of a map of reductions that makes the result, if they reduce pairs of two arrays."""
    body = with_epilogues(program.body.body)
    if next(stages(body), None) is not None:
        return "a map of folds is not read element by element"
    if next(invariant(body), None) is not None:
        return "a map of folds is recomputed for each result"
    written = tiles_in(body, (), identity)
    if isinstance(written, str):
        shared = tiles_in(body, (), seq(SHARED, around_joined))
        if isinstance(shared, str):
            return written
        written = shared
    forms: list[Tiles | str] = [written, tiles_in(body, JOINED, maps_joined)]
    if adjacent_map(body) == block_of(body):
        lanes = (LANES, OUTER)
        forms.append(tiles_in(body, (lanes,), EXCHANGED))
        forms.append(tiles_in(body, (("flat", "yes"), lanes), FLAT))
    whole = [form for form in forms if not isinstance(form, str)]
    return Cooperative(
        program.constants, (*whole, *(form for one in whole for form in cut_into_parts(body, one)))
    )


def maps_joined(body: Expr) -> Result:
    """Join the map around the block and the outer map of the block."""
    path = block_of(body)
    if not path or not working_map(at(body, path[:-1])):
        return Failure("maps_joined", "no map is around the map of maps of reductions")
    return at_path(path[:-1], rule("map_map_join"))(body)


def around_joined(body: Expr) -> Result:
    """Join the two maps around the block, such as those over the rows and columns of a window."""
    path = block_of(body) or ()
    inner = function_around(body, path)
    outer = None if inner is None else function_around(body, inner)
    if inner is None or outer is None or function_around(body, outer) is not None:
        return Failure("around_joined", "there are not two maps around a map of reductions")
    inside = inner[len(outer) + 1 :]
    apart = at_path(outer, taken_apart(inside)) if inside else identity
    joined = at_path((*outer, 0) if inside else outer, rule("map_map_join"))
    return seq(apart, joined, clean())(body)


def cut_into_parts(body: Expr, form: Tiles) -> Iterator[Tiles]:
    """Yield a form with its reductions in equal parts, if these exist and results are few."""
    few = form.results <= MOST_RESULTS
    parted = replace(form, words=(*PARTS, *form.words))
    cut = seq(form.steps, OPERANDS, in_parts(TILES, parts_of(var("part", 1)), parts_joined))
    if few and parted.lengths and not isinstance(cut(body), Failure):
        yield parted


def tiles_in(body: Expr, words: Choices, steps: Strategy) -> Tiles | str:
    """The form of a program's body after some steps, or why it has none."""
    result = seq(steps, OPERANDS)(body)
    if isinstance(result, Failure):
        return str(result)
    body = result.expr
    named = any(is_let(part) for _, part in outside_functions(body))
    if not makes_array(body) or folds_arrays(body) or named:
        return "the result is not made in one kernel"
    path = block_of(body)
    if path is None:
        return "the result is not a map of maps of reductions that read the same for each element"
    around = sum(working_map(at(body, path[:k])) for k in range(len(path)))
    if around > MOST_AROUND:
        return "more than one map is around the map of maps of reductions"
    block = at(body, path)
    pairs = reduced_pair(block)
    if pairs is None:
        return "the reductions do not read pairs of an array of the row and one of the column"
    lengths = outer_length(block), outer_length(body_of(block)), outer_length(pairs)
    extends = not isinstance(in_whole_chunks(var("chunk", 1))(body), Failure)
    results = prod(int(n) for n in array_type(body).lengths())
    return Tiles(words, steps, results, *lengths, extends)


COOPERATIVE = Family(
    "cooperative",
    "reductions of pairs: in every step a work-group copies tiles of both arrays to local memory",
    with_widening(match),
    for_groups=True,
    vectors=True,
)
