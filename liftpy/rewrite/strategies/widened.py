"""Operands of exact sums of small integers, converted to f32 once instead of at each reading.

A sum of products of two small integers may be computed in f32 as far as it is exact
(`in_floats.py`). Each operand is then converted where it is read: once for each result that reads
it. Here the conversions are moved out of all functions and past the layouts that the sum reads,

    slide(xs) |> map(window -> reduce((a, t) -> a + f32(t.0) * f32(t.1), 0, zip(window, ys)))

becomes a program of `map(f32)(xs)` and `map(f32)(ys)`, with no conversion in the sum. These arrays
are values of the program, which a stage can store: in each run, or before the runs if they are made
from constants.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import F32, I32
from liftpy.ir.walk import Path, at, children, lambda_of, top_down
from liftpy.primitives import Layout, Map
from liftpy.rewrite.strategies.elementwise import is_variable
from liftpy.rewrite.strategies.epilogue import tuples_fused
from liftpy.rewrite.strategies.in_floats import FLAT, sums_in_f32
from liftpy.rewrite.strategies.inward import past
from liftpy.rewrite.strategies.lower import nest_reductions
from liftpy.rewrite.strategies.outward import component, rotated_right
from liftpy.rewrite.strategies.shapes import (
    body_of,
    is_padding,
    is_reduce,
    is_view,
    named_part,
    zipped,
)
from liftpy.rewrite.strategies.sliced import innermost_length
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    choose,
    fail,
    normalize,
    rule,
    seq,
)

STRIPS = range(1024, 15, -1)
"""Numbers of products that f32 may sum, the largest first, if neither a sum nor its rows are exact.

No sum of more products of 8-bit integers is exact. In shorter strips, most of the work is in i32.
"""

OPERANDS = ("left", "right")
"""The names of converted operands: that of the outer map, and that of the inner one."""

SIDES = ("first", "second")
"""The components of a pair in the names of laws."""


def exact_sum(expr: Expr) -> Result:
    """Compute a sum of integers in f32, in the longest strips that are exact."""
    flat = FLAT(expr)
    if isinstance(flat, Failure):
        return flat
    length = innermost_length(flat.expr)
    strips = [m for m in STRIPS if length % m == 0] or [length]
    return choose(*map(sums_in_f32, strips))(expr)


def operands_widened(expr: Expr) -> Result:
    """Compute the integer sum of an expression in f32, from operands that are converted in lets.

    Fails if there is no such sum, or if a conversion remains in a function.
    """
    found = [path for path, part in top_down(expr) if is_reduce(part) and part.type == I32]
    if len(found) != 1:
        return Failure("operands_widened", f"{len(found)} sums of integers are here, not one")
    nested = seq(exact_sum, normalize(rule("split_of_zip")), nest_reductions())
    apart = seq(nested, conversions_apart)
    return seq(at_path(found[0], apart), conversions_outside, conversions_named)(expr)


def conversions_apart(expr: Expr) -> Result:
    """Move the conversions of both operands out of the innermost fold, which adds products."""
    found = [path for path, part in top_down(expr) if is_reduce(part) and part.type == F32]
    if not found:
        return Failure("operands_widened", "no sum is computed in f32")
    path, fold = found[-1], at(expr, found[-1])
    *_, element = parameters(fold)
    steps: list[Strategy] = []
    for side, word in enumerate(SIDES):
        conversions = (p for p, e in top_down(body_of(fold)) if converts(e))
        read = (p for p in conversions if component(at(fold, (2, *p, 0)), element) == (side,))
        hint = next(read, None)
        if hint is None:
            return Failure("operands_widened", "an operand is not converted to f32")
        steps.append(at_path(path, rule(f"reduce_fission_{word}", {"g": hint})))
    return seq(*steps)(expr)


def parameters(call: Expr) -> tuple[Param, ...]:
    """The parameters of the function of a map or fold."""
    return lambda_of(call.fun).params if isinstance(call, FunCall) else ()


def converts(expr: Expr) -> bool:
    """Whether an expression converts a number to f32."""
    return isinstance(expr, FunCall) and expr.fun == ScalarOp("f32")


def is_widened(expr: Expr) -> bool:
    """Whether an expression is an array converted to f32: nested maps of a conversion."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Map):
        return False
    (element,), body = expr.fun.f.params, expr.fun.f.body
    inner = converts(body) or is_widened(body)
    return inner and children(body)[0] == element


def widened(expr: Expr, path: Path = ()) -> Iterator[Path]:
    """The paths of arrays converted to f32."""
    if is_widened(expr):
        yield path
        return
    for k, part in enumerate(children(expr)):
        yield from widened(part, (*path, k))


def conversions_outside(expr: Expr) -> Result:
    """Move converted arrays out of all functions, and conversions past the layouts they read."""
    result = Success(expr)
    while True:
        moved = next(filter(None, (further(result.expr, p) for p in widened(result.expr))), None)
        if moved is None:
            return result
        result = Success(moved.expr, (*result.steps, *moved.steps))


def further(expr: Expr, path: Path) -> Success | None:
    """Move the conversion at a path one step; None if no law permits it.

    It is not moved past padding: the padded array is what a stage stores.
    """
    (source,) = children(at(expr, path))[:1]
    if is_variable(source):
        step = out_of_function(expr, path)
    elif is_padding(source) or not isinstance(source, FunCall):
        return None
    elif isinstance(source.fun, Layout):
        step = at_path(path, past)
    elif isinstance(source.fun, Map) and is_view(source.fun):
        step = at_path(path, rule("map_fusion"))
    else:
        return None
    result = step(expr) if step else None
    return result if isinstance(result, Success) and result.steps else None


def out_of_function(expr: Expr, path: Path) -> Strategy | None:
    """Move an array out of the function from whose parameter it is made; None if there is none."""
    source = children(at(expr, path))[0]
    for depth in reversed(range(len(path))):
        place, call = path[:depth], at(expr, path[:depth])
        if not isinstance(call, FunCall) or path[depth] != len(call.args):
            continue
        element = next(iter(parameters(call)[-1:]), None)
        parts = None if element is None else component(source, element)
        if parts is not None:
            return at_path(place, before(call, parts, path[depth + 1 :]))
    return None


def before(call: FunCall, parts: Path, place: Path) -> Strategy:
    """Compute a component of the elements that a map or fold reads before it."""
    kind = "map" if isinstance(call.fun, Map) else "reduce"
    if kind == "map" and len(zipped(call.args[0])) > len(SIDES):
        return rule("map_of_zip_of_three")
    if not parts:
        return rule("map_fission" if kind == "map" else "reduce_map_fission", {"g": place})
    if parts[0] >= len(SIDES):
        return fail("no law is about a fold of a zip of three arrays")
    if len(parts) == 1:
        return rule(f"{kind}_fission_{SIDES[parts[0]]}", {"g": place})
    swapped = seq(at_path((0,), rule("zip_swap")), tuples_fused())
    return rotated_right if parts[0] == 0 else swapped


def conversions_named(expr: Expr) -> Result:
    """Name the converted arrays, that of the outer map first; fails if one is in a function."""
    found = [*widened(expr)]
    if len(found) != len(OPERANDS) or any(not at(expr, path).free <= expr.free for path in found):
        return Failure("operands_widened", "an operand is computed in a function")
    parts = enumerate(zip(OPERANDS, found, strict=True))
    return seq(*(at_path((1,) * k, named_part(*part)) for k, part in parts))(expr)
