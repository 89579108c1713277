"""Gradients of `at` and of `reduceByIndex` with addition: each is the adjoint of the other.

An index is not differentiated: like the condition of `select`, it decides which element is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from liftpy.gradient.bins import addend, one_pair, zeros
from liftpy.gradient.cotangent import Cotangent, addition, float_leaves, from_leaves, leaves, mapped
from liftpy.gradient.refusal import NoDerivative
from liftpy.gradient.scope import Pull, Scope
from liftpy.ir.call import FunCall, call, substitute
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import Get, Primitive, ScalarOp, function_of
from liftpy.ir.types import FLOATS, INTEGERS, Type
from liftpy.ir.walk import every_part
from liftpy.primitives import At, Map, ReduceByIndex, Zip
from liftpy.primitives.map import array_of

CONVERSIONS = frozenset(map(str, INTEGERS))


def pull_at(pull: Pull, expr: FunCall, ct: Cotangent, scope: Scope) -> None:
    """Pass on the cotangent of an element: it is added to the place where it was read."""
    index, xs = expr.args
    check_index(expr, index, scope)
    place, own = scope.value(index), dict(float_leaves(xs.type))
    back = [(leaf, in_bins(own[leaf], place, value)) for leaf, value in leaves(ct)]
    pull(xs, from_leaves(xs.type, back), scope)


def in_bins(t: Type, place: Expr, value: Expr) -> Expr:
    """An array of type `t` with a value at one index and 0 elsewhere."""
    return call(adding(array_of("at", t).element), zeros(t), one_pair(place, value))


def adding(element: Type) -> ReduceByIndex:
    """The reduction by index that adds."""
    return ReduceByIndex(addition(element))


def pull_bins(pull: Pull, expr: FunCall, ct: Cotangent, scope: Scope) -> None:
    """Pass on the cotangents of bins: each value has that of its bin, read at its index."""
    init, pairs = expr.args
    step = function_of(expr.fun)
    if step is None or not isinstance(ct, Expr) or (value := addend(step)) is None:
        why = "only sums by index have a gradient: the function must add to its accumulator"
        raise NoDerivative(expr, why, "write it as a map over the bins that folds the pairs")
    check_index(expr, index_part(pairs), scope)
    _, x = step.params
    pull(init, ct, scope)
    given = mapped(lambda i: call(At(), i, ct), places_of(pairs, scope))
    if value == x:
        pull(pairs, (None, given), scope)
        return
    p = Param("p", array_of("reduceByIndex", pairs.type).element)
    each = Lambda((p,), substitute(value, {x: FunCall(Get(1), (p,))}))
    pull(call(Map(each), pairs), given, scope)


def places_of(pairs: Expr, scope: Scope) -> Expr:
    """The indices of an array of pairs, in the gradient."""
    part = index_part(pairs)
    if part is not pairs:
        return scope.value(part)
    return mapped(lambda p: call(Get(0), p), scope.value(pairs))


def index_part(pairs: Expr) -> Expr:
    """The array of indices of a `zip` or of a map to pairs; of others, the pairs themselves."""
    match pairs:
        case FunCall(Zip(), (indices, _)):
            return indices
        case FunCall(Map(Lambda(params, Tuple((index, _)))), args):
            return call(Map(Lambda(params, index)), *args)
        case _:
            return pairs


def check_index(expr: FunCall, index: Expr, scope: Scope) -> None:
    """Refuse an index that is converted from a number that depends on a wanted variable."""
    if scope.depends(index) and any(map(is_conversion, parts_of_value(index, scope))):
        why = "the index is converted from a floating-point number, so the result jumps"
        raise NoDerivative(expr, why, "make the index a parameter of type i32")


def parts_of_value(index: Expr, scope: Scope) -> list[Expr]:
    """The parts of an index, and of the values of the variables in it."""
    variables = [p for p in index.free if scope.wanted(p)]
    values = [scope.lookup(p) for p in variables]
    return [part for e in (index, *values) for part in with_bodies(e)]


def with_bodies(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression, and those of the user functions that it calls."""
    for part in every_part(expr):
        yield part
        if isinstance(part, FunCall) and isinstance(part.fun, UserFun):
            yield from with_bodies(part.fun.body)


def is_conversion(part: Expr) -> bool:
    """Whether a part converts a floating-point number to an integer."""
    match part:
        case FunCall(ScalarOp(op=op), (arg,)):
            return op in CONVERSIONS and arg.type in FLOATS
        case _:
            return False


BY_INDEX: Mapping[type[Primitive], Callable[[Pull, FunCall, Cotangent, Scope], None]] = {
    At: pull_at,
    ReduceByIndex: pull_bins,
}
