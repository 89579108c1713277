"""Folds in passes: each pass combines a plane of terms with the results so far, in their buffer.

The expected shape is maps that make folds:

    map(x -> map(y -> reduce(f(x, y))))

Some of the maps and the folds are exchanged, so that a step of the fold is a map over a plane of
results. Pass k combines term k of every result with it. A sum of windows then adds planes as large
as the result, each with all terms at one place of a window; so does an overlap-add.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike
from liftpy.ir.walk import Path, at, every_part
from liftpy.primitives import Layout
from liftpy.rewrite.strategies.epilogue import apart, inner_apart
from liftpy.rewrite.strategies.lanes import vectorized
from liftpy.rewrite.strategies.lower import (
    INNER,
    chain,
    clean,
    elementwise,
    exposed,
    over_ids,
    sequential,
)
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_folded,
    is_reduce,
    longest,
    maps_over,
    nests,
    rank,
)
from liftpy.rewrite.strategies.share import outside_functions
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    identity,
    normalize,
    rule,
    seq,
)

START, SOURCE, STEP = 0, 1, 2
"""The parts of a fold: what it begins with, the array, the body of its function."""
NO = "no"
"""The planes of terms are read from the buffers of the stage; else the memory that holds them."""
ONE, MANY = "one", "many"
"""How many work-items of a group make a plane of results."""


def folds_apart(expr: Expr) -> Result:
    """Apply what is computed from each fold to an array of the folds."""
    paths = [*chain(nests(expr))]
    if not paths or not is_folded(body_of(at(expr, paths[-1]))):
        return Failure("folds_apart", "no map of folds makes the result")
    made = is_reduce
    steps: list[Strategy] = [at_path(paths[-1], inner_apart)]
    for path in reversed(paths[:-1]):
        made = maps_over(made)
        steps.append(at_path(path, apart(made)))
    return seq(*steps)(expr)


def part_with_folds(expr: Expr) -> Path | None:
    """The path of the outermost of the maps whose innermost function is a fold."""
    for path, part in outside_functions(expr):
        paths = [*chain(nests(part, path))]
        if paths and paths[0] == path and is_reduce(body_of(at(expr, paths[-1]))):
            return path
    return None


def is_stored_in_place(expr: Expr, path: Path) -> bool:
    """Whether the part at a path is stored where the result is: only layouts follow it.

    Each of its elements must have a place, so the inverse of no layout adds elements.
    """
    while path:
        match expr:
            case FunCall(Layout() as layout, (source,)):
                inverse = layout.inverse(source.type)
            case _:
                return False
        if not isinstance(inverse, Layout) or inverse.constants():
            return False
        expr, path = source, path[1:]
    return True


def folds_of(expr: Expr) -> Iterator[FunCall]:
    """A fold, the fold that is its step, and so on."""
    while isinstance(expr, FunCall) and is_reduce(expr):
        yield expr
        expr = body_of(expr)


def reads_no_folds(fold: Expr) -> bool:
    """Whether a fold, whose step may be a fold again, reads nothing that is folded itself."""
    every = [*folds_of(fold)]
    parts = (*(f.args[SOURCE] for f in every), body_of(every[-1]))
    return not any(is_reduce(part) for read in parts for part in every_part(read))


def passes(expr: Expr) -> int:
    """The number of passes of maps of folds: the number of terms of a result."""
    fold = body_of(at(expr, [*chain(nests(expr))][-1]))
    return prod(longest(array_type(f.args[SOURCE])) for f in folds_of(fold))


def exchanged() -> Strategy:
    """Exchange a map and its fold, and then the map in the step and the fold in it, if any."""

    def inside(expr: Expr) -> Result:
        again = maps_over(is_reduce)(body_of(expr))
        return at_path((STEP,), exchanged())(expr) if again else Success(expr)

    constant = attempt(normalize(rule("map_as_repeat")))
    return seq(rule("map_reduce_interchange"), at_path((START,), constant), clean(), inside)


def in_planes(kept: int, width: NatLike | None = None) -> Strategy:
    """Exchange maps of folds, but the outermost `kept`, with the folds; nested folds become one.

    With a width, the innermost map of a step is in vectors.
    """

    def run(expr: Expr) -> Result:
        paths = [*chain(nests(expr))]
        if len(paths) <= kept:
            return Failure("in_planes", f"there are no more than {kept} maps")
        one = at_path((*paths[-1], 1), attempt(normalize(rule("reduce_of_reduce"))))
        exchange = [at_path(path, exchanged()) for path in reversed(paths[kept:])]
        vectors = is_plane if width is None else in_vectors(width)
        vectors = at_step(paths[kept], vectors)
        return seq(one, *exchange, vectors)(expr)

    return run


NO_PLANE = Failure("in_planes", "no map over a plane makes the step")


def is_plane(expr: Expr) -> Result:
    """Succeed if a map makes the step of a fold."""
    return Success(expr) if nests(expr) else NO_PLANE


def in_vectors(width: NatLike) -> Strategy:
    """Put the innermost of nested maps in vectors."""

    def run(expr: Expr) -> Result:
        paths = [*chain(nests(expr))]
        return at_path(paths[-1], vectorized(width))(expr) if paths else NO_PLANE

    return run


def at_step(path: Path, strategy: Strategy) -> Strategy:
    """Apply a strategy to the innermost step of the fold at a path."""

    def run(expr: Expr) -> Result:
        steps = [STEP for _ in folds_of(at(expr, path))]
        return at_path((*path, *steps), strategy)(expr)

    return run


def held(memory: str, outermost: str) -> Strategy:
    """Copy an array of terms to `local` or `private` memory; `outermost` lowers the first map."""

    def run(expr: Expr) -> Result:
        depth = rank(expr.type)
        words = [outermost, *["map_to_seq"] * (depth - 1)]
        lowered = (at_path((1,) * k, rule(word)) for k, word in enumerate(words))
        return seq(rule(f"to_{memory}"), at_path((0,), seq(elementwise(depth), *lowered)))(expr)

    return run


def with_levels(kept: int, hold: str, items: str) -> Strategy:
    """Assign levels to maps of folds in planes, and the folds to passes in place.

    Without maps around the folds, each pass is a kernel over global ids. Else these maps are over
    global ids, or over work-groups: if planes are in `local` memory, or for `many` work-items,
    which share the outermost map of a plane.
    """

    def run(expr: Expr) -> Result:
        around = [*chain(nests(expr))]
        if len(around) < kept:
            return Failure("with_levels", f"fewer than {kept} maps are around the folds")
        fold = (*around[kept - 1], 1) if kept else ()
        copies = "map_to_lcl_0" if items == MANY else "map_to_seq"
        terms = identity if hold == NO else at_path((*fold, SOURCE), held(hold, copies))
        if kept == 0:
            levels = at_step((), over_ids("glb"))
        elif items == MANY:
            levels = seq(at_step(fold, INNER["lcl"]), rule("map_to_wrg_0"))
        else:
            levels = over_ids("wrg" if hold == "local" else "glb")
        paths = ((*fold, *[STEP] * k) for k, _ in enumerate(folds_of(at(expr, fold))))
        passed = (at_path(path, rule("reduce_to_in_place")) for path in paths)
        return seq(terms, levels, *passed)(expr)

    return run


def planes(kept: int, hold: str = NO, items: str = ONE, width: NatLike | None = None) -> Strategy:
    """Lower a stage that makes folds: its folds in passes, what is computed from them after it."""

    def run(expr: Expr) -> Result:
        path = part_with_folds(expr)
        if path is None:
            return Failure("planes", "no map of folds makes the result")
        made = seq(in_planes(kept, width), with_levels(kept, hold, items))
        if is_stored_in_place(expr, path):
            return seq(at_path(path, made), sequential())(expr)
        stored = seq(rule("to_global"), at_path((0,), made))
        return seq(at_path(path, stored), over_ids("glb"), sequential())(expr)

    return seq(exposed_folds(), run)


@cache
def exposed_folds() -> Strategy:
    """Expose the maps that make the result, with what is computed from folds after the folds."""
    return remembered(seq(exposed(), attempt(folds_apart)))
