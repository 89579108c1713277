"""Moves values that the function of a map names out of the map.

From `map(x -> let v = f(x) in g(x, v))(xs)` to `let v = map(f)(xs) in map(t -> g(t.0, t.1))(zip(xs,
v))`, so that each value is an array that can be a stage. A value that does not depend on the
element moves out as it is, and is computed once. Maps over zips keep only the arrays that they
read, so that a stage reads no others.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.walk import at, children, top_down
from liftpy.primitives import Map
from liftpy.rewrite.strategies.epilogue import tuples_fused
from liftpy.rewrite.strategies.shapes import body_of, is_let, parameter, renamed, working_map
from liftpy.rewrite.strategies.share import outside_functions
from liftpy.rewrite.strategies.unread import accesses, component, is_pairs, leaves, overlap, zipped
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    rule,
    seq,
)


def lets_outside(expr: Expr) -> Result:
    """Move every let at the beginning of a map's function out of the map; fails if there is none.

    The variables keep their names, unless the map reads another variable of the same name.
    """
    return seq(read_parts, first_outside, rest)(expr)


def first_outside(expr: Expr) -> Result:
    """Move the first let of a map's function out of the map."""
    if not (isinstance(expr, FunCall) and isinstance(expr.fun, Map)):
        return Failure("lets_outside", "no map here")
    named = body_of(expr)
    if not is_let(named):
        return Failure("lets_outside", "the function of the map names nothing")
    name = parameter(named).name
    if parameter(expr) not in children(named)[0].free:
        return rule("map_of_invariant_let")(expr)

    def keep(made: Expr) -> Result:
        return Success(renamed(made, (), name))

    return seq(rule("map_of_let"), keep, at_path((0,), read_parts))(expr)


def rest(expr: Expr) -> Result:
    """Go on with the map that a let has been moved out of."""
    return at_path((1,), seq(read_parts, attempt(lets_outside)))(expr)


def map_outside(expr: Expr) -> Result:
    """Exchange a map with the map of a zip that makes each of its elements, below layouts.

    From `map(x -> map(f)(zip(g(x), ys)))(xs)` to `transpose(map(t -> map(x -> f(x, t.1))(t.0))(zip(
    transpose(map(g)(xs)), ys)))`.
    """
    if not (isinstance(expr, FunCall) and isinstance(expr.fun, Map)):
        return Failure("map_outside", "no map here")
    place = next((p for p, e in outside_functions(body_of(expr)) if working_map(e)), None)
    if place is None or zipped(at(expr, (1, *place))) is None:
        return Failure("map_outside", "no map of a zip makes each element")
    exchanged = seq(
        rule("map_fission", {"g": (0, 0)}),
        at_path((0,), rule("transpose_introduction")),
        rule("maps_of_zip_of_transpose"),
    )
    apart = rule("map_fission", {"g": place})
    parts = at_path((1, *place), seq(read_parts, rotated_right))
    return seq(parts, seq(apart, at_path((0,), exchanged)) if place else exchanged)(expr)


def read_parts(expr: Expr) -> Result:
    """Reduce the zip that a map reads, of two or three arrays or nested, to the arrays it reads."""
    source = zipped(expr)
    if source is None:
        return Success(expr)
    if len(source.args) > 2:
        return seq(attempt(rule("map_of_zip_of_three")), two_parts)(expr)
    return two_parts(expr)


def two_parts(expr: Expr) -> Result:
    """`read_parts` for nested zips of two arrays."""
    source = zipped(expr)
    if source is None or len(source.args) != 2:
        return Success(expr)
    read = [*accesses(body_of(expr), parameter(expr))]
    if all(any(overlap(path, p) for p in read) for path in leaves(source)):
        return Success(expr)
    return seq(rotated_right, without_unread)(expr)


def rotated(law: str) -> Strategy:
    """Associate the zip that a map reads differently."""
    return seq(at_path((0,), rule(law)), tuples_fused())


def rotated_right(expr: Expr) -> Result:
    """Make the first array of the zip that a map reads one that is no zip."""
    source = zipped(expr)
    if source is None or not is_pairs(source.args[0]):
        return Success(expr)
    return seq(rotated("zip_rotate_right"), rotated_right)(expr)


def without_unread(expr: Expr) -> Result:
    """Leave out unread arrays of `zip(read, zip(next, others))`, next and in others."""
    source = zipped(expr)
    if source is None or not is_pairs(source):
        return Success(expr)
    read = {*accesses(body_of(expr), parameter(expr))}
    if all(path[:1] == (1,) for path in read):
        return seq(rule("map_zip_second"), without_unread)(expr)
    if all(path[:1] == (0,) for path in read):
        return rule("map_zip_first")(expr)
    if not is_pairs(source.args[1]):
        return Success(expr)
    mine = {path for path in read if path[:1] == (1,)}
    for k, law in enumerate(("map_zip_first", "map_zip_second")):
        if all(path[:2] == (1, k) for path in mine):
            return seq(only(k, law), without_unread)(expr)
    return seq(rotated("zip_rotate_left"), without_unread)(expr)


def only(k: int, law: str) -> Strategy:
    """Replace `zip(next, others)`, the second array that a map reads, by one of the two."""

    def run(expr: Expr) -> Result:
        pair = parameter(expr)
        place = next(p for p, e in top_down(body_of(expr)) if component(e, pair) == (1, k))
        apart = rule("map_fission_second", {"g": place})
        return seq(apart, at_path((0, 1), seq(rule(law), rule("map_identity"))))(expr)

    return run
