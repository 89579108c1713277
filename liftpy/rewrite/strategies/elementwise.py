"""Moves an operation on each element of a result to where the element is computed.

`map(map(f))` moves past every layout that keeps each element, into the map below them, and so on
inwards, until `f` is applied to an element as soon as it is computed. The layouts may be maps of
layouts and crops, as those around the tiles of F(m, r); other arrays that `f` reads through `zip`
get the inverse layouts. Unlike `fused_inward` (epilogue.py), what computes the elements may be
straight-line code instead of a fold.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.primitive import Get
from liftpy.ir.walk import at, children, every_part
from liftpy.primitives import Join, Map, Pad, Split, Transpose, Uncover, Zip
from liftpy.primitives.work import is_layout
from liftpy.rewrite.strategies.epilogue import (
    ZIP_OF_MAP,
    fused_inward,
    keeps_each,
    tuples_fused,
)
from liftpy.rewrite.strategies.inward import past
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_let,
    lists_elements,
    maker,
    parameter,
    rank,
    working_map,
)
from liftpy.rewrite.strategies.share import has_fold_in, invariant, stages
from liftpy.rewrite.strategy import (
    Failure,
    Predicate,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    choose,
    fail,
    identity,
    rule,
    seq,
)


def to_elements(expr: Expr) -> Result:
    """Move an operation on each element of a result into the map that makes small arrays.

    If this map makes the result itself, the expression is unchanged. Fails if the map that makes
    the result still reads small arrays, since it does not read them element by element.
    """
    place = maker(expr)
    if not working_map(at(expr, place)):
        return Failure("to_elements", "the result is not made by a map")
    result = at_path(place, moved(has_lists))(expr)
    if isinstance(result, Success):
        last = at(result.expr, maker(result.expr))
        if not isinstance(last, FunCall) or any(map(has_lists, last.args)):
            return Failure("to_elements", "an array is not read element by element")
    return result


def folds_inward(expr: Expr) -> Result:
    """`fused_inward`, or, where it has no law, the operation moved along the arrays that fold.

    The second form is that of an operation that reads another array besides the results of folds,
    such as a residual, below layouts that only `moved` knows.
    """
    result = fused_inward(expr)
    if isinstance(result, Success):
        return result
    place = maker(expr)
    if not working_map(at(expr, place)):
        return result
    other = at_path(place, moved(has_fold_in))(expr)
    if isinstance(other, Failure) or next(stages(other.expr), None) is not None:
        return result
    return other


def recomputes(stage: Expr) -> int:
    """The number of arrays of folds in a stage that are recomputed at each reading."""
    inward = folds_inward(stage)
    if isinstance(inward, Failure):
        return sum(1 for _ in stages(stage)) + sum(1 for _ in invariant(stage))
    return sum(1 for _ in invariant(inward.expr))


def has_lists(expr: Expr) -> bool:
    """Whether a part of an expression is a small array with an expression for each element."""
    return any(lists_elements(part) for part in every_part(expr))


def sums_in(expr: Expr) -> bool:
    """Whether a part folds. An operation that moves along such parts stops at the fold."""
    return has_fold_in(expr)


def moved(leads: Predicate) -> Strategy:
    """Move `map(f)` past layouts into the map below them, along the arrays that satisfy `leads`."""

    def run(expr: Expr) -> Result:
        if is_let(expr):
            return at_path((1,), run)(expr)
        if not isinstance(expr, FunCall) or not isinstance(expr.fun, Map):
            return Failure("moved", "no map is here")
        (source,) = expr.args
        if not leads(source) or is_variable(source):
            return Success(expr)
        if not isinstance(source, FunCall):
            return Failure("moved", "the array that is read is not made by a call")
        if isinstance(source.fun, Zip):
            return past_zip(source, leads)(expr)
        if isinstance(source.fun, Map):
            return seq(rule("map_fusion"), inside(source.fun, leads))(expr)
        if is_let(source):
            return seq(let_outwards(0), at_path((1,), run))(expr)
        if keeps_each(source):
            here = seq(choose(past, past_transpose), at_path((0,), run))
            return choose(here, within_layout(leads))(expr)
        return Failure("moved", "a layout does not keep each element")

    return run


def is_variable(expr: Expr) -> bool:
    """Whether an expression is a variable or a component of one."""
    return isinstance(expr, Param) or (
        isinstance(expr, FunCall) and isinstance(expr.fun, Get) and is_variable(expr.args[0])
    )


def let_outwards(*path: int) -> Strategy:
    """`map(f)(let x = v in b)` as `let x = v in map(f)(b)`, the let at a path."""
    return seq(rule("let_introduction", {"v": (*path, 0)}), at_path((1, *path), rule("let_inline")))


def inside(mapped: Map, leads: Predicate) -> Strategy:
    """Move `f` further in `map(x -> f(g(x)))`, where `mapped` is `map(g)`.

    If g is a layout, it is moved outside, and the map of `f` on. A function g of scalars remains
    with f where no map below it can have both.
    """

    def run(expr: Expr) -> Result:
        made = body_of(expr)
        if is_layout(mapped):
            return within_layout(leads)(expr)
        if rank(made.type) == 0:
            return attempt(moved(leads))(expr)
        along = has_lists if has_lists(made) else starts_from(expr)
        along = leads if leads is sums_in else along
        return seq(at_path((1, *maker(made)), moved(along)), further(leads))(expr)

    return run


def within_layout(leads: Predicate) -> Strategy:
    """Move `f` in `map(x -> map(f)(layout(x)))` past the layout, which is moved outside."""

    def run(expr: Expr) -> Result:
        within = at_path((1, *maker(body_of(expr))), moved(starts_from(expr)))
        return seq(within, layout_outside, at_path((0,), moved(leads)))(expr)

    return run


def starts_from(expr: Expr) -> Predicate:
    """Whether a part reads the element of a map, or its first component if the map is of a zip."""
    source, element = children(expr)[0], parameter(expr)
    zipped = isinstance(source, FunCall) and isinstance(source.fun, Zip)
    read = FunCall(Get(0), (element,)) if zipped else element
    return lambda part: any(e == read for e in every_part(part))


def layout_outside(expr: Expr) -> Result:
    """`map(x -> layout(g(x)))` as `map(layout)(map(g))`."""
    view = maker(body_of(expr))
    if not view:
        return Failure("layout_outside", "no layout is around the result of the function")
    return rule("map_fission", {"g": view})(expr)


def further(leads: Predicate) -> Strategy:
    """Move a map on, if the array that it reads satisfies `leads`."""

    def run(expr: Expr) -> Result:
        if not isinstance(expr, FunCall) or not leads(expr.args[0]):
            return Success(expr)
        if maker(body_of(expr)):
            return seq(layout_outside, at_path((0,), moved(leads)))(expr)
        return moved(leads)(expr)

    return run


def past_transpose(expr: Expr) -> Result:
    """Move `map(x -> map(f)(zip(x, ys)))` past the transpose that it reads."""
    element = parameter(expr)
    apart = at_path((1,), moved(lambda part: element in part.free))
    return seq(apart, rule("maps_of_zip_of_transpose"))(expr)


# --- other arrays ---------------------------------------------------------------------------------


def past_zip(source: FunCall, leads: Predicate) -> Strategy:
    """Move `map(f)` of a zip past what makes its part that satisfies `leads`."""
    found = [k for k, part in enumerate(source.args) if leads(part)]
    if len(source.args) != 2 or len(found) != 1:
        return fail("a zip of more than two arrays, or of two that are computed")
    again = moved(leads)
    if found == [1]:
        return seq(at_path((0,), rule("zip_swap")), tuples_fused(), again)
    part, other = source.args
    if not isinstance(part, FunCall) or is_variable(part):
        return identity
    if is_let(part):
        return seq(let_outwards(0, 0), at_path((1,), again))
    match part.fun:
        case Zip():
            first = seq(at_path((0, 0), rule("zip_swap")), at_path((0,), rule(ZIP_OF_MAP[0])))
            apart = at_path((0,), rule("zip_rotate_right"))
            return seq(apart if leads(part.args[0]) else first, tuples_fused(), again)
        case Map():
            zipped = at_path((0,), rule(ZIP_OF_MAP[0]))
            return seq(zipped, tuples_fused(), inside(part.fun, leads))
        case Join():
            length = array_type(part).length.exact_div(array_type(part.args[0]).length)
            cut = rule("split_introduction", m=length)
            return seq(
                at_path((0, 1), cut),
                at_path((0,), rule("zip_of_joins")),
                rule("map_of_join"),
                at_path((0,), seq(rule("map_fusion"), again)),
            )
        case Uncover():
            _, size, *_ = array_type(part.args[0]).shape
            return seq(
                at_path((0, 1), rule("uncover_introduction", m=size)),
                at_path((0,), rule("zip_of_uncovers")),
                rule("map_of_uncover"),
                at_path((0,), seq(rule("map_fusion"), again)),
            )
        case Pad(left, right) if keeps_each(part):
            padded = rule("pad_introduction", a=-left, b=-right)
            return seq(
                at_path((0, 1), padded),
                at_path((0,), rule("zip_of_pads")),
                rule("map_of_crop"),
                at_path((0,), again),
            )
        case Split() if rank(other.type) > 1:
            laws = "join_introduction", "zip_of_splits", "map_map_of_split"
            return seq(past_both(*laws), at_path((0,), again))
        case Transpose() if rank(other.type) > 1:
            laws = "transpose_introduction", "zip_of_transposes", "map_map_of_transpose"
            law = seq(past_both(*laws), at_path((0,), again))
            return choose(law, seq(past_rows, at_path((0,), again)))
        case Transpose():
            return seq(past_rows, at_path((0,), again))
        case _:
            return fail("a zip of another layout")


def past_both(inverse: str, zips: str, law: str) -> Strategy:
    """`map(x -> map(f)(zip(x.0, x.1)))(zip(layout(xs), ys))` as the layout of a map of a zip."""
    return seq(
        both_read,
        at_path((0, 1), rule(inverse)),
        rule("map_fission", {"g": (0,)}),
        at_path((0,), rule(zips)),
        rule(law),
        at_path((0,), attempt(rule("map_fusion"))),
    )


def both_read(expr: Expr) -> Result:
    """Bring a map over a zip to the form `map(x -> map(f)(zip(x.0, x.1)))(zip(xs, ys))`."""
    read = at_path((1,), moved(starts_from(expr)))
    return seq(read, attempt(rule("map_fission_second", {"g": (0, 1)})))(expr)


def past_rows(expr: Expr) -> Result:
    """`map(t -> map(f(t.1))(t.0))(zip(transpose(xss), ys))` with the transpose around it."""
    return seq(
        rule("transpose_introduction"),
        at_path((0,), rule("transpose_of_maps_of_zip")),
        at_path((0, 0), rule("transpose_twice")),
    )(expr)
