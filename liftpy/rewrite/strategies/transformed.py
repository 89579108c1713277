"""Correlations with fewer products: a map over windows as products of transformed tiles.

From `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(xs))`, in which `f` folds a window with
each of some kernels, to tiles whose correlations a rule computes by F(m, r) (rules/correlation.py).
The result is in three steps, each named by a `let`, so that each becomes a stage: `inputs` and
`filters` (transformed), and their `products`, which the result transforms back. If m does not
divide the number of windows, the array is padded further and the additional results are cropped,
or the last tile begins early, and results that two tiles compute are taken from the first of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat, nat
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import at, every_part
from liftpy.primitives import Slide
from liftpy.primitives.work import computes
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import RULES, integral
from liftpy.rewrite.rules.correlation import NAMES, RECTANGLES, SIZES
from liftpy.rewrite.strategies.elementwise import to_elements
from liftpy.rewrite.strategies.epilogue import fused_inward
from liftpy.rewrite.strategies.groups import groups_outside
from liftpy.rewrite.strategies.hybrid import PARTS, whole_and_rest
from liftpy.rewrite.strategies.outward import lets_outside, map_outside, rotated_right
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import is_let, lets, maker, named_part, working_map
from liftpy.rewrite.strategies.share import has_fold, outside_functions
from liftpy.rewrite.strategies.stage import (
    Tiles,
    disjoint,
    extend,
    is_tile_map,
    overlapping,
    source,
    split_off,
    tile_line,
    tile_rows,
    tile_windows,
)
from liftpy.rewrite.strategies.sums import sums_in, sums_of_products
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    choose,
    identity,
    normalize,
    outermost,
    repeat,
    rule,
    seq,
    where,
)

OVERLAP = "+overlap"
"""The suffix of the words of tiles that overlap."""

NAMED = ("inputs", "filters", "products")
"""The values between the steps."""

STARTS = "starts"
"""The name of the value that sums of integers start from."""


@dataclass(frozen=True)
class Tiling:
    """How windows are taken tile by tile, so that `rule` applies to the map over tiles.

    A tile has `m` results in each dimension that is transformed, None in others. `r` is the number
    of elements of a window in these dimensions. With `fewest`, it is for numbers of results for
    which no other `m` takes fewer products in a dimension. With `hybrid`, it has whole tiles only,
    and other results are computed directly; it is for numbers of results for which this takes fewer
    products than tiles of any `m`. With `overlap`, the last tile begins early; at least one number
    of results must be no multiple of `m`, and none may be less than `m`. The rule is applied after
    `prepared`; `law` looks it up. A rule with `strips` sums the channels in strips of equal length,
    which have at least two and at most `strips` channels.
    """

    rule: str
    m: tuple[int | None, ...]
    r: int
    tiled: Strategy
    fewest: bool = False
    hybrid: bool = False
    overlap: bool = False
    prepared: Strategy = identity
    strips: int = 0
    law: Callable[[str], Rule] = RULES.__getitem__


def tiles_of(rows: Tiles, columns: Tiles) -> Strategy:
    """Windows in tiles of two dimensions, with the layout of their results around."""
    apart = where(is_tile_map, split_off(0), "tiles")
    return seq(tile_windows(rows, columns), outermost(apart))


def padded(m: int, r: int) -> Tiles:
    """Tiles of m results of windows of r elements, of an array that they fit."""
    return disjoint(nat(m + r - 1))


def square(m: int, r: int) -> Tiling:
    """Tiles of m x m results."""
    return Tiling(f"correlation_{m}_{r}", (m, m), r, tiles_of(padded(m, r), padded(m, r)))


def flat_square(m: int, r: int) -> Tiling:
    """Tiles of m x m results, with flat transforms."""
    return replace(square(m, r), rule=f"correlation_flat_{m}_{r}")


def row(m: int, r: int) -> Tiling:
    """Tiles of one row of m results."""
    return Tiling(f"correlation_rows_{m}_{r}", (None, m), r, tile_rows(padded(m, r)))


def column(m: int, r: int) -> Tiling:
    """Tiles of one column of m results, from windows of one column."""
    return Tiling(f"correlation_column_{m}_{r}", (m, None), r, tiles_of(padded(m, r), padded(1, 1)))


def line(m: int, r: int) -> Tiling:
    """Tiles of m results in one dimension."""
    return Tiling(f"correlation_line_{m}_{r}", (m,), r, tile_line(padded(m, r)))


def each_square(m: int, r: int) -> Tiling:
    """Tiles of m x m results of each channel with a kernel of its own."""
    return replace(square(m, r), rule=f"correlation_each_{m}_{r}", prepared=PAIRS)


def each_line(m: int, r: int) -> Tiling:
    """Tiles of m results, in one dimension, of each channel with a kernel of its own."""
    return replace(line(m, r), rule=f"correlation_each_line_{m}_{r}", prepared=PAIRS)


PAIRS = attempt(normalize(seq(rule("map_of_zip_of_three"), rotated_right)))
"""Writes maps over zips of three arrays (channels, kernels, initial values) as maps of pairs."""


def of_integers(shape: str, made: Tiling, m: int, r: int, types: str) -> Tiling:
    """Tiles as `made` has them, of sums of products of 8-bit integers."""
    law = f"{shape}_{m}_{r}_{types}"
    strips = 0 if shape == "integral_each" else integral.strips(law)
    return replace(made, rule=law, strips=strips)


INTEGRAL: dict[str, tuple[str, Callable[[int, int], Tiling]]] = {
    "integral": ("{m}x{m}", square),
    "integral_line": ("{m}", line),
    "integral_each": ("{m}x{m}", each_square),
}
"""The words and tilings of the shapes of rules for integers."""


def whole_square(m: int, r: int) -> Tiling:
    """Whole tiles of m x m results; the results of partial tiles are computed directly."""
    return replace(square(m, r), hybrid=True)


def overlap_square(m: int, r: int) -> Tiling:
    """Tiles of m x m results, the last of which begin early."""
    last = overlapping(nat(m))
    return replace(square(m, r), tiled=tiles_of(last, last), overlap=True)


def overlap_line(m: int, r: int) -> Tiling:
    """Tiles of m results in one dimension, the last of which begins early."""
    return replace(line(m, r), tiled=tile_line(overlapping(nat(m))), overlap=True)


TILES: dict[str, tuple[Callable[[int, int], Tiling], ...]] = {
    "{m}x{m}": (square, each_square),
    "1x{m}": (row,),
    "{m}x1": (column,),
    "{m}": (line, each_line),
    "{m}x{m}+direct": (whole_square,),
    "{m}x{m}+flat": (flat_square,),
    "{m}x{m}" + OVERLAP: (overlap_square,),
    "{m}" + OVERLAP: (overlap_line,),
}
"""The tilings by the form of their word; m is the number of results in a dimension."""


def rectangle(m: int, k: int, r: int) -> Tiling:
    """Tiles of m rows of k results, if no other m and k take fewer products."""
    tiled = tiles_of(padded(m, r), padded(k, r))
    return Tiling(f"correlation_{m}_{r}_by_{k}_{r}", (m, k), r, tiled, fewest=True)


@cache
def tilings() -> dict[str, tuple[Tiling, ...]]:
    """For each word of the choice `winograd`, the tilings with these numbers of results."""
    found: dict[str, tuple[Tiling, ...]] = {}
    shapes = [
        (word.format(m=m), tiling)
        for word, makes in TILES.items()
        for m, r in SIZES
        for tiling in (make(m, r) for make in makes)
        if tiling.rule in NAMES
    ]
    shapes += [(f"{m}x{k}", rectangle(m, k, r)) for m, k, r in RECTANGLES]
    for shape, (m, r), types in integral.NAMES.values():
        word, make = INTEGRAL[shape]
        shapes.append((word.format(m=m), of_integers(shape, make(m, r), m, r, types)))
    for word, tiling in shapes:
        found[word] = (*found.get(word, ()), tiling)
    return found


def fewest(count: int, r: int) -> int:
    """The m with the fewest products for as many results; the smallest of several."""
    return min((m for m, s in SIZES if s == r), key=lambda m: (-(-count // m) * (m + r - 1), m))


def hybrid_products(counts: tuple[int, ...], m: int, r: int) -> int:
    """The products of whole tiles of m results in each dimension, and of other results directly."""
    whole = [n // m for n in counts]
    direct = math.prod(counts) - math.prod(k * m for k in whole)
    return math.prod(k * (m + r - 1) for k in whole) + direct * r ** len(counts)


def fewest_products(counts: tuple[int, ...], r: int) -> int:
    """The least number of products of tiles of any m, which may be partial."""
    return math.prod(-(-n // m) * (m + r - 1) for n in counts for m in (fewest(n, r),))


def saves(tiling: Tiling, counts: tuple[int, ...]) -> bool:
    """Whether a hybrid has whole tiles, and takes fewer products than tiles or other hybrids."""
    others = [m for m, s in SIZES if s == tiling.r]
    m = min(others, key=lambda m: (hybrid_products(counts, m, tiling.r), m))
    saved = hybrid_products(counts, m, tiling.r) < fewest_products(counts, tiling.r)
    return saved and all(n >= m for n in counts) and tiling.m == (m,) * len(counts)


def applies(tiling: Tiling, expr: Expr) -> bool:
    """Whether an expression takes windows of as many elements as a tiling needs, one apart."""
    calls = (e.fun for e in every_part(expr) if isinstance(e, FunCall))
    return any(isinstance(f, Slide) and f.size == tiling.r and f.step == 1 for f in calls)


def winograd(tiling: Tiling) -> Strategy:
    """Compute the correlations by the rule of a tiling, below the layouts of the result."""
    if tiling.hybrid:
        return seq(FUSED_INWARD, in_parts(tiling))

    def computed(how: Strategy) -> Strategy:
        return seq(lambda expr: at_path(maker(expr), how)(expr), named_outside)

    one = seq(computed(whole(tiling)), finished)
    many = seq(computed(each_of_many(tiling)), attempt(finished))
    return seq(FUSED_INWARD, choose(one, many))


FUSED_INWARD = remembered(attempt(fused_inward), 64)
"""`fused_inward` where it succeeds, done once for all tilings of a program's values."""


def in_parts(tiling: Tiling) -> Strategy:
    """Compute the results of whole tiles by the rule of a tiling, and the others directly."""

    def run(expr: Expr) -> Result:
        place = maker(expr)
        counts = known_counts(tiling, at(expr, place))
        if counts is None or not saves(tiling, counts):
            return Failure("winograd", "a hybrid does not take the fewest products")
        down, right = (n // m * m for n, m in zip(counts, tiling.m, strict=True) if m is not None)
        apart, paths = whole_and_rest((counts[0], counts[1]), (down, right))
        one = winograd(replace(tiling, hybrid=False))
        computed = seq(attempt(rule("map_fusion")), apart, at_path(paths[PARTS[0]], one))
        named = (
            at_path((1,) * k, named_part(name, (*place, *path)))
            for k, (name, path) in enumerate(paths.items())
        )
        return seq(at_path(place, computed), *named)(expr)

    return run


def known_counts(tiling: Tiling, expr: Expr) -> tuple[int, ...] | None:
    """The numbers of results in the dimensions of a tiling; None if one is not known."""
    counts = expr.type.shape[: len(tiling.m)] if isinstance(expr.type, ArrayType) else ()
    known = tuple(int(n) for n in counts if n.constant is not None)
    return known if len(known) == len(tiling.m) else None


def finished(expr: Expr) -> Result:
    """Move what is done to each result to where it is computed, in the last step."""
    return at_path((1,) * sum(1 for _ in lets(expr)), to_elements)(expr)


def by_rule(tiling: Tiling) -> Strategy:
    """The rule of a tiling at the outermost map to which it applies."""

    def run(expr: Expr) -> Result:  # the rule is made only for what has tiles
        law = tiling.law(tiling.rule)
        if not tiling.strips:
            return seq(tiling.prepared, outermost(rule(law)))(expr)
        strips = range(tiling.strips, 1, -1)  # the longest is the fastest
        return choose(*(outermost(rule(law, m=m)) for m in strips))(expr)

    return run


def whole(tiling: Tiling) -> Strategy:
    """Correlations that are all in one map over windows."""
    return seq(in_tiles(tiling), by_rule(tiling))


SUMS = remembered(seq(attempt(rule("map_fusion")), sums_of_products()), 16)
"""Writes the sums of products in what a map over windows makes, once for all tilings."""


def in_tiles(tiling: Tiling) -> Strategy:
    """Take the windows of a map tile by tile, under the crop of additional windows."""

    def run(expr: Expr) -> Result:
        counts = known_counts(tiling, expr)
        if counts is None:
            return Failure(
                "winograd", f"{expr.type} does not have {len(tiling.m)} known numbers of results"
            )
        least = (*(fewest(n, tiling.r) for n in counts),)
        if tiling.fewest and tiling.m != least:
            return Failure("winograd", f"tiles of {'x'.join(map(str, least))} take fewer products")
        extra = [0 if m is None else -n % m for n, m in zip(counts, tiling.m, strict=True)]
        if tiling.overlap:
            if not any(extra) or any(m and n < m for n, m in zip(counts, tiling.m, strict=True)):
                return Failure("winograd", "no tile is partial, or there are too few results")
            extra = [0 for _ in counts]
        cropped = tuple(0 for _ in counts)
        tiled = tiling.tiled
        if any(extra):
            tiled = seq(extension(*map(nat, extra)), at_path(cropped, tiled))

        def under(written: Expr) -> Result:  # under what is done to each result
            path = sums_in(written)
            if path is None:
                return Failure("winograd", "the result is not made of sums")
            own = seq(attempt(rule("map_fusion")), tiled) if path else tiled
            return at_path(path, own)(written)

        return seq(SUMS, under)(expr)

    return run


def each_of_many(tiling: Tiling) -> Strategy:
    """Correlations in the function of a map, such as one over images or over groups of channels.

    The tiles of all elements are in one array if each has the same kernels. Otherwise each step of
    the algorithm becomes a map of its own.
    """

    def run(expr: Expr) -> Result:
        if not working_map(expr):
            return Failure("winograd", "no map makes the result")
        joined = seq(together(tiling), by_rule(tiling))
        exchanged = seq(MAP_OUTSIDE, lambda e: at_path(maker(e), apart(tiling))(e))
        grouped = seq(GROUPS_OUTSIDE, lambda e: at_path(maker(e), apart(tiling))(e))
        return seq(ONE_MAP, choose(joined, exchanged, apart(tiling), grouped))(expr)

    return run


def apart(tiling: Tiling) -> Strategy:
    """Each step of the algorithm, in the function of a map, as a map of its own."""
    return seq(at_path((1,), winograd(tiling)), lets_outside)


def one_map(expr: Expr) -> Result:
    """Fuse the maps that a map reads with it, and inline the views that its function names."""
    return seq(repeat(rule("map_fusion")), at_path((1,), normalize(VIEWS_INLINED)))(expr)


VIEWS_INLINED = where(
    lambda e: is_let(e) and not computes(at(e, (0,))), rule("let_inline"), "named view"
)

ONE_MAP = remembered(one_map, 64)
MAP_OUTSIDE = remembered(map_outside, 64)
GROUPS_OUTSIDE = remembered(groups_outside, 64)
"""What does not depend on the tiling is done once for all of them."""

GROUPED = seq(FUSED_INWARD, lambda e: at_path(maker(e), seq(ONE_MAP, GROUPS_OUTSIDE))(e))
"""Moves the map over the groups of each window out of the maps over windows."""


def together(tiling: Tiling) -> Strategy:
    """`in_tiles` in the function of a map, with the tiles of all of its elements in one array."""
    join = of_rows if tiling.m[0] is None else of_tiles

    def run(expr: Expr) -> Result:
        if not working_map(expr):
            return Failure("winograd", "no map makes the result")
        inner = choose(in_tiles(tiling), seq(ONE_MAP, together(tiling)))
        return seq(lambda e: at_path((1, *maker(at(e, (1,)))), inner)(e), below(join))(expr)

    return run


def below(joined: Strategy) -> Strategy:
    """Apply a strategy to the two maps of `map(x -> g(map(f)(...)))`, with `g` moved outside.

    `f` computes the sums; `g` is a layout, or operations on each sum.
    """

    def run(expr: Expr) -> Result:
        made = outside_functions(at(expr, (1,)))
        place = next((path for path, part in made if working_map(part) and has_fold(part)), None)
        if place is None:
            return Failure("winograd", "no map takes the tiles")
        return seq(split_off(*place), source(joined))(expr) if place else joined(expr)

    return run


def of_tiles(expr: Expr) -> Result:
    """`map(x -> map(f)(tiles(x)))(xs)` as `split(map(f)(join(map(tiles)(xs))))`."""
    return seq(split_off(0), rule("map_map_join"))(expr)


def of_rows(expr: Expr) -> Result:
    """Join rows of tiles: each row of the result is one of all elements of a map.

    From `map(x -> map(rows -> map(f)(transpose(rows)))(slide(tiles(x))))(xs)` to
    `transpose(map(split)(map(rows -> map(f)(transpose(rows)))(slide(ts))))`, where `ts` is
    `map(join)(transpose(map(tiles)(xs)))`.
    """
    slid = seq(split_off(0), source(rule("transpose_introduction")), rule("map_slide_of_transpose"))
    rows_joined = seq(
        # rows -> map(row -> map(f)(transpose(row)))(transpose(rows)), for rows of all elements
        split_off(0),
        rule("map_map_join"),
        at_path((0, 0), rule("join_of_map_transpose")),
        at_path((0, 0, 0, 0), rule("transpose_twice")),
    )
    return seq(
        split_off(0),
        source(slid),
        rule("map_map_of_transpose"),
        source(
            seq(
                rule("map_fusion"),
                at_path((1,), rows_joined),
                split_off(0),
                source(seq(split_off(0, 0), source(rule("map_map_of_slide")))),
            )
        ),
    )(expr)


def extension(*extra: Nat) -> Strategy:
    """Pad further after the last element of each dimension, and crop the additional results."""
    if len(extra) == 1:
        return seq(source(rule("slide_extension", extra=extra[0])), rule("map_of_crop"))
    return extend(*extra, padded=False)


def named_outside(expr: Expr) -> Result:
    """Move the lets of the steps out of the layouts around them."""
    path, named = next(((p, e) for p, e in outside_functions(expr) if is_let(e)), ((), expr))
    if not path:
        return Success(expr)
    last = (1,) * sum(1 for _ in lets(named))
    outwards = (at_path(last[:k], rule("let_of_let")) for k in range(len(last)))
    introduced = rule("let_introduction", {"v": path})
    return seq(introduced, *outwards, at_path(last, rule("let_inline")))(expr)
