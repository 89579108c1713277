"""`tiled`: the last two of the maps that make the result, cut into tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat
from liftpy.ir.program import Program
from liftpy.ir.types import ScalarType
from liftpy.ir.walk import at
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.adjacent import adjacent_map
from liftpy.rewrite.strategies.axes import folds_nested
from liftpy.rewrite.strategies.block import INNER, OUTER, interchanged, store_padding
from liftpy.rewrite.strategies.elementwise import folds_inward
from liftpy.rewrite.strategies.families import direct
from liftpy.rewrite.strategies.families.common import (
    LANES,
    exposed_body,
    least_width,
    paddings,
    stored_so,
    stores,
    tails,
)
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.lower import chain, clean, exposed
from liftpy.rewrite.strategies.mapping import mapped, mappings, show_mapping
from liftpy.rewrite.strategies.packed import zipped_rows_packed
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import body_of, makes_array, nests, zipped
from liftpy.rewrite.strategies.tile import (
    element_by_element,
    flat,
    fused,
    in_vectors,
    tile,
    tiled_lengths,
)
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    identity,
    seq,
)


@dataclass(frozen=True)
class Tiled:
    """A stage whose result is made by maps, without register blocks."""

    program: Program

    def tilings(self) -> Iterator[Choices]:
        """The choices of tiles: whether two maps become one, which one is in vectors, the end."""
        flats = ("yes",) if self.is_long_row() else ("no", "yes")
        made = [*product(flat=flats, vector=("no", "yes"))]
        if self.is_outer_adjacent():
            made += product(flat=("no",), vector=("yes",), lanes=(OUTER,))
        for choices in made:
            lengths = [p.high for p in self.parameters(dict(choices)) if p.name != "v"]
            own = tails(lengths, lanes=(LANES, OUTER) in choices)
            yield from ((*choices, *rest) for rest in product(**own))

    def is_outer_adjacent(self) -> bool:
        """Whether the last map but one makes adjacent results, so that vectors suit it better."""
        result = tiled_maps("no")(self.program.body.body)
        if isinstance(result, Failure):
            return False
        paths = [*chain(nests(result.expr))]
        return len(paths) > 1 and adjacent_map(result.expr) == paths[-2]

    def is_long_row(self) -> bool:
        """Whether the last two maps can become one, over elements that share nothing.

        A tile of two maps is then a piece of that one, or takes the same elements in another order.
        """
        body = self.program.body.body
        result = tiled_maps("no")(body)
        own = isinstance(result, Success) and element_by_element(result.expr)
        return own and isinstance(tiled_maps("yes")(body), Success)

    def choices(self) -> Iterator[Choices]:
        """The tilings that apply, with each legal mapping whose innermost dimension is 0."""
        for made in self.tilings():
            choices = dict(made)
            result = tiles_of(choices, self.sizes(choices))(self.program.body.body)
            if not isinstance(result, Failure):
                words = tuple(map(show_mapping, mappings(result.expr, ordered=True)))
                streamed = stores(self.program) if choices["vector"] == "yes" else {}
                rest = product(pad=paddings(self.program.body.body), map=words, **streamed)
                yield from ((*made, *more) for more in rest)

    def inside(self, _memory: str) -> Iterator[Choices]:
        """Sequential loops over tiles: the tilings that apply."""
        for made in self.tilings():
            choices = dict(made)
            result = tiles_of(choices, self.sizes(choices))(self.program.body.body)
            if not isinstance(result, Failure):
                yield made

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """A tile size for each map that is cut, and the vector width."""
        result = tiled_maps(choices["flat"], choices.get(LANES, INNER))(self.program.body.body)
        maps = () if isinstance(result, Failure) else tiled_lengths(result.expr)
        words = ("the innermost", "the next")
        tiles = tuple(
            Parameter(f"tile{k}", 1, length, f"results of {which} map in a tile")
            for k, (length, which) in enumerate(zip(maps, words, strict=False))
        )
        least = least_width(choices)
        width = Parameter("v", least, MAX_LANES, "vector width over the innermost map")
        return (*tiles, width) if choices["vector"] == "yes" else tiles

    def sizes(self, choices: dict[str, str]) -> dict[str, Parameter]:
        """The parameters by name."""
        return {p.name: p for p in self.parameters(choices)}

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`tile` with the levels of a mapping; the padded input is stored, in part, or not.

        Constants that lanes would gather are stored in the order in which the lanes read them.
        """
        tiles = tiles_of(choices, sizes)
        padding = store_padding(choices["pad"])
        packed = zipped_rows_packed(self.folded_by_lanes(choices), self.program.constants)
        return seq(tiles, mapped(choices["map"]), padding, stored_so(choices), packed)

    def folded_by_lanes(self, choices: dict[str, str]) -> tuple[Expr, ...]:
        """The arrays of rows that are zipped and of which each lane folds one."""
        maps = tiled_maps(choices["flat"], choices.get(LANES, INNER))(self.program.body.body)
        if choices["vector"] != "yes" or isinstance(maps, Failure):
            return ()
        for path in [*chain(nests(maps.expr))][-1:]:
            if isinstance(body_of(at(maps.expr, path)).type, ScalarType):
                return zipped(at(maps.expr, (*path, 0)))
        return ()


def exchanged(expr: Expr) -> Result:
    """Exchange the last two of the maps that make the result."""
    paths = [*chain(nests(expr))]
    if len(paths) < 2:
        return Failure("exchanged", "one map makes the result")
    return seq(at_path(paths[-2], interchanged()), clean())(expr)


@lru_cache(maxsize=8)
def tiled_maps(flattened: str, lanes: str = INNER) -> Strategy:
    """Expose the maps that make the result; `flat` or `exchanged` is applied to the last two.

    Operations on the results of folds are fused with these first, so that the maps make both. Folds
    of windows become nested: a guard of padding then depends on the counter of one loop.
    """
    two = flat() if flattened == "yes" else exchanged if lanes == OUTER else identity
    return remembered(seq(attempt(folds_inward), folds_nested(), exposed(), fused(), two))


@lru_cache(maxsize=8)
def tile_steps(
    flattened: str, lanes: str, vector: str, tail: str, sizes: tuple[tuple[str, Nat], ...]
) -> Strategy:
    """Cut the maps into tiles, flattened, exchanged and vectorized as chosen."""
    tiles = tuple(size for name, size in sizes if name != "v")
    vectors = [in_vectors(size) for name, size in sizes if name == "v" and vector == "yes"]
    return remembered(
        seq(tiled_maps(flattened, lanes), tile(tiles, tail, lanes=lanes == OUTER), *vectors)
    )


def tiles_of(choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
    """`tile_steps` for these choices."""
    nats = tuple((name, p.nat) for name, p in sizes.items())
    lanes, tail = choices.get(LANES, INNER), choices.get("tail", "none")
    return tile_steps(choices["flat"], lanes, choices["vector"], tail, nats)


def match(program: Program) -> Tiled | str:
    """The stage, if its result is made by maps and `direct` does not apply."""
    body = exposed_body(program)
    if not makes_array(body) or not any(True for _ in tiled_lengths(body)):
        return "no maps make the result"
    if not isinstance(direct.match(program), str):
        return "`direct` applies, which is better"
    return Tiled(program)


TILED = Family(
    "tiled",
    "the maps that make the result, in tiles, by every legal mapping",
    match,
    vectors=True,
)
