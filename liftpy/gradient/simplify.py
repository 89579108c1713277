"""Simplifies gradients by rules, towards what an expert would write.

A sum over the elements of an array of arrays is a fold of each column of its transpose. Where the
array is computed by a map, the map and the transpose change places, so that each result is a fold
of what it adds, and no array of summands is made. So the gradients of a matrix product are two
products.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.uses import uses
from liftpy.ir.walk import top_down
from liftpy.primitives import (
    ExclusiveScan,
    Iterate,
    Join,
    Map,
    Pad,
    Reduce,
    Reorder,
    Scan,
    Transpose,
    Zip,
)
from liftpy.primitives.work import computes
from liftpy.rewrite.strategies.outward import component, read_parts
from liftpy.rewrite.strategies.shapes import body_of, parameter
from liftpy.rewrite.strategies.sums import one_sum
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
    repeat,
    rule,
    seq,
)

FOLDS = Reduce | Scan | ExclusiveScan | Iterate

INWARD = (
    "map_identity",
    "transpose_twice",
    "join_of_split",
    "split_of_join",
    "pad_nothing",
    "pad_of_pad",
    "unzip_of_zip",
    "zip_of_unzip",
    "map_of_repeat",
    "split_of_map",
    "map_of_reorder",
    "transpose_of_reorder",
    "reduce_of_reorder",
    "crop_of_map",
    "crop_of_slide",
    "overlaps_apart",
    "overlaps_of_maps",
    "split_of_repeat",
    "transpose_of_repeats",
)
"""Rules whose right sides have fewer parts, or whose parts are nearer to the inputs."""


STEPS_EACH = 50
"""Steps for each part of a gradient after which simplifying it is taken not to end."""


def simplified(expr: Expr) -> Expr:
    """An expression after the rules were applied until none applies."""
    laws = (*map(rule, INWARD), windows_of_repeats, crop_of_transpose, joined, fused, fewer_parts)
    fuel = STEPS_EACH * sum(1 for _ in top_down(expr))
    fewer = attempt(normalize(choose(*map(unconditional, laws)), fuel))
    exchanged = repeat(seq(outermost(unconditional(columns)), fewer), fuel)
    sums = seq(attempt(unconditional(one_sum())), fewer)
    result = seq(fewer, exchanged, sums, repeat(outermost(rows_joined), fuel))(expr)
    return result.expr if isinstance(result, Success) else expr


def unconditional(strategy: Strategy) -> Strategy:
    """Apply a strategy where its conditions on sizes are known to hold."""

    def run(expr: Expr) -> Result:
        result = strategy(expr)
        if isinstance(result, Success) and any(step.conditions for step in result.steps):
            return Failure("unconditional", "it has conditions on sizes that are not known")
        return result

    return run


def is_map(expr: Expr) -> bool:
    """Whether an expression is a map."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, Map)


def columns(expr: Expr) -> Result:
    """Exchange a transpose and the maps that it reads: each column is then made by a map."""
    rows = expr.args[0] if isinstance(expr, FunCall) and isinstance(expr.fun, Transpose) else expr
    if rows is expr or not isinstance(rows, FunCall) or not is_map(rows):
        return Failure("columns", "no transpose of a map")
    row = body_of(rows)
    if not isinstance(row, FunCall) or not is_map(row):
        return Failure("columns", "no map makes the rows")
    if computes(rows.args[0]):
        return Failure("columns", "what the outer map reads would be computed for each column")
    free = parameter(rows) not in row.args[0].free
    law = "map_interchange" if free else "map_map_interchange"
    return seq(at_path((0,), rule(law)), rule("transpose_twice"))(expr)


def crop_of_transpose(expr: Expr) -> Result:
    """Move a crop inwards past a transpose."""
    if not (isinstance(expr, FunCall) and isinstance(expr.fun, Pad)):
        return Failure("crop_of_transpose", "no crop here")
    most = [amount.bounds[1] for amount in (expr.fun.left, expr.fun.right)]
    if any(high is None or high > 0 for high in most):
        return Failure("crop_of_transpose", "it may add elements")
    return rule("pad_of_transpose")(expr)


def windows_of_repeats(expr: Expr) -> Result:
    """Turn overlaps of repeated values into windows, if the values are cheap.

    They are then computed once for each window that contains them.
    """
    if any(isinstance(part, FunCall) and isinstance(part.fun, FOLDS) for _, part in top_down(expr)):
        return Failure("windows_of_repeats", "a fold would be computed for each window")
    return rule("overlaps_of_repeats")(expr)


def joined(expr: Expr) -> Result:
    """Move a join inwards past the map that makes its rows, and past zips of rows."""
    rows = expr.args[0] if isinstance(expr, FunCall) and isinstance(expr.fun, Join) else expr
    if rows is expr or not isinstance(rows, FunCall) or not is_map(rows):
        return Failure("joined", "no join of a map")
    row = body_of(rows)
    if is_map(row):
        return seq(at_path((0,), rule("map_fission", {"g": (0,)})), rule("join_of_map_map"))(expr)
    if not (isinstance(row, FunCall) and isinstance(row.fun, Zip) and len(row.args) == 2):
        return Failure("joined", "the rows are neither maps nor zips")
    for k, law in enumerate(("map_fission_first", "map_fission_second")):
        if component(row.args[k], parameter(rows)) != (k,):
            return seq(at_path((0,), rule(law, {"g": (k,)})), joined)(expr)
    return rule("join_of_zips")(expr)


def rows_joined(expr: Expr) -> Result:
    """`join(map(x -> join(g(x))))` as `join(join(map(g)))`, also if the rows are reordered.

    A sum over all elements of a window is written so. Convolutions have forms by F(m, r) for such
    sums, with respect to their inputs, too.
    """
    rows = expr.args[0] if isinstance(expr, FunCall) and isinstance(expr.fun, Join) else expr
    if isinstance(rows, FunCall) and isinstance(rows.fun, Reorder) and is_map(rows.args[0]):
        return seq(at_path((0,), rule("reorder_of_map")), rows_joined)(expr)
    row = body_of(rows) if rows is not expr and is_map(rows) else None
    if not isinstance(row, FunCall) or not isinstance(row.fun, Join):
        return Failure("rows_joined", "no join of joined rows")
    apart = Success if row.args[0] == parameter(rows) else rule("map_fission", {"g": (0,)})
    return seq(at_path((0,), apart), rule("join_of_map_join"))(expr)


def fused(expr: Expr) -> Result:
    """Fuse two maps, if the function of the second uses its parameter once."""
    if not (is_map(expr) and isinstance(expr, FunCall) and is_map(expr.args[0])):
        return Failure("fused", "no map of a map")
    if len([*uses(body_of(expr), parameter(expr))]) != 1:
        return Failure("fused", "the second map uses an element several times")
    return rule("map_fusion")(expr)


def fewer_parts(expr: Expr) -> Result:
    """Leave out arrays of a zip that the function of a map does not read."""
    result = read_parts(expr) if is_map(expr) else Failure("fewer_parts", "no map here")
    if isinstance(result, Success) and not result.steps:
        return Failure("fewer_parts", "every array is read")
    return result
