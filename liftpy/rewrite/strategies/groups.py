"""Maps over windows, exchanged with a map over the groups of a window's elements.

From `map(rows -> map(w -> map(f)(zip(groups(w), ys)))(transpose(map(slide)(rows))))(slide(xs))`, in
which `groups(w)` is `transpose(map(split)(join(w)))`, to a map of `zip(parts(xs), ys)`, whose
function maps over the windows of one part: `parts(xs)` is `transpose(map(transpose)(map(map(split))
(xs)))`. So a convolution in groups of channels, written as a map over the groups of each window, is
a convolution of each group. The laws are those of layouts.
"""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.ir.walk import at
from liftpy.rewrite.strategies.epilogue import tuples_fused
from liftpy.rewrite.strategies.outward import map_outside, read_parts, rotated_right, zipped
from liftpy.rewrite.strategies.shapes import body_of, working_map
from liftpy.rewrite.strategies.share import outside_functions
from liftpy.rewrite.strategies.stage import body, source, split_off
from liftpy.rewrite.strategy import Failure, Result, at_path, rule, seq

WINDOW = (1, 1)
"""The path of what is computed of a window in two maps over windows."""


def groups_outside(expr: Expr) -> Result:
    """Exchange maps over windows of rows and columns with the map over groups of a window.

    The result has layouts around the map over groups.
    """
    if not (working_map(expr) and working_map(body_of(expr))):
        return Failure("groups_outside", "no map over windows of rows and columns")
    made = outside_functions(at(expr, WINDOW))
    place = next((path for path, part in made if working_map(part)), None)
    if place is None or zipped(at(expr, (*WINDOW, *place))) is None:
        return Failure("groups_outside", "no map of a zip makes what is computed of a window")
    pairs = at_path((*WINDOW, *place), seq(read_parts, rotated_right, joins_inward))
    if not place:
        return seq(pairs, exchanged)(expr)
    apart = seq(body(split_off(*place)), split_off(0))
    return seq(pairs, apart, source(exchanged))(expr)


joins_inward = seq(
    at_path((0, 0), seq(source(rule("map_of_join")), rule("transpose_of_join"))),
    source(rule("zip_of_map_first")),
    tuples_fused(),
)
"""`map(f)(zip(transpose(map(split)(join(w))), ys))` with the join in the function."""

split_first = seq(
    # map(w -> transpose(map(transpose)(map(map(split))(w))))(transpose(map(slide)(rows)))
    body(source(seq(split_off(0, 0), source(rule("map_map_of_transpose"))))),
    body(at_path((0, 0, 0), seq(rule("map_fusion"), body(rule("map_map_of_slide")), split_off(0)))),
    split_off(0, 0, 0, 0),
    source(rule("map_map_of_slide")),
)
"""The elements of the array are split, not those of its windows."""

group_of_rows = seq(
    # transpose(map(w -> transpose(map(transpose)(w)))(transpose(map(slide)(rows))))
    source(seq(split_off(0), source(rule("map_map_of_transpose")))),
    at_path((0, 0, 0), seq(rule("map_fusion"), body(rule("map_transpose_of_slide")), split_off(0))),
    rule("transpose_braid_back"),
    # map(transpose)(transpose(map(transpose)(map(transpose)(map(row -> ...)(rows)))))
    at_path((0, 0), seq(rule("map_fusion"), body(rule("transpose_twice")), rule("map_identity"))),
    at_path((0, 0), split_off(0)),
    source(rule("transpose_of_map_map")),
    rule("map_fusion"),
)
"""The windows of the columns of some rows, for each group, are made of the rows of the group."""

group_of_array = seq(
    # transpose(map(rows -> map(g -> transpose(map(slide)(g)))(transpose(map(transpose)(rows))))(
    # slide(xs)))
    source(split_off(0)),
    rule("transpose_of_map_map"),
    at_path(
        (0, 0),
        seq(split_off(0), source(rule("map_map_of_slide")), rule("map_transpose_of_slide")),
    ),
    source(rule("transpose_twice")),
    rule("map_fusion"),
)
"""The windows of an array, for each group, are those of the group's part of the array."""


def exchanged(expr: Expr) -> Result:
    """`groups_outside` for maps of which the innermost maps over the groups."""
    outside = seq(body(map_outside), split_off(0), source(map_outside))
    parts = seq(source(split_first), source(body(group_of_rows)), group_of_array)
    fused = seq(source(rule("zip_of_map_first")), tuples_fused(), body(rule("map_fusion")))
    return seq(outside, at_path((0, 0), seq(at_path((0, 0), parts), fused)))(expr)
