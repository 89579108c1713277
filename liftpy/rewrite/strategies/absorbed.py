"""Scaled and shifted sums of products with constants, as sums of products with others.

    map(map(k -> scale(k) * reduce(add, z, products with k) + shift(k)))

is `map(map(k -> reduce(add, z', products with k')))`. Its factors are scaled
instead of the sum, and the shift becomes part of the value from which it starts. If factors, scale
and shift are constant, so are the new factors and starts, each named by a `let` around everything.

The operation on the sums may be a map of its own, with layouts between: it first moves inwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.types import ScalarType
from liftpy.ir.walk import Path, at, top_down
from liftpy.primitives import Map
from liftpy.rewrite.strategies.elementwise import moved, sums_in
from liftpy.rewrite.strategies.epilogue import tuples_fused
from liftpy.rewrite.strategies.shapes import is_let, is_reduce, maker, named_part, parameter
from liftpy.rewrite.strategies.unread import unread_dropped
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Step,
    Strategy,
    Success,
    at_path,
    attempt,
    choose,
    normalize,
    repeat,
    rule,
    seq,
)

FACTORS, STARTS = "factors", "starts"
"""The variables of the new factors, and of the values from which the sums start."""


def absorbed(constants: AbstractSet[str]) -> Strategy:
    """Fold the operation on each sum into its factors, if both depend only on these variables."""

    def run(expr: Expr) -> Result:
        prepared = seq(
            constants_inlined(constants),
            normalize(choose(rule("join_of_split"), rule("split_of_join"))),
            normalize(rule("map_of_zip_of_three")),
            inward,
        )(expr)
        if isinstance(prepared, Failure):
            return prepared
        folds = [path for path, part in top_down(prepared.expr) if is_reduce(part)]
        if len(folds) != 1:
            return Failure("absorbed", f"there are {len(folds)} sums, not one")
        (fold,) = folds
        return seq(lambda _: prepared, scaled(fold), apart(constants))(expr)

    return run


def inward(expr: Expr) -> Result:
    """Move what is done to each sum to where it is computed."""
    return at_path(maker(expr), moved(sums_in))(expr)


def constants_inlined(constants: AbstractSet[str]) -> Strategy:
    """Inline the lets of constant values."""

    def run(expr: Expr) -> Result:
        for path, part in top_down(expr):
            if not isinstance(part, FunCall) or not is_let(part):
                continue
            if {p.name for p in part.args[0].free} <= constants:
                return seq(at_path(path, rule("let_inline")), run)(expr)
        return Success(expr)

    return run


def maps_around(expr: Expr, path: Path) -> Iterator[Path]:
    """The maps whose functions contain the part at a path, innermost first."""
    for depth in reversed(range(len(path))):
        part = at(expr, path[:depth])
        if isinstance(part, FunCall) and isinstance(part.fun, Map) and path[depth] == 1:
            yield path[:depth]


def scaled(fold: Path) -> Strategy:
    """Scale the factors of the sum at a path instead of the sum."""

    def run(expr: Expr) -> Result:
        around = next(maps_around(expr, fold), None)
        if around is None or len(fold) == len(around) + 1:
            return Failure("absorbed", "nothing is done to each sum")
        body = (*around, 1)
        if not isinstance(at(expr, body).type, ScalarType):
            return Failure("absorbed", "an array is made of each sum")
        whole = seq(
            rule("let_introduction", {"v": fold[len(body) :]}),
            at_path((0,), attempt(rule("reduce_map_fusion"))),
            rule("scaled_products"),
            rule("reduce_map_fission", {"g": (1,)}),
            at_path(SCALED, moved(lambda _: True)),
        )
        return at_path(body, whole)(expr)

    return run


SCALED, START = (1, 0, 1), (0,)
"""Where the scaled factors are in a sum of products, and the value from which the sum starts."""


def apart(constants: AbstractSet[str]) -> Strategy:
    """Name the scaled factors and the starts of the sum, outside of all maps."""

    def run(expr: Expr) -> Result:
        fold = next(path for path, part in top_down(expr) if is_reduce(part))
        maps = [*maps_around(expr, fold)]
        factors, starts = (*maps[0], 1, *SCALED), (*maps[0], 1, *START)
        factors = maker(at(expr, factors), factors)
        steps: tuple[Step, ...] = ()
        for place in maps:
            inside = len(place) + 1
            hints = {"g": factors[inside:], "h": starts[inside:]}
            if parameter(at(expr, place)) not in at(expr, factors).free | at(expr, starts).free:
                continue
            for made, where in collected(hints):
                parts = (at_path((*place, *where, k), repeat(unread_dropped())) for k in range(2))
                found = seq(at_path(place, made), *parts)(expr)
                if isinstance(found, Success):
                    break
            else:
                return Failure("absorbed", "the factors cannot be computed outside of a map")
            expr, steps = found.expr, (*steps, *found.steps)
            factors, starts = ((*place, *where, k) for k in range(2))
        if not {p.name for p in at(expr, factors).free | at(expr, starts).free} <= constants:
            return Failure("absorbed", "the factors, or what is done to the sums, are not constant")
        return seq(
            lambda now: Success(now, steps),
            named_part(FACTORS, factors),
            at_path((1,), named_part(STARTS, starts)),
        )(expr)

    return run


def collected(hints: Mapping[str, Path]) -> Iterator[tuple[Strategy, Path]]:
    """Ways to compute two parts of a map's function for all elements before the map.

    Each way comes with the place of the zip of the two arrays in its result. The map may read a zip
    whose first array the parts do not read.
    """
    yield rule("map_fission_both", hints), (0,)
    made = rule("map_fission_both_second", hints)
    for _ in range(MOST_ROTATED):
        yield made, (0, 1)
        made = seq(at_path((0,), rule("zip_rotate_right")), tuples_fused(), made)


MOST_ROTATED = 3
"""The most arrays of a zip, besides the first one, that the parts of a function may read."""
