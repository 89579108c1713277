"""Correlations with a stride as correlations of blocks, whose windows are one apart.

Windows of `k * s` elements that are `s` apart are windows of `k` blocks of `s` elements that are
one apart: `slide(k * s, s)(xs)` is `map(join)(slide(k, 1)(split(s)(xs)))`. So a correlation with
the stride s is one without a stride, of k points, each of which has the elements of a block (its
phases). In two dimensions, a block has rows and columns, and a point is `[s][s][channels]`, as an
array of one dimension. All of this is a view of the image.

If s does not divide the number of elements of a window, the windows become longer, and what they
are multiplied with is padded with 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, every_part, top_down
from liftpy.primitives import Map, Slide, Transpose
from liftpy.rewrite.strategies.epilogue import COMPONENTS, fused_inward
from liftpy.rewrite.strategies.lower import nest_reductions
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import body_of, maker, parameter
from liftpy.rewrite.strategies.stage import body, merge_columns, merge_rows, source, split_off
from liftpy.rewrite.strategies.sums import one_sum, operands_in_order
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    choose,
    normalize,
    outermost,
    rule,
    seq,
)


@dataclass(frozen=True)
class Windows:
    """The windows in one dimension of an array of `length` elements."""

    size: int
    step: int
    length: int

    @property
    def blocks(self) -> int:
        """The number of blocks of `step` elements that hold a window."""
        return -(-self.size // self.step)

    @property
    def longer(self) -> int:
        """The number of elements of these blocks."""
        return self.blocks * self.step

    @property
    def cropped(self) -> bool:
        """Whether windows are shorter than these blocks."""
        return self.longer > self.size

    @property
    def fits(self) -> bool:
        """Whether windows are whole blocks, and the last one ends where the array ends."""
        return self.longer == self.size and (self.length - self.size) % self.step == 0


def has_stride(expr: Expr) -> bool:
    """Whether an expression takes windows that overlap and are more than one element apart."""
    calls = (e.fun for e in every_part(expr) if isinstance(e, FunCall))
    sizes = ((f.size.constant, f.step.constant) for f in calls if isinstance(f, Slide))
    return any(size is not None and step is not None and size > step > 1 for size, step in sizes)


def without_stride(expr: Expr) -> Result:
    """Compute the correlation that makes the result without a stride."""

    def of_blocks(expr: Expr) -> Result:
        found = windows_of(expr)
        if not any(w.size > w.step > 1 for w in found):
            return Failure("phased", "no windows with a stride make the result")
        if len(found) == 1:
            return seq(longer_line(*found), blocks_of_line(*found))(expr)
        return seq(longer_windows(*found), blocks_of_windows(*found))(expr)

    def computed(expr: Expr) -> Result:
        sums = seq(one_sum(), nest_reductions(), operands_in_order)
        whole = seq(attempt(rule("map_fusion")), sums, of_blocks)
        return at_path(maker(expr), whole)(expr)

    return seq(attempt(fused_inward), computed)(expr)


def windows_of(expr: Expr) -> tuple[Windows, ...]:
    """The windows over which an expression maps, of one or of two dimensions; () without any."""
    outer = slid(expr)
    if outer is None:
        return ()
    part = body_of(expr)
    if not (isinstance(part, FunCall) and isinstance(part.fun, Map)):
        return (outer,)
    (turned,) = part.args
    if not (isinstance(turned, FunCall) and isinstance(turned.fun, Transpose)):
        return (outer,)
    (rows,) = turned.args
    if not (isinstance(rows, FunCall) and isinstance(rows.fun, Map)):
        return (outer,)
    inner = slid_by(body_of(rows))
    return (outer,) if inner is None or rows.args[0] != parameter(expr) else (outer, inner)


def slid(expr: Expr) -> Windows | None:
    """The windows of `map(f)(slide(xs))`."""
    if not (isinstance(expr, FunCall) and isinstance(expr.fun, Map)):
        return None
    return slid_by(expr.args[0])


def slid_by(expr: Expr) -> Windows | None:
    """The windows of `slide(xs)`, if their sizes are numbers."""
    if not (isinstance(expr, FunCall) and isinstance(expr.fun, Slide)):
        return None
    t = expr.args[0].type
    sizes = [expr.fun.size, expr.fun.step, t.length if isinstance(t, ArrayType) else None]
    numbers = [None if n is None else n.constant for n in sizes]
    return None if None in numbers else Windows(*(int(n or 0) for n in numbers))


phased = remembered(without_stride, 16)
"""`without_stride`, done once for all tilings of a program's values."""


# --- longer windows -------------------------------------------------------------------------------


def lengthened(windows: Windows) -> Strategy:
    """`slide(xs)` as windows of whole blocks, cropped if these are longer, of a padded array."""
    taken = seq(body(rule("take_all")), rule("map_identity"))
    made = rule("slide_longer", longer=windows.longer)
    return made if windows.cropped else seq(made, taken)


def longer_line(windows: Windows) -> Strategy:
    """Windows of whole blocks in `map(f)(slide(xs))`."""

    def run(expr: Expr) -> Result:
        if windows.fits:
            return Success(expr)
        steps = [source(lengthened(windows))]
        if windows.cropped:
            steps += [rule("map_fusion"), body(outermost(rule("products_extension_2")))]
        return seq(*steps, at_path((0, 0), attempt(rule("pad_of_pad"))))(expr)

    return run


def longer_windows(down: Windows, right: Windows) -> Strategy:
    """Windows of whole blocks in `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(xs))`."""
    steps: list[Strategy] = []
    if not right.fits:
        steps.append(body(longer_columns(right)))
    if not down.fits:
        steps.append(longer_rows(down))
    if not right.fits:
        # map(row -> slide(pad(row)))(rows): move the padding out to the array under the windows
        steps += [
            body(at_path((0, 0), split_off(0))),
            split_off(0, 0, 0),
            source(rule("map_map_of_slide")),
        ]
    merged = (
        seq(source(attempt(merge_rows())), attempt(merge_columns()))
        if not right.fits
        else attempt(choose(merge_rows(), rule("pad_of_pad")))
    )
    return seq(*steps, at_path((0, 0), merged)) if steps else Success


def longer_columns(right: Windows) -> Strategy:
    """Longer windows of the rows in `map(f)(transpose(map(slide)(rows)))`."""
    made = at_path((0, 0), body(lengthened(right)))
    if not right.cropped:
        return made
    return seq(
        made,
        at_path((0, 0), split_off(0)),
        source(rule("transpose_of_map_map")),
        rule("map_fusion"),
        body(outermost(columns_padded)),
    )


def longer_rows(down: Windows) -> Strategy:
    """Longer windows of rows; `f` reads them cropped."""
    made = source(lengthened(down))
    if not down.cropped:
        return made
    inside = seq(
        at_path((0, 0), rule("map_of_take")),
        source(rule("transpose_of_take")),
        rule("map_fusion"),
        body(outermost(rule("products_extension_3"))),
    )
    return seq(made, rule("map_fusion"), body(inside))


def columns_padded(expr: Expr) -> Result:
    """Pad the second array of a sum of products where the rows of the first are cropped."""
    inside = at_path((2,), rule("products_extension_2"))
    return seq(map_inside, inside, rule("reduce_fission_second", {"g": (1, 1)}))(expr)


# --- blocks ---------------------------------------------------------------------------------------


def blocks_of_line(windows: Windows) -> Strategy:
    """From `map(f)(slide(xs))` to `map(f')(slide(k, 1)(map(join)(split(xs))))`."""
    return seq(
        source(rule("slide_in_blocks")),
        rule("map_fusion"),
        body(outermost(seq(cut_apart(windows.step), lifted_joins))),
        point_apart,
        source(rule("map_map_of_slide")),
    )


def blocks_of_windows(down: Windows, right: Windows) -> Strategy:
    """The same for `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(xs))`.

    The blocks of the array are `map(transpose . map(split))(split(xs))`.
    """
    of_row = seq(
        # b -> map(slide)(b), a block of rows: windows of the columns of blocks
        body(rule("slide_in_blocks")),
        split_off(0),
        source(
            seq(
                split_off(0),
                source(rule("transpose_introduction")),
                rule("map_slide_of_transpose"),
            )
        ),
        rule("map_map_of_transpose"),
        source(rule("map_fusion")),
    )
    windows = seq(
        # from transpose(map(slide)(join(w))): blocks outside
        source(seq(rule("map_of_join"), source(body(of_row)))),
        rule("transpose_of_join"),
        source(
            seq(
                source(seq(rule("map_fusion"), body(rule("transpose_twice")), split_off(0))),
                rule("transpose_of_map_map"),
            )
        ),
    )
    return seq(
        source(rule("slide_in_blocks")),
        rule("map_fusion"),
        body(seq(source(windows), rule("map_fusion"), rule("map_fusion"))),
        body(body(outermost(in_blocks(down.step, right.step)))),
        # map(b -> slide(blocks(b)))(w): the blocks of columns of the whole array
        body(at_path((0, 0), split_off(0))),
        split_off(0, 0, 0),
        source(rule("map_map_of_slide")),
        # map(c -> f(map(map(points))(c)))(transpose(map(slide)(rows)))
        body(seq(point_apart, source(points_inward))),
        split_off(0, 0, 0),
        source(rule("map_map_of_slide")),
    )


points_inward = seq(
    rule("map_map_of_transpose"),
    source(seq(rule("map_fusion"), body(rule("map_map_of_slide")), split_off(0))),
)
"""`map(map(h))(transpose(map(slide)(rows)))` as `transpose(map(slide)(map(map(e))(rows)))`."""


def point_apart(expr: Expr) -> Result:
    """`map(c -> f(map(h)(c)))` as `map(f)(map(map(h)))`."""
    paths = (p for p, e in top_down(body_of(expr)) if is_map_of(e, parameter(expr)))
    path: Path | None = next(paths, None)
    if path is None:
        return Failure("point_apart", "the elements of a window are not read through a layout")
    return split_off(*path)(expr)


def is_map_of(expr: Expr, param: Expr) -> bool:
    """Whether an expression maps over a variable."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, Map) and expr.args == (param,)


map_inside = seq(
    at_path((1,), rule("zip_of_map_first")),
    rule("reduce_map_fusion"),
    at_path((2,), normalize(COMPONENTS)),
)
"""The fold of `zip(map(f)(xs), ys)` as one of `zip(xs, ys)`."""

joined = seq(
    rule("reduce_map_fission", {"g": (1,)}),
    rule("reduce_of_reduce"),
    at_path((1,), rule("join_of_zips")),
)
"""Two folds, the inner one of `zip(p.0, p.1)`, as one of the joined arrays."""

lifted = seq(
    rule("reduce_fission_first", {"g": (1, 0)}), rule("reduce_fission_second", {"g": (1, 1)})
)
"""The step's fold of `zip(f(p.0), g(p.1))` as one of `zip(p.0, p.1)`, with maps of f and g."""

lifted_joins = seq(at_path((2,), joined), lifted)
"""A fold whose step has two more folds, as one whose step has one fold, of joined arrays."""


def cut_apart(step: int) -> Strategy:
    """A fold of `zip(join(xs), ys)` as a fold of folds; `step` is the length of a row of xs."""
    return seq(
        at_path((1, 1), rule("split_introduction", m=step)),
        at_path((1,), rule("zip_of_joins")),
        rule("reduce_of_join"),
        rule("reduce_map_fusion"),
    )


def in_blocks(down: int, right: int) -> Strategy:
    """A sum of products of a window, made of blocks, as one over its blocks and their elements.

    The window is `join(map(map(join) . transpose)(c))`, and the folds are over the rows of blocks,
    rows of a block, blocks in the row, columns of a block, and channels. The rows of a block become
    the fourth dimension, and the last three become one.
    """
    of_block = seq(cut_apart(right), lifted_joins)
    exchanged = seq(
        rule("products_exchange"),
        at_path((1, 0), seq(rule("transpose_of_map_map"), source(rule("transpose_twice")))),
    )
    of_rows = seq(
        map_inside,
        at_path((2,), of_block),
        lifted,
        exchanged,
        lifted_joins,
        at_path((1, 0), rule("map_fusion")),
    )
    return seq(cut_apart(down), map_inside, at_path((2,), of_rows), lifted)
